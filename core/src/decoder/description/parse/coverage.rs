// SPDX-License-Identifier: MIT OR Apache-2.0
//! Columns of a tensor that no field reads.
//!
//! In: the shapes of a tensor, and the columns that are read or ignored. Out: the first columns that are neither. A shape
//! that has more numbers than the fields is usually a mistake, and the last class would be lost.

use super::super::error::Quoted;
use super::super::sections::{Keys, Parsed};
use super::super::shape::{Count, Pattern};
use super::super::{DescriptionError, TensorRule};

/// Columns of a tensor: the first one, and how many there are.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Columns {
    pub(super) first: Count,
    pub(super) number: Count,
}

/// Numbers of classes, and of numbers that a shape leaves open, which differ from all constants. Columns that do not overlap
/// and have no gap with both are so with any.
const SAMPLES: [[usize; 2]; 2] = [[1 << 30, 1 << 40], [1 << 40, 1 << 30]];

fn value(count: Count, [classes, open]: [usize; 2]) -> usize {
    count.with_classes(classes) + if count.open.is_some() { open } else { 0 }
}

impl Columns {
    /// The column after the last one.
    fn end(self) -> Count {
        let Self { first, number } = self;
        Count {
            constant: first.constant + number.constant,
            has_classes: first.has_classes || number.has_classes,
            open: first.open.or(number.open),
        }
    }
}

/// The value of `ignored` with which no column is read.
pub(super) const ALL: &str = "all";

/// The value of `ignored`: columns that no field reads.
pub(super) fn ignored(keys: &mut Keys<'_>, shapes: &[Pattern]) -> Parsed<Vec<Columns>> {
    let entry = keys.take("ignored").filter(|entry| entry.value != ALL);
    let Some(entry) = entry else { return Ok(Vec::new()) };
    let error = || {
        entry.error(
            "columns such as 4 or C, each with their number if that is not 1, separated by commas, within the shape",
        )
    };
    let columns = |text: &str| {
        let mut words = text.split_whitespace().map(Count::parse);
        let first = words.next()??;
        let number = words.next().unwrap_or(Some(Count::constant(1)))?;
        let columns = Columns { first, number };
        let is_inside = |shape: &Pattern| {
            let all = shape.numbers();
            let mut samples = SAMPLES.into_iter().chain([[1; 2]]);
            samples.all(|sample| value(columns.end(), sample) <= value(all, sample))
        };
        let is_valid = words.next().is_none()
            && !(first.has_classes && number.has_classes)
            && first.open.is_none()
            && number.open.is_none()
            && shapes.iter().all(is_inside);
        is_valid.then_some(columns)
    };
    entry.value.split(',').map(|text| columns(text).ok_or_else(error)).collect()
}

/// Checks that each column of `tensor` is in `columns`.
pub(super) fn check(tensor: &TensorRule<'_>, columns: &[Columns]) -> Parsed<()> {
    for shape in tensor.shapes.iter().filter(|shape| !shape.is_images()) {
        let all = Columns { first: Count::default(), number: shape.numbers() };
        for sample in SAMPLES {
            let mut sorted = columns.to_vec();
            sorted.sort_by_key(|columns| value(columns.first, sample));
            let mut read = Count::default();
            for next in sorted.into_iter().map(Some).chain([None]) {
                let (first, end) =
                    next.map_or((all.end(), all.end()), |next| (next.first, next.end()));
                if value(first, sample) > value(read, sample) {
                    let name = Quoted(tensor.name);
                    let of = match value(first, sample) == value(all.end(), sample) {
                        true => format!("from column {read} on"),
                        false => format!("from column {read} to before column {first}"),
                    };
                    let text = format!(
                        "tensor {name}: an anchor has {} numbers, but no field reads those {of} (C includes the \
                         background); correct the shape or the fields, or name the columns with ignored = ... in the \
                         section of the tensor",
                        shape.numbers()
                    );
                    return Err(DescriptionError::new(tensor.line, text));
                }
                if value(end, sample) > value(read, sample) {
                    read = end;
                }
            }
        }
    }
    Ok(())
}
