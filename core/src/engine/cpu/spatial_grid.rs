// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hierarchical hash grid of boxes. With it, a candidate is only compared with nearby boxes.
//!
//! In: boxes, in any order. Out: true if any of them conflicts with a given box, or all that can.
//!
//! A box belongs to the level of the least power of two that is greater than its longer side. The cells of a
//! level are squares of that side, and a box is stored in the cell of its upper left corner. Therefore all
//! boxes of a level that intersect a given box are in the cells from the one before (left of and above) the
//! cell of its upper left corner to the cell of its lower right corner. A hash table maps cells to slots. If
//! several cells share a slot, boxes of all of them are compared; the exact test decides, so the result does
//! not depend on the hash. The cost of a search is the number of cells in range plus the boxes in them.

use arrayvec::ArrayVec;

use super::block::Block;
use super::conflict::{Conflict, Entry, Shape};

pub(super) const BLOCK_WIDTH: usize = 8;
/// The index that means "no block".
const NO_BLOCK: u32 = u32::MAX;
/// The cell side of level 0 is 2 to this power. Boxes with shorter sides belong to level 0 too.
const LOWEST_LEVEL_EXPONENT: i32 = -16;
/// The number of levels: [`MAX_BOX_SIDE`](super::super::MAX_BOX_SIDE) is less than 2 to the power of 31.
const LEVELS: usize = 48;

#[derive(Debug, Default)]
pub(super) struct SpatialGrid<S = ()> {
    /// The hash table: the index of the last block of the cells with this hash.
    slots: Vec<u32>,
    blocks: Vec<LinkedBlock<S>>,
    /// Bit `i` is set if level `i` has boxes.
    levels: u64,
}

/// Boxes of a slot.
pub(super) type GridBlock<S> = Block<BLOCK_WIDTH, S>;

#[derive(Debug)]
struct LinkedBlock<S> {
    block: GridBlock<S>,
    len: u32,
    /// The index of the slot's previous block.
    next: u32,
}

/// The cells of a level that can contain boxes that intersect a given box; bounds are inclusive.
struct Range {
    x: (i32, i32),
    y: (i32, i32),
}

impl Range {
    #[inline(always)]
    fn new<S>(entry: &Entry<S>, level: usize, offset: f32) -> Self {
        let cell = |edge: f64| cell(edge, level);
        // In double precision, so that rounding cannot exclude a cell.
        let offset = f64::from(offset);
        let low = |edge: f32| cell(f64::from(edge) - offset).saturating_sub(1);
        let high = |edge: f32| cell(f64::from(edge) + offset);
        Self {
            x: (low(entry.corners().x1), high(entry.corners().x2)),
            y: (low(entry.corners().y1), high(entry.corners().y2)),
        }
    }

    #[inline(always)]
    fn cells(&self) -> u64 {
        let count = |(low, high): (i32, i32)| (i64::from(high) - i64::from(low) + 1) as u64;
        count(self.x).saturating_mul(count(self.y))
    }
}

/// The side of a level's cells. It exceeds the sides of all boxes of the level.
#[inline(always)]
fn cell_side(level: usize) -> f32 {
    f32::from_bits(((level as i32 + LOWEST_LEVEL_EXPONENT + 127) as u32) << 23)
}

#[inline(always)]
fn cell(edge: f64, level: usize) -> i32 {
    // The factor is a power of two, so the product is exact.
    (edge * (1.0 / f64::from(cell_side(level)))).floor() as i32
}

#[inline(always)]
fn level<S>(entry: &Entry<S>) -> usize {
    let side =
        (entry.corners().x2 - entry.corners().x1).max(entry.corners().y2 - entry.corners().y1);
    let exponent = (side.to_bits() >> 23) as i32 - 127;
    (exponent + 1 - LOWEST_LEVEL_EXPONENT).clamp(0, LEVELS as i32 - 1) as usize
}

impl<S: Copy + Default> SpatialGrid<S> {
    /// Removes all boxes and sizes the hash table for about `boxes` boxes.
    pub fn clear(&mut self, boxes: usize) {
        self.blocks.clear();
        self.levels = 0;
        self.slots.clear();
        self.slots.resize((2 * boxes).next_power_of_two(), NO_BLOCK);
    }

    #[inline(always)]
    fn slot(&self, level: usize, x: i32, y: i32) -> usize {
        let word = (x as u32).wrapping_mul(0x9e37_79b1)
            ^ (y as u32).wrapping_mul(0x85eb_ca77)
            ^ (level as u32).wrapping_mul(0xc2b2_ae3d);
        let mixed = (word ^ (word >> 15)).wrapping_mul(0x2c1b_3c6d);
        (mixed ^ (mixed >> 14)) as usize & (self.slots.len() - 1)
    }

