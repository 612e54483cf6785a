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
    fn with_test<W: WithTest<Self>>(params: &Params, work: W) -> W::Output {
        match params.overlap {
            Overlap::Iou => work.run::<Test<Iou>>(),
            Overlap::Representative => work.run::<Test<Representative>>(),
            Overlap::Smaller => work.run::<Test<Smaller>>(),
            Overlap::ProbIou => work.run::<Test<ProbIou>>(),
            Overlap::Diou => unreachable!("`validate` has checked it"),
        }
    }
}

/// A measure of overlap of oriented boxes.
trait Measure: Copy {
    fn new(params: &Params, threshold: f32) -> Self;

    /// If two boxes with these areas conflict, their intersection is at least this large.
    fn least_intersection(self, higher_area: f32, lower_area: f32) -> f32;

    /// A lower bound of the area of boxes that can conflict with a box of `area`.
    fn least_area(self, _area: f32) -> f32 {
        0.0
    }

    /// The exact test for boxes whose bounds intersect.
    fn conflict(self, higher: &Rectangle, lower: &Rectangle) -> bool;
}

/// A threshold of areas.
#[derive(Clone, Copy)]
struct Threshold {
    value: f32,
    is_inclusive: bool,
    /// The threshold, reduced to allow for rounding. If the result is not positive, it becomes
    /// minus infinity, which every intersection exceeds.
    lowered: f32,
}

impl Threshold {
    #[inline(always)]
    fn new(params: &Params, threshold: f32) -> Self {
        let lowered = if threshold > 0.0 { 0.999 * threshold } else { f32::NEG_INFINITY };
        Self { value: threshold, is_inclusive: params.threshold_inclusive, lowered }
    }

    #[inline(always)]
    fn is_exceeded(self, overlap: Overlap, higher: &Rectangle, lower: &Rectangle) -> bool {
        oriented::conflict(higher, lower, overlap, self.value, self.is_inclusive)
    }
}

/// A measure of areas, with the bounds for the threshold `$t` and the areas of the boxes of higher and of lower rank.
macro_rules! of_areas {
    ($name:ident($t:ident, $higher:ident, $lower:ident) $least_intersection:expr; $($least_area:tt)*) => {
        #[derive(Clone, Copy)]
        struct $name(Threshold);

        impl Measure for $name {
            #[inline(always)]
            fn new(params: &Params, threshold: f32) -> Self {
                Self(Threshold::new(params, threshold))
            }

            #[inline(always)]
            fn least_intersection(self, $higher: f32, $lower: f32) -> f32 {
                let $t = self.0;
                $least_intersection
            }

            $($least_area)*

            #[inline(always)]
            fn conflict(self, higher: &Rectangle, lower: &Rectangle) -> bool {
                self.0.is_exceeded(Overlap::$name, higher, lower)
            }
        }
    };
}

// intersection > t (sum of the areas - intersection), so (1 + t) intersection > t x sum of the areas.
of_areas! {
    Iou(t, a, b) t.lowered / (1.0 + t.value) * (a + b);
    // The intersection is at most the smaller area, and the union at least the larger area.
    #[inline(always)]
    fn least_area(self, area: f32) -> f32 {
        self.0.lowered * area
    }
}
of_areas!(Representative(t, a, _b) t.lowered * a;);
of_areas!(Smaller(t, a, b) t.lowered * lesser(a, b););

#[derive(Clone, Copy)]
struct ProbIou(DistanceLimit);

impl Measure for ProbIou {
    #[inline(always)]
    fn new(params: &Params, threshold: f32) -> Self {
        Self(DistanceLimit::new(threshold, params.threshold_inclusive))
    }

    /// Boxes can conflict without intersecting.
    #[inline(always)]
    fn least_intersection(self, _higher_area: f32, _lower_area: f32) -> f32 {
        f32::NEG_INFINITY
    }

    #[inline(always)]
    fn conflict(self, higher: &Rectangle, lower: &Rectangle) -> bool {
        self.0.is_exceeded(higher, lower)
    }
}

/// The test for a measure.
#[derive(Clone, Copy)]
struct Test<M>(M);

impl<M: Measure> Test<M> {
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
        greatest + f32::MIN_POSITIVE >= self.0.least_intersection(higher_area, lower_area)
    }
}

impl<M: Measure> Conflict for Test<M> {
    type Shape = Rectangle;

    #[inline(always)]
    fn new(params: &Params, threshold: f32) -> Self {
        Self(M::new(params, threshold))
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
            && self.0.conflict(&higher.shape, &lower.shape)
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
            if is_selected && self.0.conflict(&block.get(index).shape, &entry.shape) {
                return true;
            }
        }
        false
    }

    #[inline(always)]
    fn least_area(self, area: f32) -> f32 {
        self.0.least_area(area)
    }

    #[inline(always)]
    fn offset(self) -> f32 {
        0.0
    }
}
