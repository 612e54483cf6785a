// SPDX-License-Identifier: MIT OR Apache-2.0
//! The section `anchors`.
//!
//! In: the lines of the section, and the tensors. Out: the grids, and the anchors of a cell.

use arrayvec::ArrayVec;

use super::super::sections::{Entry, Keys, Parsed, numbers};
use super::super::shape::Count;
use super::super::{AnchorRule, CellRounding, DescriptionError, Levels};
use super::fields::Fields;
use crate::decoder::layout::{MAX_GROUPS, MAX_SIZES};

/// The value of `strides` with which the tensors decide.
pub(super) const ANY: &str = "any";

/// The greatest stride, and the greatest number of cells in a row.
const MAX_STRIDE: u32 = 65_535;

/// The grids of the section; `strides` stand for `strides = any`.
pub(super) fn levels(keys: &mut Keys<'_>, strides: &[u32]) -> Parsed<Levels> {
    let listed = keys.peek("strides");
    if let Some(cells) = keys.peek("cells").filter(|_| listed.is_some()) {
        return Err(cells.error("strides or cells, not both"));
    }
    if listed.is_some_and(|entry| entry.value == ANY) {
        keys.refuse("sizes", true, "a list of strides with the sizes of each")?;
        keys.take("strides");
        return Ok(Levels::Strides(strides.iter().copied().collect()));
    }
    let strides = keys.whole_numbers("strides", 1..=MAX_STRIDE)?;
    let cells = keys.whole_numbers("cells", 1..=MAX_STRIDE)?;
    for (entry, numbers) in strides.iter().chain(&cells) {
        if !numbers.is_sorted() && !numbers.iter().rev().is_sorted() {
            return Err(entry.error("numbers in ascending or descending order, as the levels"));
        }
    }
    Ok(match (strides, cells) {
        (Some((_, strides)), _) => Levels::Strides(strides),
        (None, Some((_, cells))) => Levels::Cells(cells),
        (None, None) => Levels::None,
    })
}

/// The section without the grids, which are `levels`.
pub(super) fn read(
    mut keys: Keys<'_>,
    levels: Levels,
    fields: &mut Fields<'_, '_>,
) -> Parsed<AnchorRule> {
    let keys = &mut keys;
    let groups = levels.groups();
    let has_grid = levels != Levels::None;
    // Each of these keys is about cells of a grid.
    let of_cells = ["rounding", "offset", "scale-xy", "per-cell", "order", "sizes"];
    let entry = keys.entries.iter().find(|entry| !has_grid && of_cells.contains(&entry.key));
    if let Some(entry) = entry {
        return Err(entry.error("strides or cells in the same section"));
    }
    let words =
        [("down", CellRounding::Down), ("up", CellRounding::Up), ("fit", CellRounding::Fit)];
    let rounding = keys.word("rounding", CellRounding::Down, &words)?;
    let is_in_cell = |number: f32| (0.0..=1.0).contains(&number);
    let offset = keys.number("offset", is_in_cell, "a number from 0 to 1")?.unwrap_or(0.0);
    let scale_xy = keys.take("scale-xy").map(|entry| scales(entry, groups)).transpose()?;
    let scale_xy = scale_xy.unwrap_or_default();
    let per_cell = keys.whole_numbers::<MAX_GROUPS>("per-cell", 1..=256)?;
    let sizes =
        keys.take("sizes").map(|entry| sizes(entry, &levels)).transpose()?.unwrap_or_default();
    let per_cell: ArrayVec<usize, MAX_GROUPS> = match per_cell {
        Some((entry, _)) if !sizes.is_empty() => {
            return Err(entry.error("per-cell or sizes, not both"));
        }
        Some((entry, numbers)) => match numbers.as_slice() {
            [number] => (0..groups).map(|_| *number as usize).collect(),
            numbers if numbers.len() == groups => {
                numbers.iter().map(|number| *number as usize).collect()
            }
            _ => return Err(entry.error(&format!("one number, or {groups}, one for each level"))),
        },
        None if sizes.is_empty() => (0..groups).map(|_| 1).collect(),
        None => sizes.iter().map(ArrayVec::len).collect(),
    };
    let mut by_cell = keys.word("order", true, &[("cell", true), ("anchor", false)])?;
    for shape in fields.tensors.iter().flat_map(|tensor| &tensor.shapes) {
        let Some(of_shape) = shape.by_cell() else { continue };
        if !shape.has_per_cell() {
            if per_cell.iter().any(|&number| number != 1) {
                let reason = format!("shape {shape}: expected A for several anchors of a cell");
                return Err(DescriptionError::new(keys.line, reason));
            }
            continue;
        }
        keys.refuse("order", of_shape != by_cell, "the order of the tensors' shapes")?;
        by_cell = of_shape;
    }
    let priors = fields.anchor_field(keys, "priors", |_| Count::constant(4))?;
    let count = fields.field(keys, "count", |_| Count::constant(1))?;
    if count.is_some_and(|count| fields.tensors[count.tensor].per_level) {
        return Err(DescriptionError::new(
            keys.line,
            "count: expected one tensor, not one for each level",
        ));
    }
    let pairs = fields.anchor_field(keys, "pairs", |_| Count::constant(3))?;
    keys.refuse("pairs", has_grid, "no pairs of anchors that are cells")?;
    let image = fields.anchor_field(keys, "image", |_| Count::constant(1))?;
    keys.finish(
        "strides, cells, rounding, offset, scale-xy, per-cell, order, sizes, priors, count, pairs, image",
    )?;
    Ok(AnchorRule {
        levels,
        rounding,
        offset,
        scale_xy,
        per_cell,
        by_cell,
        sizes,
        priors,
        count,
        pairs,
        image,
    })
}

