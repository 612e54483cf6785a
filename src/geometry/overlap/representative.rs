//! The share of the box of higher rank that is covered, as in the paper's measurements.

use super::{Measure, Pair};

/// intersection > t x area of the box of higher rank
#[derive(Clone, Copy)]
pub(super) struct Representative;

impl Measure for Representative {
    #[inline(always)]
    fn limit(threshold: f32, pair: &Pair) -> f32 {
        threshold * pair.higher.area
    }
}
