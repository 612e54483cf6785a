// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sections `column`.
//!
//! In: the lines of the sections, and the tensors. Out: the numbers that survivors carry along.

use super::super::error::Quoted;
use super::super::sections::{Keys, Parsed};
use super::super::shape::{Count, Open, Pattern};
use super::super::{ColumnNumbers, ColumnRule, DescriptionError, PointCount, PointUnit};
use super::fields::Fields;
use crate::decoder::layout::{Activation, ColumnKind, MAX_COLUMN_COMPONENTS, MAX_COLUMNS};

/// All sections. `has_reference` tells whether anchors have a point and a size.
pub(super) fn read<'a>(
    sections: Vec<Keys<'a>>,
    fields: &mut Fields<'_, '_>,
    has_reference: bool,
) -> Parsed<Vec<ColumnRule<'a>>> {
    let mut columns: Vec<ColumnRule<'a>> = Vec::new();
    for mut keys in sections {
        let column = column(&mut keys, fields, has_reference)?;
        let is_mask = |column: &ColumnRule<'_>| column.prototypes().is_some();
        if is_mask(&column) && columns.iter().any(is_mask) {
            let text = "a second column with count = M; expected one";
            return Err(DescriptionError::new(keys.line, text));
        }
        if let ColumnNumbers::Plain { kind, .. } = column.numbers
            && kind != ColumnKind::Numbers
            && columns.iter().any(|other| other.numbers.is_plain(kind))
        {
            let text = format!("a second column with kind = {}; expected one", kind.name());
            return Err(DescriptionError::new(keys.line, text));
        }
        columns.push(column);
        keys.finish("numbers, count, kind, relative, shift, visibility, unit, prototypes")?;
        let components: usize = columns.iter().map(|column| column.numbers.fixed()).sum();
        if columns.len() > MAX_COLUMNS || components > MAX_COLUMN_COMPONENTS {
            let text = format!(
                "expected at most {MAX_COLUMNS} columns with {MAX_COLUMN_COMPONENTS} numbers together"
            );
            return Err(DescriptionError::new(keys.line, text));
        }
    }
    Ok(columns)
}

impl ColumnNumbers {
    /// The number of numbers, as far as the text has it.
    fn fixed(self) -> usize {
        match self {
            Self::Plain { components, .. } => components,
            Self::Points { count: PointCount::Fixed { components, .. }, .. } => components,
            Self::Points { count: PointCount::Open, .. } | Self::Coefficients { .. } => 0,
        }
    }

    /// Returns true for numbers of this kind.
    fn is_plain(self, kind: ColumnKind) -> bool {
        matches!(self, Self::Plain { kind: other, .. } if other == kind)
    }
}

/// A value of `kind`.
#[derive(Clone, Copy)]
enum KindWord {
    Plain(ColumnKind),
    /// Points of this many numbers.
    Points(usize),
}

fn column<'a>(
    keys: &mut Keys<'a>,
    fields: &mut Fields<'_, '_>,
    has_reference: bool,
) -> Parsed<ColumnRule<'a>> {
    let count = count(keys)?;
    let field = fields.anchor_field(keys, "numbers", |_| count)?;
    let field = field.ok_or_else(|| keys.missing("numbers"))?;
    let numbers = match count.open {
        Some(Open::Coefficients) => coefficients(keys, fields)?,
        Some(Open::Keypoints(_)) | None => plain_or_points(keys, count, has_reference)?,
    };
    Ok(ColumnRule { name: keys.name, field, numbers })
}

/// The value of `count`: a number, `K` or `M`.
fn count(keys: &mut Keys<'_>) -> Parsed<Count> {
    let open = match keys.peek("count").map(|entry| entry.value) {
        Some("K") => Open::Keypoints(0),
        Some("M") => Open::Coefficients,
        _ => {
            let count = keys.whole_number("count", 1..=MAX_COLUMN_COMPONENTS as u32)?;
            let count = count.ok_or_else(|| keys.missing("count"))?;
            return Ok(Count::constant(count as usize));
        }
    };
    keys.take("count");
    Ok(Count { open: Some(open), ..Count::default() })
}

