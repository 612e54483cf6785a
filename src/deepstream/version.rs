// SPDX-License-Identifier: MIT OR Apache-2.0
//! A version of DeepStream.
//!
//! In: two numbers, or text. Out: a version, which can be compared and printed.

use std::fmt;
use std::str::FromStr;

use super::DeepStreamError;

/// A version of DeepStream without its third number: 6.1.1 has the structures of 6.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
}

impl Version {
    /// Creates the version `major.minor`.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Formats the range of versions from `first` to `last`.
    pub fn range(first: Self, last: Self) -> String {
        if first == last { first.to_string() } else { format!("{first} to {last}") }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Version {
    type Err = DeepStreamError;

    /// Parses text such as `7.1` or `6.1.1`.
    fn from_str(text: &str) -> Result<Self, DeepStreamError> {
        let mut numbers = text.split('.').map(str::parse::<u32>);
        match [numbers.next(), numbers.next(), numbers.next(), numbers.next()] {
            [Some(Ok(major)), Some(Ok(minor)), None | Some(Ok(_)), None] => {
                Ok(Self { major, minor })
            }
            _ => Err(DeepStreamError(format!(
                "deepstream-version: expected a version such as 7.1, got {text:?}"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed() {
        assert_eq!("7.1".parse(), Ok(Version::new(7, 1)));
        assert_eq!("6.1.1".parse(), Ok(Version::new(6, 1)));
        for text in ["", "7", "7.", "7.x", "v7.1", "7.1.2.3", "-7.1"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }
}
