// SPDX-License-Identifier: MIT OR Apache-2.0
//! A uniform spatial grid over a frame.
//!
//! In: numbered rectangles. Out: the numbers of the rectangles in the cells that a query touches,
//! which include all rectangles that overlap the query. The time of a query is proportional to the
//! number of these cells and their items.

use arrayvec::ArrayVec;

/// Marks the end of a linked list.
const END: u32 = u32::MAX;

/// Square cells, each with a linked list of its items. The item that was inserted last is first in
/// the list.
#[derive(Debug, Default)]
pub(super) struct Grid {
    /// Side of a cell, in pixels.
    side: i32,
    columns: i32,
    rows: i32,
    /// First entry of each cell's list, or [`END`].
    first: Vec<u32>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    item: u32,
    /// Next entry of the cell, or [`END`].
    next: u32,
}

impl Grid {
    /// Empties the grid and prepares it for about `items` items in a frame of this size.
    ///
    /// A cell has at least `side` pixels. It has more if there would otherwise be more cells than
    /// items, so that the number of items bounds the time for emptying the cells.
    pub fn clear(&mut self, [width, height]: [u32; 2], side: u32, items: usize) {
        let area = f64::from(width) * f64::from(height);
        let per_item = (area / items.max(1) as f64).sqrt().ceil();
        self.side = (per_item as i32).max(side.try_into().unwrap_or(i32::MAX)).max(1);
        let cells = |length: u32| i32::try_from(length).unwrap_or(i32::MAX).max(1);
        self.columns = (cells(width) - 1) / self.side + 1;
        self.rows = (cells(height) - 1) / self.side + 1;
        self.first.clear();
        self.first.resize(self.columns as usize * self.rows as usize, END);
        self.entries.clear();
    }

    /// Adds `item` to each cell that this rectangle touches: left, top, right and bottom, of which
    /// the last two are exclusive. Cells at the edges also contain the positions outside of the
    /// frame next to them.
    pub fn insert(&mut self, rect: [i32; 4], item: u32) {
        for cell in self.cells(rect) {
            let entry = Entry { item, next: self.first[cell] };
            self.first[cell] = self.entries.len() as u32;
            self.entries.push(entry);
        }
    }

    /// Returns the items in the cells that this rectangle touches. An item is returned once for
    /// each of these cells that contains it.
    pub fn near(&self, rect: [i32; 4]) -> impl Iterator<Item = u32> {
        self.cells(rect).flat_map(|cell| {
            let entry = |index: u32| self.entries.get(index as usize).copied();
            std::iter::successors(entry(self.first[cell]), move |last| entry(last.next))
                .map(|entry| entry.item)
        })
    }

    /// Returns the items of [`near`](Self::near) in ascending order, by merging the lists of the
    /// cells. The rectangle must touch at most nine cells, and items must have been inserted in
    /// descending order.
    pub fn ascending(&self, rect: [i32; 4]) -> impl Iterator<Item = u32> {
        let mut lists: ArrayVec<Entry, 9> = self
            .cells(rect)
            .filter_map(|cell| self.entries.get(self.first[cell] as usize).copied())
            .collect();
        std::iter::from_fn(move || {
            let (at, &Entry { item, next }) =
                lists.iter().enumerate().min_by_key(|(_, entry)| entry.item)?;
            match self.entries.get(next as usize) {
                Some(&entry) => lists[at] = entry,
                None => drop(lists.swap_remove(at)),
            }
            Some(item)
        })
    }

    /// Returns the cells that a rectangle touches. There is at least one.
    fn cells(&self, [x1, y1, x2, y2]: [i32; 4]) -> impl Iterator<Item = usize> + use<> {
        let span = |low: i32, high: i32, cells: i32| {
            let cell = |at: i32| at.div_euclid(self.side).clamp(0, cells - 1);
            cell(low)..=cell(high.saturating_sub(1).max(low))
        };
        let (columns, across) = (span(x1, x2, self.columns), self.columns);
        span(y1, y2, self.rows).flat_map(move |row| {
            columns.clone().map(move |column| (row * across + column) as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(a: [i32; 4], b: [i32; 4]) -> bool {
        a[0].max(b[0]) < a[2].min(b[2]) && a[1].max(b[1]) < a[3].min(b[3])
    }

    #[test]
    fn every_item_that_overlaps_a_rectangle_is_near_it() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut grid = Grid::default();
        for (size, side) in [([640, 480], 16), ([1, 1], 1), ([7, 3000], 64)] {
            // Some rectangles are partly or completely outside of the frame.
            let [width, height] = size.map(|side| side as i32);
            let mut rect = || {
                let (x, y) = (random.i32(-50..width + 50), random.i32(-50..height + 50));
                [x, y, x + random.i32(1..90), y + random.i32(1..90)]
            };
            let rects: Vec<[i32; 4]> = (0..300).map(|_| rect()).collect();
            grid.clear(size, side, rects.len());
            for (item, &rect) in (0..).zip(&rects) {
                grid.insert(rect, item);
            }
            for _ in 0..300 {
                let query = rect();
                let mut near: Vec<u32> = grid.near(query).collect();
                near.sort_unstable();
                for (item, &rect) in (0..).zip(&rects) {
                    assert!(!overlap(query, rect) || near.binary_search(&item).is_ok());
                }
            }
        }
    }

    #[test]
    fn most_items_of_a_large_frame_are_not_near_a_small_rectangle() {
        let mut grid = Grid::default();
        grid.clear([1000, 1000], 10, 10_000);
        for item in 0..10_000i32 {
            let (x, y) = (item % 100 * 10, item / 100 * 10);
            grid.insert([x, y, x + 10, y + 10], item as u32);
        }
        assert_eq!(grid.near([200, 300, 210, 310]).collect::<Vec<_>>(), [3020]);
        grid.clear([1000, 1000], 10, 10_000);
        assert_eq!(grid.near([0, 0, 1000, 1000]).count(), 0);
    }

    #[test]
    fn ascending_returns_points_by_ascending_number() {
        let mut grid = Grid::default();
        grid.clear([100, 100], 20, 1000);
        let at = |item: i32| [item * 37 % 100, item * 53 % 100];
        for item in (0..1000).rev() {
            let [x, y] = at(item);
            grid.insert([x, y, x + 1, y + 1], item as u32);
        }
        let found: Vec<u32> = grid.ascending([30, 30, 60, 60]).collect();
        assert!(found.is_sorted());
        for item in 0..1000 {
            let inside = at(item).iter().all(|side| (30..60).contains(side));
            assert!(!inside || found.binary_search(&(item as u32)).is_ok());
        }
    }
}
