//! How long something takes.

use std::time::{Duration, Instant};

/// Times of one thing done many times, in microseconds.
#[derive(Clone, Debug, Default)]
pub struct Times(Vec<f64>);

impl Times {
    /// Takes times in any order.
    pub fn new(mut microseconds: Vec<f64>) -> Self {
        microseconds.sort_unstable_by(f64::total_cmp);
        Self(microseconds)
    }

    /// The time that `share` of all do not exceed; 0 where there are none.
    pub fn quantile(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        self.0.get((last as f64 * share).round() as usize).copied().unwrap_or(0.0)
    }

    /// The middle one.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

/// Does `work` over and over for about `budget`, at least five times, after half as many times to
/// warm up, or three.
pub fn measure(budget: Duration, mut work: impl FnMut()) -> Times {
    let began = Instant::now();
    let mut warm = 0;
    while warm < 3 || (began.elapsed() < budget / 3 && warm < 1000) {
        work();
        warm += 1;
    }
    let mut times = Vec::new();
    let began = Instant::now();
    while times.len() < 5 || began.elapsed() < budget {
        let start = Instant::now();
        work();
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Times::new(times)
}
