// SPDX-License-Identifier: MIT OR Apache-2.0
//! The natural logarithm.
//!
//! With x = 2^n (1 + f), where 1 + f is from sqrt(1/2) to sqrt(2), and s = f / (2 + f),
//!
//! ```text
//! ln(x) = n ln 2 + ln(1 + f),    ln(1 + f) = 2 artanh(s) = f - s (f - s^2 Q(s^2))
//! ```
//!
//! - f is exact.
//! - Q: a polynomial of degree 2, computed by Horner's method, for s^2 <= 0.0295. The greatest relative error of
//!   ln(1 + f) in exact arithmetic is 8.12e-10, which is 0.014 x 2^-24.
//! - n ln 2: ln 2 is the sum of [`LN2_HIGH`], its first 15 bits, and [`LN2_LOW`]. n has at most 8 bits, so
//!   n x `LN2_HIGH` is exact.
//! - Subnormal numbers are multiplied by 2^23 first, which is exact.
//!
//! The greatest error, in units in the last place of the exact result, is 0.955; the test `all_numbers` measures
//! it.

use super::{LN2_HIGH, LN2_LOW, NAN};

/// The bits of sqrt(1/2), rounded down.
const SQRT_HALF: u32 = 0x3f35_04f3;
/// 2^23
const SCALE: f32 = 8_388_608.0;
/// The coefficients of Q, from the lowest degree.
const COEFFICIENTS: [f32; 3] = [0.666_667_76, 0.399_775_8, 0.298_709_3];

/// The natural logarithm; minus infinity of zero, and NaN of negative numbers.
#[inline]
pub fn ln(x: f32) -> f32 {
    if x.is_nan() || x < 0.0 {
        return NAN;
    }
    if x == 0.0 {
        return f32::NEG_INFINITY;
    }
    if x == f32::INFINITY {
        return x;
    }
    let is_subnormal = x < f32::MIN_POSITIVE;
    let bits = if is_subnormal { x * SCALE } else { x }.to_bits();
    // The exponent of x / sqrt(1/2), rounded down.
    let exponent = (bits as i32 - SQRT_HALF as i32) >> 23;
    let f = f32::from_bits(bits.wrapping_sub((exponent as u32) << 23)) - 1.0;
    let n = (if is_subnormal { exponent - 23 } else { exponent }) as f32;
    let s = f / (2.0 + f);
    let z = s * s;
    let [c0, c1, c2] = COEFFICIENTS;
    let q = (c2 * z + c1) * z + c0;
    n * LN2_HIGH + (f - (s * (f - z * q) - n * LN2_LOW))
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::super::measure::{ALL, error, in_ranges, next, previous};
    use super::super::order::{from_order, order};
    use super::*;

    /// The greatest error that the documentation of this module states.
    const GREATEST_ERROR: f64 = 0.955;

    fn greatest_error(numbers: impl Iterator<Item = f32>) -> f64 {
        numbers.fold(0.0, |greatest: f64, x| greatest.max(error(ln(x), f64::from(x).ln())))
    }

    fn is_positive(x: &f32) -> bool {
        *x > 0.0 && x.is_finite()
    }

    #[test]
    fn special_values() {
        for (x, expected) in [
            (0.0, f32::NEG_INFINITY),
            (-0.0, f32::NEG_INFINITY),
            (1.0, 0.0),
            (2.0, std::f32::consts::LN_2),
            (0.5, -std::f32::consts::LN_2),
            (f32::INFINITY, f32::INFINITY),
            (f32::MAX, 88.722_84),
            (f32::MIN_POSITIVE, -87.336_55),
            (f32::from_bits(1), -103.278_93),
        ] {
            assert_eq!(ln(x).to_bits(), f32::to_bits(expected), "ln({x:e}) is {:e}", ln(x));
        }
    }

    #[test]
    fn nan_and_negative_numbers_give_one_nan() {
        for x in [f32::NAN, -f32::NAN, f32::from_bits(0x7f80_0001), -1e-45, -1.0, f32::NEG_INFINITY]
        {
            assert_eq!(ln(x).to_bits(), 0x7fc0_0000, "{x:e}");
        }
    }

    #[test]
    fn f16_and_a_sample_are_within_the_error() {
        let halves = (0..=u16::MAX).map(|bits| f16::from_bits(bits).to_f32());
        let sample = ALL.step_by(409).map(from_order);
        let error = greatest_error(halves.chain(sample).filter(is_positive));
        assert!(error <= GREATEST_ERROR, "{error}");
    }

    /// Where n changes, and where the result is close to zero.
    #[test]
    fn numbers_around_powers_of_the_square_root_of_2_are_within_the_error() {
        for n in -298..=255 {
            let middle = order((f64::from(n) * 0.5).exp2() as f32);
            let around = (middle - 2_000..=middle + 2_000).map(from_order).filter(is_positive);
            let error = greatest_error(around);
            assert!(error <= GREATEST_ERROR, "2^({n} / 2): {error}");
        }
        assert!(ln(previous(1.0)) < 0.0 && ln(next(1.0)) > 0.0);
    }

    #[test]
    #[ignore = "takes minutes"]
    fn all_numbers() {
        let errors = in_ranges(|range| greatest_error(range.map(from_order).filter(is_positive)));
        let error = errors.into_iter().fold(0.0, f64::max);
        println!("the greatest error: {error}");
        // The documentation has the error rounded up.
        assert!(error <= GREATEST_ERROR && error > GREATEST_ERROR - 0.001, "{error}");
    }
}