    #[inline(always)]
    pub fn push(&mut self, entry: &Entry<S>) {
        let level = level(entry);
        self.levels |= 1 << level;
        let (x, y) = (
            cell(f64::from(entry.corners().x1), level),
            cell(f64::from(entry.corners().y1), level),
        );
        let slot = self.slot(level, x, y);
        let last = self.slots[slot];
        let is_full = last == NO_BLOCK || self.blocks[last as usize].len == BLOCK_WIDTH as u32;
        if is_full {
            self.slots[slot] = self.blocks.len() as u32;
            self.blocks.push(LinkedBlock { block: Block::empty(), len: 0, next: last });
        }
        let linked = &mut self.blocks[self.slots[slot] as usize];
        linked.block.set(linked.len as usize, entry);
        linked.len += 1;
    }

    /// Calls `visit` for blocks that together have all boxes that intersect `entry`, at least once.
    #[inline(always)]
    pub fn for_each_block(
        &self,
        entry: &Entry<S>,
        offset: f32,
        mut visit: impl FnMut(&GridBlock<S>),
    ) {
        let mut ranges = ArrayVec::<(usize, Range), LEVELS>::new();
        let (mut levels, mut cells) = (self.levels, 0_u64);
        while levels != 0 {
            let level = levels.trailing_zeros() as usize;
            levels &= levels - 1;
            let range = Range::new(entry, level, offset);
            cells = cells.saturating_add(range.cells());
            ranges.push((level, range));
        }
        // A cell takes about as long as a block.
        if cells > self.blocks.len() as u64 {
            self.blocks.iter().for_each(|linked| visit(&linked.block));
            return;
        }
        for (level, range) in &ranges {
            for y in range.y.0..=range.y.1 {
                for x in range.x.0..=range.x.1 {
                    let mut block = self.slots[self.slot(*level, x, y)];
                    while block != NO_BLOCK {
                        let linked = &self.blocks[block as usize];
                        visit(&linked.block);
                        block = linked.next;
                    }
                }
            }
        }
    }
}

impl<S: Shape> SpatialGrid<S> {
    /// Returns true if any of the boxes conflicts with `entry`, or `None` if the search would visit
    /// more than `max_cells` cells besides the entry's own.
    #[inline(always)]
    pub fn any_conflicts<C: Conflict<Shape = S>>(
        &self,
        entry: &Entry<S>,
        test: C,
        max_cells: u64,
    ) -> Option<bool> {
        // A conflicting box is most likely in the entry's cell at the entry's level, so search that
        // cell first.
        let own_level = level(entry);
        let (x, y) = (
            cell(f64::from(entry.corners().x1), own_level),
            cell(f64::from(entry.corners().y1), own_level),
        );
        if self.cell_conflicts(own_level, x, y, entry, test) {
            return Some(true);
        }
        let least = test.least_area(entry.measured.area);
        let mut ranges = ArrayVec::<(usize, Range), LEVELS>::new();
        let mut remaining = max_cells;
        let mut next = Some(own_level);
        let mut levels = self.levels & !(1 << own_level);
        while let Some(level) = next {
            let side = cell_side(level) + test.offset();
            let is_too_small = level + 1 < LEVELS && side * side < least;
            if !is_too_small {
                let range = Range::new(entry, level, test.offset());
                remaining = remaining.checked_sub(range.cells())?;
                ranges.push((level, range));
            }
            next = (levels != 0).then(|| levels.trailing_zeros() as usize);
            levels &= levels.wrapping_sub(1);
        }
        for (level, range) in &ranges {
            for y in range.y.0..=range.y.1 {
                for x in range.x.0..=range.x.1 {
                    if self.cell_conflicts(*level, x, y, entry, test) {
                        return Some(true);
                    }
                }
            }
        }
        Some(false)
    }

