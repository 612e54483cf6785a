// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reason why a text is not a description of a layout.

/// The reason why a text is not a description of a layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct DescriptionError {
    /// The line, from 1.
    pub line: usize,
    /// The expected and the actual content of the line.
    pub reason: String,
}

/// The characters of a value that a message repeats.
const QUOTED: usize = 40;

impl DescriptionError {
    pub(super) fn new(line: usize, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into() }
    }

    /// The error of `what`, which is `got`.
    pub(super) fn expected(line: usize, what: &str, expected: &str, got: &str) -> Self {
        let what = Quoted(what).to_string();
        Self::new(line, format!("{what}: expected {expected}, got \"{}\"", Quoted(got)))
    }
}

/// Text of a file in a message: its first characters.
pub(super) struct Quoted<'a>(pub &'a str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.char_indices().nth(QUOTED) {
            Some((end, _)) => write!(f, "{}...", &self.0[..end]),
            None => f.write_str(self.0),
        }
    }
}
