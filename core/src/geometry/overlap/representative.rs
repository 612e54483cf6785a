// SPDX-License-Identifier: MIT OR Apache-2.0
//! Intersection over the area of the box of higher rank, as in the measurements of Oro et al. 2020.

use super::{Measure, Pair};

/// Conflict: intersection > t x area of the box of higher rank.
#[derive(Clone, Copy)]
pub(super) struct Representative;

impl Measure for Representative {
    #[inline(always)]
    fn limit(threshold: f32, pair: &Pair) -> f32 {
        threshold * pair.higher.area
    }

    #[inline(always)]
    fn value(pair: &Pair) -> f32 {
        pair.intersection / pair.higher.area
    }
}
