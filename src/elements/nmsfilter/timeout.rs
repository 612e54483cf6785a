use std::time::{Duration, Instant};

/// How long something may go on before the user is told.
const DURATION: gst::ClockTime = gst::ClockTime::SECOND;

/// A timeout of one second of the stream, or of the clock where buffers have no timestamps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeout {
    pts: Option<gst::ClockTime>,
    started: Instant,
}

impl Timeout {
    /// From the buffer with this timestamp on.
    pub fn start(pts: Option<gst::ClockTime>) -> Self {
        Self { pts, started: Instant::now() }
    }

    /// Whether it is over at the buffer with this timestamp.
    pub fn has_expired(&self, pts: Option<gst::ClockTime>) -> bool {
        match (self.pts, pts) {
            (Some(first), Some(pts)) => pts.saturating_sub(first) >= DURATION,
            _ => self.started.elapsed() >= Duration::from(DURATION),
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
