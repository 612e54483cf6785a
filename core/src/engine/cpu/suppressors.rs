// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boxes that can suppress candidates of lower rank.
//!
//! In: boxes in descending rank. Out: true if any of them conflicts with the next candidate. If
//! there are few boxes, each is compared; if there are many, a [`SpatialGrid`] finds the nearby
//! ones.

use super::block::Block;
use super::conflict::{Conflict, Entry, Shape};
use super::spatial_grid::SpatialGrid;

const BLOCK_WIDTH: usize = 16;
/// Up to this number of blocks, comparing with all boxes takes less time than a search in the spatial grid.
const MAX_LINEAR_BLOCKS: usize = 12;

#[derive(Debug, Default)]
pub(super) struct Suppressors<S = ()> {
    len: usize,
    /// All boxes.
    blocks: Vec<Block<BLOCK_WIDTH, S>>,
    /// All boxes, if there are more than [`MAX_LINEAR_BLOCKS`] blocks; unused otherwise.
    grid: SpatialGrid<S>,
}

impl<S: Shape> Suppressors<S> {
    pub fn clear(&mut self) {
        self.len = 0;
        self.blocks.clear();
    }

    /// Adds a box. `max_boxes` is an upper bound of the number of boxes that will be added in all.
    #[inline(always)]
    pub fn push(&mut self, entry: &Entry<S>, max_boxes: usize) {
        if self.len.is_multiple_of(BLOCK_WIDTH) {
            if self.blocks.len() == MAX_LINEAR_BLOCKS {
                self.grid.clear(max_boxes);
                for block in &self.blocks {
                    (0..BLOCK_WIDTH).for_each(|index| self.grid.push(&block.get(index)));
                }
            }
            self.blocks.push(Block::EMPTY);
        }
        let last = self.blocks.last_mut().expect("blocks is not empty");
        last.set(self.len % BLOCK_WIDTH, entry);
        self.len += 1;
        if self.blocks.len() > MAX_LINEAR_BLOCKS {
            self.grid.push(entry);
        }
    }

    /// Returns true if any of these boxes conflicts with `entry`. All of them outrank `entry`.
    #[inline(always)]
    pub fn any_conflicts<C: Conflict<Shape = S>>(&self, entry: &Entry<S>, test: C) -> bool {
        let blocks = self.blocks.len();
        if blocks > MAX_LINEAR_BLOCKS
            && let Some(conflicts) = self.grid.any_conflicts(entry, test, 2 * blocks as u64)
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
