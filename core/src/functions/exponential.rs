// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exponential function and the sigmoid.
//!
//! # The exponential function
//! With n the integer nearest to x / ln 2, and r = x - n ln 2, which is at most about ln 2 / 2 in magnitude,
//!
//! ```text
//! exp(x) = 2^n exp(r),    exp(r) = 1 + (r + r^2 P(r))
//! ```
//!
//! - n: x log2(e), rounded by the addition of [`ROUND_TO_INTEGER`].
//! - r: ln 2 is the sum of [`LN2_HIGH`], its first 15 bits, and [`LN2_LOW`]. n has at most 8 bits, so
//!   n x `LN2_HIGH` and its difference from x are exact. r has the rounding errors of n x `LN2_LOW` and of the
//!   last subtraction.
//! - P: a polynomial of degree 4, computed by Horner's method, for |r| <= ln 2 / 2 + 10^-5. The greatest relative error
//!   of 1 + r + r^2 P(r) in exact arithmetic is 3.14e-9, which is 0.053 x 2^-24.
//! - 2^n: two factors, 2^(n / 2) rounded down and the rest. The first product is exact, so that a subnormal
//!   result is rounded once. The second product overflows to infinity. n is in -150 to 128, because x is limited
//!   to -104 to 89, where the results are zero and infinity already.
//!
//! # The sigmoid
//! sigmoid(x) = 1 / (1 + exp(-x)). Where exp(-x) overflows, x < -88.72283, the sigmoid is 0; the exact value is less
//! than 3e-39.
//!
//! # Properties
//! Both functions are monotonic: x <= y implies exp(x) <= exp(y) and sigmoid(x) <= sigmoid(y), with rounding
//! included. So engines may compare logits before the activation ([`logit_threshold`]).
//!
//! The greatest errors, in units in the last place of the exact result, are 0.989 for [`exp`], and 2.481 for
//! [`sigmoid`] where exp(-x) is finite. The test `all_numbers` measures errors and monotonicity over all f32.

use super::order::{bisect, order};
use super::{LN2_HIGH, LN2_LOW, NAN, ROUND_TO_INTEGER};

/// The coefficients of P, from the lowest degree.
const COEFFICIENTS: [f32; 5] =
    [0.499_999_94, 0.166_665_23, 0.041_668_292, 0.008_368_533, 0.001_381_829];

/// The exponential function.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    if x.is_nan() {
        return NAN;
    }
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND_TO_INTEGER;
    let n = shifted - ROUND_TO_INTEGER;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    let [c0, c1, c2, c3, c4] = COEFFICIENTS;
    let p = (((c4 * r + c3) * r + c2) * r + c1) * r + c0;
    let power = 1.0 + (r + (r * r) * p);
    // Consecutive numbers near 1.5 x 2^23 have consecutive bits.
    let n = shifted.to_bits().wrapping_sub(ROUND_TO_INTEGER.to_bits()) as i32;
    let half = n >> 1;
    power * power_of_two(half) * power_of_two(n - half)
}

/// 2^n, for n from -126 to 127.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits(((n + 127) as u32) << 23)
}

/// The logistic function, 1 / (1 + exp(-x)).
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    if x.is_nan() {
        return NAN;
    }
    1.0 / (1.0 + exp(-x))
}

