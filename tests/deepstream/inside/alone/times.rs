// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clocks for measurements.

use std::ffi::{c_int, c_long};
use std::time::{Duration, Instant};

/// The processor time to read, as a clock number of `clock_gettime`.
#[derive(Clone, Copy)]
pub enum Clock {
    /// Processor time of all threads of the process.
    Process = 2,
    /// Processor time of the calling thread.
    Thread = 3,
}

/// A point in time: wall clock and processor time.
#[derive(Clone, Copy)]
pub struct Times {
    pub wall: Instant,
    pub cpu: Duration,
}

impl Times {
    pub fn now(clock: Clock) -> Self {
        #[repr(C)]
        struct TimeSpec {
            seconds: c_long,
            nanoseconds: c_long,
        }
        unsafe extern "C" {
            fn clock_gettime(clock: c_int, time: *mut TimeSpec) -> c_int;
        }
        let mut time = TimeSpec { seconds: 0, nanoseconds: 0 };
        // SAFETY: the function writes `time`, which has the fields of `timespec` on 64-bit Linux.
        assert_eq!(unsafe { clock_gettime(clock as c_int, &mut time) }, 0);
        let cpu = Duration::new(time.seconds as u64, time.nanoseconds as u32);
        Self { wall: Instant::now(), cpu }
    }
}
