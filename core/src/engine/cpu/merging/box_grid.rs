// SPDX-License-Identifier: MIT OR Apache-2.0
//! A uniform grid that finds the boxes near a box.
//!
//! In: boxes with indices. Out: the indices of all boxes that can intersect a given box, and
//! perhaps others. Cells are as large as the median box. The grid repeats over the plane, so that
//! boxes far away need no further cells, and each box is in every cell that it touches. A box that
//! touches more than [`MAX_SPAN`] columns or rows is in a list that each search reads.

use super::super::conflict::Entry;

/// The greatest number of columns, or of rows, that a box in cells touches.
const MAX_SPAN: i64 = 8;
/// The greatest number of columns and of rows.
const MAX_SIDE: usize = 512;
/// Up to this number of boxes, one cell takes less time than a search.
const MAX_LINEAR: usize = 32;

/// A box in a cell. The copy of the box makes searches read memory in order.
#[derive(Clone, Copy, Debug)]
struct Item {
    index: u32,
    entry: Entry,
}

/// The grid; its buffers are reused.
#[derive(Debug, Default)]
pub(super) struct BoxGrid {
    /// Cells per pixel, along x and y.
    density: [f64; 2],
    /// The number of columns and of rows, a power of two.
    side: usize,
    cells: Vec<Vec<Item>>,
    /// The boxes that touch too many cells.
    large: Vec<Item>,
    /// Pixels that are added to the lengths of intersections.
    offset: f64,
    /// For each index, the number of the search that last found it.
    found: Vec<u32>,
    search: u32,
    sides: Vec<f32>,
}

/// The columns, or the rows, that a box touches.
#[derive(Clone, Copy)]
struct Span {
    first: i64,
    count: i64,
}

impl BoxGrid {
    /// Removes all boxes, and prepares for boxes like `entries`, with indices below their number.
    pub fn clear(&mut self, entries: &[Entry], offset: f32) {
        let count = entries.len();
        self.cells[..self.side * self.side].iter_mut().for_each(Vec::clear);
        self.offset = offset.into();
        self.side = match count {
            0..=MAX_LINEAR => 1,
            _ => count.isqrt().next_power_of_two().min(MAX_SIDE),
        };
        self.cells.resize_with(self.cells.len().max(self.side * self.side), Vec::new);
        self.large.clear();
        self.found.clear();
        self.found.resize(count, 0);
        self.search = 0;
        self.density = [1.0; 2];
        if self.side > 1 {
            for axis in 0..2 {
                let length = |entry: &Entry| {
                    let corners = entry.corners();
                    [corners.x2 - corners.x1, corners.y2 - corners.y1][axis]
                };
                self.sides.clear();
                self.sides.extend(entries.iter().map(length));
                let (_, median, _) =
                    self.sides.select_nth_unstable_by(count / 2, |a, b| a.total_cmp(b));
                self.density[axis] = 1.0 / f64::from(*median);
            }
        }
    }

    /// Adds a box. For [`first`](Self::first), indices must ascend.
    #[inline]
    pub fn push(&mut self, index: u32, entry: &Entry) {
        let item = Item { index, entry: *entry };
        let [columns, rows] = self.spans(entry, 0.0);
        if columns.count > MAX_SPAN || rows.count > MAX_SPAN {
            self.large.push(item);
            return;
        }
        let side = self.side;
        for cell in cells(columns, rows, side) {
            self.cells[cell].push(item);
        }
    }

    /// Removes a box that was added with this index and these corners.
    pub fn remove(&mut self, index: u32, entry: &Entry) {
        let [columns, rows] = self.spans(entry, 0.0);
        let remove = |items: &mut Vec<Item>| {
            let position = items.iter().position(|item| item.index == index);
            items.swap_remove(position.expect("the box was added"));
        };
        if columns.count > MAX_SPAN || rows.count > MAX_SPAN {
            remove(&mut self.large);
            return;
        }
        let side = self.side;
        for cell in cells(columns, rows, side) {
            remove(&mut self.cells[cell]);
        }
    }

    /// The least index of a box near `entry` for which `is_wanted` is true.
    #[inline(always)]
    pub fn first(&self, entry: &Entry, is_wanted: impl Fn(&Entry) -> bool) -> Option<u32> {
        let mut first = None;
        for items in self.near(entry) {
            let below = first.unwrap_or(u32::MAX);
            let mut earlier = items.iter().take_while(|item| item.index < below);
            if let Some(item) = earlier.find(|item| is_wanted(&item.entry)) {
                first = Some(item.index);
            }
        }
        first
    }

    /// Returns true if `is_wanted` is true for any box near `entry`.
    #[inline(always)]
    pub fn any(&self, entry: &Entry, is_wanted: impl Fn(u32, &Entry) -> bool) -> bool {
        self.near(entry).any(|items| items.iter().any(|item| is_wanted(item.index, &item.entry)))
    }

    /// Calls `visit` for each box near `entry`, at least once.
    #[inline(always)]
    pub fn for_each(&self, entry: &Entry, mut visit: impl FnMut(u32, &Entry)) {
        for items in self.near(entry) {
            items.iter().for_each(|item| visit(item.index, &item.entry));
        }
    }

