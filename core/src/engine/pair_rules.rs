// SPDX-License-Identifier: MIT OR Apache-2.0
//! The formulas of the methods that decide by a column of the layout, which the engines share.
//!
//! In: a density, or the embeddings of two candidates. Out: a threshold, or true if the embeddings
//! are near each other. Each operation is rounded separately, in the order written here; the
//! [rules](super) say when each formula applies.

/// The threshold of [`Method::Adaptive`](super::Method::Adaptive) for candidates that a candidate of
/// this density outranks. A threshold of NaN stays NaN.
#[inline(always)]
pub(super) fn adaptive_threshold(threshold: f32, density: f32) -> f32 {
    let density = if density > 1.0 { 1.0 } else { density };
    if density > threshold { density } else { threshold }
}

/// Returns true if the distance of two embeddings is at most `distance`, for
/// [`Method::Feature`](super::Method::Feature). A distance that is NaN is not.
#[inline(always)]
pub(super) fn are_near(a: &[f32], b: &[f32], distance: f32) -> bool {
    let limit = distance * distance;
    let mut sum = 0.0;
    for (a, b) in a.iter().zip(b) {
        let difference = a - b;
        sum += difference * difference;
        // No further component makes the sum smaller.
        if sum > limit {
            return false;
        }
    }
    sum <= limit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_density_raises_the_threshold_to_at_most_1() {
        let thresholds = [0.2, 0.5, 0.6, 7.0, -3.0, f32::INFINITY, f32::NAN]
            .map(|density| adaptive_threshold(0.5, density));
        assert_eq!(thresholds, [0.5, 0.5, 0.6, 1.0, 0.5, 1.0, 0.5]);
        assert!(adaptive_threshold(f32::NAN, 0.5).is_nan());
    }

    #[test]
    fn embeddings_are_near_up_to_the_distance() {
        let origin = [0.0; 2];
        assert!(are_near(&origin, &[3.0, 4.0], 5.0));
        assert!(!are_near(&origin, &[3.0, 4.0], 4.999));
        assert!(are_near(&origin, &origin, 0.0));
    }

    #[test]
    fn embeddings_that_are_not_numbers_are_not_near() {
        for other in [f32::NAN, f32::INFINITY] {
            assert!(!are_near(&[0.0, other], &[0.0, 1.0], 1.0e9), "{other}");
            assert!(!are_near(&[other, 9.0e9], &[other, 0.0], 1.0e9), "{other}");
        }
        assert!(!are_near(&[0.0], &[0.0], f32::NAN));
    }
}
