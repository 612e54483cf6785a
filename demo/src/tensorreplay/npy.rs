// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses the header of NumPy's .npy files (format versions 1.0 to 3.0).
//!
//! In: the bytes of a file. Out: element type, shape and the offset of the data. This module exists
//! because the maintained crates for the format multiply the dimensions without checking for
//! overflow, and have about ten dependencies.

use gstnmsfilter::tensor::{ElementType, Shape};

/// The parsed header.
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    pub element: ElementType,
    pub shape: Shape,
    /// Number of bytes before the first element.
    pub header_len: usize,
}

/// Reasons why a header is not supported.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum HeaderError {
    #[error(
        "expected it to begin with \\x93NUMPY, got \"{0}\"; save the array with numpy.save, or name \
         a raw file .raw"
    )]
    NotNpy(String),
    #[error(
        "it is an .npz archive; unpack it with unzip, which gives one .npy file per array, and use \
         one element per file"
    )]
    Archive,
    #[error("it has version {0}.{1}; expected 1.0, 2.0 or 3.0: save the array with numpy.save")]
    Version(u8, u8),
    #[error("its header is truncated: the file ends after {0} bytes; copy or save it again")]
    Truncated(usize),
    #[error("its header is not text; save the array with numpy.save")]
    NotText,
    #[error("its header lacks {0}; save the array with numpy.save")]
    Lacks(&'static str),
    #[error("expected elements '<f4', '<f2', '|i1', '|u1', '<i4' or '<i8', got {found}; {advice}")]
    Element { found: String, advice: &'static str },
    #[error("expected elements in C order, got Fortran order; save numpy.ascontiguousarray(array)")]
    FortranOrder,
    #[error(
        "expected a shape of at most 8 dimensions, got ({0}); save array.reshape with fewer \
         dimensions"
    )]
    Shape(String),
}

impl HeaderError {
    /// Returns the error for a file that does not begin like a .npy file.
    fn from_prefix(file: &[u8]) -> Self {
        if b"\x93NUMPY".starts_with(file) && !file.is_empty() {
            return Self::Truncated(file.len());
        }
        // A .npz file is a .zip archive.
        if file.starts_with(b"PK\x03\x04") {
            Self::Archive
        } else {
            Self::NotNpy(file.get(..8).unwrap_or(file).escape_ascii().to_string())
        }
    }

    /// Returns the error for elements of this type.
    fn for_element_type(descr: &str) -> Self {
        let (found, advice) = describe_elements(descr);
        Self::Element { found, advice }
    }
}

/// Returns the name of an element type that is not supported, and how to convert it.
fn describe_elements(descr: &str) -> (String, &'static str) {
    const TO_SINGLE: &str = "save array.astype(numpy.float32)";
    let Some(descr) = enclosed(descr, '\'', '\'') else {
        // A structured type is written as a list of its fields.
        let list: String =
            descr.split_inclusive(']').next().unwrap_or("").chars().take(40).collect();
        let advice = "save each field separately, as an array of numpy.float32";
        return (format!("a structured type ({list})"), advice);
    };
    let name = |name: &str| format!("{name} ('{descr}')");
    // The first character can be the byte order.
    let rest = descr.trim_start_matches(['<', '>', '=', '|']);
    match (rest, descr.starts_with('>')) {
        ("f4", true) => (name("big-endian float32"), "save array.astype('<f4')"),
        ("f2", true) => (name("big-endian float16"), "save array.astype('<f2')"),
        ("f8", _) => (name("float64"), TO_SINGLE),
        ("i4", true) => (name("big-endian int32"), "save array.astype('<i4')"),
        ("i8", true) => (name("big-endian int64"), "save array.astype('<i8')"),
        ("i2", _) => (name("int16"), "save array.astype(numpy.int32)"),
        ("b1", _) => (name("bool"), TO_SINGLE),
        ("O", _) => (name("Python objects"), "save one numeric array of numpy.float32"),
        _ => (format!("'{descr}'"), TO_SINGLE),
    }
}

