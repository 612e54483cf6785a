//! Which branches of the plugin a case takes, where it is built with counters (see `run.sh`).
//!
//! LLVM's SanitizerCoverage puts an 8-bit counter on each edge and reports where they are. Without
//! counters every case looks alike, and the fuzzer is a plain random one.

use std::sync::Mutex;

/// The beginning and length of the counters.
static COUNTERS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Called by instrumented code before `main`, once for each unit of code.
///
/// # Safety
/// From `start` to `stop` there are counters for as long as the process lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, stop: *mut u8) {
    let region = (start as usize, stop as usize - start as usize);
    let mut counters = COUNTERS.lock().unwrap();
    if region.1 > 0 && !counters.contains(&region) {
        counters.push(region);
    }
}

/// The edges taken so far, and how often in one case, in powers of two.
#[derive(Debug, Default)]
pub struct Coverage {
    seen: Vec<u8>,
}

impl Coverage {
    /// Whether the code has counters.
    pub fn is_there() -> bool {
        !COUNTERS.lock().unwrap().is_empty()
    }

    /// Edges taken by any case.
    pub fn edges(&self) -> usize {
        self.seen.iter().filter(|&&seen| seen != 0).count()
    }

    /// Sets all counters to 0.
    pub fn reset() {
        for_each(|_, counter| *counter = 0);
    }

    /// Takes note of the counters; whether there is anything new.
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
        // SAFETY: instrumented code registered them. It runs in this thread alone while cases run;
        // another thread could at worst make a count wrong.
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