    #[inline(always)]
    fn cell_conflicts<C: Conflict<Shape = S>>(
        &self,
        level: usize,
        x: i32,
        y: i32,
        entry: &Entry<S>,
        test: C,
    ) -> bool {
        let mut block = self.slots[self.slot(level, x, y)];
        while block != NO_BLOCK {
            let linked = &self.blocks[block as usize];
            if test.any_conflicts(&linked.block, entry) {
                return true;
            }
            block = linked.next;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Detection, Params};
    use super::super::conflict::WithTest;
    use super::*;
    use crate::geometry::Overlap;

    /// Boxes of all orders of magnitude, near and far from the origin and from each other.
    fn boxes(count: usize, seed: u64) -> Vec<Detection> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut power =
            |range: std::ops::Range<i32>| 2.0f32.powi(rng.i32(range)) * (1.0 + rng.f32());
        let side = |power: &mut dyn FnMut(std::ops::Range<i32>) -> f32, any_size: bool| {
            if any_size { power(-30..29) } else { power(3..6) }
        };
        (0..count)
            .filter_map(|i| {
                let any_size = i % 3 == 0;
                let far = if any_size { power(-20..20) } else { power(0..9) };
                let sign = |flip: usize| if (i / flip).is_multiple_of(2) { 1.0 } else { -1.0 };
                let (x1, y1) = (sign(3) * far, sign(7) * if any_size { far } else { power(0..9) });
                let (x2, y2) = (x1 + side(&mut power, any_size), y1 + side(&mut power, i % 6 == 0));
                (x1 < x2 && y1 < y2).then_some(Detection { x1, y1, x2, y2, ..Detection::default() })
            })
            .collect()
    }

    /// Compares every box with all boxes before it, with the grid and without, and counts conflicts.
    struct Check<'a> {
        boxes: &'a [Detection],
        params: &'a Params,
        conflicts: &'a mut usize,
    }

    impl WithTest<()> for Check<'_> {
        fn run<C: Conflict<Shape = ()>>(self) {
            let Self { boxes, params, conflicts } = self;
            let test = C::new(params, params.iou_threshold);
            let entries: Vec<Entry> = boxes.iter().map(|d| Entry::new(d, params)).collect();
            let mut grid = SpatialGrid::default();
            grid.clear(entries.len());
            for (i, entry) in entries.iter().enumerate() {
                let expected = entries[..i].iter().any(|other| test.conflict(other, entry));
                // The grid is not searched for a box that spans more cells than the limit.
                let found = grid.any_conflicts(entry, test, 1 << 12).unwrap_or(expected);
                assert_eq!(found, expected, "{entry:?}");
                if i.is_multiple_of(16) {
                    let mut found = false;
                    grid.for_each_block(entry, params.pixel_offset, |block| {
                        found |= test.any_conflicts(block, entry);
                    });
                    assert_eq!(found, expected, "{entry:?}");
                }
                *conflicts += usize::from(expected);
                grid.push(entry);
            }
        }
    }

    #[test]
    fn conflicts_are_found_for_all_sizes_and_positions() {
        let overlaps = [Overlap::Iou, Overlap::Representative, Overlap::Smaller, Overlap::Diou];
        for seed in 0..20 {
            let boxes = boxes(600, seed);
            for iou_threshold in [0.0, 0.1, 0.4] {
                for (overlap, inclusive, pixel_offset) in overlaps.into_iter().flat_map(|overlap| {
                    [(overlap, false, 0.0), (overlap, true, 0.0), (overlap, seed % 2 == 0, 1.0)]
                }) {
                    let params = Params {
                        iou_threshold,
                        pixel_offset,
                        threshold_inclusive: inclusive,
                        overlap,
                        ..Params::default()
                    };
                    let mut conflicts = 0;
                    let check = Check { boxes: &boxes, params: &params, conflicts: &mut conflicts };
                    <()>::with_test(&params, check);
                    assert!(conflicts > 2, "{conflicts} conflicts, {overlap:?}, {params:?}");
                }
            }
        }
    }

    /// A search for boxes that conflict with a box, in at most so many cells.
    struct Search<'a>(&'a SpatialGrid, Entry, u64, &'a Params, &'a mut Option<bool>);

    impl WithTest<()> for Search<'_> {
        fn run<C: Conflict<Shape = ()>>(self) {
            let Self(grid, entry, max_cells, params, found) = self;
            let test = C::new(params, params.iou_threshold);
            *found = grid.any_conflicts(&entry, test, max_cells);
        }
    }

    #[test]
    fn a_search_of_more_cells_than_the_limit_is_not_made() {
        let mut grid = SpatialGrid::default();
        grid.clear(2);
        let params = Params { overlap: Overlap::Smaller, ..Params::default() };
        let entry = |x1: f32, side: f32| {
            let d = Detection { x1, y1: 0.0, x2: x1 + side, y2: side, ..Detection::default() };
            Entry::new(&d, &params)
        };
        let found = |grid: &SpatialGrid, max_cells| {
            let mut found = None;
            let search = Search(grid, entry(0.0, 1000.0), max_cells, &params, &mut found);
            <()>::with_test(&params, search);
            found
        };
        grid.push(&entry(500.0, 1.0));
        assert_eq!(found(&grid, 1000), None);
        assert_eq!(found(&grid, 1_000_000), Some(true));
    }
}