    /// Calls `visit` once for each box near `entry`.
    #[inline(always)]
    pub fn for_each_once(&mut self, entry: &Entry, mut visit: impl FnMut(u32, &Entry)) {
        self.search += 1;
        let (mut found, search) = (std::mem::take(&mut self.found), self.search);
        self.for_each(entry, |index, entry| {
            if std::mem::replace(&mut found[index as usize], search) != search {
                visit(index, entry);
            }
        });
        self.found = found;
    }

    /// The lists of the boxes that can intersect `entry`.
    #[inline(always)]
    fn near(&self, entry: &Entry) -> impl Iterator<Item = &[Item]> {
        let [columns, rows] = self.spans(entry, self.offset);
        let of_cells = cells(columns, rows, self.side).map(|cell| &self.cells[cell][..]);
        std::iter::once(&self.large[..]).chain(of_cells)
    }

    /// The columns and rows that a box touches if each side is moved outward by `offset`.
    ///
    /// Each operation is monotonic, so that boxes which intersect have a column and a row in
    /// common. Conversion to integers saturates.
    #[inline(always)]
    fn spans(&self, entry: &Entry, offset: f64) -> [Span; 2] {
        let corners = entry.corners();
        let [x, y] = self.density;
        let span = |low: f32, high: f32, density: f64| {
            let first = ((f64::from(low) - offset) * density).floor() as i64;
            let last = ((f64::from(high) + offset) * density).floor() as i64;
            Span { first, count: last.saturating_sub(first).saturating_add(1) }
        };
        [span(corners.x1, corners.x2, x), span(corners.y1, corners.y2, y)]
    }
}

/// The cells of columns and rows, each once.
#[inline(always)]
fn cells(columns: Span, rows: Span, side: usize) -> impl Iterator<Item = usize> {
    let wrapped = move |Span { first, count }: Span| {
        let count = count.min(side as i64);
        (0..count).map(move |step| first.wrapping_add(step) as usize & (side - 1))
    };
    wrapped(rows).flat_map(move |row| wrapped(columns).map(move |column| row * side + column))
}

#[cfg(test)]
mod tests {
    use super::super::super::super::{Detection, Params};
    use super::*;

    fn any_entry(rng: &mut fastrand::Rng) -> Entry {
        let scale = *rng.choice(&[1.0f32, 1.0, 1.0, 100.0, 1.0e6]).unwrap();
        let [x1, y1] = [0, 1].map(|_| (rng.f32() - 0.5) * 1000.0 * scale);
        let [w, h] = [0, 1].map(|_| (0.5 + rng.f32() * 30.0) * scale);
        let detection = Detection { x1, y1, x2: x1 + w, y2: y1 + h, ..Detection::default() };
        Entry::new(&detection, &Params::default())
    }

    fn intersects(a: &Entry, b: &Entry, offset: f32) -> bool {
        let (a, b) = (a.corners(), b.corners());
        a.x2.min(b.x2) - a.x1.max(b.x1) + offset > 0.0
            && a.y2.min(b.y2) - a.y1.max(b.y1) + offset > 0.0
    }

    #[test]
    fn every_box_that_intersects_is_found_and_none_twice() {
        let mut rng = fastrand::Rng::with_seed(81);
        let mut grid = BoxGrid::default();
        let mut pairs = 0;
        for count in [1, 20, 33, 400, 1500, 60] {
            let offset = f32::from(u8::from(rng.bool()));
            let entries: Vec<Entry> = (0..count).map(|_| any_entry(&mut rng)).collect();
            grid.clear(&entries, offset);
            (0..).zip(&entries).for_each(|(index, entry)| grid.push(index, entry));
            for removed in (0..count as u32).step_by(7) {
                grid.remove(removed, &entries[removed as usize]);
            }
            for entry in &entries {
                let mut found = Vec::new();
                grid.for_each_once(entry, |index, _| found.push(index));
                found.sort_unstable();
                assert!(found.windows(2).all(|pair| pair[0] != pair[1]));
                let expected: Vec<u32> = (0..count as u32)
                    .filter(|index| !index.is_multiple_of(7))
                    .filter(|&index| intersects(entry, &entries[index as usize], offset))
                    .collect();
                assert!(expected.iter().all(|index| found.binary_search(index).is_ok()));
                pairs += expected.len();
            }
        }
        assert!(pairs > 2_000, "{pairs} pairs");
    }

    #[test]
    fn the_first_of_the_wanted_boxes_is_found() {
        let mut rng = fastrand::Rng::with_seed(82);
        let entries: Vec<Entry> = (0..500).map(|_| any_entry(&mut rng)).collect();
        let mut grid = BoxGrid::default();
        grid.clear(&entries, 0.0);
        for (index, entry) in (0..).zip(&entries) {
            let expected =
                entries[..index as usize].iter().position(|other| intersects(other, entry, 0.0));
            let found = grid.first(entry, |other| intersects(other, entry, 0.0));
            assert_eq!(found.map(|found| found as usize), expected);
            grid.push(index, entry);
        }
    }
}
