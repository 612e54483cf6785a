// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures of overlap.
//!
//! In: two boxes that intersect. Out: the intersection above which they conflict. A measure has this
//! exact test, and a bound by which engines skip pairs that cannot conflict. The bound
//! may only exclude pairs that do not conflict by the exact test, including its rounding. Property
//! tests compare engines that use the bound with the reference engine, which does not.
//!
//! CONTRIBUTING.md has the steps to add a measure.

mod diou;

use super::{Corners, lesser};
use crate::named::named;

named! {
    /// The measure by which two boxes conflict; `t` is the threshold, `x` is multiplication. Boxes that
    /// do not intersect do not conflict.
    #[non_exhaustive]
    pub enum Overlap {
        /// Intersection over union: intersection > t x union.
        #[default]
        Iou = 0 "iou",
        /// Intersection over the area of the box of higher rank (Oro et al. 2020): intersection > t x that area.
        Representative = 1 "representative",
        /// Intersection over the smaller area: intersection > t x smaller area.
        Smaller = 2 "smaller",
        /// Distance-IoU (Zheng et al. 2020): intersection / union - (distance of the centers / diagonal
        /// of the enclosing box)^2 > t.
        Diou = 3 "diou",
        /// For oriented boxes only: 1 - the Hellinger distance of the Gaussian distributions with the means and covariances
        /// of the boxes (Llerena et al. 2021), greater than t.
        ProbIou = 4 "prob-iou",
    }
}

/// The functions are inlined: for a constant measure, loops over pairs have no branches.
impl Overlap {
    /// The exact test: the boxes conflict if their intersection is greater than the result (or
    /// equal, if the threshold is inclusive). Operations are in single precision, in the order
    /// written, each rounded separately.
    #[inline(always)]
    pub(crate) fn limit(self, threshold: f32, pair: &Pair) -> f32 {
        let threshold = match self {
            Self::Diou => threshold + diou::penalty(pair),
            _ => threshold,
        };
        threshold * self.whole(pair.higher.area, pair.lower.area, pair.intersection)
    }

    /// The measure as a number, in single precision. NaN if both areas are zero.
    #[inline(always)]
    pub(crate) fn value(self, pair: &Pair) -> f32 {
        let whole = self.whole(pair.higher.area, pair.lower.area, pair.intersection);
        let quotient = pair.intersection / whole;
        match self {
            Self::Diou => quotient - diou::penalty(pair),
            _ => quotient,
        }
    }

    /// The bound: no box with an area less than the result conflicts with a box of `area`. A lower
    /// result is also correct; 0 excludes no pair.
    #[inline(always)]
    pub(crate) fn least_area(self, threshold: f32, area: f32) -> f32 {
        match self {
            // The intersection is at most the smaller area, and the union at least the larger area, so the
            // smaller area is more than t x larger area. The factor 0.999 allows for rounding. The penalty of DIoU is
            // not negative and rounding is monotonic, so a pair that conflicts by DIoU also conflicts by IoU.
            Self::Iou | Self::Diou => 0.999 * threshold * area,
            Self::Representative | Self::Smaller | Self::ProbIou => 0.0,
        }
    }

    /// The area that an intersection is divided by, from the areas of the boxes.
    #[inline(always)]
    pub(crate) fn whole(self, higher: f32, lower: f32, intersection: f32) -> f32 {
        match self {
            Self::Iou | Self::Diou => higher + lower - intersection,
            Self::Representative => higher,
            Self::Smaller => lesser(higher, lower),
            Self::ProbIou => unreachable!("it compares no areas"),
        }
    }
}

/// A box with its area.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Measured {
    pub corners: Corners,
    /// The area, with the pixel offset.
    pub area: f32,
}

impl Measured {
    #[inline(always)]
    pub fn new(corners: Corners, offset: f32) -> Self {
        Self { corners, area: corners.area(offset) }
    }
}

/// Two boxes that intersect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    /// The box of higher rank.
    pub higher: Measured,
    /// The box of lower rank.
    pub lower: Measured,
    /// The area of the intersection, with the pixel offset.
    pub intersection: f32,
    /// The pixel offset: pixels that are added to the lengths of sides.
    pub offset: f32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Boxes of 4x4 and 4x2, of which 2x2 is shared; the centers are (2, 2) and (4, 3).
    fn pair() -> Pair {
        let measured = |x1, y1, x2, y2| Measured::new(Corners { x1, y1, x2, y2 }, 0.0);
        let (higher, lower) = (measured(0.0, 0.0, 4.0, 4.0), measured(2.0, 2.0, 6.0, 4.0));
        Pair { higher, lower, intersection: 4.0, offset: 0.0 }
    }

    /// For integer coordinates, only the last operation rounds.
    fn limit(overlap: Overlap, threshold: f32) -> f32 {
        overlap.limit(threshold, &pair())
    }

    fn value(overlap: Overlap) -> f32 {
        overlap.value(&pair())
    }

    #[test]
    fn limits_are_those_of_the_definitions() {
        assert_eq!(limit(Overlap::Iou, 0.5), 10.0);
        assert_eq!(limit(Overlap::Representative, 0.5), 8.0);
        assert_eq!(limit(Overlap::Smaller, 0.5), 4.0);
        // The distance's square is 5, the diagonal's 36 + 16.
        assert_eq!(limit(Overlap::Diou, 0.5), (0.5 + 5.0 / 52.0) * 20.0);
    }

    #[test]
    fn values_are_those_of_the_definitions() {
        assert_eq!(value(Overlap::Iou), 4.0 / 20.0);
        assert_eq!(value(Overlap::Representative), 4.0 / 16.0);
        assert_eq!(value(Overlap::Smaller), 4.0 / 8.0);
        assert_eq!(value(Overlap::Diou), 4.0 / 20.0 - 5.0 / 52.0);
    }
}
