// SPDX-License-Identifier: MIT OR Apache-2.0
//! Intersection over union (Jaccard index).

use super::{Measure, Pair};

/// Conflict: intersection > t x union.
#[derive(Clone, Copy)]
pub(super) struct Iou;

impl Measure for Iou {
    #[inline(always)]
    fn limit(threshold: f32, pair: &Pair) -> f32 {
        threshold * union(pair)
    }

    #[inline(always)]
    fn value(pair: &Pair) -> f32 {
        pair.intersection / union(pair)
    }

    /// The intersection is at most the smaller area, and the union at least the larger area, so the
    /// smaller area is more than t x larger area. The factor 0.999 allows for rounding.
    #[inline(always)]
    fn least_area(threshold: f32, area: f32) -> f32 {
        0.999 * threshold * area
    }
}

/// The area of the union.
#[inline(always)]
pub(super) fn union(pair: &Pair) -> f32 {
    pair.higher.area + pair.lower.area - pair.intersection
}
