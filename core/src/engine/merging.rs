// SPDX-License-Identifier: MIT OR Apache-2.0
//! The formulas of merging and rescoring, which the engines share.
//!
//! In: boxes, scores and overlaps. Out: unions, weighted means, and lowered scores. Each operation
//! is rounded separately, in the order written here; the [rules](super) say when each formula
//! applies.

use super::Method;
use crate::functions::exp;
use crate::geometry::Corners;

/// The smallest box that has `grown` and `member` in it. Of equal edges, the one of `grown` is
/// taken, which matters for the sign of zero.
#[inline(always)]
pub(super) fn union(grown: &Corners, member: &Corners) -> Corners {
    Corners {
        x1: if member.x1 < grown.x1 { member.x1 } else { grown.x1 },
        y1: if member.y1 < grown.y1 { member.y1 } else { grown.y1 },
        x2: if member.x2 > grown.x2 { member.x2 } else { grown.x2 },
        y2: if member.y2 > grown.y2 { member.y2 } else { grown.y2 },
    }
}

/// The sums of a weighted mean of boxes, and of a mean of their scores.
#[derive(Clone, Copy, Debug)]
pub(super) struct WeightedMean {
    keeper: Corners,
    /// The sum of the products of weight and edge, for each edge.
    edges: [f64; 4],
    weights: f64,
    scores: f64,
    count: u32,
}

impl WeightedMean {
    /// The sums for the keeper alone.
    pub fn new(keeper: &Corners, score: f32) -> Self {
        let mut sums =
            Self { keeper: *keeper, edges: [0.0; 4], weights: 0.0, scores: 0.0, count: 0 };
        sums.add(keeper, score);
        sums
    }

    /// Adds a box.
    #[inline]
    pub fn add(&mut self, corners: &Corners, score: f32) {
        let weight = if score > 0.0 { f64::from(score) } else { 0.0 };
        let &Corners { x1, y1, x2, y2 } = corners;
        for (sum, edge) in self.edges.iter_mut().zip([x1, y1, x2, y2]) {
            *sum += weight * f64::from(edge);
        }
        self.weights += weight;
        self.scores += f64::from(score);
        self.count += 1;
    }

    /// The mean of the boxes, or the keeper's box if the mean is not finite or has no area.
    #[inline]
    pub fn corners(&self) -> Corners {
        let [x1, y1, x2, y2] = self.edges.map(|sum| (sum / self.weights) as f32);
        let is_finite = [x1, y1, x2, y2].iter().all(|edge| edge.is_finite());
        if is_finite && x1 < x2 && y1 < y2 { Corners { x1, y1, x2, y2 } } else { self.keeper }
    }

    /// The mean of the scores. Adding zero turns minus zero into zero.
    pub fn score(&self) -> f32 {
        (self.scores / f64::from(self.count)) as f32 + 0.0
    }
}

/// A function by which scores are lowered.
#[derive(Clone, Copy, Debug)]
pub(super) enum Decay {
    Linear,
    Gaussian { sigma: f32 },
}

impl Decay {
    /// The function of a rescoring method.
    ///
    /// # Panics
    /// Panics if the method does not rescore.
    pub fn of(method: Method, sigma: f32) -> Self {
        match method {
            Method::SoftLinear | Method::MatrixLinear => Self::Linear,
            Method::SoftGaussian | Method::MatrixGaussian => Self::Gaussian { sigma },
            _ => unreachable!("{} does not rescore", method.name()),
        }
    }

    /// The factor of Soft-NMS for an overlap with a survivor. The linear factor is for candidates
    /// that conflict.
    #[inline(always)]
    pub fn soft(self, overlap: f32) -> f32 {
        match self {
            Self::Linear => 1.0 - overlap,
            Self::Gaussian { sigma } => exp(-(overlap * overlap) / sigma),
        }
    }

    /// What [`matrix`](Self::matrix) makes the decay of Matrix NMS of, for an overlap with a candidate that has this
    /// compensation.
    #[inline(always)]
    pub fn exponent(self, overlap: f32, compensation: f32) -> f32 {
        match self {
            Self::Linear if compensation == 1.0 => 1.0,
            Self::Linear => (1.0 - overlap) / (1.0 - compensation),
            Self::Gaussian { .. } => compensation * compensation - overlap * overlap,
        }
    }

    /// The decay of Matrix NMS. It is monotonic, with rounding included, so the least exponent gives the least decay.
    #[inline(always)]
    pub fn matrix(self, exponent: f32) -> f32 {
        match self {
            Self::Linear => exponent,
            Self::Gaussian { sigma } => exp(exponent / sigma),
        }
    }
}

/// A score multiplied by a factor of at least 0. Scores of 0 and below do not change, and factors
/// that are not below 1 have no effect. A sigma of NaN gives such a factor.
#[inline(always)]
pub(super) fn lowered(score: f32, factor: f32) -> f32 {
    if score > 0.0 && factor < 1.0 { score * factor } else { score }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOX: Corners = Corners { x1: 0.0, y1: 0.0, x2: 4.0, y2: 4.0 };

    #[test]
    fn an_overlap_is_a_number_from_0_to_1() {
        let values = [f32::NAN, -0.5, 0.25, 1.0, 1.000_000_1];
        assert_eq!(values.map(super::super::formula::limited), [0.0, 0.0, 0.25, 1.0, 1.0]);
    }

    #[test]
    fn a_union_keeps_the_sign_of_zero_of_the_grown_box() {
        let member = Corners { x1: -0.0, y1: -1.0, x2: 5.0, y2: 3.0 };
        let both = union(&BOX, &member);
        assert_eq!(both, Corners { x1: 0.0, y1: -1.0, x2: 5.0, y2: 4.0 });
        assert!(both.x1.is_sign_positive());
    }

    #[test]
    fn a_mean_is_weighted_by_scores_and_negative_scores_have_no_weight() {
        let other = Corners { x1: 2.0, y1: 2.0, x2: 8.0, y2: 8.0 };
        let mut mean = WeightedMean::new(&BOX, 0.75);
        mean.add(&other, 0.25);
        mean.add(&other, -1.0);
        assert_eq!(mean.corners(), Corners { x1: 0.5, y1: 0.5, x2: 5.0, y2: 5.0 });
        assert_eq!(mean.score(), 0.0);
        let mut without_weight = WeightedMean::new(&BOX, -1.0);
        without_weight.add(&other, -2.0);
        assert_eq!(without_weight.corners(), BOX);
    }

    #[test]
    fn decays_are_those_of_the_definitions() {
        assert_eq!(Decay::Linear.soft(0.25), 0.75);
        assert_eq!(Decay::Linear.exponent(0.25, 0.5), 1.5);
        assert_eq!(Decay::Linear.exponent(0.25, 1.0), 1.0);
        let gaussian = Decay::of(Method::SoftGaussian, 0.5);
        assert_eq!(gaussian.soft(0.5), exp(-0.5));
        assert_eq!(gaussian.matrix(gaussian.exponent(0.5, 0.5)), 1.0);
    }

    #[test]
    fn no_score_rises() {
        assert_eq!([0.5, 0.0, -2.0].map(|score| lowered(score, 0.5)), [0.25, 0.0, -2.0]);
        assert_eq!([1.0, 2.0, f32::NAN].map(|factor| lowered(0.5, factor)), [0.5; 3]);
    }
}
