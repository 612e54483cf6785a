// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sections `column`.
//!
//! In: the lines of the sections, and the tensors. Out: the numbers that survivors carry along.

use super::super::error::Quoted;
use super::super::sections::{Keys, Parsed};
use super::super::shape::{Count, Open, Pattern};
use super::super::{ColumnRule, DescriptionError};
use super::fields::Fields;
use crate::decoder::layout::{
    Activation, ColumnKind, MAX_COLUMN_COMPONENTS, MAX_COLUMNS, PointRule,
};

/// All sections. `has_reference` tells whether anchors have a point and a size.
pub(super) fn read<'a>(
    sections: Vec<Keys<'a>>,
    fields: &mut Fields<'_, '_>,
    has_reference: bool,
) -> Parsed<Vec<ColumnRule<'a>>> {
    let mut columns: Vec<ColumnRule<'a>> = Vec::new();
    for mut keys in sections {
        let column = column(&mut keys, fields, has_reference)?;
        let is_mask = |column: &ColumnRule<'_>| column.prototypes.is_some();
        if is_mask(&column) && columns.iter().any(is_mask) {
            let text = "a second column with count = M; expected one";
            return Err(DescriptionError::new(keys.line, text));
        }
        let kind = column.kind;
        let is_single = matches!(kind, ColumnKind::Density | ColumnKind::Embedding);
        if is_single && columns.iter().any(|other| other.kind == kind) {
            let text = format!("a second column with kind = {}; expected one", kind.name());
            return Err(DescriptionError::new(keys.line, text));
        }
        columns.push(column);
        keys.finish("numbers, count, kind, relative, shift, visibility, unit, prototypes")?;
        let components: usize = columns.iter().map(|column| column.count.constant).sum();
        if columns.len() > MAX_COLUMNS || components > MAX_COLUMN_COMPONENTS {
            let text = format!(
                "expected at most {MAX_COLUMNS} columns with {MAX_COLUMN_COMPONENTS} numbers together"
            );
            return Err(DescriptionError::new(keys.line, text));
        }
    }
    Ok(columns)
}

fn column<'a>(
    keys: &mut Keys<'a>,
    fields: &mut Fields<'_, '_>,
    has_reference: bool,
) -> Parsed<ColumnRule<'a>> {
    let count = count(keys)?;
    let field = fields.anchor_field(keys, "numbers", |_| count)?;
    let field = field.ok_or_else(|| keys.missing("numbers"))?;
    let has_coefficients = count.open == Some(Open::Coefficients);
    let prototypes = has_coefficients.then(|| prototypes(keys, fields)).transpose()?;
    let (kind, normalized) = match prototypes {
        Some(_) => (ColumnKind::MaskCoefficients, None),
        None => plain_or_points(keys, count, has_reference)?,
    };
    Ok(ColumnRule { name: keys.name, field, count, kind, normalized, prototypes })
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

/// The index of the tensor with the prototypes of masks.
fn prototypes(keys: &mut Keys<'_>, fields: &mut Fields<'_, '_>) -> Parsed<usize> {
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
    Ok(prototypes)
}

/// Points, or numbers of another kind, and whether points are normalized.
fn plain_or_points(
    keys: &mut Keys<'_>,
    count: Count,
    has_reference: bool,
) -> Parsed<(ColumnKind, Option<bool>)> {
    let point = PointRule {
        components: 2,
        relative: None,
        shift: 0.0,
        visibility: Activation::None,
        normalized: false,
    };
    let with_visibility = PointRule { components: 3, ..point };
    let words = [
        ColumnKind::Numbers,
        ColumnKind::Points(point),
        ColumnKind::Points(with_visibility),
        ColumnKind::Density,
        ColumnKind::Embedding,
    ];
    let words = words.map(|kind| (kind.name(), kind));
    let kind = keys.word("kind", ColumnKind::Numbers, &words)?;
    let words = [("none", Activation::None), ("sigmoid", Activation::Sigmoid)];
    let visibility = keys.word("visibility", Activation::None, &words)?;
    let units = [("pixels", Some(false)), ("normalized", Some(true)), ("boxes", None)];
    let normalized = keys.word("unit", Some(false), &units)?;
    if count.open.is_some() && kind != ColumnKind::Points(point) {
        let text = format!("section [column {}]: count = K needs kind = points", Quoted(keys.name));
        return Err(DescriptionError::new(keys.line, text));
    }
    let ColumnKind::Points(mut rule) = kind else {
        for key in ["relative", "shift", "visibility", "unit"] {
            keys.refuse(key, true, "kind = points in the same section")?;
        }
        let is_wrong = kind == ColumnKind::Density && count.constant != 1;
        keys.refuse("kind", is_wrong, "count = 1 in the same section")?;
        return Ok((kind, None));
    };
    let of_point = rule.components;
    if count.open.is_none() {
        let expected = format!("a count that is a multiple of {of_point}");
        keys.refuse("kind", !count.constant.is_multiple_of(of_point), &expected)?;
        let expected = "kind = points-with-visibility in the same section";
        keys.refuse("visibility", of_point == 2, expected)?;
    }
    rule.visibility = visibility;
    rule.relative = keys.number("relative", f32::is_normal, "a number other than 0")?;
    let is_relative = rule.relative.is_some();
    keys.refuse("relative", !has_reference, "strides, cells or priors in [anchors]")?;
    keys.refuse("shift", !is_relative, "relative in the same section")?;
    rule.shift = keys.number("shift", f32::is_finite, "a number")?.unwrap_or(0.0);
    let expected = "relative points without it: they have the unit of the boxes";
    keys.refuse("unit", is_relative, expected)?;
    Ok((ColumnKind::Points(rule), normalized.filter(|_| !is_relative)))
}
