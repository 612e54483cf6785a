// SPDX-License-Identifier: MIT OR Apache-2.0
//! An upper bound of the intersection of two oriented boxes, by which engines skip pairs.
//!
//! The intersection is no greater than the bounds' intersection. [`intersection_area`](super::intersection_area) and the
//! bounds have rounding errors: errors of coordinates are proportional to the coordinates, and errors of sums to the
//! smaller area. So the sides of the bounds' intersection are extended by [`MARGIN`] times the magnitudes of the edges of
//! both bounds, and `MARGIN` times the smaller area is added.

use super::Corners;
use crate::geometry::{greater, lesser};

/// 2^-19: 16 times the error of a coordinate that was rounded twice.
const MARGIN: f32 = 1.0 / 524_288.0;

/// No less than [`intersection_area`](super::intersection_area) of two boxes with these bounds, which intersect. The
/// smaller box has the area `smaller_area`. Has no branches.
#[inline(always)]
pub fn greatest_intersection(a: &Corners, b: &Corners, smaller_area: f32) -> f32 {
    let margin = MARGIN * (magnitude(a) + magnitude(b));
    let width = lesser(a.x2, b.x2) - greater(a.x1, b.x1) + margin;
    let height = lesser(a.y2, b.y2) - greater(a.y1, b.y1) + margin;
    lesser(width * height + MARGIN * smaller_area, smaller_area)
}

#[inline(always)]
fn magnitude(of: &Corners) -> f32 {
    (of.x1.abs() + of.x2.abs()) + (of.y1.abs() + of.y2.abs())
}
