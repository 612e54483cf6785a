//! Boxes side by side, so that one is compared with several at a time.

use super::super::{Detection, Overlap, Params};

/// Boxes in flat arrays, a lane each; a lane not in use holds a box that meets nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<const WIDTH: usize> {
    x1: [f32; WIDTH],
    y1: [f32; WIDTH],
    x2: [f32; WIDTH],
    y2: [f32; WIDTH],
    area: [f32; WIDTH],
    class: [u32; WIDTH],
}

/// A box to be compared, as a block holds it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lane {
    pub x1: f32,
    pub y1: f32,
    pub x2: f32,
    pub y2: f32,
    pub area: f32,
    pub class: u32,
}

impl Lane {
    #[inline(always)]
    pub fn new(d: &Detection, params: &Params) -> Self {
        let Detection { x1, y1, x2, y2, .. } = *d;
        let offset = params.pixel_offset;
        let area = (x2 - x1 + offset) * (y2 - y1 + offset);
        let class = if params.class_agnostic { 0 } else { d.class };
        Self { x1, y1, x2, y2, area, class }
    }
}

/// A rule by which boxes meet; one type for each, so that nothing is asked per pair.
pub(super) trait Rule: Copy {
    /// Whether boxes that share nothing are told apart by [`is_beyond`](Self::is_beyond) alone.
    const EXCLUDES_NOTHING: bool;

    fn new(params: &Params) -> Self;

    /// Whether boxes that share `intersection` overlap too much.
    fn is_beyond(self, higher: f32, lower: f32, intersection: f32) -> bool;

    /// The least area of a box that can suppress one of `area`; a little less, for rounding.
    fn least_area(self, area: f32) -> f32;

    /// Pixels by which sides count longer.
    fn offset(self) -> f32;

    /// A side with the offset.
    fn longer(self, side: f32) -> f32;

    /// Whether boxes of these classes concern each other.
    fn concerns(a: u32, b: u32) -> bool;
}

/// The rules that [`Params`] can ask for: what is compared, whether equality suppresses, whether
/// there is a pixel offset, and whether classes are kept apart.
#[derive(Clone, Copy)]
pub(super) struct Rules<
    const OVERLAP: u8,
    const INCLUSIVE: bool,
    const OFFSET: bool,
    const CLASSES: bool,
> {
    threshold: f32,
    offset: f32,
}

pub(super) const IOU: u8 = Overlap::Iou as u8;
pub(super) const REPRESENTATIVE: u8 = Overlap::Representative as u8;
pub(super) const SMALLER: u8 = Overlap::Smaller as u8;

impl<const OVERLAP: u8, const INCLUSIVE: bool, const OFFSET: bool, const CLASSES: bool> Rule
    for Rules<OVERLAP, INCLUSIVE, OFFSET, CLASSES>
{
    const EXCLUDES_NOTHING: bool = !INCLUSIVE;

    fn new(params: &Params) -> Self {
        Self { threshold: params.iou_threshold, offset: params.pixel_offset }
    }

    #[inline(always)]
    fn is_beyond(self, higher: f32, lower: f32, intersection: f32) -> bool {
        let whole = match OVERLAP {
            IOU => higher + lower - intersection,
            REPRESENTATIVE => higher,
            _ => lesser(higher, lower),
        };
        let limit = self.threshold * whole;
        if INCLUSIVE { intersection >= limit } else { intersection > limit }
    }

    #[inline(always)]
    fn least_area(self, area: f32) -> f32 {
        // What they share is no more than the smaller, their union no less than the larger.
        if OVERLAP == IOU { 0.999 * self.threshold * area } else { 0.0 }
    }

    #[inline(always)]
    fn offset(self) -> f32 {
        self.offset
    }

    #[inline(always)]
    fn longer(self, side: f32) -> f32 {
        // Not plus zero, which is an addition all the same: it would make plus zero of minus zero.
        if OFFSET { side + self.offset } else { side }
    }

    #[inline(always)]
    fn concerns(a: u32, b: u32) -> bool {
        !CLASSES || a == b
    }
}

/// One instruction, other than `f32::min`, which minds what is not a number.
#[inline(always)]
fn lesser(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

/// As [`lesser`].
#[inline(always)]
fn greater(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

impl<const WIDTH: usize> Block<WIDTH> {
    pub const EMPTY: Self = Self {
        x1: [f32::INFINITY; WIDTH],
        y1: [f32::INFINITY; WIDTH],
        x2: [f32::NEG_INFINITY; WIDTH],
        y2: [f32::NEG_INFINITY; WIDTH],
        area: [0.0; WIDTH],
        class: [0; WIDTH],
    };

    #[inline(always)]
    pub fn set(&mut self, i: usize, lane: &Lane) {
        (self.x1[i], self.y1[i], self.x2[i], self.y2[i]) = (lane.x1, lane.y1, lane.x2, lane.y2);
        (self.area[i], self.class[i]) = (lane.area, lane.class);
    }

    #[inline(always)]
    pub fn lane(&self, i: usize) -> Lane {
        Lane {
            x1: self.x1[i],
            y1: self.y1[i],
            x2: self.x2[i],
            y2: self.y2[i],
            area: self.area[i],
            class: self.class[i],
        }
    }

    /// Whether any of these boxes suppresses `d`, which all of them outrank. No early exit: that
    /// would keep it from being vectorized.
    #[inline(always)]
    pub fn meets<R: Rule>(&self, d: &Lane, rule: R) -> bool {
        let mut hit = false;
        for i in 0..WIDTH {
            let width = lesser(self.x2[i], d.x2) - greater(self.x1[i], d.x1);
            let height = lesser(self.y2[i], d.y2) - greater(self.y1[i], d.y1);
            let (width, height) = (rule.longer(width), rule.longer(height));
            let meets = if R::EXCLUDES_NOTHING {
                // Where they share nothing that is zero, and nothing is below zero.
                rule.is_beyond(self.area[i], d.area, greater(width, 0.0) * greater(height, 0.0))
            } else {
                (width > 0.0)
                    & (height > 0.0)
                    & rule.is_beyond(self.area[i], d.area, width * height)
            };
            hit |= meets & R::concerns(self.class[i], d.class);
        }
        hit
    }
}
