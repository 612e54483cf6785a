// SPDX-License-Identifier: MIT OR Apache-2.0
//! The distribution of durations in the statistics of an element. In: durations. Out: fields of a structure.

use std::time::Duration;

use gst::structure::Builder;
use hdrhistogram::Histogram;

/// The distribution of durations.
pub struct Times(Histogram<u64>);

impl Default for Times {
    fn default() -> Self {
        const MINUTE: u64 = 60_000_000_000;
        Self(Histogram::new_with_bounds(1, MINUTE, 2).expect("the bounds are valid"))
    }
}

impl Times {
    /// Adds a duration.
    pub fn add(&mut self, time: Duration) {
        self.0.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds the fields `NAME-mean`, `NAME-p50` and `NAME-p99`, in nanoseconds.
    pub fn add_to(&self, structure: Builder, name: &str) -> Builder {
        structure
            .field(format!("{name}-mean"), self.0.mean().round() as u64)
            .field(format!("{name}-p50"), self.0.value_at_quantile(0.5))
            .field(format!("{name}-p99"), self.0.value_at_quantile(0.99))
    }
}
