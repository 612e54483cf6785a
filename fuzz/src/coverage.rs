// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the branches of the plugin that a case takes, if the plugin is built with counters (see
//! `run.sh`).
//!
//! LLVM's SanitizerCoverage adds an 8-bit counter to each edge, and registers the addresses of the
//! counters. Without counters, no case is kept, and cases come from random bytes and the seeds.

use std::num::NonZeroU8;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Address and number of the counters for each unit of code.
static COUNTERS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Instrumented code calls this function before `main`, once per unit of code.
///
/// # Safety
/// The counters from `start` to `stop` must exist until the process ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, stop: *mut u8) {
    let region = (start as usize, stop as usize - start as usize);
    let mut counters = COUNTERS.lock().unwrap();
    if region.1 > 0 && !counters.contains(&region) {
        counters.push(region);
    }
}

/// The edges taken so far. Each has the counts that single cases reached, rounded down to powers of
/// two.
#[derive(Debug, Default)]
pub struct Coverage {
    seen: Vec<u8>,
}

impl Coverage {
    /// Returns true if the plugin has counters.
    pub fn is_there() -> bool {
        !COUNTERS.lock().unwrap().is_empty()
    }

    /// Returns the number of edges that any case has taken.
    pub fn edges(&self) -> usize {
        self.seen.iter().filter(|&&seen| seen != 0).count()
    }

    /// Resets all counters to 0.
    pub fn reset() {
        take_each(|_, _| {});
    }

    /// Adds the counters to the edges taken, and resets the counters. Returns true if anything is
    /// new.
    pub fn take(&mut self) -> bool {
        let mut is_new = false;
        take_each(|index, count| {
            if index >= self.seen.len() {
                self.seen.resize(index + 1, 0);
            }
            let bit = 1 << count.ilog2();
            is_new |= self.seen[index] & bit == 0;
            self.seen[index] |= bit;
        });
        is_new
    }
}

/// Resets each counter that is not 0, and calls `act` with its index and its count.
fn take_each(mut act: impl FnMut(usize, NonZeroU8)) {
    let mut first = 0;
    for &(start, len) in &*COUNTERS.lock().unwrap() {
        // SAFETY: instrumented code registered the counters, and they exist until the process ends.
        // Other threads count while a case ends, so that counts are only read atomically.
        let counters = unsafe { std::slice::from_raw_parts(start as *const AtomicU8, len) };
        for (i, counter) in counters.iter().enumerate() {
            if counter.load(Relaxed) != 0
                && let Some(count) = NonZeroU8::new(counter.swap(0, Relaxed))
            {
                act(first + i, count);
            }
        }
        first += len;
    }
}
