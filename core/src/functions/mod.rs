// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mathematical functions with equal bits on every platform.
//!
//! Mathematical libraries and GPUs have functions whose results differ in the last bits. The functions of this
//! module consist of additions, subtractions, multiplications and divisions of IEEE 754 single precision, each
//! rounded separately (no fused multiply-add), in a fixed order. `kernels/functions.cuh` has the same operations
//! in the same order for GPUs. The square root is correctly rounded by IEEE 754: `f32::sqrt`, and `sqrt_rn` in
//! `kernels/portable.cuh`.
//!
//! | function | numbers | greatest error |
//! | --- | --- | --- |
//! | [`exp`] | all | 0.989 units in the last place |
//! | [`sigmoid`] | all | 2.481 units in the last place |
//! | [`sin_cos`] | -10,000 to 10,000, NaN for others | 1.574 x 2^-24, absolute |
//! | [`ln`] | positive | 0.955 units in the last place |
//!
//! NaN gives the NaN with the bits 0x7fc00000.
//!
//! # Polynomials
//! The coefficients minimize the greatest error of the function that each file names. They were computed by
//! Lawson's algorithm (iteratively reweighted least squares at Chebyshev nodes, 4001 for the exponential function
//! and 1001 for others), then rounded to f32 one at a time, from the lowest degree; after each the others were
//! computed anew.
//!
//! # Tests
//! Tests with the name `all_numbers` measure errors over all f32. The exact values come from f64 functions of the
//! platform's library. `checksums_of_all_numbers` compares the bits with the results of `kernels/functions.cuh` on
//! the host, and `tests/gpu/run.sh` with those on a GPU.

#[cfg(test)]
#[path = "tests/checksums.rs"]
mod checksums;
mod exponential;
mod logarithm;
#[cfg(test)]
#[path = "tests/measure.rs"]
mod measure;
mod order;
mod trigonometric;

pub use exponential::{exp, logit_threshold, sigmoid};
pub use logarithm::ln;
pub(crate) use order::{bisect, order};
pub use trigonometric::{MAX_ANGLE, SinCos, sin_cos};

/// The first 15 bits of ln 2: 0x1.62e4p-1.
const LN2_HIGH: f32 = 0.693_145_75;
/// ln 2 - [`LN2_HIGH`]: 0x1.7f7d1cp-20.
const LN2_LOW: f32 = 1.428_606_8e-6;

/// 1.5 x 2^23. The spacing of f32 is 1 there, so the addition of this number rounds to an integer. Its subtraction
/// is exact.
const ROUND_TO_INTEGER: f32 = 12_582_912.0;

/// The NaN that the functions return. Which bits a NaN has after arithmetic differs between platforms.
const NAN: f32 = f32::from_bits(0x7fc0_0000);
