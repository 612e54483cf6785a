// SPDX-License-Identifier: MIT OR Apache-2.0
//! File names that contain a frame number. In: a location such as `frame%05d.npy`. Out: the path of
//! each frame's file.

use super::recording::RecordingError;

/// A location that contains a frame number.
#[derive(Debug)]
pub(super) struct Pattern {
    before: String,
    /// Minimum number of digits. Shorter numbers are padded with zeros.
    width: usize,
    after: String,
}

impl Pattern {
    /// Parses a location. Returns `None` if it does not contain `%`.
    ///
    /// # Errors
    /// Returns an error if the location contains `%`, but not exactly one `%d` or one pattern such
    /// as `%05d`.
    pub fn parse(location: &str) -> Result<Option<Self>, RecordingError> {
        let Some((before, rest)) = location.split_once('%') else {
            return Ok(None);
        };
        let bad = || RecordingError::Pattern(location.to_owned());
        let (width, after) = rest.split_once('d').ok_or_else(bad)?;
        let width = match width.strip_prefix('0') {
            None if width.is_empty() => 0,
            // The largest u64 has twenty digits.
            Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
                digits.parse().ok().filter(|&width| width <= 20).ok_or_else(bad)?
            }
            _ => return Err(bad()),
        };
        if after.contains('%') {
            return Err(bad());
        }
        Ok(Some(Self { before: before.to_owned(), width, after: after.to_owned() }))
    }

    /// Returns the path of a frame's file.
    pub fn path(&self, frame: u64) -> String {
        format!("{}{frame:0width$}{}", self.before, self.after, width = self.width)
    }
}
