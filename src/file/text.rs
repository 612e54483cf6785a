// SPDX-License-Identifier: MIT OR Apache-2.0
//! Validates text files.
//!
//! In: bytes. Out: UTF-8 text without a byte order mark, or an error with the line number.

use super::FileError;

/// Interprets `bytes` as UTF-8 text. A byte order mark at the start is not part of the result.
///
/// # Errors
/// If the text has another encoding, is not valid UTF-8, or contains a zero byte.
pub fn text(bytes: &[u8]) -> Result<&str, FileError> {
    // UTF-32 comes first, because the byte order mark of UTF-32LE begins with the mark of UTF-16LE.
    let other = [
        (&b"\xff\xfe\x00\x00"[..], "UTF-32"),
        (b"\x00\x00\xfe\xff", "UTF-32"),
        (b"\xff\xfe", "UTF-16"),
        (b"\xfe\xff", "UTF-16"),
    ];
    if let Some((_, encoding)) = other.into_iter().find(|(mark, _)| bytes.starts_with(mark)) {
        return Err(FileError::Content(format!(
            "is not valid UTF-8: it begins with the byte order mark of {encoding}; save it as UTF-8, or convert it: iconv -f \
             {encoding} -t UTF-8"
        )));
    }
    let line = |end: usize| 1 + bytes[..end].iter().filter(|&&byte| byte == b'\n').count();
    let text = str::from_utf8(bytes).map_err(|error| {
        let line = line(error.valid_up_to());
        FileError::Content(format!("is not valid UTF-8 in line {line}; save it as UTF-8"))
    })?;
    // A label becomes a C string, which ends at the first zero byte.
    if let Some(zero) = text.find('\0') {
        let line = line(zero);
        return Err(FileError::Content(format!(
            "has a zero byte in line {line}; expected text in UTF-8"
        )));
    }
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<&str, String> {
        text(bytes).map_err(|error| error.to_string())
    }

    #[test]
    fn the_utf8_byte_order_mark_is_removed() {
        assert_eq!(read("\u{feff}person\n".as_bytes()), Ok("person\n"));
        // At other positions it is an ordinary character.
        assert_eq!(read("per\u{feff}son".as_bytes()), Ok("per\u{feff}son"));
    }

    #[test]
    fn other_encodings_are_named() {
        for (bytes, encoding) in [
            (&b"\xff\xfep\0"[..], "UTF-16"),
            (b"\xfe\xff\0p", "UTF-16"),
            (b"\xff\xfe\0\0p\0\0\0", "UTF-32"),
        ] {
            let error = read(bytes).unwrap_err();
            assert!(error.contains(&format!("the byte order mark of {encoding};")), "{error}");
        }
    }

    #[test]
    fn invalid_bytes_are_reported_with_their_line() {
        let error = read(b"tea\ncaf\xe9\n").unwrap_err();
        assert_eq!(error, "is not valid UTF-8 in line 2; save it as UTF-8");
        let error = read(b"tea\n\nco\0ffee\n").unwrap_err();
        assert_eq!(error, "has a zero byte in line 3; expected text in UTF-8");
    }
}
