// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exact conflict test for two boxes, compiled for each combination of parameters.
//!
//! In: two entries, higher rank first. Out: true if they conflict. The tests of upright boxes have
//! no branches, so that the compiler vectorizes loops over pairs. Oriented boxes have a separate
//! test ([`oriented`](super::oriented)).

use super::super::{Detection, Overlap, Params};
use super::block::Block;
use crate::geometry::oriented::Rectangle;
use crate::geometry::overlap::{Measured, Pair};
use crate::geometry::{Corners, greater, lesser};

/// A candidate's box with its area. For an oriented candidate, the box is the bounds, `shape` is the
/// oriented box, and the area is the oriented box's area. Only entries whose candidates can conflict are
/// compared, so an entry has no class.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry<S = ()> {
    pub measured: Measured,
    pub shape: S,
}

impl Entry {
    #[inline(always)]
    pub fn new(d: &Detection, params: &Params) -> Self {
        let measured = Measured::new(d.corners(), params.pixel_offset);
        Self { measured, shape: () }
    }
}

impl<S> Entry<S> {
    #[inline(always)]
    pub fn corners(&self) -> &Corners {
        &self.measured.corners
    }
}

/// Additional data that a test needs besides the upright box.
pub(super) trait Shape: Copy + Default {
    /// Calls `work` with the test that is compiled for the parameters.
    fn with_test(params: &Params, work: impl WithTest<Self>);
}

impl Shape for () {
    #[inline(always)]
    fn with_test(params: &Params, work: impl WithTest<()>) {
        match params.overlap {
            Overlap::Iou => of_measure::<{ Overlap::Iou as usize }>(params, work),
            Overlap::Representative => {
                of_measure::<{ Overlap::Representative as usize }>(params, work);
            }
            Overlap::Smaller => of_measure::<{ Overlap::Smaller as usize }>(params, work),
            Overlap::Diou => of_measure::<{ Overlap::Diou as usize }>(params, work),
            Overlap::ProbIou => unreachable!("`validate` has checked it"),
        }
    }
}

#[inline(always)]
fn of_measure<const OVERLAP: usize>(params: &Params, work: impl WithTest<()>) {
    match (params.threshold_inclusive, params.pixel_offset != 0.0) {
        (false, false) => work.run::<Test<OVERLAP, false, false>>(),
        (false, true) => work.run::<Test<OVERLAP, false, true>>(),
        (true, false) => work.run::<Test<OVERLAP, true, false>>(),
        (true, true) => work.run::<Test<OVERLAP, true, true>>(),
    }
}

/// Work with the test for some parameters.
pub(super) trait WithTest<S> {
    fn run<C: Conflict<Shape = S>>(self);
}

/// A test for conflicts between boxes. Each test is a type, so that loops over pairs have no
/// branches for parameters.
pub(super) trait Conflict: Copy {
    /// Additional data that the test needs besides the upright box.
    type Shape: Shape;

    /// The test in which an overlap equal to the threshold is no conflict.
    type Strict: Conflict<Shape = Self::Shape>;

    /// The measure.
    const OVERLAP: Overlap;

    /// Makes the test. `threshold` belongs to the candidate of lower rank.
    fn new(params: &Params, threshold: f32) -> Self;

    /// The entry for the candidate with this index. `rectangles` is filled if boxes are oriented.
    fn entry(
        candidates: &[Detection],
        rectangles: &[Rectangle],
        index: usize,
        params: &Params,
    ) -> Entry<Self::Shape>;

    /// Returns true if `higher`, which outranks `lower`, conflicts with it.
    fn conflict(self, higher: &Entry<Self::Shape>, lower: &Entry<Self::Shape>) -> bool;

    /// Returns true if any box of `block` conflicts with `entry`. All of them outrank `entry`.
    fn any_conflicts<const WIDTH: usize>(
        self,
        block: &Block<WIDTH, Self::Shape>,
        entry: &Entry<Self::Shape>,
    ) -> bool;

    /// A lower bound of the area of boxes that can conflict with a box of `area`.
    fn least_area(self, area: f32) -> f32;

    /// Pixels that are added to the lengths of sides: [`Params::pixel_offset`].
    fn offset(self) -> f32;
}

/// The tests for all [`Params`]. A test depends on three things: the measure, the treatment of an
/// overlap equal to the threshold, and the pixel offset.
#[derive(Clone, Copy)]
pub(super) struct Test<const OVERLAP: usize, const INCLUSIVE: bool, const OFFSET: bool> {
    threshold: f32,
    offset: f32,
}

impl<const OVERLAP: usize, const INCLUSIVE: bool, const OFFSET: bool> Conflict
    for Test<OVERLAP, INCLUSIVE, OFFSET>
{
    type Shape = ();
    type Strict = Test<OVERLAP, false, OFFSET>;

    const OVERLAP: Overlap = Overlap::ALL[OVERLAP];

    fn new(params: &Params, threshold: f32) -> Self {
        Self { threshold, offset: params.pixel_offset }
    }

    #[inline(always)]
    fn entry(
        candidates: &[Detection],
        _rectangles: &[Rectangle],
        index: usize,
        params: &Params,
    ) -> Entry {
        Entry::new(&candidates[index], params)
    }

    /// This function has no branches.
    #[inline(always)]
    fn conflict(self, higher: &Entry, lower: &Entry) -> bool {
        let (a, b) = (&higher.measured.corners, &lower.measured.corners);
        let with_offset = |side: f32| {
            // If the offset is zero, skip the addition, which would still cost time.
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
        if INCLUSIVE {
            let pair = pair(width * height);
            (width > 0.0)
                & (height > 0.0)
                & (pair.intersection >= Self::OVERLAP.limit(self.threshold, &pair))
        } else {
            // Boxes that do not intersect have an intersection of zero, which exceeds no limit.
            let pair = pair(greater(width, 0.0) * greater(height, 0.0));
            pair.intersection > Self::OVERLAP.limit(self.threshold, &pair)
        }
    }

    /// No early exit: it would prevent vectorization.
    #[inline(always)]
    fn any_conflicts<const WIDTH: usize>(self, block: &Block<WIDTH>, entry: &Entry) -> bool {
        let mut any = false;
        for index in 0..WIDTH {
            any |= self.conflict(&block.get(index), entry);
        }
        any
    }

    #[inline(always)]
    fn least_area(self, area: f32) -> f32 {
        Self::OVERLAP.least_area(self.threshold, area)
    }

    #[inline(always)]
    fn offset(self) -> f32 {
        self.offset
    }
}
