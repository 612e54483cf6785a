// SPDX-License-Identifier: MIT OR Apache-2.0
//! Validates text files.
//!
//! In: bytes. Out: UTF-8 text without a byte order mark, or an error with the line number.

/// The reason why bytes are not UTF-8 text. The caller puts the file's name before the message.
#[derive(Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages are the documentation")]
pub enum TextError {
    #[error(
        "is not valid UTF-8: it begins with the byte order mark of {0}; save it as UTF-8, or \
         convert it: iconv -f {0} -t UTF-8"
    )]
    OtherEncoding(&'static str),
    #[error("is not valid UTF-8 in line {0}; save it as UTF-8")]
    NotUtf8(usize),
    #[error("has a zero byte in line {0}; expected text in UTF-8")]
    Zero(usize),
}

/// Interprets `bytes` as UTF-8 text. A byte order mark at the start is not part of the result.
///
/// # Errors
/// If the text has another encoding, is not valid UTF-8, or contains a zero byte.
pub fn text(bytes: &[u8]) -> Result<&str, TextError> {
    // UTF-32 comes first, because the byte order mark of UTF-32LE begins with the mark of UTF-16LE.
    let other = [
        (&b"\xff\xfe\x00\x00"[..], "UTF-32"),
        (b"\x00\x00\xfe\xff", "UTF-32"),
        (b"\xff\xfe", "UTF-16"),
        (b"\xfe\xff", "UTF-16"),
    ];
    if let Some((_, encoding)) = other.into_iter().find(|(mark, _)| bytes.starts_with(mark)) {
        return Err(TextError::OtherEncoding(encoding));
    }
    let line = |end: usize| 1 + bytes[..end].iter().filter(|&&byte| byte == b'\n').count();
    let text =
        str::from_utf8(bytes).map_err(|error| TextError::NotUtf8(line(error.valid_up_to())))?;
    // A label becomes a C string, which ends at the first zero byte.
    if let Some(zero) = text.find('\0') {
        return Err(TextError::Zero(line(zero)));
    }
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_utf8_byte_order_mark_is_removed() {
        assert_eq!(text("\u{feff}person\n".as_bytes()), Ok("person\n"));
        // At other positions it is an ordinary character.
        assert_eq!(text("per\u{feff}son".as_bytes()), Ok("per\u{feff}son"));
    }

    #[test]
    fn other_encodings_are_named() {
        assert_eq!(text(b"\xff\xfep\0"), Err(TextError::OtherEncoding("UTF-16")));
        assert_eq!(text(b"\xfe\xff\0p"), Err(TextError::OtherEncoding("UTF-16")));
        assert_eq!(text(b"\xff\xfe\0\0p\0\0\0"), Err(TextError::OtherEncoding("UTF-32")));
    }

    #[test]
    fn invalid_bytes_are_reported_with_their_line() {
        assert_eq!(text(b"tea\ncaf\xe9\n"), Err(TextError::NotUtf8(2)));
        assert_eq!(text(b"tea\n\nco\0ffee\n"), Err(TextError::Zero(3)));
    }
}
