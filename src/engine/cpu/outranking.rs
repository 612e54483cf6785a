//! The boxes that suppress those ranked below them.

use super::block::{Block, Lane, Rule};
use super::cells::Cells;

const WIDTH: usize = 16;
/// Blocks that are quicker looked through than cut by position.
const FEW: usize = 12;

#[derive(Debug, Default)]
pub(super) struct Outranking {
    len: usize,
    /// All of them.
    blocks: Vec<Block<WIDTH>>,
    /// The same, once they are more than a few.
    cells: Cells,
}

impl Outranking {
    pub fn clear(&mut self) {
        self.len = 0;
        self.blocks.clear();
    }

    /// Adds a box; there will not be more than `most` in all.
    #[inline(always)]
    pub fn push(&mut self, lane: &Lane, most: usize) {
        if self.len.is_multiple_of(WIDTH) {
            if self.blocks.len() == FEW {
                self.cells.clear(most);
                for block in &self.blocks {
                    (0..WIDTH).for_each(|i| self.cells.push(&block.lane(i)));
                }
            }
            self.blocks.push(Block::EMPTY);
        }
        let last = self.blocks.last_mut().expect("there is one now");
        last.set(self.len % WIDTH, lane);
        self.len += 1;
        if self.blocks.len() > FEW {
            self.cells.push(lane);
        }
    }

    /// Whether any of these boxes suppresses `d`, which all of them outrank.
    #[inline(always)]
    pub fn meet<R: Rule>(&self, d: &Lane, rule: R) -> bool {
        let blocks = self.blocks.len();
        if blocks > FEW
            && let Some(meets) = self.cells.meet(d, rule, 2 * blocks as u64)
        {
            return meets;
        }
        self.blocks.iter().any(|block| block.meets(d, rule))
    }
}
