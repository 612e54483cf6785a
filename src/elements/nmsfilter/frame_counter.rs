// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts frames and detects streams without tensors.
//!
//! In: the counts of each frame. Out: the structure for the property and message `stats`, and
//! whether the first second of the stream, or all of a shorter stream, had no tensors.

use std::time::Duration;

use gst::glib;

use super::clock::SECOND;
use super::stats::{FrameCounts, Stats};

/// The counts since the element started, and the state of their messages.
#[derive(Default)]
pub(super) struct FrameCounter {
    stats: Stats,
    /// True if a message with the current counts has been posted.
    posted: bool,
    tensors: TensorWatch,
}

/// Detects that the first second of the stream, or all of a shorter stream, has no tensors.
#[derive(Default)]
enum TensorWatch {
    #[default]
    NotStarted,
    /// No frame since the first one had tensors. The time is that of the first, or of the first of the segment.
    Missing(Option<Duration>),
    /// A frame had tensors, or the warning has been posted.
    Done,
}

impl FrameCounter {
    /// Creates counts of 0, for an engine of this name.
    pub fn new(engine: &'static str) -> Self {
        Self { stats: Stats::new(engine), ..Self::default() }
    }

    /// The counts as the property `stats` shows them.
    pub fn structure(&self) -> gst::Structure {
        self.stats.structure()
    }

    /// The counts, unless no frame was counted or they have not changed since the last call.
    pub fn take_unposted(&mut self) -> Option<gst::Structure> {
        if self.posted || self.stats.is_empty() {
            return None;
        }
        self.posted = true;
        Some(self.stats.structure())
    }

    /// Counts the frames of a buffer with tensors.
    pub fn count(&mut self, counts: &FrameCounts, time: Duration) {
        self.posted = false;
        self.tensors = TensorWatch::Done;
        self.stats.count(counts, time);
    }

    /// Counts survivors by their labels.
    pub fn count_labels(&mut self, labels: impl Iterator<Item = glib::Quark>) {
        self.stats.count_labels(labels);
    }

    /// Notes that a buffer had tensors, which were not decoded.
    pub fn set_has_tensors(&mut self) {
        self.tensors = TensorWatch::Done;
    }

    /// Returns true once, at the end of a stream that is shorter than a second and had no tensors.
    pub fn take_without_tensors(&mut self) -> bool {
        let is_missing = matches!(self.tensors, TensorWatch::Missing(_));
        if is_missing {
            self.tensors = TensorWatch::Done;
        }
        is_missing
    }

    /// Counts a frame that has no tensors because it had no region to run the model on.
    #[cfg(feature = "v1_20")]
    pub fn count_without_regions(&mut self) {
        self.posted = false;
        self.stats.count_without_tensors(1);
    }

    /// Counts the frames of a buffer without tensors. Returns true once, if the first second of the stream had
    /// no tensors.
    pub fn count_without_tensors(&mut self, frames: usize, now: Duration) -> bool {
        self.posted = false;
        self.stats.count_without_tensors(frames);
        let since = match self.tensors {
            TensorWatch::Missing(Some(since)) => since,
            TensorWatch::NotStarted | TensorWatch::Missing(None) => now,
            TensorWatch::Done => return false,
        };
        let is_over = now - since >= SECOND;
        self.tensors = if is_over { TensorWatch::Done } else { TensorWatch::Missing(Some(since)) };
        is_over
    }

    /// The first second begins again, because of a seek.
    pub fn restart_clock(&mut self) {
        if let TensorWatch::Missing(since) = &mut self.tensors {
            *since = None;
        }
    }
}
