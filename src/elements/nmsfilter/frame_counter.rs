//! Counts of frames, and whether tensors have come.

use std::time::Duration;

use super::stats::{FrameCounts, Stats};
use super::timeout::Timeout;

/// Counts, and what has been said about them.
#[derive(Default)]
pub(super) struct FrameCounter {
    stats: Stats,
    /// Whether the message with the counts as they stand has been posted.
    posted: bool,
    tensors: TensorWatch,
}

/// Whether tensors have come.
#[derive(Default)]
enum TensorWatch {
    #[default]
    NotStarted,
    /// No frame so far had any.
    Missing(Timeout),
    /// They have come, or the user knows that they have not.
    Done,
}

impl FrameCounter {
    /// Nothing counted yet, for an engine of this name.
    pub fn new(engine: &'static str) -> Self {
        Self { stats: Stats::new(engine), ..Self::default() }
    }

    /// The counts as the property `stats` shows them.
    pub fn structure(&self) -> gst::Structure {
        self.stats.structure()
    }

    /// The counts, unless there are none or they have not changed since they were last taken.
    pub fn take_unposted(&mut self) -> Option<gst::Structure> {
        if self.posted || self.stats.is_empty() {
            return None;
        }
        self.posted = true;
        Some(self.stats.structure())
    }

    /// Counts a frame that was decoded.
    pub fn count(&mut self, counts: &FrameCounts, time: Duration) {
        self.posted = false;
        self.tensors = TensorWatch::Done;
        self.stats.count(counts, time);
    }

    /// Counts a frame without tensors; true once, where there were none for the first second.
    pub fn count_without_tensors(&mut self, pts: Option<gst::ClockTime>) -> bool {
        self.posted = false;
        self.stats.count_without_tensors();
        match &self.tensors {
            TensorWatch::NotStarted => {
                self.tensors = TensorWatch::Missing(Timeout::start(pts));
                false
            }
            TensorWatch::Missing(timeout) if timeout.has_expired(pts) => {
                self.tensors = TensorWatch::Done;
                true
            }
            TensorWatch::Missing(_) | TensorWatch::Done => false,
        }
    }
}
