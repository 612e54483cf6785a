// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exact test whether two boxes conflict, compiled for each combination of parameters.
//!
//! In: two entries, the first of higher rank. Out: whether they conflict, without branches, so that
//! loops over pairs are vectorized.

use std::marker::PhantomData;

use super::super::{Detection, Params};
use crate::geometry::overlap::{Measure, Measured, Pair};
use crate::geometry::{Corners, greater, lesser};

/// A candidate's box with its area and its class, which is 0 if candidates of different classes can conflict.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    pub measured: Measured,
    pub class: u32,
}

impl Entry {
    #[inline(always)]
    pub fn new(d: &Detection, params: &Params) -> Self {
        let measured = Measured::new(d.corners(), params.pixel_offset);
        Self { measured, class: if params.class_agnostic { 0 } else { d.class } }
    }

    #[inline(always)]
    pub fn corners(&self) -> &Corners {
        &self.measured.corners
    }
}

/// A test whether boxes conflict. It is a type, so that loops over pairs have no branches for parameters.
pub(super) trait Conflict: Copy {
    fn new(params: &Params) -> Self;

    /// Whether `higher`, which outranks `lower`, conflicts with it. Has no branches.
    fn conflict(self, higher: &Entry, lower: &Entry) -> bool;

    /// A lower bound of the area of boxes that can conflict with a box of `area`.
    fn least_area(self, area: f32) -> f32;

    /// Pixels that are added to the lengths of sides: [`Params::pixel_offset`].
    fn offset(self) -> f32;
}

/// The tests of all [`Params`]: by the measure, whether an overlap equal to the threshold is a
/// conflict, whether there is a pixel offset, and whether only boxes of equal classes conflict.
#[derive(Clone, Copy)]
pub(super) struct Test<M, const INCLUSIVE: bool, const OFFSET: bool, const CLASSES: bool> {
    threshold: f32,
    offset: f32,
    measure: PhantomData<M>,
}

impl<M: Measure, const INCLUSIVE: bool, const OFFSET: bool, const CLASSES: bool> Conflict
    for Test<M, INCLUSIVE, OFFSET, CLASSES>
{
    fn new(params: &Params) -> Self {
        Self { threshold: params.iou_threshold, offset: params.pixel_offset, measure: PhantomData }
    }

    #[inline(always)]
    fn conflict(self, higher: &Entry, lower: &Entry) -> bool {
        let (a, b) = (&higher.measured.corners, &lower.measured.corners);
        let with_offset = |side: f32| {
            // Adding an offset of zero would still be an addition.
            if OFFSET { side + self.offset } else { side }
        };
        let width = with_offset(lesser(a.x2, b.x2) - greater(a.x1, b.x1));
        let height = with_offset(lesser(a.y2, b.y2) - greater(a.y1, b.y1));
        let pair = |intersection| Pair {
            higher: higher.measured,
            lower: lower.measured,
            intersection,
            offset: self.offset,
        };
        let overlap = if INCLUSIVE {
            let pair = pair(width * height);
            (width > 0.0) & (height > 0.0) & (pair.intersection >= M::limit(self.threshold, &pair))
        } else {
            // The intersection of boxes that do not intersect is zero, which is not greater than any limit.
            let pair = pair(greater(width, 0.0) * greater(height, 0.0));
            pair.intersection > M::limit(self.threshold, &pair)
        };
        overlap & (!CLASSES | (higher.class == lower.class))
    }

    #[inline(always)]
    fn least_area(self, area: f32) -> f32 {
        M::least_area(self.threshold, area)
    }

    #[inline(always)]
    fn offset(self) -> f32 {
        self.offset
    }
}
