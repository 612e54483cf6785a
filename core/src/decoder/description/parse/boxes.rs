// SPDX-License-Identifier: MIT OR Apache-2.0
//! The section `box`.

use super::super::sections::{Keys, Parsed, numbers};
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
    let transforms = BoxTransform::ALL.map(|transform| (transform.name(), transform));
    let transform = keys.word("transform", BoxTransform::None, &transforms)?;
    let bins = keys.whole_number("bins", 2..=MAX_BINS as u32)?.map(|bins| bins as usize);
    let is_expectation = transform == BoxTransform::Expectation;
    keys.refuse("transform", is_expectation && bins.is_none(), "bins with expectation")?;
    keys.refuse("bins", !is_expectation, "transform = expectation")?;
    let mut rule = BoxRule { axes, transform, bins: bins.unwrap_or(1), ..BoxRule::decoded(format) };
    if let Some(entry) = keys.take("variances") {
        let numbers = numbers::<2>(entry.value, f32::is_normal);
        rule.variances = numbers.and_then(|it| it.into_inner().ok()).ok_or_else(|| {
            entry.error("two numbers separated by a space, for positions and for sizes")
        })?;
    }
    let normalized = keys.word("unit", false, &[("pixels", false), ("normalized", true)])?;
    let has_strides = matches!(levels, Levels::Strides(_));
    keys.refuse("unit", has_strides && normalized, "pixels, the unit of strides")?;
    if matches!(levels, Levels::Cells(_)) && !normalized {
        let text = "section [box] needs unit = normalized with cells";
        return Err(DescriptionError::new(keys.line, text));
    }
    let angle = fields.anchor_field(keys, "angle", |_| Count::constant(1))?;
    let is_center = format == BoxFormat::Center;
    keys.refuse("angle", !is_center, "format = center with an angle")?;
    let is_factor = |number: f32| number.is_normal() && angle.is_some();
    let factor = keys.number("angle-factor", is_factor, "a number other than 0, with an angle")?;
    rule.angle_factor = factor.unwrap_or(rule.angle_factor);
    let sizes = fields.anchor_field(keys, "sizes", |_| Count::constant(2))?;
    let has_other = !is_center || rule.bins > 1 || angle.is_some();
    keys.refuse("sizes", has_other, "format = center without bins and angle")?;
    let components = rule.field_components(sizes.is_some());
    let field = fields.anchor_field(keys, "box", |_| Count::constant(components))?;
    let field = field.ok_or_else(|| keys.missing("box"))?;
    keys.finish("box, sizes, format, axes, transform, bins, variances, unit, angle, angle-factor")?;
    Ok(BoxFields { field, sizes, angle, rule, normalized })
}