/// One factor for each of `groups` levels.
fn scales(entry: Entry<'_>, groups: usize) -> Parsed<ArrayVec<f32, MAX_GROUPS>> {
    let scales = numbers::<MAX_GROUPS>(entry.value, |scale| (1.0..=2.0).contains(&scale));
    let scales = scales.filter(|scales| scales.len() == groups);
    scales.ok_or_else(|| entry.error(&format!("{groups} numbers from 1 to 2, one for each level")))
}

/// The sizes of a cell's anchors.
type Sizes = ArrayVec<[f32; 2], MAX_SIZES>;

/// The sizes of the anchors of each level.
fn sizes(entry: Entry<'_>, of: &Levels) -> Parsed<ArrayVec<Sizes, MAX_GROUPS>> {
    let groups = of.groups();
    let error = || {
        entry.error(&format!(
            "1 to {MAX_SIZES} sizes such as 10x13 for each of {groups} levels, separated by commas"
        ))
    };
    let side = |text: &str| text.parse().ok().filter(|side: &f32| side.is_normal() && *side > 0.0);
    let mut levels = ArrayVec::new();
    for level in entry.value.split(',') {
        let mut sizes = ArrayVec::new();
        for word in level.split_whitespace() {
            let (width, height) = word.split_once('x').unwrap_or((word, word));
            let size = side(width).zip(side(height)).ok_or_else(error)?;
            sizes.try_push([size.0, size.1]).map_err(|_| error())?;
        }
        if sizes.is_empty() {
            return Err(error());
        }
        levels.try_push(sizes).map_err(|_| error())?;
    }
    if levels.len() != groups {
        return Err(error());
    }
    if is_reversed(of, &levels) {
        return Err(entry.error("larger sizes for levels with larger cells"));
    }
    Ok(levels)
}

/// Returns true if the first level's anchors are smaller than the last level's, although its cells are larger, or
/// the other way round.
fn is_reversed(levels: &Levels, sizes: &[Sizes]) -> bool {
    let (Some(first), Some(last)) = (sizes.first(), sizes.last()) else { return false };
    let area = |sizes: &Sizes| {
        let sum: f32 = sizes.iter().map(|[width, height]| width * height).sum();
        sum / sizes.len() as f32
    };
    let cells = match levels {
        Levels::None => None,
        Levels::Strides(strides) => strides.last().partial_cmp(&strides.first()),
        Levels::Cells(cells) => cells.first().partial_cmp(&cells.last()),
    };
    let order = area(last).partial_cmp(&area(first));
    cells.zip(order).is_some_and(|(cells, order)| cells.is_ne() && order == cells.reverse())
}
