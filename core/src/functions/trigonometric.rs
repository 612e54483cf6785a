// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sine and cosine.
//!
//! With n the integer nearest to x / (pi / 2), and r = x - n pi / 2, which is at most about pi / 4 in magnitude, sine and
//! cosine of x are the sine and cosine of r, exchanged if n is odd, with signs that depend on n modulo 4.
//!
//! ```text
//! sin(r) = r + r^3 S(r^2),    cos(r) = (1 - r^2 / 2) + r^4 C(r^2)
//! ```
//!
//! - n: x 2 / pi, rounded by the addition of [`ROUND_TO_INTEGER`].
//! - r: pi / 2 is the sum of [`HALF_PI_HIGH`] with 8 bits, [`HALF_PI_MIDDLE`] with 11 and [`HALF_PI_LOW`]. n has at most
//!   13 bits, because x is limited to [`MAX_ANGLE`], so n times the first two, and the differences, are exact. r has the
//!   rounding errors of n x `HALF_PI_LOW`, at most 2^-36, and of the last subtraction.
//! - S and C: polynomials of degree 2, computed by Horner's method, for |r| <= pi / 4 + 4 x 10^-5. The greatest errors of
//!   the functions in exact arithmetic are 3.69e-9, relative, for the sine, and 1.07e-10, absolute, for the
//!   cosine: 0.062 x 2^-24 and 0.002 x 2^-24.
//!
//! The greatest absolute error is 1.574 x 2^-24, the test `all_numbers` measures it. Close to multiples of pi / 2 the
//! relative error of the function that is close to zero is greater.

use super::{NAN, ROUND_TO_INTEGER};

/// The greatest magnitude of an angle, in radians.
pub const MAX_ANGLE: f32 = 1e4;

/// The first 8 bits of pi / 2: 0x1.92p+0.
const HALF_PI_HIGH: f32 = 1.570_312_5;
/// The first 11 bits of pi / 2 - [`HALF_PI_HIGH`]: 0x1.fb4p-12.
const HALF_PI_MIDDLE: f32 = 4.837_513e-4;
/// pi / 2 - [`HALF_PI_HIGH`] - [`HALF_PI_MIDDLE`]: 0x1.4442d2p-24.
const HALF_PI_LOW: f32 = 7.549_79e-8;
/// The coefficients of S, from the lowest degree.
const SINE: [f32; 3] = [-0.166_666_55, 0.008_332_192, -0.000_195_187_88];
/// The coefficients of C, from the lowest degree.
const COSINE: [f32; 3] = [0.041_666_646, -0.001_388_730_1, 2.443_066_8e-5];

/// Sine and cosine of one angle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SinCos {
    /// The sine.
    pub sin: f32,
    /// The cosine.
    pub cos: f32,
}

