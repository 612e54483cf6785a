//! Boxes by where they lie, so that one is compared with its neighbors only.
//!
//! A box belongs to a level by the power of two that its longer side falls short of. A level's plane is
//! cut into square cells of that length, and a box is kept in the cell of its upper left corner: of a
//! level it meets, a box need only look into the cells from one before its own corner's to its far
//! corner's. Cells are found by hashing; what shares a slot by accident is told apart by the
//! comparison itself.

use super::block::{Block, Lane, Rule};

const WIDTH: usize = 8;
/// No further block.
const NONE: u32 = u32::MAX;
/// The level of the shortest sides, a power of two; shorter ones belong to it, too.
const LOWEST: i32 = -16;
/// How many there are: [`MAX_SIDE`](super::super::MAX_SIDE) is below the 31st power of two.
const LEVELS: usize = 48;

#[derive(Debug, Default)]
pub(super) struct Cells {
    /// By hash, the last block of a cell.
    slots: Vec<u32>,
    blocks: Vec<Linked>,
    /// A bit for each level that has boxes.
    levels: u64,
}

#[derive(Debug)]
struct Linked {
    block: Block<WIDTH>,
    len: u32,
    /// The cell's block before.
    next: u32,
}

/// The cells of a level that a box may find neighbors in.
struct Range {
    x: (i32, i32),
    y: (i32, i32),
}

impl Range {
    #[inline(always)]
    fn new(d: &Lane, level: usize, offset: f32) -> Self {
        let cell = |edge: f64| cell(edge, level);
        // In double precision, so that no rounding hides a neighbor.
        let offset = f64::from(offset);
        let low = |edge: f32| cell(f64::from(edge) - offset).saturating_sub(1);
        let high = |edge: f32| cell(f64::from(edge) + offset);
        Self { x: (low(d.x1), high(d.x2)), y: (low(d.y1), high(d.y2)) }
    }

    #[inline(always)]
    fn cells(&self) -> u64 {
        let count = |(low, high): (i32, i32)| (i64::from(high) - i64::from(low) + 1) as u64;
        count(self.x).saturating_mul(count(self.y))
    }
}

/// The side of a level's cells: longer than any side in it, but of the last, where none is.
#[inline(always)]
fn cell_side(level: usize) -> f32 {
    f32::from_bits(((level as i32 + LOWEST + 127) as u32) << 23)
}

#[inline(always)]
fn cell(edge: f64, level: usize) -> i32 {
    // A power of two: exact.
    (edge * (1.0 / f64::from(cell_side(level)))).floor() as i32
}

#[inline(always)]
fn level(d: &Lane) -> usize {
    let side = (d.x2 - d.x1).max(d.y2 - d.y1);
    let exponent = (side.to_bits() >> 23) as i32 - 127;
    (exponent + 1 - LOWEST).clamp(0, LEVELS as i32 - 1) as usize
}

impl Cells {
    /// Makes room for about `boxes`.
    pub fn clear(&mut self, boxes: usize) {
        self.blocks.clear();
        self.levels = 0;
        self.slots.clear();
        self.slots.resize((2 * boxes).next_power_of_two(), NONE);
    }

    #[inline(always)]
    fn slot(&self, level: usize, x: i32, y: i32, class: u32) -> usize {
        let word = (x as u32).wrapping_mul(0x9e37_79b1)
            ^ (y as u32).wrapping_mul(0x85eb_ca77)
            ^ (class << 6 | level as u32).wrapping_mul(0xc2b2_ae3d);
        let mixed = (word ^ (word >> 15)).wrapping_mul(0x2c1b_3c6d);
        (mixed ^ (mixed >> 14)) as usize & (self.slots.len() - 1)
    }

    #[inline(always)]
    pub fn push(&mut self, lane: &Lane) {
        let level = level(lane);
        self.levels |= 1 << level;
        let (x, y) = (cell(f64::from(lane.x1), level), cell(f64::from(lane.y1), level));
        let slot = self.slot(level, x, y, lane.class);
        let last = self.slots[slot];
        let is_full = last == NONE || self.blocks[last as usize].len == WIDTH as u32;
        if is_full {
            self.slots[slot] = self.blocks.len() as u32;
            self.blocks.push(Linked { block: Block::EMPTY, len: 0, next: last });
        }
        let linked = &mut self.blocks[self.slots[slot] as usize];
        linked.block.set(linked.len as usize, lane);
        linked.len += 1;
    }

    /// Whether any of the boxes suppresses `d`; `None` where finding out takes looking into more
    /// than `most` cells.
    #[inline(always)]
    pub fn meet<R: Rule>(&self, d: &Lane, rule: R, most: u64) -> Option<bool> {
        // Most likely it is a box of about the same size in about the same place.
        let own = level(d);
        let (x, y) = (cell(f64::from(d.x1), own), cell(f64::from(d.y1), own));
        if self.cell_meets(own, x, y, d, rule) {
            return Some(true);
        }
        let least = rule.least_area(d.area);
        let mut left = most;
        let mut next = Some(own);
        let mut levels = self.levels & !(1 << own);
        while let Some(level) = next {
            let side = cell_side(level) + rule.offset();
            let is_too_small = level + 1 < LEVELS && side * side < least;
            if !is_too_small {
                let range = Range::new(d, level, rule.offset());
                left = left.checked_sub(range.cells())?;
                for y in range.y.0..=range.y.1 {
                    for x in range.x.0..=range.x.1 {
                        if self.cell_meets(level, x, y, d, rule) {
                            return Some(true);
                        }
                    }
                }
            }
            next = (levels != 0).then(|| levels.trailing_zeros() as usize);
            levels &= levels.wrapping_sub(1);
        }
        Some(false)
    }

