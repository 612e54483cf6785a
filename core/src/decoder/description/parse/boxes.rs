// SPDX-License-Identifier: MIT OR Apache-2.0
//! The section `box`.

use super::super::sections::{Keys, Parsed};
use super::super::shape::Count;
use super::super::{BoxFields, DescriptionError, Levels};
use super::fields::Fields;
use crate::decoder::layout::{Axes, BoxFormat, BoxRule, BoxTransform, MAX_BINS};

/// The section.
pub(super) fn read(
    mut keys: Keys<'_>,
    fields: &mut Fields<'_, '_>,
    levels: &Levels,
) -> Parsed<BoxFields> {
    let keys = &mut keys;
    let formats = BoxFormat::ALL.map(|format| (format.name(), format));
    let format = keys.word("format", BoxFormat::Corners, &formats)?;
    let axes = keys.word("axes", Axes::Xy, &Axes::ALL.map(|axes| (axes.name(), axes)))?;
    let transform_line = keys.peek("transform");
    let transforms = BoxTransform::ALL.map(|transform| (transform.name(), transform));
    let transform = keys.word("transform", BoxTransform::None, &transforms)?;
    let bins_line = keys.peek("bins");
    let bins = keys.whole_number("bins", 2..=MAX_BINS as u32)?.map(|bins| bins as usize);
    match (transform_line, bins_line) {
        (Some(entry), None) if transform == BoxTransform::Expectation => {
            return Err(entry.error("bins with expectation"));
        }
        (_, Some(entry)) if transform != BoxTransform::Expectation => {
            return Err(entry.error("transform = expectation"));
        }
        _ => {}
    }
    let mut rule = BoxRule { axes, transform, bins: bins.unwrap_or(1), ..BoxRule::decoded(format) };
    if let Some(entry) = keys.take("variances") {
        let mut words = entry.value.split_whitespace();
        let mut number = || words.next()?.parse().ok().filter(|number: &f32| number.is_normal());
        let numbers = number().and_then(|of_positions| Some([of_positions, number()?]));
        rule.variances = numbers.filter(|_| words.next().is_none()).ok_or_else(|| {
            entry.error("two numbers separated by a space, for positions and for sizes")
        })?;
    }
    let unit = keys.peek("unit");
    let normalized = keys.word("unit", false, &[("pixels", false), ("normalized", true)])?;
    match (levels, unit) {
        (Levels::Strides(_), Some(entry)) if normalized => {
            return Err(entry.error("pixels, the unit of strides"));
        }
        (Levels::Cells(_), _) if !normalized => {
            return Err(DescriptionError::new(
                keys.line,
                "section [box] needs unit = normalized with cells",
            ));
        }
        _ => {}
    }
    let angle_line = keys.peek("angle");
    let angle = fields.anchor_field(keys, "angle", |_| Count::constant(1))?;
    match angle_line {
        Some(entry) if format != BoxFormat::Center => {
            return Err(entry.error("format = center with an angle"));
        }
        _ => {}
    }
    if let Some(entry) = keys.take("angle-factor") {
        let number = entry.value.parse().ok().filter(|number: &f32| number.is_normal());
        rule.angle_factor = number
            .filter(|_| angle.is_some())
            .ok_or_else(|| entry.error("a number other than 0, with an angle"))?;
    }
    let sizes_line = keys.peek("sizes");
    let sizes = fields.anchor_field(keys, "sizes", |_| Count::constant(2))?;
    match sizes_line {
        Some(entry) if format != BoxFormat::Center || rule.bins > 1 || angle.is_some() => {
            return Err(entry.error("format = center without bins and angle"));
        }
        _ => {}
    }
    let components = if sizes.is_some() { 2 } else { rule.components() };
    let field = fields.anchor_field(keys, "box", |_| Count::constant(components))?;
    let field = field.ok_or_else(|| keys.missing("box"))?;
    keys.finish("box, sizes, format, axes, transform, bins, variances, unit, angle, angle-factor")?;
    Ok(BoxFields { field, sizes, angle, rule, normalized })
}
