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
    /// The last timestamp.
    last: Option<ClockTime>,
    /// The time since the last chosen frame was due, in ns; negative if that frame came early. Due times are a period
    /// apart, so that the mean rate is exact even if no frame has the timestamp that is due. `None` if the next frame is
    /// due at once.
    since_due: Option<i64>,
    /// `since_due` when the last frame was chosen.
    chosen: i64,
    /// The mean time between the last frames.
    step: Option<i64>,
    /// The time between two frames at the greatest rate.
    period: i64,
}

impl Schedule {
    /// Returns whether the model runs on the next frame. At least `interval` frames pass between two chosen frames,
    /// and at most `max_rate` frames per second are chosen (0: no limit). Each due time takes the frame whose
    /// timestamp is nearest, if frames come as regularly as before: it is at most half the mean time between frames, or
    /// half a period, early. So a camera whose rate equals the limit loses no frames, although its timestamps vary.
    ///
    /// Time counts in both directions, since timestamps go back in reverse playback. After a gap the next frame is due
    /// at once. The rate does not limit frames without timestamps.
    pub fn chooses(&mut self, interval: u32, max_rate: f64, pts: Option<ClockTime>) -> bool {
        let period = period(max_rate);
        if period != self.period {
            self.since_due = self.since_due.map(|since| since.saturating_sub(self.chosen));
            (self.period, self.chosen) = (period, 0);
        }
        if let (Some(pts), Some(last)) = (pts, self.last) {
            let passed =
                i64::try_from(pts.nseconds().abs_diff(last.nseconds())).unwrap_or(i64::MAX);
            self.since_due = self.since_due.map(|since| since.saturating_add(passed));
            // A gap says nothing of the time between frames.
            if passed / 2 <= period {
                self.step = Some(self.step.map_or(passed, |step| step - step / 4 + passed / 4));
            }
        }
        self.last = pts.or(self.last);
        let early = self.step.map_or(period, |step| step.min(period)) / 2;
        let since = self.since_due.filter(|_| pts.is_some());
        let is_due = since.is_none_or(|since| since.saturating_add(early) >= period);
        if !is_due || self.passed.is_some_and(|passed| passed < interval) {
            self.passed = self.passed.map(|passed| passed.saturating_add(1));
            return false;
        }
        self.passed = Some(0);
        // If the frame is more than a period late, there was a gap.
        let late = since.map(|since| since - period).filter(|late| *late < period);
        self.chosen = late.unwrap_or(0);
        self.since_due = pts.map(|_| self.chosen);
        true
    }
}

/// Returns the time between two frames at this rate in ns, or zero if there is no limit.
fn period(max_rate: f64) -> i64 {
    // A rate near zero gives the longest time that can be expressed.
    if max_rate > 0.0 { (1e9 / max_rate).round() as i64 } else { 0 }
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
        assert_eq!(chosen(0, 12.0, &camera(14)), [0, 80, 160, 240]);
        // Ten seconds have 120 periods, so 121 due times.
        assert_eq!(chosen(0, 12.0, &camera(501)).len(), 121);
    }

    #[test]
    fn no_second_has_more_frames_than_the_rate() {
        // 60 frames a second, with timestamps in whole milliseconds.
        let frames: Vec<u64> = (0..180).map(|frame| frame * 1000 / 60).collect();
        for rate in 1..60_u32 {
            let found = chosen(0, f64::from(rate), &frames);
            for second in 0..3 {
                let of_second = second * 1000..(second + 1) * 1000;
                let count = found.iter().filter(|ms| of_second.contains(*ms)).count();
                // A due time at the border of two seconds can take the frame before it.
                assert!(
                    count.abs_diff(rate as usize) <= usize::from(second > 0),
                    "{rate}: {count}"
                );
            }
        }
    }

    #[test]
    fn reverse_playback_has_the_same_rate() {
        let backward: Vec<u64> = camera(501).into_iter().rev().collect();
        for rate in [0.5, 5.0, 12.0, 50.0] {
            assert_eq!(chosen(0, rate, &backward).len(), chosen(0, rate, &camera(501)).len());
        }
        assert_eq!(chosen(0, 10.0, &backward)[..3], [10000, 9900, 9800]);
        // From forward to backward and back.
        let turns = [0, 20, 40, 60, 80, 60, 40, 20, 0, 20, 40, 60, 80, 100];
        assert_eq!(chosen(0, 10.0, &turns), [0, 60, 40]);
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
        assert_eq!(chosen(1, 5.0, &camera(21)), [0, 200, 400]);
    }

    #[test]
    fn after_a_gap_the_rate_does_not_catch_up() {
        assert_eq!(
            chosen(0, 10.0, &[0, 50, 100, 1000, 1020, 1040, 1060, 1100]),
            [0, 100, 1000, 1100]
        );
    }

    #[test]
    fn a_frame_whose_timestamp_goes_back_far_is_due() {
        assert_eq!(chosen(0, 1.0, &[5000, 5100, 0, 100, 1000]), [5000, 0, 1000]);
    }

    #[test]
    fn a_change_of_the_rate_counts_from_the_last_chosen_frame() {
        let mut schedule = Schedule::default();
        let mut chooses = |rate, ms| schedule.chooses(0, rate, Some(ClockTime::from_mseconds(ms)));
        assert!(chooses(0.1, 0));
        assert!(!chooses(0.1, 6000), "due at 10 s");
        assert!(chooses(0.1, 9500));
        assert!(!chooses(10.0, 9540));
        assert!(chooses(10.0, 9600));
        assert!(!chooses(1.0, 9700));
        assert!(chooses(0.0, 9720));
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
