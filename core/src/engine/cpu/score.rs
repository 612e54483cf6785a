// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scores as keys, which are fast to compare with SIMD instructions.
//!
//! In: scores as stored in a tensor. Out: keys in an equal order. The key of an f16 is an i16, so
//! that scores need not be converted to f32 for the comparison.

use half::f16;

use crate::tensor::Element;

/// An element type of scores.
pub(super) trait Score: Element {
    /// Keys are ordered like the scores. No key is less than the key of NaN.
    type Key: Copy + PartialOrd;

    /// The key of minus infinity.
    const LOWEST: Self::Key;

    fn key(self) -> Self::Key;

    /// The score of this key.
    fn from_key(key: Self::Key) -> f32;

    /// The threshold as a key: a score is less than `threshold` if and only if its key is lower.
    fn threshold_key(threshold: f32) -> Self::Key;

    /// Returns true if an anchor is dropped because its greatest score, or its objectness, has this
    /// key, independent of its other elements. `lowest` is the key of the lowest threshold.
    #[inline(always)]
    fn is_below(key: Self::Key, lowest: Self::Key) -> bool {
        // Minus infinity and NaN are rejected instead.
        (key < lowest) & (key > Self::LOWEST)
    }
}

impl Score for f32 {
    type Key = f32;

    const LOWEST: f32 = f32::NEG_INFINITY;

    #[inline(always)]
    fn key(self) -> f32 {
        self
    }

    #[inline(always)]
    fn from_key(key: f32) -> f32 {
        key
    }

    #[inline(always)]
    fn threshold_key(threshold: f32) -> f32 {
        threshold
    }
}

const INFINITY: i16 = f16::INFINITY.to_bits() as i16;

impl Score for f16 {
    /// The bits of the magnitude, negated for negative numbers; `i16::MIN` for NaN.
    type Key = i16;

    const LOWEST: i16 = -INFINITY;

    #[inline(always)]
    fn key(self) -> i16 {
        let bits = self.to_bits() as i16;
        let (magnitude, sign) = (bits & i16::MAX, bits >> 15);
        let key = (magnitude ^ sign) - sign;
        if key > INFINITY { i16::MIN } else { key }
    }

    #[inline(always)]
    fn from_key(key: i16) -> f32 {
        let magnitude = f16::from_bits(key.unsigned_abs()).to_f32();
        if key < 0 { -magnitude } else { magnitude }
    }

    fn threshold_key(threshold: f32) -> i16 {
        if threshold.is_nan() {
            return i16::MIN;
        }
        let nearest = f16::from_f32(threshold);
        nearest.key() + i16::from(nearest.to_f32() < threshold)
    }
}

macro_rules! quantized_score {
    ($element:ty) => {
        /// The key is the element itself. Scales are positive, so elements and numbers have one
        /// order.
        impl Score for $element {
            type Key = i16;

            /// Less than any element.
            const LOWEST: i16 = i16::MIN;

            #[inline(always)]
            fn key(self) -> i16 {
                self.into()
            }

            /// The element itself.
            #[inline(always)]
            fn from_key(key: i16) -> f32 {
                key.into()
            }

            /// The least element that is not less than `threshold`.
            #[inline(always)]
            fn threshold_key(threshold: f32) -> i16 {
                // The conversion saturates; NaN becomes 0.
                if threshold.is_nan() { i16::MIN } else { threshold.ceil() as i16 }
            }
        }
    };
}
quantized_score!(i8);
quantized_score!(u8);

#[cfg(test)]
mod tests {
    use super::*;

    fn halves() -> impl Iterator<Item = f16> + Clone {
        (0..=u16::MAX).map(f16::from_bits)
    }

    #[test]
    fn f16_ranks_are_in_the_order_of_the_values() {
        let mut numbers: Vec<f16> = halves().filter(|half| !half.is_nan()).collect();
        numbers.sort_by(|a, b| a.to_f32().total_cmp(&b.to_f32()));
        for pair in numbers.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            assert_eq!(a.key() < b.key(), a < b, "{a} and {b}");
            assert_eq!(a.key() == b.key(), a == b, "{a} and {b}");
        }
        assert!(numbers.iter().all(|&half| f16::from_key(half.key()) == half.to_f32()));
        assert!(halves().filter(|half| half.is_nan()).all(|half| half.key() < f16::LOWEST));
    }

    #[test]
    fn scores_below_a_threshold_have_ranks_below_its_rank() {
        let next = [0.3f32, 1e-10, 65_504.0, 6e-8].map(f32::next_up);
        let thresholds =
            [0.0, -0.0, 0.25, 0.3, 1e-10, -1e-10, 6e-8, 65_504.0, 65_510.0, 1e6, f32::INFINITY];
        let thresholds = thresholds.into_iter().chain(next).flat_map(|t| [t, -t]);
        for threshold in thresholds.chain([f32::NAN]) {
            let lowest = f16::threshold_key(threshold);
            for half in halves().filter(|half| !half.is_nan()) {
                let is_less = half.to_f32() < threshold;
                assert_eq!(half.key() < lowest, is_less, "{half} and {threshold}");
            }
        }
    }
}
