// SPDX-License-Identifier: MIT OR Apache-2.0
//! The area of the intersection of two rectangles.
//!
//! The smaller rectangle, the *frame*, defines the coordinate system: its center is the origin, and it is
//! -a <= x <= a, -b <= y <= b. So coordinates are small, far from the origin of the picture, too. Quarter turns and a
//! reflection, which do not change the area, bring the angle of the other rectangle between 0 and pi / 4.
//!
//! Between its leftmost vertex V3 and its rightmost vertex V1, the other rectangle is bounded by two edges on the side of
//! greater y, V3 V2 and V2 V1, and by two on the other side, V3 V0 and V0 V1:
//!
//! ```text
//!                      V2
//!                  .-'' \          y
//!              .-''      \         ^
//!          .-''           V1       |
//!        V3           .-''         +--> x
//!          \      .-''
//!           \ .-''
//!            V0
//! ```
//!
//! The intersection at x has the length c(upper(x)) - c(lower(x)), where c limits a number to -b to b. So the area is the
//! sum of the integrals of c(y) dx along these edges, for -a <= x <= a, with signs. Along an edge y is linear in x, and
//! the mean of c(y) is
//!
//! ```text
//! (c(low) + c(high)) / 2 + (above - below) inside / (2 (high - low))
//! ```
//!
//! where low and high are the least and the greatest y, and above, below and inside the lengths of the parts of low to
//! high that are greater than b, less than -b and between them.
//!
//! The error is at most 2^-21 x the smaller area x the longest side of both rectangles / the shortest side. Two boxes of
//! detectors have an error of the IoU of less than 10^-6.
//!
//! All terms are continuous functions of the vertices: edges that coincide, nearly coincide or touch need no case of
//! their own. Only edges with an extent in x contribute, so vertical edges, whose slope is infinite, do not.

use super::{Rectangle, relative};
use crate::geometry::{greater, lesser};

/// Up to this quotient of the longest and the shortest side, the error of the intersection is at most 2^-12 of the smaller
/// area.
const MAX_ASPECT: f32 = 512.0;
/// Four times that error, and more than that of the sides of the enclosing rectangle.
const MARGIN: f32 = 1.0 / 1024.0;

/// The area of the intersection of two rectangles with finite numbers, no sides negative or longer than
/// [`MAX_BOX_SIDE`](crate::engine::MAX_BOX_SIDE).
///
/// The result is from 0 to the smaller area, and never NaN. It is exactly 0 if the rectangles are apart by more than
/// rounding errors, and exactly the area for two equal rectangles. The order of the rectangles matters only if
/// their areas are equal.
#[inline(always)]
pub fn intersection_area(higher: &Rectangle, lower: &Rectangle) -> f32 {
    RelativePair::new(higher, lower).intersection_area()
}

/// Two rectangles in the coordinate system of the smaller one.
pub(super) struct RelativePair {
    /// The area of the frame.
    smaller: f32,
    /// The area of the other rectangle.
    larger: f32,
    /// a and b.
    frame: [f32; 2],
    /// The center of the other rectangle.
    center: [f32; 2],
    /// Half the sides of the other rectangle.
    half: [f32; 2],
    /// The angle of the other rectangle: cos >= sin >= 0.
    direction: [f32; 2],
}

impl RelativePair {
    /// Places two rectangles as [`intersection_area`] takes them.
    #[inline(always)]
    pub fn new(higher: &Rectangle, lower: &Rectangle) -> Self {
        let (frame, other) =
            if lower.area < higher.area { (lower, higher) } else { (higher, lower) };
        let ([x, y], [cos, sin]) = relative(frame, other);
        let (magnitude_cos, magnitude_sin) = (cos.abs(), sin.abs());
        let is_quarter = magnitude_sin > magnitude_cos;
        let is_reflected = ((cos < 0.0) ^ (sin < 0.0)) ^ is_quarter;
        let y = if is_reflected { -y } else { y };
        let [width, height] = other.half;
        let (p, q) = if is_quarter { (height, width) } else { (width, height) };
        let (cos, sin) = if is_quarter {
            (magnitude_sin, magnitude_cos)
        } else {
            (magnitude_cos, magnitude_sin)
        };
        // Rounding errors of the cosine do not change the size of a rectangle with parallel sides.
        let cos = if sin == 0.0 { 1.0 } else { cos };
        Self {
            smaller: frame.area,
            larger: other.area,
            frame: frame.half,
            center: [x, y],
            half: [p, q],
            direction: [cos, sin],
        }
    }

