// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probabilistic IoU of two oriented boxes.
//!
//! A box stands for the normal distribution with its center and with the covariance of the uniform distribution over it:
//! the variances are L = width^2 / 12 along the width and M = height^2 / 12 along the height. With the Bhattacharyya
//! distance B of two distributions, the Hellinger distance is H = sqrt(1 - exp(-B)), and the probabilistic IoU is 1 - H.
//!
//! ```text
//! B = N / (4 D) + ln(D / (4 sqrt(D1 D2))) / 2
//! ```
//!
//! where D1, D2 and D are the determinants of the two covariances and of their sum, and N is D times the quadratic form
//! of the distance of the centers with the inverse of the sum. In terms of the variances, the distance d, the directions
//! u of the width and v of the height, and the angle between the boxes,
//!
//! ```text
//! N  = L1 (v1 d)^2 + M1 (u1 d)^2 + L2 (v2 d)^2 + M2 (u2 d)^2
//! D  = L1 M1 + L2 M2 + (L1 L2 + M1 M2) sin^2 + (L1 M2 + M1 L2) cos^2
//! ```
//!
//! and sqrt(D1 D2) is the product of the areas divided by 144. No term is negative, so nothing cancels, which the usual
//! form with the elements of the matrices does for long boxes.
//!
//! Source: Llerena, Zeni, Kristen, Jung, "Gaussian Bounding Boxes and Probabilistic Intersection-over-Union for Object
//! Detection", 2021. [`EPSILON`] is added where Ultralytics' models add it: to D, to the divisor and the quotient of
//! the logarithm, and under the root; B is limited to `EPSILON` to [`MAX_DISTANCE`]. So two equal boxes have a
//! probabilistic IoU between 0.999 and 1.

use super::{Rectangle, relative};
use crate::functions::{bisect, exp, ln, order};
use crate::geometry::{greater, lesser};

/// Added to divisors and arguments.
const EPSILON: f32 = 1e-7;
/// The greatest Bhattacharyya distance.
const MAX_DISTANCE: f32 = 100.0;
/// 1 / 3: half the side, squared, times this is the variance.
const THIRD: f32 = 1.0 / 3.0;

/// The Bhattacharyya distances of boxes whose probabilistic IoU exceeds a threshold: those up to a limit, because the
/// probabilistic IoU does not increase with the distance, with rounding included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DistanceLimit(f32);

impl DistanceLimit {
    /// The limit that corresponds to a threshold, which is exceeded by greater numbers and, if it is inclusive, by
    /// equal ones.
    pub fn new(threshold: f32, is_inclusive: bool) -> Self {
        let exceeds = |distance: f32| {
            let iou = of_distance(distance);
            if is_inclusive { iou >= threshold } else { iou > threshold }
        };
        // The number before EPSILON exceeds the threshold if any number does.
        let [limit, _] = bisect(order(EPSILON) - 1, order(MAX_DISTANCE) + 1, exceeds);
        // All distances from the greatest on count as the greatest.
        Self(if limit == MAX_DISTANCE { f32::INFINITY } else { limit })
    }

    /// Returns true if the probabilistic IoU of two rectangles exceeds the threshold.
    #[inline]
    pub fn is_exceeded(self, higher: &Rectangle, lower: &Rectangle) -> bool {
        let terms = Terms::new(higher, lower);
        // The logarithm of a quotient from 1 on is not negative.
        let is_beyond = terms.of_centers > self.0 && terms.quotient >= 1.0;
        !is_beyond && terms.distance() <= self.0
    }
}

/// The probabilistic IoU of two rectangles with finite numbers, no sides negative or longer than
/// [`MAX_BOX_SIDE`](crate::engine::MAX_BOX_SIDE). From 0 to 1, and never NaN. The order of the rectangles does not
/// matter.
#[inline]
pub fn prob_iou(higher: &Rectangle, lower: &Rectangle) -> f32 {
    of_distance(Terms::new(higher, lower).distance())
}

/// The probabilistic IoU of boxes with this Bhattacharyya distance.
#[inline(always)]
fn of_distance(distance: f32) -> f32 {
    1.0 - ((1.0 - exp(-distance)) + EPSILON).sqrt()
}

/// The terms of the Bhattacharyya distance.
struct Terms {
    /// N / (4 D)
    of_centers: f32,
    /// D / (4 sqrt(D1 D2))
    quotient: f32,
}

impl Terms {
    #[inline(always)]
    fn new(higher: &Rectangle, lower: &Rectangle) -> Self {
        let (_, [cos, sin]) = relative(higher, lower);
        let [dx, dy] = [0, 1].map(|axis| higher.center[axis] - lower.center[axis]);
        let [[l1, m1], [l2, m2]] = [variances(higher), variances(lower)];
        let crossed = (l1 * l2 + m1 * m2) * (sin * sin) + (l1 * m2 + m1 * l2) * (cos * cos);
        let determinant = (l1 * m1 + l2 * m2) + crossed;
        let quadratic =
            quadratic(higher, [l1, m1], [dx, dy]) + quadratic(lower, [l2, m2], [dx, dy]);
        let of_centers = quadratic / (4.0 * (determinant + EPSILON));
        // 4 sqrt(D1 D2) is the product of the areas divided by 36.
        let quotient = determinant / ((higher.area * lower.area) / 36.0 + EPSILON);
        Self { of_centers, quotient }
    }

    /// The Bhattacharyya distance, limited. NaN becomes [`MAX_DISTANCE`].
    #[inline(always)]
    fn distance(&self) -> f32 {
        let of_shapes = 0.5 * ln(self.quotient + EPSILON);
        greater(lesser(self.of_centers + of_shapes, MAX_DISTANCE), EPSILON)
    }
}

/// L and M.
#[inline(always)]
fn variances(of: &Rectangle) -> [f32; 2] {
    of.half.map(|half| (half * half) * THIRD)
}

/// L (v d)^2 + M (u d)^2
#[inline(always)]
fn quadratic(of: &Rectangle, [l, m]: [f32; 2], [dx, dy]: [f32; 2]) -> f32 {
    let [cos, sin] = of.direction;
    let along_width = dx * cos + dy * sin;
    let along_height = dy * cos - dx * sin;
    l * (along_height * along_height) + m * (along_width * along_width)
}
