// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exact conflict test for two boxes, compiled for each combination of parameters.
//!
//! In: two entries, higher rank first. Out: true if they conflict. The tests of upright boxes have
//! no branches, so that the compiler vectorizes loops over pairs. Oriented boxes have a separate
//! test ([`oriented`](super::oriented)).

use std::marker::PhantomData;

use super::super::{Detection, Params};
use super::block::Block;
use crate::geometry::oriented::Rectangle;
use crate::geometry::overlap::{Measure, Measured, Pair, Visitor};
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
    fn with_test<W: WithTest<Self>>(params: &Params, work: W) -> W::Output;
}

impl Shape for () {
    #[inline(always)]
    fn with_test<W: WithTest<()>>(params: &Params, work: W) -> W::Output {
        params.overlap.visit(OfMeasure { params, work })
    }
}

/// Work with the test for some parameters.
pub(super) trait WithTest<S> {
    type Output;

    fn run<C: Conflict<Shape = S>>(self) -> Self::Output;
}

/// Work with the [`Test`] of the measure that calls this visitor.
struct OfMeasure<'a, W> {
    params: &'a Params,
    work: W,
}

impl<W: WithTest<()>> Visitor for OfMeasure<'_, W> {
    type Output = W::Output;

    #[inline(always)]
    fn visit<M: Measure>(self) -> W::Output {
        let Self { params, work } = self;
        match (params.threshold_inclusive, params.pixel_offset != 0.0) {
            (false, false) => work.run::<Test<M, false, false>>(),
            (false, true) => work.run::<Test<M, false, true>>(),
            (true, false) => work.run::<Test<M, true, false>>(),
            (true, true) => work.run::<Test<M, true, true>>(),
        }
    }
}

/// A test for conflicts between boxes. Each test is a type, so that loops over pairs have no
/// branches for parameters.
pub(super) trait Conflict: Copy {
    /// Additional data that the test needs besides the upright box.
    type Shape: Shape;

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
pub(super) struct Test<M, const INCLUSIVE: bool, const OFFSET: bool> {
    threshold: f32,
    offset: f32,
    measure: PhantomData<M>,
}

impl<M: Measure, const INCLUSIVE: bool, const OFFSET: bool> Conflict
    for Test<M, INCLUSIVE, OFFSET>
{
    type Shape = ();

    fn new(params: &Params, threshold: f32) -> Self {
        Self { threshold, offset: params.pixel_offset, measure: PhantomData }
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
            (width > 0.0) & (height > 0.0) & (pair.intersection >= M::limit(self.threshold, &pair))
        } else {
            // Boxes that do not intersect have an intersection of zero, which exceeds no limit.
            let pair = pair(greater(width, 0.0) * greater(height, 0.0));
            pair.intersection > M::limit(self.threshold, &pair)
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
        M::least_area(self.threshold, area)
    }

    #[inline(always)]
    fn offset(self) -> f32 {
        self.offset
    }
}