    /// No more than [`intersection_area`](Self::intersection_area), by which engines skip it; less than zero if nothing
    /// is known. Both rectangles are inside the smallest one, parallel to the frame, that encloses them, so the
    /// intersection is at least the sum of their areas less its area.
    #[inline(always)]
    pub fn least_intersection(&self) -> f32 {
        let Self { smaller, larger, frame: [a, b], center: [x, y], half: [p, q], .. } = *self;
        let [cos, sin] = self.direction;
        let (right, down) = (p * cos + q * sin, p * sin + q * cos);
        let width = greater(2.0 * greater(a, right), x.abs() + (a + right));
        let height = greater(2.0 * greater(b, down), y.abs() + (b + down));
        let shortest = lesser(lesser(a, b), lesser(p, q));
        let longest = greater(greater(a, b), greater(p, q));
        let areas = smaller + larger;
        let least = (areas - width * height) - (MARGIN * areas + f32::MIN_POSITIVE);
        if longest <= MAX_ASPECT * shortest { least } else { -1.0 }
    }

    /// The area of the intersection.
    #[inline(always)]
    pub fn intersection_area(&self) -> f32 {
        let Self { frame: [a, b], center: [x, y], half: [p, q], direction: [cos, sin], .. } = *self;
        // Apart along a side of the other rectangle. Along a side of the frame all terms below are zero or cancel.
        let is_apart = ((x * cos + y * sin).abs() >= p + (a * cos + b * sin))
            | ((y * cos - x * sin).abs() >= q + (a * sin + b * cos))
            | (y.abs() >= b + (p * sin + q * cos));
        if is_apart {
            return 0.0;
        }

        let (p_cos, p_sin, q_cos, q_sin) = (p * cos, p * sin, q * cos, q * sin);
        let v0 = [(x - p_cos) + q_sin, (y - p_sin) - q_cos];
        let v1 = [(x + p_cos) + q_sin, (y + p_sin) - q_cos];
        let v2 = [(x + p_cos) - q_sin, (y + p_sin) + q_cos];
        let v3 = [(x - p_cos) - q_sin, (y - p_sin) + q_cos];
        let long = twice_integral(v3, v2, self.frame) - twice_integral(v0, v1, self.frame);
        let short = twice_integral(v2, v1, self.frame) - twice_integral(v3, v0, self.frame);
        // NaN becomes zero.
        lesser(greater(0.5 * (long + short), 0.0), self.smaller)
    }
}

/// Twice the integral of c(y) dx along the edge from `start` to `end`, whose x is not less, for -a <= x <= a.
#[inline(always)]
fn twice_integral(start: [f32; 2], end: [f32; 2], [a, b]: [f32; 2]) -> f32 {
    let left = greater(start[0], -a);
    let right = lesser(end[0], a);
    // For a vertical edge infinite or NaN, which becomes a finite y.
    let slope = (end[1] - start[1]) / (end[0] - start[0]);
    let (least, greatest) = (lesser(start[1], end[1]), greater(start[1], end[1]));
    let y_at = |x: f32| lesser(greater(start[1] + (x - start[0]) * slope, least), greatest);
    let (y_left, y_right) = (y_at(left), y_at(right));
    let (low, high) = (lesser(y_left, y_right), greater(y_left, y_right));
    let limited = |y: f32| lesser(greater(y, -b), b);
    let (limited_low, limited_high) = (limited(low), limited(high));
    let inside = limited_high - limited_low;
    // The lengths above and below, where any part is inside.
    let beyond = (high - limited_high) - (limited_low - low);
    let share = inside / greater(high - low, f32::MIN_POSITIVE);
    let twice_mean = (limited_low + limited_high) + beyond * share;
    greater(right - left, 0.0) * twice_mean
}
