// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures wall times. In: a closure and a time budget. Out: the sorted times of its runs.

use std::time::{Duration, Instant};

/// Times of repeated runs in microseconds, in ascending order.
#[derive(Clone, Debug, Default)]
pub struct Times(Vec<f64>);

impl Times {
    /// Makes times from `microseconds`, which it sorts.
    pub fn new(mut microseconds: Vec<f64>) -> Self {
        microseconds.sort_unstable_by(f64::total_cmp);
        Self(microseconds)
    }

    /// Returns the times in ascending order.
    pub fn into_inner(self) -> Vec<f64> {
        self.0
    }

    /// Returns the quantile `share`, which is between 0 and 1. The result is 0 if there are no
    /// times.
    pub fn quantile(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        self.0.get((last as f64 * share).round() as usize).copied().unwrap_or(0.0)
    }

    /// Multiplies all times by `by`.
    pub fn scaled(self, by: f64) -> Self {
        Self(self.0.into_iter().map(|time| time * by).collect())
    }

    /// Returns the median.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

/// Runs `work` repeatedly for about `budget`, at least five times; without a budget, once. Before, it
/// warms up for a third of `budget`.
pub fn measure(budget: Duration, mut work: impl FnMut()) -> Times {
    measure_with(budget, || (), |()| work())
}

/// Measures like [`measure`], with an input from `prepare` for each run. The times include neither
/// `prepare` nor dropping the result of `work`.
pub fn measure_with<T, U>(
    budget: Duration,
    mut prepare: impl FnMut() -> T,
    mut work: impl FnMut(T) -> U,
) -> Times {
    let began = Instant::now();
    while began.elapsed() < budget / 3 {
        work(prepare());
    }
    let mut times = Vec::new();
    let least = if budget.is_zero() { 1 } else { 5 };
    let began = Instant::now();
    while times.len() < least || began.elapsed() < budget {
        let prepared = prepare();
        let start = Instant::now();
        let done = work(prepared);
        times.push(start.elapsed().as_secs_f64() * 1e6);
        drop(done);
    }
    Times::new(times)
}
