// SPDX-License-Identifier: MIT OR Apache-2.0
//! A timeout in stream time. In: timestamps of buffers. Out: whether one second has passed.

use std::time::{Duration, Instant};

/// The time for which a condition lasts before a warning is posted.
const DURATION: gst::ClockTime = gst::ClockTime::SECOND;

/// A timeout in stream time, or of the system clock if buffers have no timestamps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeout {
    pts: Option<gst::ClockTime>,
    started: Instant,
    duration: gst::ClockTime,
}

impl Timeout {
    /// Starts a timeout of a second at the buffer with this timestamp.
    pub fn start(pts: Option<gst::ClockTime>) -> Self {
        Self::start_of(DURATION, pts)
    }

    /// Starts a timeout of `duration` at the buffer with this timestamp.
    pub fn start_of(duration: gst::ClockTime, pts: Option<gst::ClockTime>) -> Self {
        Self { pts, started: Instant::now(), duration }
    }

    /// Returns true if the timeout has expired at the buffer with this timestamp.
    pub fn has_expired(&self, pts: Option<gst::ClockTime>) -> bool {
        match (self.pts, pts) {
            (Some(first), Some(pts)) => pts.saturating_sub(first) >= self.duration,
            _ => self.started.elapsed() >= Duration::from(self.duration),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_expires_after_one_second_of_stream_time() {
        let at = |mseconds| Some(gst::ClockTime::from_mseconds(mseconds));
        let timeout = Timeout::start(at(500));
        assert_eq!(
            [at(0), at(500), at(1499), at(1500)].map(|pts| timeout.has_expired(pts)),
            [false, false, false, true]
        );
    }

    #[test]
    fn without_timestamps_it_expires_by_the_system_clock() {
        let mut timeout = Timeout::start(None);
        assert!(!timeout.has_expired(None));
        timeout.started -= Duration::from(DURATION);
        assert!(timeout.has_expired(None));
        assert!(timeout.has_expired(Some(gst::ClockTime::ZERO)));
    }
}