/// Sine and cosine of `x`, in radians. The sine of both zeros is positive zero. Both are NaN if `x` is NaN or greater than [`MAX_ANGLE`] in magnitude.
#[inline]
pub fn sin_cos(x: f32) -> SinCos {
    let is_in_range = x.abs() <= MAX_ANGLE;
    if !is_in_range {
        return SinCos { sin: NAN, cos: NAN };
    }
    let shifted = x * std::f32::consts::FRAC_2_PI + ROUND_TO_INTEGER;
    let n = shifted - ROUND_TO_INTEGER;
    let r = ((x - n * HALF_PI_HIGH) - n * HALF_PI_MIDDLE) - n * HALF_PI_LOW;
    let z = r * r;
    let [s0, s1, s2] = SINE;
    let sin = r + (r * z) * ((s2 * z + s1) * z + s0);
    let [c0, c1, c2] = COSINE;
    let cos = (1.0 - 0.5 * z) + (z * z) * ((c2 * z + c1) * z + c0);
    // Consecutive numbers near 1.5 x 2^23 have consecutive bits, and the last two bits of that number are zero.
    let quadrant = shifted.to_bits() & 3;
    let (sin, cos) = if quadrant & 1 == 0 { (sin, cos) } else { (cos, sin) };
    SinCos {
        sin: if quadrant & 2 == 0 { sin } else { -sin },
        cos: if (quadrant + 1) & 2 == 0 { cos } else { -cos },
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::super::measure::{ALL, in_ranges, next};
    use super::super::order::from_order;
    use super::*;

    /// The greatest error that the documentation of this module states.
    const GREATEST_ERROR: f64 = 1.574 / (1 << 24) as f64;

    /// The greatest error of both functions.
    fn greatest_error(numbers: impl Iterator<Item = f32>) -> f64 {
        numbers.fold(0.0, |greatest: f64, x| {
            let SinCos { sin, cos } = sin_cos(x);
            let (exact_sin, exact_cos) = f64::from(x).sin_cos();
            let errors = [f64::from(sin) - exact_sin, f64::from(cos) - exact_cos].map(f64::abs);
            assert!(sin.abs() <= 1.0 && cos.abs() <= 1.0, "{x:e}: {sin} {cos}");
            greatest.max(errors[0]).max(errors[1])
        })
    }

    fn is_in_range(x: &f32) -> bool {
        x.abs() <= MAX_ANGLE
    }

    #[test]
    fn special_values() {
        for (x, sin, cos) in [
            (0.0_f32, 0.0_f32, 1.0_f32),
            (-0.0, 0.0, 1.0),
            (1e-45, 1e-45, 1.0),
            (std::f32::consts::FRAC_PI_2, 1.0, -4.371_139e-8),
            (std::f32::consts::PI, -8.742_278e-8, -1.0),
            (-std::f32::consts::FRAC_PI_2, -1.0, -4.371_139e-8),
            (2.0 * std::f32::consts::PI, 1.748_455_6e-7, 1.0),
        ] {
            let result = sin_cos(x);
            assert_eq!(result.sin.to_bits(), sin.to_bits(), "sin({x:e}) is {:e}", result.sin);
            assert_eq!(result.cos.to_bits(), cos.to_bits(), "cos({x:e}) is {:e}", result.cos);
        }
    }

    #[test]
    fn angles_out_of_range_give_one_nan() {
        let infinity = f32::INFINITY;
        for x in [
            next(MAX_ANGLE),
            -next(MAX_ANGLE),
            1e30,
            f32::MAX,
            infinity,
            -infinity,
            f32::NAN,
            -f32::NAN,
        ] {
            let SinCos { sin, cos } = sin_cos(x);
            assert_eq!([sin, cos].map(f32::to_bits), [0x7fc0_0000; 2], "{x:e}");
        }
        assert!(sin_cos(MAX_ANGLE).sin.is_finite() && sin_cos(-MAX_ANGLE).cos.is_finite());
    }

    #[test]
    fn the_sine_is_odd_and_the_cosine_is_even() {
        for x in ALL.step_by(4_099).map(from_order).filter(is_in_range) {
            let (positive, negative) = (sin_cos(x), sin_cos(-x));
            assert_eq!(positive.sin, -negative.sin, "{x:e}");
            assert_eq!(positive.cos, negative.cos, "{x:e}");
        }
    }

    #[test]
    fn f16_and_a_sample_are_within_the_error() {
        let halves = (0..=u16::MAX).map(|bits| f16::from_bits(bits).to_f32());
        let sample = ALL.step_by(409).map(from_order);
        let error = greatest_error(halves.chain(sample).filter(is_in_range));
        assert!(error <= GREATEST_ERROR, "{error:e}");
    }

    /// Where n changes, and where one of the functions is close to zero.
    #[test]
    fn numbers_around_multiples_of_a_quarter_of_pi_are_within_the_error() {
        for n in -12_732..=12_732 {
            let middle = (f64::from(n) * std::f64::consts::FRAC_PI_4) as f32;
            let around = (0..20).scan(middle, |x, _| {
                *x = next(*x);
                Some(*x)
            });
            let error = greatest_error(around.filter(is_in_range));
            assert!(error <= GREATEST_ERROR, "{n} x pi / 4: {error:e}");
        }
    }

    #[test]
    #[ignore = "takes minutes"]
    fn all_numbers() {
        let errors = in_ranges(|range| greatest_error(range.map(from_order).filter(is_in_range)));
        let error = errors.into_iter().fold(0.0, f64::max);
        println!("the greatest error: {} x 2^-24", error * f64::from(1 << 24));
        // The documentation has the error rounded up.
        assert!(error <= GREATEST_ERROR && error > GREATEST_ERROR * 0.999, "{error:e}");
    }
}
