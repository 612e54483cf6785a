use super::recording::RecordingError;

/// A location with a frame number in it.
#[derive(Debug)]
pub(super) struct Pattern {
    before: String,
    /// Digits, filled up with zeros.
    width: usize,
    after: String,
}

impl Pattern {
    /// `None` for a location without `%`.
    pub fn parse(location: &str) -> Result<Option<Self>, RecordingError> {
        let Some((before, rest)) = location.split_once('%') else {
            return Ok(None);
        };
        let bad = || RecordingError::Pattern(location.to_owned());
        let (width, after) = rest.split_once('d').ok_or_else(bad)?;
        let width = match width.strip_prefix('0') {
            None if width.is_empty() => 0,
            // The largest number has twenty digits.
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

    /// The file of this frame.
    pub fn path(&self, frame: u64) -> String {
        format!("{}{frame:0width$}{}", self.before, self.after, width = self.width)
    }
}
