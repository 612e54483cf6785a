// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and writes messages in the encoding of Protocol Buffers, which ONNX files use.
//!
//! In: bytes. Out: the fields of a message, or a message with a field replaced
//! ([encoding](https://protobuf.dev/programming-guides/encoding/)).

/// A field of a message.
pub struct Field<'m> {
    /// The field's number in the schema.
    pub number: u64,
    /// The bytes of the field, including its tag.
    pub whole: &'m [u8],
    /// The bytes of an embedded message or a string; empty if the field is a number.
    pub contents: &'m [u8],
}

/// Splits a message into its fields; `None` if the bytes are not a valid message.
pub fn fields(message: &[u8]) -> Option<Vec<Field<'_>>> {
    let mut fields = Vec::new();
    let mut rest = message;
    while !rest.is_empty() {
        let begin = rest;
        let tag = read_varint(&mut rest)?;
        let mut contents: &[u8] = &[];
        match tag & 7 {
            0 => drop(read_varint(&mut rest)?),
            1 => rest = rest.get(8..)?,
            2 => {
                let len = usize::try_from(read_varint(&mut rest)?).ok()?;
                contents = rest.get(..len)?;
                rest = &rest[len..];
            }
            5 => rest = rest.get(4..)?,
            _ => return None,
        }
        let whole = &begin[..begin.len() - rest.len()];
        fields.push(Field { number: tag >> 3, whole, contents });
    }
    Some(fields)
}

/// Returns the contents of the first field with this number.
pub fn field(message: &[u8], number: u64) -> Option<&[u8]> {
    all(&fields(message)?, number).next()
}

/// Returns the contents of the field at the end of `path`: each number stands for the first field with this number, in
/// that of the number before it.
pub fn field_at<'m>(message: &'m [u8], path: &[u64]) -> Option<&'m [u8]> {
    path.iter().try_fold(message, |message, &number| field(message, number))
}

/// Returns the contents of the fields with this number.
pub fn all<'m>(fields: &[Field<'m>], number: u64) -> impl Iterator<Item = &'m [u8]> {
    fields.iter().filter(move |field| field.number == number).map(|field| field.contents)
}

/// Replaces a field of a message by `contents`. `path` has the field's number, preceded by the numbers of the
/// fields that enclose it; each number stands for the first field with this number.
pub fn replace_first(message: &[u8], path: &[u64], contents: &[u8]) -> Option<Vec<u8>> {
    let Some((&number, path)) = path.split_first() else {
        return Some(contents.to_vec());
    };
    let mut changed = Vec::with_capacity(message.len() + contents.len());
    let mut is_first = true;
    for part in fields(message)? {
        if part.number == number && is_first {
            write_message(&mut changed, number, &replace_first(part.contents, path, contents)?);
            is_first = false;
        } else {
            changed.extend_from_slice(part.whole);
        }
    }
    (!is_first).then_some(changed)
}

/// Appends a field that contains a message.
pub fn write_message(to: &mut Vec<u8>, number: u64, contents: &[u8]) {
    to.extend(varint(number << 3 | 2));
    to.extend(varint(contents.len() as u64));
    to.extend_from_slice(contents);
}

/// Returns a number in groups of 7 bits, starting with the lowest. Bit 7 is set in all bytes except the last.
pub fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn read_varint(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        number |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Some(number);
        }
    }
    None
}
