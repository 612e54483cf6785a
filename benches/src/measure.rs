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

    /// Each, the shortest first.
    pub fn into_inner(self) -> Vec<f64> {
        self.0
    }

    /// The time that `share` of all do not exceed; 0 where there are none.
    pub fn quantile(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        self.0.get((last as f64 * share).round() as usize).copied().unwrap_or(0.0)
    }

    /// Each `by` times as long.
    pub fn scaled(self, by: f64) -> Self {
        Self(self.0.into_iter().map(|time| time * by).collect())
    }

    /// The middle one.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

/// Does `work` over and over for about `budget`, at least five times, after a third of that to warm
/// up.
pub fn measure(budget: Duration, mut work: impl FnMut()) -> Times {
    measure_with(budget, || (), |()| work())
}

/// The same on what `prepare` makes; neither that nor dropping what `work` gives is counted.
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
    let began = Instant::now();
    while times.len() < 5 || began.elapsed() < budget {
        let prepared = prepare();
        let start = Instant::now();
        let done = work(prepared);
        times.push(start.elapsed().as_secs_f64() * 1e6);
        drop(done);
    }
    Times::new(times)
}
