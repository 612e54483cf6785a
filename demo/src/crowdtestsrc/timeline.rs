// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times and frame numbers.
//!
//! In: seek positions and the frame rate. Out: the number of the next frame and its timestamp.

use gst::prelude::*;
use gst_video::VideoInfo;

/// The position in the stream, and the direction of playback.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    at: Position,
    backwards: bool,
}

#[derive(Clone, Copy, Debug)]
enum Position {
    /// The beginning of a segment. The frame rate is not known yet.
    Time(gst::ClockTime),
    /// The boundary between this frame and the previous one.
    Frame(u64),
}

impl Default for Cursor {
    fn default() -> Self {
        Self::new(gst::ClockTime::ZERO, false)
    }
}

impl Cursor {
    /// Makes a cursor at `time`.
    pub fn new(time: gst::ClockTime, backwards: bool) -> Self {
        Self { at: Position::Time(time), backwards }
    }

    /// Returns the number of the next frame. Returns `None` at the beginning of the stream if the
    /// direction is backwards.
    ///
    /// The first frame of a segment is the frame that is displayed at its start. The last frame is
    /// the frame that is displayed immediately before its stop.
    pub fn next(&mut self, info: &VideoInfo) -> Option<u64> {
        let at = match self.at {
            Position::Frame(frame) => frame,
            Position::Time(time) if self.backwards => first_frame_from(info, time),
            Position::Time(time) => {
                let after = time.saturating_add(gst::ClockTime::from_nseconds(1));
                first_frame_from(info, after).saturating_sub(1)
            }
        };
        let (next, then) = if self.backwards { (at.checked_sub(1)?, at - 1) } else { (at, at + 1) };
        self.at = Position::Frame(then);
        Some(next)
    }

    /// Converts the position to a new frame rate. Timestamps continue, and none is repeated.
    pub fn change_rate(&mut self, from: &VideoInfo, to: &VideoInfo) {
        if let Position::Frame(frame) = self.at {
            self.at = Position::Frame(first_frame_from(to, time_of(from, frame)));
        }
    }
}

/// Returns the time at which a frame begins.
pub(super) fn time_of(info: &VideoInfo, frame: u64) -> gst::ClockTime {
    let (seconds, frames) = (info.fps().denom() as u64, info.fps().numer() as u64);
    gst::ClockTime::SECOND
        .mul_div_floor(frame.saturating_mul(seconds), frames)
        .unwrap_or(gst::ClockTime::MAX)
}

/// Returns the first frame that begins at `time` or later.
fn first_frame_from(info: &VideoInfo, time: gst::ClockTime) -> u64 {
    let (seconds, frames) = (info.fps().denom() as u64, info.fps().numer() as u64);
    let per_second = gst::ClockTime::SECOND.nseconds().saturating_mul(seconds);
    time.nseconds().mul_div_ceil(frames, per_second).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(rate: gst::Fraction) -> VideoInfo {
        gst::init().unwrap();
        VideoInfo::builder(gst_video::VideoFormat::Rgba, 64, 48).fps(rate).build().unwrap()
    }

    /// Returns the first frames of a segment that begins at this time in nanoseconds.
    fn first(info: &VideoInfo, time: u64, backwards: bool) -> Vec<u64> {
        let mut cursor = Cursor::new(gst::ClockTime::from_nseconds(time), backwards);
        std::iter::from_fn(|| cursor.next(info)).take(3).collect()
    }

    #[test]
    fn a_segment_begins_with_the_frame_that_is_shown_then() {
        let info = info(gst::Fraction::new(30_000, 1001));
        let begin = time_of(&info, 2).nseconds();
        assert_eq!(begin, 66_733_333);
        assert_eq!(first(&info, begin, false), [2, 3, 4]);
        assert_eq!(first(&info, begin + 1, false), [2, 3, 4]);
        assert_eq!(first(&info, begin - 1, false), [1, 2, 3]);
        assert_eq!(first(&info, 0, false), [0, 1, 2]);
    }

    #[test]
    fn a_reverse_segment_begins_with_the_frame_before_its_stop_and_ends_with_frame_0() {
        let info = info(gst::Fraction::new(30_000, 1001));
        let begin = time_of(&info, 2).nseconds();
        assert_eq!(first(&info, begin, true), [1, 0]);
        assert_eq!(first(&info, begin + 1, true), [2, 1, 0]);
        assert!(first(&info, 0, true).is_empty());
    }

    #[test]
    fn time_continues_when_the_frame_rate_changes() {
        let (from, to) = (info(gst::Fraction::new(30, 1)), info(gst::Fraction::new(50, 1)));
        let mut cursor = Cursor::default();
        cursor.next(&from);
        // At 30 frames per second, the position is 33 ms. Frame 2 at 50 frames per second begins at
        // 40 ms.
        cursor.change_rate(&from, &to);
        assert_eq!(cursor.next(&to), Some(2));
    }
}
