// SPDX-License-Identifier: MIT OR Apache-2.0
//! An upper bound of the intersection of two oriented boxes, by which engines skip pairs.
//!
//! The intersection is no greater than that of the bounds. [`intersection_area`](super::intersection_area) and the
//! bounds have rounding errors: those of coordinates are proportional to the coordinates, and those of sums to the
//! smaller area. So the bounds are enlarged by [`MARGIN`] times the sum of the magnitudes of their edges on each side, and
//! `MARGIN` times the smaller area is added.

use super::Corners;
use crate::geometry::{greater, lesser};

/// 2^-19: 16 times the error of a coordinate that was rounded twice.
const MARGIN: f32 = 1.0 / 524_288.0;

/// The bounds of an oriented box, enlarged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Extent(Corners);

impl Extent {
    /// From the bounds.
    #[inline(always)]
    pub fn new(bounds: &Corners) -> Self {
        let Corners { x1, y1, x2, y2 } = *bounds;
        let margin = MARGIN * ((x1.abs() + x2.abs()) + (y1.abs() + y2.abs()));
        Self(Corners { x1: x1 - margin, y1: y1 - margin, x2: x2 + margin, y2: y2 + margin })
    }

    /// No less than [`intersection_area`](super::intersection_area) of the two boxes, the smaller of which has the area
    /// `smaller_area`.
    #[inline(always)]
    pub fn greatest_intersection(&self, other: &Self, smaller_area: f32) -> f32 {
        let (a, b) = (self.0, other.0);
        let width = lesser(a.x2, b.x2) - greater(a.x1, b.x1);
        let height = lesser(a.y2, b.y2) - greater(a.y1, b.y1);
        lesser(greater(width, 0.0) * greater(height, 0.0) + MARGIN * smaller_area, smaller_area)
    }
}
