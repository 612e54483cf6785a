use std::time::{Duration, Instant};

/// How long something may go on before the user is told.
const LIMIT: gst::ClockTime = gst::ClockTime::SECOND;

/// A wait of one second of the stream, or of the clock where buffers have no timestamps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    stream: Option<gst::ClockTime>,
    clock: Instant,
}

impl Wait {
    /// From the buffer with this timestamp on.
    pub fn from(pts: Option<gst::ClockTime>) -> Self {
        Self { stream: pts, clock: Instant::now() }
    }

    /// Whether it is over at the buffer with this timestamp.
    pub fn is_over(&self, pts: Option<gst::ClockTime>) -> bool {
        match (self.stream, pts) {
            (Some(first), Some(pts)) => pts.saturating_sub(first) >= LIMIT,
            _ => self.clock.elapsed() >= Duration::from(LIMIT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_the_stream_ends_it() {
        let at = |mseconds| Some(gst::ClockTime::from_mseconds(mseconds));
        let wait = Wait::from(at(500));
        assert_eq!(
            [at(0), at(500), at(1499), at(1500)].map(|pts| wait.is_over(pts)),
            [false, false, false, true]
        );
    }

    #[test]
    fn without_timestamps_the_clock_counts() {
        let mut wait = Wait::from(None);
        assert!(!wait.is_over(None));
        wait.clock -= Duration::from(LIMIT);
        assert!(wait.is_over(None));
        assert!(wait.is_over(Some(gst::ClockTime::ZERO)));
    }
}
