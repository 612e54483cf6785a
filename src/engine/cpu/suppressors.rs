//! The boxes that suppress candidates of lower rank.

use super::block::Block;
use super::conflict::{Conflict, Entry};
use super::spatial_grid::SpatialGrid;

const BLOCK_WIDTH: usize = 16;
/// Up to this many blocks, comparing with all of them takes less time than the spatial grid.
const MAX_LINEAR_BLOCKS: usize = 12;

#[derive(Debug, Default)]
pub(super) struct Suppressors {
    len: usize,
    /// All of them.
    blocks: Vec<Block<BLOCK_WIDTH>>,
    /// All of them, once there are more than [`MAX_LINEAR_BLOCKS`] blocks.
    grid: SpatialGrid,
}

impl Suppressors {
    pub fn clear(&mut self) {
        self.len = 0;
        self.blocks.clear();
    }

    /// Adds a box; there will be at max_boxes `max_boxes` in all.
    #[inline(always)]
    pub fn push(&mut self, entry: &Entry, max_boxes: usize) {
        if self.len.is_multiple_of(BLOCK_WIDTH) {
            if self.blocks.len() == MAX_LINEAR_BLOCKS {
                self.grid.clear(max_boxes);
                for block in &self.blocks {
                    (0..BLOCK_WIDTH).for_each(|index| self.grid.push(&block.get(index)));
                }
            }
            self.blocks.push(Block::EMPTY);
        }
        let last = self.blocks.last_mut().expect("one was pushed");
        last.set(self.len % BLOCK_WIDTH, entry);
        self.len += 1;
        if self.blocks.len() > MAX_LINEAR_BLOCKS {
            self.grid.push(entry);
        }
    }

    /// Whether any of these boxes suppresses `entry`, which all of them outrank.
    #[inline(always)]
    pub fn any_conflicts<C: Conflict>(&self, entry: &Entry, test: C) -> bool {
        let blocks = self.blocks.len();
        if blocks > MAX_LINEAR_BLOCKS
            && let Some(conflicts) = self.grid.any_conflicts(entry, test, 2 * blocks as u64)
        {
            return conflicts;
        }
        self.blocks.iter().any(|block| block.any_conflicts(entry, test))
    }
}
