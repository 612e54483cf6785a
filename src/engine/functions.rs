// SPDX-License-Identifier: MIT OR Apache-2.0
//! Temporary.
pub(crate) fn exp(x: f32) -> f32 {
    x.exp()
}
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}
