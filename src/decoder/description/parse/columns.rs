// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sections `column`.

use super::super::sections::{Keys, Parsed};
use super::super::{ColumnRule, DescriptionError};
use super::fields::{Fields, constant};
use crate::decoder::layout::{ColumnKind, MAX_COLUMN_COMPONENTS, MAX_COLUMNS, PointRule};

/// All sections. `has_reference` tells whether anchors have a point and a size.
pub(super) fn read<'a>(
    sections: Vec<Keys<'a>>,
    fields: &mut Fields<'_, '_>,
    has_reference: bool,
) -> Parsed<Vec<ColumnRule<'a>>> {
    let mut columns: Vec<ColumnRule<'a>> = Vec::new();
    for mut keys in sections {
        columns.push(column(&mut keys, fields, has_reference)?);
        keys.finish(&["numbers", "count", "kind", "relative", "unit"])?;
        let components: usize = columns.iter().map(|column| column.components).sum();
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
    let count = keys.whole_number("count", 1..=MAX_COLUMN_COMPONENTS as u32)?;
    let components = count.ok_or_else(|| keys.missing("count"))? as usize;
    let field = fields.of_anchors(keys, "numbers", |_| constant(components))?;
    let field = field.ok_or_else(|| keys.missing("numbers"))?;
    let kind_line = keys.peek("kind");
    let words = [("numbers", 0), ("points", 2), ("points-with-visibility", 3)];
    let of_point = keys.word("kind", 0, &words)?;
    let relative_line = keys.take("relative");
    let unit_line = keys.peek("unit");
    let normalized = keys.word("unit", false, &[("pixels", false), ("normalized", true)])?;
    if of_point == 0 {
        return match relative_line.or(unit_line) {
            Some(entry) => Err(entry.error("kind = points in the same section")),
            None => {
                Ok(ColumnRule { name: keys.name, field, components, kind: ColumnKind::Numbers })
            }
        };
    }
    if let Some(entry) = kind_line.filter(|_| !components.is_multiple_of(of_point)) {
        return Err(entry.error(&format!("a count that is a multiple of {of_point}")));
    }
    let relative = relative_line
        .map(|entry| match entry.value.parse().ok().filter(|number: &f32| number.is_normal()) {
            Some(_) if !has_reference => Err(entry.error("strides, cells or priors in [anchors]")),
            Some(factor) => Ok(factor),
            None => Err(entry.error("a number other than 0")),
        })
        .transpose()?;
    if let Some(entry) = unit_line.filter(|_| relative.is_some()) {
        return Err(entry.error("relative points without it: they have the unit of the boxes"));
    }
    let rule = PointRule { components: of_point, relative, normalized };
    Ok(ColumnRule { name: keys.name, field, components, kind: ColumnKind::Points(rule) })
}
