// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exact test whether two boxes conflict, compiled for each combination of parameters.
//!
//! In: two entries, the first of higher rank. Out: whether they conflict. The tests of upright boxes have no
//! branches, so that loops over pairs are vectorized; oriented boxes have a test of their own
//! ([`oriented`](super::oriented)).

use std::marker::PhantomData;

use super::super::{Detection, Params};
use super::block::Block;
use crate::geometry::oriented::Rectangle;
use crate::geometry::overlap::{Measure, Measured, Pair};
use crate::geometry::{Corners, greater, lesser};

/// A candidate's box with its area and its class, which is 0 if candidates of different classes can conflict.
/// The box of an oriented candidate is its bounds, and the area is that of the oriented box, which is the `shape`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry<S = ()> {
    pub measured: Measured,
    pub class: u32,
    pub shape: S,
}

impl Entry {
    #[inline(always)]
    pub fn new(d: &Detection, params: &Params) -> Self {
        let measured = Measured::new(d.corners(), params.pixel_offset);
        Self { measured, class: class(d, params), shape: () }
    }
}

/// The class of an entry.
#[inline(always)]
pub(super) fn class(d: &Detection, params: &Params) -> u32 {
    if params.class_agnostic { 0 } else { d.class }
}

impl<S> Entry<S> {
    #[inline(always)]
    pub fn corners(&self) -> &Corners {
        &self.measured.corners
    }
}

/// What a test needs besides upright boxes.
pub(super) trait Shape: Copy + Default {
    /// That of an unused element of a block.
    const NONE: Self;
}

impl Shape for () {
    const NONE: Self = ();
}

/// A test whether boxes conflict. It is a type, so that loops over pairs have no branches for parameters.
pub(super) trait Conflict: Copy {
    /// What the test needs besides upright boxes.
    type Shape: Shape;

    /// The test by the threshold of the candidate of lower rank.
    fn new(params: &Params, threshold: f32) -> Self;

    /// The entry of the candidate of this index. There are rectangles if boxes are oriented.
    fn entry(
        candidates: &[Detection],
        rectangles: &[Rectangle],
        index: usize,
        params: &Params,
    ) -> Entry<Self::Shape>;

    /// Whether `higher`, which outranks `lower`, conflicts with it.
    fn conflict(self, higher: &Entry<Self::Shape>, lower: &Entry<Self::Shape>) -> bool;

    /// Whether any of the boxes of `block`, all of which outrank `entry`, conflicts with it.
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

    /// Has no branches.
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

    /// There is no early exit, which would prevent vectorization.
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
