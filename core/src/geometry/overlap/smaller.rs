// SPDX-License-Identifier: MIT OR Apache-2.0
//! Intersection over the area of the smaller box.

use super::{Measure, Pair};
use crate::geometry::lesser;

/// Conflict: intersection > t x smaller area.
#[derive(Clone, Copy)]
pub(super) struct Smaller;

impl Measure for Smaller {
    #[inline(always)]
    fn limit(threshold: f32, pair: &Pair) -> f32 {
        threshold * lesser(pair.higher.area, pair.lower.area)
    }

    #[inline(always)]
    fn value(pair: &Pair) -> f32 {
        pair.intersection / lesser(pair.higher.area, pair.lower.area)
    }
}
