// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures errors of functions over many numbers, for tests.

use std::ops::RangeInclusive;
use std::thread;

use super::order::{from_order, order};

/// All numbers, in ascending order, as [`order`] has them.
pub(super) const ALL: RangeInclusive<u32> = 0x007f_ffff..=0xff80_0000;

pub(super) fn next(x: f32) -> f32 {
    from_order(order(x) + 1)
}

pub(super) fn previous(x: f32) -> f32 {
    from_order(order(x) - 1)
}

/// The distance from the exact value, in units in its last place as an f32. Infinity counts as 2^128, its
/// place if the exponent had no limit.
pub(super) fn error(result: f32, exact: f64) -> f64 {
    const OVERFLOW: f64 = (1_u128 << 127) as f64 * 2.0;
    let limited = |value: f64| value.clamp(-OVERFLOW, OVERFLOW);
    let exact = limited(exact);
    let exponent = (exact.abs().to_bits() >> 52).max(1023 - 126) - 23;
    (limited(f64::from(result)) - exact).abs() / f64::from_bits(exponent << 52)
}

/// The results of `work` for the numbers below `count`.
pub(super) fn in_threads<T: Send>(count: u32, work: impl Fn(u32) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let next = std::sync::atomic::AtomicU32::new(0);
    let next = || next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let worker = || {
        std::iter::repeat_with(next)
            .take_while(|&index| index < count)
            .map(|index| (index, work(index)))
            .collect::<Vec<_>>()
    };
    let mut results: Vec<(u32, T)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    results.sort_by_key(|&(index, _)| index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// The results of `work` for all numbers, by ranges of [`order`] that have their first and last numbers in common
/// with their neighbors.
pub(super) fn in_ranges<T: Send>(work: impl Fn(RangeInclusive<u32>) -> T + Sync) -> Vec<T> {
    const RANGES: u32 = 64;
    let length = (ALL.end() - ALL.start()).div_ceil(RANGES);
    in_threads(RANGES, |range| {
        let first = ALL.start() + range * length;
        work(first..=first.saturating_add(length).min(*ALL.end()))
    })
}