/// The coefficients of masks, whose prototypes are another tensor.
fn coefficients(keys: &mut Keys<'_>, fields: &mut Fields<'_, '_>) -> Parsed<ColumnNumbers> {
    let entry = keys.required("prototypes")?;
    let index = fields.tensors.iter().position(|tensor| tensor.name == entry.value);
    let has_images = |index: &usize| {
        let shapes = &fields.tensors[*index].shapes;
        let has_two = |shapes: &[Pattern]| shapes.len() <= 2 && shapes.first() != shapes.get(1);
        shapes.iter().all(Pattern::is_images) && has_two(shapes)
    };
    let prototypes = index.filter(has_images).ok_or_else(|| {
        entry.error("the name of a section [tensor NAME] with the shape M,H,W or H,W,M, or both")
    })?;
    fields.used[prototypes] = true;
    Ok(ColumnNumbers::Coefficients { prototypes })
}

/// Points, or numbers of another kind.
fn plain_or_points(
    keys: &mut Keys<'_>,
    count: Count,
    has_reference: bool,
) -> Parsed<ColumnNumbers> {
    let words = [
        ("numbers", KindWord::Plain(ColumnKind::Numbers)),
        ("points", KindWord::Points(2)),
        ("points-with-visibility", KindWord::Points(3)),
        ("density", KindWord::Plain(ColumnKind::Density)),
        ("embedding", KindWord::Plain(ColumnKind::Embedding)),
    ];
    let kind = keys.word("kind", KindWord::Plain(ColumnKind::Numbers), &words)?;
    let words = [("none", Activation::None), ("sigmoid", Activation::Sigmoid)];
    let visibility = keys.word("visibility", Activation::None, &words)?;
    let units = [
        ("pixels", PointUnit::Pixels),
        ("normalized", PointUnit::Normalized),
        ("boxes", PointUnit::Boxes),
    ];
    let unit = keys.word("unit", PointUnit::Pixels, &units)?;
    let count = match (count.open, kind) {
        (None, KindWord::Plain(kind)) => {
            for key in ["relative", "shift", "visibility", "unit"] {
                keys.refuse(key, true, "kind = points in the same section")?;
            }
            let components = count.constant;
            let is_wrong = kind == ColumnKind::Density && components != 1;
            keys.refuse("kind", is_wrong, "count = 1 in the same section")?;
            return Ok(ColumnNumbers::Plain { components, kind });
        }
        (None, KindWord::Points(of_point)) => {
            PointCount::Fixed { components: count.constant, of_point }
        }
        (Some(_), KindWord::Points(2)) => PointCount::Open,
        (Some(_), _) => {
            let text =
                format!("section [column {}]: count = K needs kind = points", Quoted(keys.name));
            return Err(DescriptionError::new(keys.line, text));
        }
    };
    if let PointCount::Fixed { components, of_point } = count {
        let expected = format!("a count that is a multiple of {of_point}");
        keys.refuse("kind", !components.is_multiple_of(of_point), &expected)?;
        let expected = "kind = points-with-visibility in the same section";
        keys.refuse("visibility", of_point == 2, expected)?;
    }
    let relative = keys.number("relative", f32::is_normal, "a number other than 0")?;
    keys.refuse("relative", !has_reference, "strides, cells or priors in [anchors]")?;
    keys.refuse("shift", relative.is_none(), "relative in the same section")?;
    let shift = keys.number("shift", f32::is_finite, "a number")?.unwrap_or(0.0);
    let expected = "relative points without it: they have the unit of the boxes";
    keys.refuse("unit", relative.is_some(), expected)?;
    let unit = if relative.is_some() { PointUnit::Boxes } else { unit };
    Ok(ColumnNumbers::Points { count, relative, shift, visibility, unit })
}
