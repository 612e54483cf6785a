// SPDX-License-Identifier: MIT OR Apache-2.0
//! The branches of the plugin that a case takes, if the plugin is built with counters (see `run.sh`).
//!
//! LLVM's SanitizerCoverage adds an 8-bit counter to each edge and registers the counters' addresses.
//! Without counters no case is kept, and cases are made of random bytes and the seeds.

use std::sync::Mutex;

/// The address and number of the counters of each unit of code.
static COUNTERS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Called by instrumented code before `main`, once for each unit of code.
///
/// # Safety
/// From `start` to `stop` there must be counters until the process ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, stop: *mut u8) {
    let region = (start as usize, stop as usize - start as usize);
    let mut counters = COUNTERS.lock().unwrap();
    if region.1 > 0 && !counters.contains(&region) {
        counters.push(region);
    }
}

/// The edges taken so far, each with the counts in single cases, rounded down to powers of two.
#[derive(Debug, Default)]
pub struct Coverage {
    seen: Vec<u8>,
}

impl Coverage {
    /// Whether the plugin has counters.
    pub fn is_there() -> bool {
        !COUNTERS.lock().unwrap().is_empty()
    }

    /// The number of edges taken by any case.
    pub fn edges(&self) -> usize {
        self.seen.iter().filter(|&&seen| seen != 0).count()
    }

    /// Sets all counters to 0.
    pub fn reset() {
        for_each(|_, counter| *counter = 0);
    }

    /// Adds the counters to the edges taken, and resets them. Returns whether anything is new.
    pub fn take(&mut self) -> bool {
        let mut is_new = false;
        for_each(|index, counter| {
            if index >= self.seen.len() {
                self.seen.resize(index + 1, 0);
            }
            let bit = 1 << (u8::BITS - 1 - counter.leading_zeros());
            is_new |= self.seen[index] & bit == 0;
            self.seen[index] |= bit;
            *counter = 0;
        });
        is_new
    }
}

/// Calls `act` with each counter that is not 0.
fn for_each(mut act: impl FnMut(usize, &mut u8)) {
    let mut first = 0;
    for &(start, len) in &*COUNTERS.lock().unwrap() {
        // SAFETY: instrumented code registered them, and they exist until the process ends. Cases run
        // in this thread; another thread could at worst make a count wrong.
        let counters = unsafe { std::slice::from_raw_parts_mut(start as *mut u8, len) };
        // Most are 0: eight at a time.
        for (word, counters) in counters.chunks_mut(8).enumerate() {
            if matches!(*counters, [0, 0, 0, 0, 0, 0, 0, 0]) {
                continue;
            }
            for (i, counter) in counters.iter_mut().enumerate().filter(|(_, c)| **c != 0) {
                act(first + word * 8 + i, counter);
            }
        }
        first += len;
    }
}
