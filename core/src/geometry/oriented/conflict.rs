// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exact test whether two oriented boxes conflict.

use super::intersection::RelativePair;
use super::{Rectangle, prob_iou};
use crate::geometry::Overlap;

/// Returns true if `higher`, which outranks `lower`, conflicts with it, where their bounds intersect: the measure
/// exceeds the threshold, or is equal to it if the threshold is inclusive. By measures of area, only boxes whose
/// intersection is greater than zero conflict.
#[inline(always)]
pub fn conflict(
    higher: &Rectangle,
    lower: &Rectangle,
    overlap: Overlap,
    threshold: f32,
    is_inclusive: bool,
) -> bool {
    let exceeds = |a: f32, b: f32| if is_inclusive { a >= b } else { a > b };
    if overlap == Overlap::ProbIou {
        return exceeds(prob_iou(higher, lower), threshold);
    }
    let pair = RelativePair::new(higher, lower);
    let conflicts = |intersection: f32| {
        let whole = overlap.whole(higher.area, lower.area, intersection);
        intersection > 0.0 && exceeds(intersection, threshold * whole)
    };
    // A greater intersection conflicts if a smaller one does. The bound decides most pairs of boxes of one object.
    conflicts(pair.least_intersection()) || conflicts(pair.intersection_area())
}
