//! Intersection over union.

use super::{Measure, Pair};

/// intersection > t x union
#[derive(Clone, Copy)]
pub(super) struct Iou;

impl Measure for Iou {
    #[inline(always)]
    fn limit(threshold: f32, pair: &Pair) -> f32 {
        threshold * union(pair)
    }

    /// The intersection is no larger than the smaller box, and the union no smaller than the larger one.
    /// The factor allows for rounding.
    #[inline(always)]
    fn least_area(threshold: f32, area: f32) -> f32 {
        0.999 * threshold * area
    }
}

/// The area that the boxes cover together.
#[inline(always)]
pub(super) fn union(pair: &Pair) -> f32 {
    pair.higher.area + pair.lower.area - pair.intersection
}