impl Header {
    /// Parses the header at the beginning of `file`.
    ///
    /// # Errors
    /// Returns an error if the header is truncated or not supported.
    pub fn read(file: &[u8]) -> Result<Self, HeaderError> {
        let rest = file.strip_prefix(b"\x93NUMPY").ok_or_else(|| HeaderError::from_prefix(file))?;
        let truncated = || HeaderError::Truncated(file.len());
        let (text_at, text_len) = match rest {
            [1, _, a, b, ..] => (10, usize::from(u16::from_le_bytes([*a, *b]))),
            [2 | 3, _, a, b, c, d, ..] => {
                (12, u32::from_le_bytes([*a, *b, *c, *d]).try_into().unwrap_or(usize::MAX))
            }
            [1..=3, ..] | [] => return Err(truncated()),
            [major, rest @ ..] => {
                return Err(HeaderError::Version(*major, rest.first().copied().unwrap_or(0)));
            }
        };
        let header_len = text_len.saturating_add(text_at);
        let text = file.get(text_at..header_len).ok_or_else(truncated)?;
        // Error texts quote parts of the header. A zero byte would cut them off.
        let text = str::from_utf8(text).ok().filter(|text| !text.contains('\0'));
        let text = text.ok_or(HeaderError::NotText)?;

        let descr = value_of_key(text, "'descr':").ok_or(HeaderError::Lacks("'descr'"))?;
        let element = match enclosed(descr, '\'', '\'') {
            Some("<f4") => ElementType::F32,
            Some("<f2") => ElementType::F16,
            Some("|i1") => ElementType::I8,
            Some("|u1") => ElementType::U8,
            Some("<i4") => ElementType::I32,
            Some("<i8") => ElementType::I64,
            _ => return Err(HeaderError::for_element_type(descr)),
        };
        let dims = value_of_key(text, "'shape':").and_then(|rest| enclosed(rest, '(', ')'));
        let dims = dims.ok_or(HeaderError::Lacks("'shape'"))?;
        let shape = parse_dims(dims).ok_or_else(|| HeaderError::Shape(dims.to_owned()))?;
        let order =
            value_of_key(text, "'fortran_order':").ok_or(HeaderError::Lacks("'fortran_order'"))?;
        // If there is only one dimension, both orders are equal.
        if order.starts_with("True") && shape.len() > 1 {
            return Err(HeaderError::FortranOrder);
        }
        Ok(Self { element, shape, header_len })
    }
}

/// Returns the text after `key`.
fn value_of_key<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split_once(key).map(|(_, rest)| rest.trim_start())
}

/// Returns the text between `open`, which must be the first character, and the next `close`.
fn enclosed(text: &str, open: char, close: char) -> Option<&str> {
    text.strip_prefix(open)?.split_once(close).map(|(inside, _)| inside)
}

/// Parses dimensions such as `1, 84, 8400` or `4,`. An empty string is a scalar.
fn parse_dims(dims: &str) -> Option<Shape> {
    let dims = dims.split(',').map(str::trim).filter(|dim| !dim.is_empty());
    let dims: Option<Vec<usize>> = dims.map(|dim| dim.parse().ok()).collect();
    Shape::new(&dims?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(version: u8, text: &str) -> Result<Header, HeaderError> {
        let mut file = b"\x93NUMPY".to_vec();
        file.extend([version, 0]);
        match version {
            1 => file.extend((text.len() as u16).to_le_bytes()),
            _ => file.extend((text.len() as u32).to_le_bytes()),
        }
        file.extend(text.bytes());
        Header::read(&file)
    }

    const PLAIN: &str = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 84, 8400), }\n";

    #[test]
    fn every_version_is_read() {
        for (version, before) in [(1, 10), (2, 12), (3, 12)] {
            let header = read(version, PLAIN).unwrap();
            assert_eq!(header.element, ElementType::F32);
            assert_eq!(header.shape.to_string(), "1x84x8400");
            assert_eq!(header.header_len, before + PLAIN.len());
        }
        assert_eq!(read(4, PLAIN), Err(HeaderError::Version(4, 0)));
    }

    #[test]
    fn arrays_of_one_dimension_and_scalars_are_read() {
        let one = PLAIN.replace("1, 84, 8400", "7,").replace("False", "True");
        assert_eq!(read(1, &one).unwrap().shape.to_string(), "7");
        let none = PLAIN.replace("1, 84, 8400", "");
        assert_eq!(read(1, &none).unwrap().shape.to_string(), "scalar");
    }

    #[test]
    fn a_file_truncated_at_any_length_is_refused() {
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((PLAIN.len() as u16).to_le_bytes());
        file.extend(PLAIN.bytes());
        for len in 1..file.len() {
            assert_eq!(Header::read(&file[..len]), Err(HeaderError::Truncated(len)));
        }
        assert!(Header::read(&file).is_ok());
    }

    #[test]
    fn records_are_refused_with_their_description() {
        let records = read(1, &PLAIN.replace("'<f4'", "[('x', '<f4')]"));
        let Err(HeaderError::Element { found, .. }) = records else { panic!("{records:?}") };
        assert!(found.starts_with("a structured type ([('x', '<f4')]"), "{found}");
    }

    #[test]
    fn headers_without_a_required_key_are_refused() {
        for key in ["descr", "shape", "fortran_order"] {
            let error = read(1, &PLAIN.replace(key, "other")).unwrap_err();
            assert!(error.to_string().contains(key), "{error}");
        }
    }
}
