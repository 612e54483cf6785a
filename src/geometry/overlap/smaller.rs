//! The share of the smaller box that is covered.

use super::{Measure, Pair};
use crate::geometry::lesser;

/// intersection > t x smaller area
#[derive(Clone, Copy)]
pub(super) struct Smaller;

impl Measure for Smaller {
    #[inline(always)]
    fn limit(threshold: f32, pair: &Pair) -> f32 {
        threshold * lesser(pair.higher.area, pair.lower.area)
    }
}
