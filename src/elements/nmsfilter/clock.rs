// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element's clock: how long the stream has run.
//!
//! In: segments, and the timestamp of each buffer. Out: the time since the first buffer. It advances by the running time
//! between buffers of a segment, and by the system clock if they have none. From one segment to another it does not
//! advance: a seek over an hour is no hour without detections.

use std::time::{Duration, Instant};

/// The time for which a condition lasts before a notice is posted.
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// How long the stream has run.
#[derive(Debug, Default)]
pub(super) struct Clock {
    segment: Option<gst::FormattedSegment<gst::ClockTime>>,
    /// The latest buffer of the segment: its running time, if it has one, and when it came.
    latest: Option<(Option<gst::ClockTime>, Instant)>,
    now: Duration,
}

impl Clock {
    /// Begins another segment; without one, continues in the current one after a flush.
    pub fn restart(&mut self, segment: Option<&gst::Segment>) {
        self.latest = None;
        if let Some(segment) = segment {
            self.segment = segment.downcast_ref().cloned();
        }
    }

    /// Advances to the buffer with this timestamp.
    pub fn advance(&mut self, pts: Option<gst::ClockTime>) -> Duration {
        let time = match &self.segment {
            Some(segment) => segment.to_running_time(pts),
            None => pts,
        };
        let came = Instant::now();
        let (elapsed, time) = match self.latest {
            None => (Duration::ZERO, time),
            Some((Some(latest), _)) if time.is_some() => {
                let elapsed = time.map_or(Duration::ZERO, |it| it.saturating_sub(latest).into());
                // Buffers are not always in the order of their timestamps.
                (elapsed, time.max(Some(latest)))
            }
            Some((latest, then)) => (came - then, time.or(latest)),
        };
        self.latest = Some((time, came));
        self.now += elapsed;
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mseconds: u64) -> Option<gst::ClockTime> {
        Some(gst::ClockTime::from_mseconds(mseconds))
    }

    #[test]
    fn it_advances_within_a_segment() {
        gst::init().unwrap();
        let mut clock = Clock::default();
        let mut segment = gst::FormattedSegment::<gst::ClockTime>::new();
        clock.restart(Some(segment.upcast_ref()));
        let times = [500, 700, 600, 1500].map(|time| clock.advance(at(time)).as_millis());
        assert_eq!(times, [0, 200, 200, 1000]);
        // A seek over an hour, and back.
        segment.set_start(gst::ClockTime::from_seconds(3600));
        clock.restart(Some(segment.upcast_ref()));
        assert_eq!(clock.advance(at(3_600_000)).as_millis(), 1000);
        assert_eq!(clock.advance(at(3_600_040)).as_millis(), 1040);
        segment.set_start(gst::ClockTime::ZERO);
        clock.restart(Some(segment.upcast_ref()));
        assert_eq!(clock.advance(at(0)).as_millis(), 1040);
        clock.restart(None);
        assert_eq!(clock.advance(at(5000)).as_millis(), 1040);
        assert_eq!(clock.advance(at(6000)).as_millis(), 2040);
    }

    #[test]
    fn running_time_has_the_rate_of_the_segment() {
        gst::init().unwrap();
        let mut clock = Clock::default();
        let mut segment = gst::FormattedSegment::<gst::ClockTime>::new();
        segment.set_rate(2.0);
        clock.restart(Some(segment.upcast_ref()));
        let times = [0, 1000].map(|time| clock.advance(at(time)).as_millis());
        assert_eq!(times, [0, 500]);
    }

    #[test]
    fn without_timestamps_it_is_the_system_clock() {
        let mut clock = Clock::default();
        assert_eq!(clock.advance(None), Duration::ZERO);
        let (_, came) = clock.latest.as_mut().unwrap();
        *came -= Duration::from_secs(3);
        assert_eq!(clock.advance(None).as_secs(), 3);
        let (_, came) = clock.latest.as_mut().unwrap();
        *came -= Duration::from_secs(4);
        assert_eq!(clock.advance(at(0)).as_secs(), 7);
        assert_eq!(clock.advance(at(40)).as_secs(), 7);
    }
}
