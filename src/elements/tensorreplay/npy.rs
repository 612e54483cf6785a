//! The header of NumPy's .npy files.
//!
//! Our own reader: the kept crates for it multiply a header's dimensions unchecked, and bring ten
//! crates along for a line of text.

use crate::tensor::{ElementType, Shape};

/// What a header says, and where the elements begin.
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    pub element: ElementType,
    pub shape: Shape,
    /// Bytes before the first element.
    pub len: usize,
}

/// Why there is no header that can be used.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum HeaderError {
    #[error("it does not begin like a .npy file of version 1, 2 or 3")]
    NotNpy,
    #[error("its header breaks off or lacks {0}")]
    Lacks(&'static str),
    #[error("expected elements '<f4' or '<f2', got {0:?}: convert them")]
    Element(String),
    #[error("expected elements in C order, got Fortran order: convert it")]
    FortranOrder,
    #[error("expected a shape of at most 8 dimensions, got ({0})")]
    Shape(String),
}

impl Header {
    /// Reads the header at the beginning of `file`.
    pub fn read(file: &[u8]) -> Result<Self, HeaderError> {
        let rest = file.strip_prefix(b"\x93NUMPY").ok_or(HeaderError::NotNpy)?;
        let (text_at, text_len) = match rest {
            [1, _, a, b, ..] => (10, usize::from(u16::from_le_bytes([*a, *b]))),
            [2 | 3, _, a, b, c, d, ..] => {
                (12, u32::from_le_bytes([*a, *b, *c, *d]).try_into().unwrap_or(usize::MAX))
            }
            _ => return Err(HeaderError::NotNpy),
        };
        let len = text_len.saturating_add(text_at);
        let text = file.get(text_at..len).ok_or(HeaderError::Lacks("its end"))?;
        let text = str::from_utf8(text).map_err(|_| HeaderError::Lacks("its text"))?;

        let descr = entry(text, "'descr':").ok_or(HeaderError::Lacks("'descr'"))?;
        let element = match between(descr, '\'', '\'') {
            Some("<f4") => ElementType::F32,
            Some("<f2") => ElementType::F16,
            Some(other) => return Err(HeaderError::Element(other.to_owned())),
            // Records are described by a list.
            None => return Err(HeaderError::Element(descr.chars().take(40).collect())),
        };
        let dims = entry(text, "'shape':").and_then(|rest| between(rest, '(', ')'));
        let dims = dims.ok_or(HeaderError::Lacks("'shape'"))?;
        let shape = shape(dims).ok_or_else(|| HeaderError::Shape(dims.to_owned()))?;
        let order = entry(text, "'fortran_order':").ok_or(HeaderError::Lacks("'fortran_order'"))?;
        // With one dimension, both orders are the same.
        if order.starts_with("True") && shape.len() > 1 {
            return Err(HeaderError::FortranOrder);
        }
        Ok(Self { element, shape, len })
    }
}

/// What follows `key`.
fn entry<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split_once(key).map(|(_, rest)| rest.trim_start())
}

/// What stands between the two, the first of which comes first.
fn between(text: &str, open: char, close: char) -> Option<&str> {
    text.strip_prefix(open)?.split_once(close).map(|(inside, _)| inside)
}

/// `1, 84, 8400`, or `4,`, or nothing for a scalar.
fn shape(dims: &str) -> Option<Shape> {
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
            assert_eq!(header.len, before + PLAIN.len());
        }
        assert_eq!(read(4, PLAIN), Err(HeaderError::NotNpy));
    }

    #[test]
    fn one_dimension_and_none_are_read() {
        let one = PLAIN.replace("1, 84, 8400", "7,").replace("False", "True");
        assert_eq!(read(1, &one).unwrap().shape.to_string(), "7");
        let none = PLAIN.replace("1, 84, 8400", "");
        assert_eq!(read(1, &none).unwrap().shape.to_string(), "scalar");
    }

    #[test]
    fn a_file_that_breaks_off_anywhere_is_refused() {
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((PLAIN.len() as u16).to_le_bytes());
        file.extend(PLAIN.bytes());
        for len in 0..file.len() {
            assert!(Header::read(&file[..len]).is_err(), "after {len} bytes");
        }
        assert!(Header::read(&file).is_ok());
    }

    #[test]
    fn records_are_refused_with_their_description() {
        let records = read(1, &PLAIN.replace("'<f4'", "[('x', '<f4')]"));
        let Err(HeaderError::Element(found)) = records else { panic!("{records:?}") };
        assert!(found.starts_with("[('x', '<f4')]"), "{found}");
    }

    #[test]
    fn headers_that_lack_something_are_refused() {
        for key in ["descr", "shape", "fortran_order"] {
            let error = read(1, &PLAIN.replace(key, "other")).unwrap_err();
            assert!(error.to_string().contains(key), "{error}");
        }
    }
}
