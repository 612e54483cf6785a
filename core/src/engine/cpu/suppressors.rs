// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boxes that can suppress candidates of lower rank, in a list for each class.
//!
//! In: boxes in descending rank. Out: true if any box of a class conflicts with the next candidate of
//! that class. If a list has few boxes, each is compared; if it has many, a [`SpatialGrid`] finds the
//! nearby ones.

use super::block::Block;
use super::conflict::{Conflict, Entry, Shape};
use super::spatial_grid::SpatialGrid;

const BLOCK_WIDTH: usize = 16;
/// Up to this number of blocks, comparing with all boxes takes less time than a search in the spatial grid.
const MAX_LINEAR_BLOCKS: usize = 24;

/// The index that means "no list".
const NO_LIST: u32 = u32::MAX;

/// The boxes that candidates of each class are compared with.
pub(super) trait Suppressors {
    type Shape: Shape;

    /// Removes all boxes.
    fn clear(&mut self);

    /// The boxes that candidates of this class are compared with.
    fn of_class(&mut self, class: u32) -> &mut SuppressorList<Self::Shape>;
}

/// Candidates of all classes can conflict.
impl<S: Shape> Suppressors for SuppressorList<S> {
    type Shape = S;

    #[inline(always)]
    fn clear(&mut self) {
        (self.len, self.has_grid) = (0, false);
        self.blocks.clear();
    }

    #[inline(always)]
    fn of_class(&mut self, _class: u32) -> &mut Self {
        self
    }
}

/// A list for each class; the lists are reused.
#[derive(Debug, Default)]
pub(super) struct ClassSuppressors<S = ()> {
    /// For each class, the index of its list, or [`NO_LIST`].
    indices: Vec<u32>,
    /// The class of each list that is in use. These are the first lists.
    classes: Vec<u32>,
    lists: Vec<SuppressorList<S>>,
}

impl<S: Shape> Suppressors for ClassSuppressors<S> {
    type Shape = S;

    fn clear(&mut self) {
        for class in self.classes.drain(..) {
            self.indices[class as usize] = NO_LIST;
        }
    }

    #[inline(always)]
    fn of_class(&mut self, class: u32) -> &mut SuppressorList<S> {
        match self.indices.get(class as usize) {
            Some(&index) if index != NO_LIST => &mut self.lists[index as usize],
            _ => self.begin_list(class),
        }
    }
}

impl<S: Shape> ClassSuppressors<S> {
    #[cold]
    fn begin_list(&mut self, class: u32) -> &mut SuppressorList<S> {
        let Self { indices, classes, lists } = self;
        let (class, index) = (class as usize, classes.len());
        if class >= indices.len() {
            indices.resize(class + 1, NO_LIST);
        }
        indices[class] = index as u32;
        classes.push(class as u32);
        if index == lists.len() {
            lists.push(SuppressorList::default());
        }
        lists[index].clear();
        &mut lists[index]
    }
}

/// The lists of an engine.
#[derive(Debug, Default)]
pub(super) struct Lists<S = ()> {
    pub of_all: SuppressorList<S>,
    pub of_classes: ClassSuppressors<S>,
}

/// Boxes that candidates are compared with.
#[derive(Debug, Default)]
pub(super) struct SuppressorList<S = ()> {
    len: usize,
    /// All boxes.
    blocks: Vec<Block<BLOCK_WIDTH, S>>,
    /// All boxes, if `has_grid` is set.
    grid: SpatialGrid<S>,
    has_grid: bool,
}

impl<S: Shape> SuppressorList<S> {
    /// Adds a box. `max_boxes` is an upper bound of the number of boxes that will be added in all.
    #[inline(always)]
    pub fn push(&mut self, entry: &Entry<S>, max_boxes: usize) {
        if self.len.is_multiple_of(BLOCK_WIDTH) {
            self.blocks.push(Block::empty());
        }
        let last = self.blocks.last_mut().expect("blocks is not empty");
        last.set(self.len % BLOCK_WIDTH, entry);
        self.len += 1;
        if self.has_grid {
            self.grid.push(entry);
        } else if self.blocks.len() > MAX_LINEAR_BLOCKS {
            self.begin_grid(max_boxes);
        }
    }

    /// Adds all boxes to the grid. Not inlined, or each test would have a copy.
    #[inline(never)]
    fn begin_grid(&mut self, max_boxes: usize) {
        self.grid.clear(max_boxes);
        for index in 0..self.len {
            self.grid.push(&self.blocks[index / BLOCK_WIDTH].get(index % BLOCK_WIDTH));
        }
        self.has_grid = true;
    }

    /// Returns true if any of these boxes conflicts with `entry`. All of them outrank `entry`.
    #[inline(always)]
    pub fn any_conflicts<C: Conflict<Shape = S>>(&self, entry: &Entry<S>, test: C) -> bool {
        // A cell takes about as long as a block.
        if self.has_grid
            && let Some(conflicts) = self.grid.any_conflicts(entry, test, self.blocks.len() as u64)
        {
            return conflicts;
        }
        // `Iterator::any` would be a function that is compiled without AVX2.
        for block in &self.blocks {
            if test.any_conflicts(block, entry) {
                return true;
            }
        }
        false
    }
}
