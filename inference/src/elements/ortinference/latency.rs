// SPDX-License-Identifier: MIT OR Apache-2.0
//! The latency that the element reports in the query LATENCY.
//!
//! In: the time that each frame took, and `batch-timeout`. Out: the latency, and whether it has changed.

use std::time::Duration;

use gst::ClockTime;

/// The number of frames in which at least two must take long for the latency to become longer or to stay.
const WINDOW: u32 = 50;

/// The latency: `batch-timeout`, if the element shares a model with batches, and a measured time. The measured time is
/// a quarter longer than the second longest time of a frame, in whole milliseconds. The longest time of each 50 frames
/// does not count, since a single frame can be delayed by other programs, and the first one by the start.
///
/// The measured time becomes longer at once. It becomes shorter after 50 frames that need at most half of it. Thus
/// the latency changes rarely, and a pipeline can follow it.
#[derive(Debug, Default)]
pub(super) struct Latency {
    /// The time that a frame may wait for frames of other elements.
    wait: ClockTime,
    measured: ClockTime,
    /// The longest times in this window, in descending order.
    longest: [Duration; 2],
    /// The number of frames in this window.
    frames: u32,
    /// True if the source was live when the latency was last queried. Other streams do not need a latency.
    pub is_live: bool,
}

impl Latency {
    /// Creates the latency before the first frame. A frame may wait for frames of other elements for `wait`.
    pub fn new(wait: Duration) -> Self {
        let wait = ClockTime::try_from(wait).unwrap_or(ClockTime::MAX);
        Self { wait, ..Self::default() }
    }

    /// Returns the latency to report.
    pub fn time(&self) -> ClockTime {
        self.wait.saturating_add(self.measured)
    }

    /// Adds a frame that took `time`. Returns whether the latency has changed and the source is live.
    pub fn add(&mut self, time: Duration) -> bool {
        let [longest, second] = self.longest;
        self.longest = if time > longest { [time, longest] } else { [longest, second.max(time)] };
        self.frames += 1;
        let needed = with_margin(self.longest[1]);
        let has_changed = Duration::from(self.measured) < self.longest[1]
            || (self.frames == WINDOW && needed <= self.measured / 2);
        if has_changed {
            self.measured = needed;
        }
        if has_changed || self.frames == WINDOW {
            (self.longest, self.frames) = Default::default();
        }
        has_changed && self.is_live
    }
}

/// Returns a time that is a quarter longer, in whole milliseconds.
fn with_margin(time: Duration) -> ClockTime {
    let milliseconds = (time + time / 4).as_nanos().div_ceil(1_000_000);
    let milliseconds = u64::try_from(milliseconds).unwrap_or(u64::MAX);
    ClockTime::try_from(Duration::from_millis(milliseconds)).unwrap_or(ClockTime::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn live() -> Latency {
        Latency { is_live: true, ..Latency::default() }
    }

    #[test]
    fn a_quarter_more_than_the_second_longest_time_is_reported() {
        let mut latency = live();
        assert!(!latency.add(ms(900)), "the first frame can be slow");
        assert_eq!(latency.time(), ClockTime::ZERO);
        assert!(latency.add(ms(40)));
        assert_eq!(latency.time(), ClockTime::from_mseconds(50));
        for time in [50, 200, 45] {
            assert!(!latency.add(ms(time)), "{time}");
        }
        assert!(latency.add(ms(100)));
        assert_eq!(latency.time(), ClockTime::from_mseconds(125));
    }

    #[test]
    fn the_time_becomes_shorter_after_50_frames_that_need_at_most_half() {
        let mut latency = live();
        let add = |latency: &mut Latency, time, frames| {
            (0..frames).filter(|_| latency.add(ms(time))).count()
        };
        assert_eq!(add(&mut latency, 80, 2), 1);
        assert_eq!(add(&mut latency, 60, 500), 0, "a little less");
        assert_eq!(latency.time(), ClockTime::from_mseconds(100));
        assert_eq!(add(&mut latency, 40, 50), 1, "half");
        assert_eq!(latency.time(), ClockTime::from_mseconds(50));
        assert_eq!(add(&mut latency, 10, 49), 0, "not yet");
        assert_eq!(add(&mut latency, 10, 1), 1);
        assert_eq!(latency.time(), ClockTime::from_mseconds(13));
    }

    #[test]
    fn a_shared_models_timeout_is_part_of_the_latency() {
        let mut latency = Latency::new(ms(5));
        assert_eq!(latency.time(), ClockTime::from_mseconds(5));
        assert!((0..2).all(|_| !latency.add(ms(8))), "the source is not live");
        assert_eq!(latency.time(), ClockTime::from_mseconds(15));
    }

    #[test]
    fn changes_matter_to_live_streams_only() {
        let mut latency = Latency::default();
        assert!((0..2).all(|_| !latency.add(ms(40))));
        assert_eq!(latency.time(), ClockTime::from_mseconds(50));
    }
}