    #[inline(always)]
    fn cell_meets<R: Rule>(&self, level: usize, x: i32, y: i32, d: &Lane, rule: R) -> bool {
        let mut at = self.slots[self.slot(level, x, y, d.class)];
        while at != NONE {
            let linked = &self.blocks[at as usize];
            if linked.block.meets(d, rule) {
                return true;
            }
            at = linked.next;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Detection, Params};
    use super::super::block::{IOU, REPRESENTATIVE, Rules, SMALLER};
    use super::*;

    /// Boxes of all magnitudes, near and far from the origin and from each other.
    fn boxes(count: usize, seed: u64) -> Vec<Detection> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut power =
            |range: std::ops::Range<i32>| 2.0f32.powi(rng.i32(range)) * (1.0 + rng.f32());
        let side = |power: &mut dyn FnMut(std::ops::Range<i32>) -> f32, wild: bool| {
            if wild { power(-30..29) } else { power(3..6) }
        };
        (0..count)
            .filter_map(|i| {
                let wild = i % 3 == 0;
                let far = if wild { power(-20..20) } else { power(0..9) };
                let sign = |flip: usize| if (i / flip).is_multiple_of(2) { 1.0 } else { -1.0 };
                let (x1, y1) = (sign(3) * far, sign(7) * if wild { far } else { power(0..9) });
                let (x2, y2) = (x1 + side(&mut power, wild), y1 + side(&mut power, i % 6 == 0));
                let class = (i % 2) as u32;
                (x1 < x2 && y1 < y2).then_some(Detection {
                    x1,
                    y1,
                    x2,
                    y2,
                    class,
                    ..Detection::default()
                })
            })
            .collect()
    }

    /// Every box against every box before it, by position and one by one.
    fn check<R: Rule>(boxes: &[Detection], params: &Params, rule: R) -> usize {
        let lanes: Vec<Lane> = boxes.iter().map(|d| Lane::new(d, params)).collect();
        let mut cells = Cells::default();
        cells.clear(lanes.len());
        let mut met = 0;
        for (i, lane) in lanes.iter().enumerate() {
            let meets = |other: &Lane| {
                let mut block = Block::<1>::EMPTY;
                block.set(0, other);
                block.meets(lane, rule)
            };
            let expected = lanes[..i].iter().any(meets);
            // A box that would have to look into very many cells is left to others.
            let found = cells.meet(lane, rule, 1 << 12).unwrap_or(expected);
            assert_eq!(found, expected, "{lane:?}");
            met += usize::from(expected);
            cells.push(lane);
        }
        met
    }

    #[test]
    fn neighbors_are_found_whatever_their_size_and_place() {
        for seed in 0..20 {
            let boxes = boxes(600, seed);
            let params = |iou_threshold, pixel_offset, class_agnostic| Params {
                iou_threshold,
                pixel_offset,
                class_agnostic,
                ..Params::default()
            };
            for (threshold, agnostic) in [(0.0, true), (0.1, false), (0.4, true)] {
                let (plain, longer) =
                    (params(threshold, 0.0, agnostic), params(threshold, 1.0, agnostic));
                let met = [
                    check(&boxes, &plain, Rules::<IOU, false, false, true>::new(&plain)),
                    check(&boxes, &plain, Rules::<IOU, true, false, true>::new(&plain)),
                    check(&boxes, &longer, Rules::<IOU, false, true, true>::new(&longer)),
                    check(
                        &boxes,
                        &longer,
                        Rules::<REPRESENTATIVE, false, true, true>::new(&longer),
                    ),
                    check(&boxes, &plain, Rules::<SMALLER, true, false, true>::new(&plain)),
                ];
                assert!(met.iter().all(|&met| met > 2), "{met:?} met");
            }
        }
    }

    #[test]
    fn what_takes_too_many_cells_is_said_to() {
        let mut cells = Cells::default();
        cells.clear(2);
        let params = Params::default();
        let rule = Rules::<SMALLER, false, false, true>::new(&params);
        let lane = |x1: f32, side: f32| {
            let d = Detection { x1, y1: 0.0, x2: x1 + side, y2: side, ..Detection::default() };
            Lane::new(&d, &params)
        };
        cells.push(&lane(500.0, 1.0));
        assert_eq!(cells.meet(&lane(0.0, 1000.0), rule, 1000), None);
        assert_eq!(cells.meet(&lane(0.0, 1000.0), rule, 1_000_000), Some(true));
    }
}
