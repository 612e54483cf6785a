//! Measures of overlap: one file each.
//!
//! A [`Measure`] states the exact test, by which two boxes conflict, and its own bound: which boxes cannot
//! conflict, so that engines skip the test. The bound may only rule out pairs that the exact test, rounding
//! included, would not find to conflict; property tests compare engines that use it with the reference engine, which does
//! not.
//!
//! A new measure is a file here, a variant of [`Overlap`] and a line in [`Overlap::visit`]. CONTRIBUTING.md
//! has the whole recipe.

mod diou;
mod iou;
mod representative;
mod smaller;

use super::Corners;
use diou::Diou;
use iou::Iou;
use representative::Representative;
use smaller::Smaller;

/// When two boxes overlap too much; `t` is the threshold. Boxes that do not intersect never do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
#[non_exhaustive]
pub enum Overlap {
    /// intersection > t x union
    #[default]
    Iou = 0,
    /// intersection > t x area of the box of higher rank
    Representative = 1,
    /// intersection > t x smaller area
    Smaller = 2,
    /// intersection / union - (distance of centers / diagonal of the enclosing box)^2 > t (Zheng et al.
    /// 2020)
    Diou = 3,
}

impl Overlap {
    /// Its name, as a value of the property `overlap`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Iou => "iou",
            Self::Representative => "representative",
            Self::Smaller => "smaller",
            Self::Diou => "diou",
        }
    }

    /// Calls `visitor` with the measure's type, so that loops over pairs are compiled for each measure.
    #[inline(always)]
    pub(crate) fn visit<V: Visitor>(self, visitor: V) -> V::Output {
        match self {
            Self::Iou => visitor.visit::<Iou>(),
            Self::Representative => visitor.visit::<Representative>(),
            Self::Smaller => visitor.visit::<Smaller>(),
            Self::Diou => visitor.visit::<Diou>(),
        }
    }
}

/// A function that is generic over the measure.
pub(crate) trait Visitor {
    type Output;

    fn visit<M: Measure>(self) -> Self::Output;
}

/// A box with its area, as measures take it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Measured {
    pub corners: Corners,
    /// With the pixel offset.
    pub area: f32,
}

impl Measured {
    #[inline(always)]
    pub fn new(corners: Corners, offset: f32) -> Self {
        Self { corners, area: corners.area(offset) }
    }
}

/// What a measure compares: two boxes that intersect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    /// The box of higher rank.
    pub higher: Measured,
    /// The box of lower rank.
    pub lower: Measured,
    /// The area that they share, with the pixel offset.
    pub intersection: f32,
    /// Pixels by which sides are longer than the difference of their edges.
    pub offset: f32,
}

/// A measure of overlap.
pub(crate) trait Measure: Copy + 'static {
    /// The exact test: the boxes conflict where their intersection is greater than this (or equal, where
    /// the threshold is inclusive). Every operation is rounded to single precision in the order written.
    fn limit(threshold: f32, pair: &Pair) -> f32;

    /// The bound: no box with an area below this conflicts with a box of `area`. A lower value is always
    /// right; 0 rules nothing out.
    fn least_area(_threshold: f32, _area: f32) -> f32 {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exact test on integer boxes, where nothing is rounded until the last operation.
    struct Limit(f32, Pair);

    impl Visitor for Limit {
        type Output = f32;

        fn visit<M: Measure>(self) -> f32 {
            M::limit(self.0, &self.1)
        }
    }

    fn limit(overlap: Overlap, threshold: f32) -> f32 {
        let measured = |x1, y1, x2, y2| Measured::new(Corners { x1, y1, x2, y2 }, 0.0);
        // 4x4 and 4x2, of which 2x2 is shared; the centers are (2, 2) and (4, 3).
        let (higher, lower) = (measured(0.0, 0.0, 4.0, 4.0), measured(2.0, 2.0, 6.0, 4.0));
        overlap.visit(Limit(threshold, Pair { higher, lower, intersection: 4.0, offset: 0.0 }))
    }

    #[test]
    fn limits_are_those_of_the_definitions() {
        assert_eq!(limit(Overlap::Iou, 0.5), 10.0);
        assert_eq!(limit(Overlap::Representative, 0.5), 8.0);
        assert_eq!(limit(Overlap::Smaller, 0.5), 4.0);
        // The distance's square is 5, the diagonal's 36 + 16.
        assert_eq!(limit(Overlap::Diou, 0.5), (0.5 + 5.0 / 52.0) * 20.0);
    }
}
