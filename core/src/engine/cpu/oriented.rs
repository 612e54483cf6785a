// SPDX-License-Identifier: MIT OR Apache-2.0
//! The conflict test for two oriented boxes.
//!
//! In: entries, whose boxes are the bounds and whose shapes are the rectangles. Out: true if they
//! conflict. A loop without branches selects the boxes of a block that pass two checks: the bounds
//! intersect, and the intersection can be large enough ([`greatest_intersection`]). Only selected
//! boxes go through the exact test.

use super::super::{Detection, Overlap, Params};
use super::block::Block;
use super::conflict::{Conflict, Entry, Shape, WithTest};
use crate::geometry::oriented::{self, DistanceLimit, Rectangle, greatest_intersection};
use crate::geometry::overlap::Measured;
use crate::geometry::{greater, lesser};

impl Shape for Rectangle {
    #[inline(always)]
    fn with_test(params: &Params, work: impl WithTest<Self>) {
        match params.overlap {
            Overlap::Iou => work.run::<Test<{ Overlap::Iou as usize }>>(),
            Overlap::Representative => work.run::<Test<{ Overlap::Representative as usize }>>(),
            Overlap::Smaller => work.run::<Test<{ Overlap::Smaller as usize }>>(),
            Overlap::ProbIou => work.run::<Test<{ Overlap::ProbIou as usize }>>(),
            Overlap::Diou => unreachable!("`validate` has checked it"),
        }
    }
}

/// The test for a measure.
#[derive(Clone, Copy)]
struct Test<const OVERLAP: usize> {
    threshold: f32,
    is_inclusive: bool,
    /// The threshold, reduced to allow for rounding. If the result is not positive, it becomes
    /// minus infinity, which every intersection exceeds.
    lowered: f32,
    /// The threshold of [`Overlap::ProbIou`].
    distance: Option<DistanceLimit>,
}

impl<const OVERLAP: usize> Test<OVERLAP> {
    /// If two boxes with these areas conflict, their intersection is at least this large.
    #[inline(always)]
    fn least_intersection(self, higher_area: f32, lower_area: f32) -> f32 {
        match Self::OVERLAP {
            // intersection > t (sum of the areas - intersection), so (1 + t) intersection > t x sum of the areas.
            Overlap::Iou => self.lowered / (1.0 + self.threshold) * (higher_area + lower_area),
            Overlap::Representative => self.lowered * higher_area,
            Overlap::Smaller => self.lowered * lesser(higher_area, lower_area),
            // Boxes can conflict without intersecting.
            Overlap::ProbIou | Overlap::Diou => f32::NEG_INFINITY,
        }
    }

    /// Returns true if the bounds intersect. Has no branches.
    #[inline(always)]
    fn bounds_intersect(higher: &Entry<Rectangle>, lower: &Entry<Rectangle>) -> bool {
        let (a, b) = (higher.corners(), lower.corners());
        let width = lesser(a.x2, b.x2) - greater(a.x1, b.x1);
        let height = lesser(a.y2, b.y2) - greater(a.y1, b.y1);
        (width > 0.0) & (height > 0.0)
    }

    /// Returns true if the intersection can be large enough, given that the bounds intersect. Has
    /// no branches.
    #[inline(always)]
    fn is_large(self, higher: &Entry<Rectangle>, lower: &Entry<Rectangle>) -> bool {
        let (higher_area, lower_area) = (higher.measured.area, lower.measured.area);
        let smaller = lesser(higher_area, lower_area);
        let greatest = greatest_intersection(higher.corners(), lower.corners(), smaller);
        // Close to zero, rounding errors are not proportional to the areas.
        greatest + f32::MIN_POSITIVE >= self.least_intersection(higher_area, lower_area)
    }

    /// The exact test for boxes whose bounds intersect.
    #[inline(always)]
    fn shapes_conflict(self, higher: &Rectangle, lower: &Rectangle) -> bool {
        match self.distance {
            Some(distance) => distance.is_exceeded(higher, lower),
            None => {
                let Self { threshold, is_inclusive, .. } = self;
                oriented::conflict(higher, lower, Self::OVERLAP, threshold, is_inclusive)
            }
        }
    }
}

impl<const OVERLAP: usize> Conflict for Test<OVERLAP> {
    type Shape = Rectangle;
    /// Methods that need it are not defined for oriented boxes.
    type Strict = Self;

    const OVERLAP: Overlap = Overlap::ALL[OVERLAP];

    #[inline(always)]
    fn new(params: &Params, threshold: f32) -> Self {
        let is_inclusive = params.threshold_inclusive;
        let lowered = if threshold > 0.0 { 0.999 * threshold } else { f32::NEG_INFINITY };
        let is_distance = Self::OVERLAP == Overlap::ProbIou;
        let distance = is_distance.then(|| DistanceLimit::new(threshold, is_inclusive));
        Self { threshold, is_inclusive, lowered, distance }
    }

    #[inline(always)]
    fn entry(
        candidates: &[Detection],
        rectangles: &[Rectangle],
        index: usize,
        _params: &Params,
    ) -> Entry<Rectangle> {
        let (candidate, shape) = (&candidates[index], rectangles[index]);
        let measured = Measured { corners: candidate.corners(), area: shape.area };
        Entry { measured, shape }
    }

    #[inline(always)]
    fn conflict(self, higher: &Entry<Rectangle>, lower: &Entry<Rectangle>) -> bool {
        Self::bounds_intersect(higher, lower)
            && self.is_large(higher, lower)
            && self.shapes_conflict(&higher.shape, &lower.shape)
    }

    #[inline(always)]
    fn any_conflicts<const WIDTH: usize>(
        self,
        block: &Block<WIDTH, Rectangle>,
        entry: &Entry<Rectangle>,
    ) -> bool {
        // Most blocks have no box that is near.
        let mut any = false;
        for index in 0..WIDTH {
            any |= Self::bounds_intersect(&block.get(index), entry);
        }
        if !any {
            return false;
        }
        let mut is_selected = [false; WIDTH];
        for (index, is_selected) in is_selected.iter_mut().enumerate() {
            let other = &block.get(index);
            *is_selected = Self::bounds_intersect(other, entry) & self.is_large(other, entry);
        }
        // `Iterator::any` would be a function that is compiled without AVX2.
        for (index, is_selected) in is_selected.into_iter().enumerate() {
            if is_selected && self.shapes_conflict(&block.get(index).shape, &entry.shape) {
                return true;
            }
        }
        false
    }

    #[inline(always)]
    fn least_area(self, area: f32) -> f32 {
        match Self::OVERLAP {
            // The intersection is at most the smaller area, and the union at least the larger area.
            Overlap::Iou => self.lowered * area,
            _ => 0.0,
        }
    }

    #[inline(always)]
    fn offset(self) -> f32 {
        0.0
    }
}
