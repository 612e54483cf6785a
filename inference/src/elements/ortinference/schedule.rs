// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choice of the frames on which the model runs.
//!
//! In: each frame's timestamp, and the properties `inference-interval` and `max-rate`. Out: whether the model runs on
//! the frame.

use gst::ClockTime;

/// The frames so far, as far as the choice of the next ones depends on them.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// The number of frames since the last chosen one; `None` before the first choice.
    passed: Option<u32>,
    /// The timestamp of the last frame.
    last: Option<ClockTime>,
    /// The timestamp of the last chosen frame.
    chosen: Option<ClockTime>,
    /// The time at which the last chosen frame was due. Due times are a period apart, so that the mean rate is exact
    /// even if no frame has the timestamp that is due.
    due: Option<ClockTime>,
    /// The time between two frames at the greatest rate.
    period: ClockTime,
}

impl Schedule {
    /// Returns whether the model runs on the next frame. At least `interval` frames pass between two chosen frames,
    /// and at most `max_rate` frames per second are chosen (0: no limit). Each due time takes the frame whose
    /// timestamp is nearest, so a camera whose rate equals the limit loses no frames, although its timestamps vary.
    ///
    /// After a gap, or if timestamps go back, the next frame is due at once. The rate does not limit frames without
    /// timestamps.
    pub fn chooses(&mut self, interval: u32, max_rate: f64, pts: Option<ClockTime>) -> bool {
        let period = period(max_rate);
        if period != self.period {
            (self.period, self.due) = (period, self.chosen);
        }
        let goes_back = pts.zip(self.last).is_some_and(|(pts, last)| pts < last);
        let next = self.due.filter(|_| !goes_back).map(|due| due.saturating_add(period));
        self.last = pts;
        let is_due = match (pts, next) {
            (Some(pts), Some(next)) => pts.saturating_add(period / 2) >= next,
            _ => true,
        };
        if !is_due || self.passed.is_some_and(|passed| passed < interval) {
            self.passed = self.passed.map(|passed| passed.saturating_add(1));
            return false;
        }
        self.passed = Some(0);
        self.chosen = pts;
        // If the frame is more than a period late, there was a gap.
        let in_time = |next: &ClockTime| pts.is_some_and(|pts| next.saturating_add(period) > pts);
        self.due = next.filter(in_time).or(pts);
        true
    }
}

/// Returns the time between two frames at this rate, or zero if there is no limit.
fn period(max_rate: f64) -> ClockTime {
    if max_rate > 0.0 {
        // A rate near zero gives the longest time that can be expressed.
        let nanoseconds = (ClockTime::SECOND.nseconds() as f64 / max_rate).round();
        ClockTime::from_nseconds((nanoseconds as u64).min(ClockTime::MAX.nseconds()))
    } else {
        ClockTime::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the timestamps of the chosen frames, in milliseconds.
    fn chosen(interval: u32, max_rate: f64, milliseconds: &[u64]) -> Vec<u64> {
        let mut schedule = Schedule::default();
        let choose =
            |ms: &&u64| schedule.chooses(interval, max_rate, Some(ClockTime::from_mseconds(**ms)));
        milliseconds.iter().filter(choose).copied().collect()
    }

    /// The timestamps of a camera of 50 frames a second, in milliseconds.
    fn camera(frames: u64) -> Vec<u64> {
        (0..frames).map(|frame| frame * 20).collect()
    }

    #[test]
    fn an_interval_is_the_number_of_frames_between_chosen_frames() {
        assert_eq!(chosen(0, 0.0, &camera(4)), [0, 20, 40, 60]);
        assert_eq!(chosen(2, 0.0, &camera(8)), [0, 60, 120]);
    }

    #[test]
    fn a_rate_chooses_the_frames_nearest_to_its_due_times() {
        // Due at 0, 83.3, 166.7 and 250 ms.
        assert_eq!(chosen(0, 12.0, &camera(12)), [0, 60, 140, 220]);
        // Ten seconds have 120 periods, so 121 due times.
        assert_eq!(chosen(0, 12.0, &camera(501)).len(), 121);
    }

    #[test]
    fn a_rate_that_equals_the_cameras_rate_chooses_every_frame() {
        let rounded = [0, 33, 67, 100, 133, 167, 200];
        assert_eq!(chosen(0, 30.0, &rounded), rounded);
        let varying = [0, 45, 66, 88, 140, 166, 190];
        assert_eq!(chosen(0, 30.0, &varying), varying);
    }

    #[test]
    fn both_limits_hold() {
        assert_eq!(chosen(4, 25.0, &camera(12)), [0, 100, 200]);
        assert_eq!(chosen(1, 5.0, &camera(21)), [0, 100, 300]);
    }

    #[test]
    fn after_a_gap_the_rate_does_not_catch_up() {
        assert_eq!(
            chosen(0, 10.0, &[0, 50, 100, 1000, 1020, 1040, 1060, 1100]),
            [0, 50, 1000, 1060]
        );
    }

    #[test]
    fn a_frame_whose_timestamp_goes_back_is_due() {
        assert_eq!(chosen(0, 1.0, &[5000, 5100, 0, 100, 1000]), [5000, 0, 1000]);
    }

    #[test]
    fn a_change_of_the_rate_counts_from_the_last_chosen_frame() {
        let mut schedule = Schedule::default();
        let mut chooses = |rate, ms| schedule.chooses(0, rate, Some(ClockTime::from_mseconds(ms)));
        assert!(chooses(0.1, 0));
        assert!(chooses(0.1, 6000), "due at 10 s, within half a period");
        assert!(chooses(10.0, 6100));
        assert!(!chooses(1.0, 6200));
        assert!(chooses(0.0, 6220));
    }

    #[test]
    fn frames_without_timestamps_are_chosen_by_the_interval_only() {
        let mut schedule = Schedule::default();
        let chosen: Vec<_> = (0..4).map(|_| schedule.chooses(1, 1.0, None)).collect();
        assert_eq!(chosen, [true, false, true, false]);
    }

    #[test]
    fn extreme_rates_are_accepted() {
        assert_eq!(chosen(0, 1e-300, &camera(9)), [0]);
        assert_eq!(chosen(0, f64::MAX, &camera(3)), [0, 20, 40]);
        assert_eq!(chosen(0, f64::NAN, &camera(3)), [0, 20, 40]);
    }
}