/// The threshold of logits that has the effect of `threshold` on their sigmoids: the least x with
/// `sigmoid(x) >= threshold`.
///
/// `sigmoid(x) < threshold` exactly if `x < logit_threshold(threshold)`, for every x, NaN included. The exception is
/// infinity with a `threshold` greater than 1: its sigmoid, 1, is below the threshold, but the result is infinity, and
/// infinity is not below it. Callers that admit infinite logits have to make that distinction.
///
/// The result is minus infinity if `threshold` is NaN, zero or less: no sigmoid is below it.
pub fn logit_threshold(threshold: f32) -> f32 {
    if threshold.is_nan() || threshold <= 0.0 {
        return f32::NEG_INFINITY;
    }
    let is_below = |x: f32| sigmoid(x) < threshold;
    let [_, result] = bisect(order(f32::NEG_INFINITY), order(f32::INFINITY), is_below);
    result
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::super::measure::{ALL, error, in_ranges, next, previous};
    use super::super::order::from_order;
    use super::*;

    /// The greatest errors that the documentation of this module states.
    const GREATEST_ERRORS: Errors = Errors { exp: 0.989, sigmoid: 2.481 };

    /// Errors in units in the last place.
    #[derive(Clone, Copy, Debug)]
    struct Errors {
        exp: f64,
        sigmoid: f64,
    }

    impl Errors {
        const ZERO: Self = Self { exp: 0.0, sigmoid: 0.0 };

        fn greatest(self, other: Self) -> Self {
            Self { exp: self.exp.max(other.exp), sigmoid: self.sigmoid.max(other.sigmoid) }
        }

        fn assert_at_most(self, greatest: Self) {
            assert!(self.exp <= greatest.exp, "{self:?}");
            assert!(self.sigmoid <= greatest.sigmoid, "{self:?}");
        }
    }

    /// The greatest errors over numbers in ascending order. Fails where a result is less than the result before.
    fn check(numbers: impl Iterator<Item = f32>) -> Errors {
        let mut errors = Errors::ZERO;
        let mut before: Option<(f32, f32, f32)> = None;
        for x in numbers {
            let (e, s) = (exp(x), sigmoid(x));
            if let Some((y, exp_y, sigmoid_y)) = before {
                assert!(e >= exp_y, "exp({x:e}) is {e:e}, exp({y:e}) is {exp_y:e}");
                assert!(s >= sigmoid_y, "sigmoid({x:e}) is {s:e}, sigmoid({y:e}) is {sigmoid_y:e}");
            }
            before = Some((x, e, s));
            let power = f64::from(x).exp();
            let sigmoid = if x < -88.722_83 {
                assert_eq!(s.to_bits(), 0, "sigmoid({x:e})");
                0.0
            } else {
                error(s, 1.0 / (1.0 + 1.0 / power))
            };
            errors = errors.greatest(Errors { exp: error(e, power), sigmoid });
        }
        errors
    }

    #[test]
    fn special_values_of_exp() {
        for (x, expected) in [
            (0.0, 1.0),
            (-0.0, 1.0),
            (1e-45, 1.0),
            (1.0, std::f32::consts::E),
            (f32::INFINITY, f32::INFINITY),
            (f32::MAX, f32::INFINITY),
            (f32::NEG_INFINITY, 0.0),
            (f32::MIN, 0.0),
            // ln(2^128), and ln(2^-150), where results are rounded to infinity and to zero.
            (88.722_84, f32::INFINITY),
            (-103.972_1, 0.0),
            (-103.972_07, f32::from_bits(1)),
        ] {
            assert_eq!(exp(x).to_bits(), f32::to_bits(expected), "exp({x:e}) is {:e}", exp(x));
        }
        assert!(exp(88.722_83).is_finite());
    }

    #[test]
    fn special_values_of_sigmoid() {
        for (x, expected) in [
            (0.0, 0.5),
            (-0.0, 0.5),
            (f32::INFINITY, 1.0),
            (f32::MAX, 1.0),
            (f32::NEG_INFINITY, 0.0),
            (f32::MIN, 0.0),
        ] {
            assert_eq!(sigmoid(x).to_bits(), f32::to_bits(expected), "sigmoid({x:e})");
        }
        assert!(sigmoid(-88.722_83) > 0.0);
        assert_eq!(sigmoid(-88.722_84).to_bits(), 0);
    }

    #[test]
    fn nan_gives_one_nan() {
        for bits in [0x7fc0_0000_u32, 0xffc0_0000, 0x7f80_0001, 0xff80_0001, 0x7fff_ffff, !0] {
            let x = f32::from_bits(bits);
            assert_eq!(exp(x).to_bits(), 0x7fc0_0000, "exp of {bits:#x}");
            assert_eq!(sigmoid(x).to_bits(), 0x7fc0_0000, "sigmoid of {bits:#x}");
        }
    }

    #[test]
    fn every_f16_is_monotonic_and_within_the_error() {
        let mut numbers: Vec<f32> =
            (0..=u16::MAX).map(|bits| f16::from_bits(bits).to_f32()).collect();
        numbers.retain(|number| !number.is_nan());
        numbers.sort_by(f32::total_cmp);
        assert_eq!(numbers.len(), 63_490);
        check(numbers.into_iter()).assert_at_most(GREATEST_ERRORS);
    }

    #[test]
    fn a_sample_is_monotonic_and_within_the_error() {
        check(ALL.step_by(409).map(from_order)).assert_at_most(GREATEST_ERRORS);
    }

    /// Where n changes, the polynomial continues at its other end.
    #[test]
    fn numbers_around_halves_of_ln_2_are_monotonic_and_within_the_error() {
        for n in -151..=128 {
            let middle = order(((f64::from(n) + 0.5) * std::f64::consts::LN_2) as f32);
            check((middle - 2_000..=middle + 2_000).map(from_order))
                .assert_at_most(GREATEST_ERRORS);
        }
    }

    #[test]
    #[ignore = "takes minutes"]
    fn all_numbers() {
        let errors = in_ranges(|range| check(range.map(from_order)));
        let errors = errors.into_iter().fold(Errors::ZERO, Errors::greatest);
        println!("the greatest errors: {errors:?}");
        errors.assert_at_most(GREATEST_ERRORS);
        // The documentation has the errors rounded up.
        let Errors { exp, sigmoid } = GREATEST_ERRORS;
        assert!(errors.exp > exp - 0.001 && errors.sigmoid > sigmoid - 0.001, "{errors:?}");
    }

    #[test]
    fn a_logit_is_below_its_threshold_where_its_sigmoid_is() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut thresholds = vec![f32::from_bits(1), f32::MIN_POSITIVE, 0.5, 1.0, previous(1.0)];
        thresholds.extend((0..=100).map(|percent| percent as f32 / 100.0));
        thresholds.extend((0..1_000).map(|_| random.f32()));
        thresholds.extend((0..1_000).map(|_| f32::from_bits(random.u32(..1.0_f32.to_bits()))));
        for t in thresholds {
            let logit = logit_threshold(t);
            let mut logits = vec![f32::NEG_INFINITY, f32::INFINITY, f32::NAN, f32::MIN, f32::MAX];
            logits.extend((0..20).map(|_| f32::from_bits(random.u32(..))));
            logits.extend((0..20).map(|_| random.f32() * 40.0 - 20.0));
            if logit.is_finite() {
                logits.extend([previous(logit), logit, next(logit)]);
                assert!(sigmoid(logit) >= t && sigmoid(previous(logit)) < t, "{t:e}: {logit:e}");
            }
            for x in logits {
                assert_eq!(sigmoid(x) < t, x < logit, "{x:e} with {t:e}, {logit:e}");
            }
        }
    }

    #[test]
    fn thresholds_that_all_or_no_sigmoids_reach() {
        for t in [f32::NAN, f32::NEG_INFINITY, -1.0, -0.0, 0.0] {
            assert_eq!(logit_threshold(t), f32::NEG_INFINITY, "{t:e}");
        }
        for t in [next(1.0), 2.0, f32::INFINITY] {
            assert_eq!(logit_threshold(t), f32::INFINITY, "{t:e}");
        }
        assert!(logit_threshold(1.0) < 20.0);
    }
}
