// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts and times since the element started.
//!
//! In: the counts of each buffer. Out: the structure for the property and message `stats`, and whether the first second of
//! the stream, or all of a shorter stream, had no tensors.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use gst::glib;

use super::clock::SECOND;
use crate::elements::times::Times;
use nmsfilter_core::engine::{DeviceWork, Outcome};

/// The most labels in the structure; a model can have 65536.
const MAX_LABELS: usize = 100;

/// Counts since the element started.
#[derive(Default)]
pub(super) struct Stats {
    /// The sum of all buffers, and the name of the engine that processed the last frame.
    counts: FrameCounts,
    /// The number of survivors with each label.
    labels: BTreeMap<glib::Quark, u64>,
    /// The time per buffer with tensors.
    time: Times,
    /// True if a message with the current counts has been posted.
    posted: bool,
    tensors: TensorWatch,
}

/// Detects that the first second of the stream, or all of a shorter stream, has no tensors.
#[derive(Default)]
enum TensorWatch {
    #[default]
    NotStarted,
    /// No frame since the first one had tensors. The time is of the first frame, or of the segment's first.
    Missing(Option<Duration>),
    /// A frame had tensors, or the warning has been posted.
    Done,
}

impl Stats {
    /// Creates counts of 0, for an engine of this name.
    pub fn new(engine: &'static str) -> Self {
        Self { counts: FrameCounts { engine, ..FrameCounts::default() }, ..Self::default() }
    }

    /// The counts, unless no frame was counted or they have not changed since the last call.
    pub fn take_unposted(&mut self) -> Option<gst::Structure> {
        let is_due = !self.posted && self.counts.all_frames() > 0;
        self.posted |= is_due;
        is_due.then(|| self.structure())
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

    /// The first second begins again, because of a seek.
    pub fn restart_clock(&mut self) {
        if let TensorWatch::Missing(since) = &mut self.tensors {
            *since = None;
        }
    }

    /// Counts the frames of a buffer without tensors. Returns true once, if the first second of the stream had
    /// no tensors. Without a time, they had no region to run the model on, which is no sign of missing tensors.
    pub fn count_without_tensors(&mut self, frames: usize, now: Option<Duration>) -> bool {
        self.posted = false;
        self.counts.frames_without_tensors += frames;
        let Some(now) = now else { return false };
        let since = match self.tensors {
            TensorWatch::Missing(Some(since)) => since,
            TensorWatch::NotStarted | TensorWatch::Missing(None) => now,
            TensorWatch::Done => return false,
        };
        let is_over = now - since >= SECOND;
        self.tensors = if is_over { TensorWatch::Done } else { TensorWatch::Missing(Some(since)) };
        is_over
    }

    /// Counts the frames of a buffer with tensors that took `time` in the element. The time counts
    /// if a frame was decoded.
    pub fn count(&mut self, outcome: &FrameCounts, time: Duration) {
        self.set_has_tensors();
        self.posted = false;
        let counts = &mut self.counts;
        counts.frames += outcome.frames;
        counts.frames_without_tensors += outcome.frames_without_tensors;
        counts.frames_lost += outcome.frames_lost;
        counts.candidates += outcome.candidates;
        counts.survivors += outcome.survivors;
        counts.rejected += outcome.rejected;
        counts.device += outcome.device;
        if outcome.frames > 0 {
            counts.engine = outcome.engine;
            self.time.add(time);
        }
    }

    /// Counts survivors by their labels.
    pub fn count_labels(&mut self, labels: impl Iterator<Item = glib::Quark>) {
        for label in labels {
            *self.labels.entry(label).or_default() += 1;
        }
    }

    /// The labels with their counts, the most frequent first.
    fn most_frequent_labels(&self) -> Vec<(&str, u64)> {
        let labels = self.labels.iter().map(|(label, &count)| (label.as_str().as_str(), count));
        let mut labels: Vec<_> = labels.collect();
        labels.sort_by_key(|&(label, count)| (Reverse(count), label));
        labels.truncate(MAX_LABELS);
        labels
    }

    /// The structure of the property `stats` and the message `nmsfilter-stats`; times are in
    /// nanoseconds.
    pub fn structure(&self) -> gst::Structure {
        let labels = self.most_frequent_labels();
        let FrameCounts { engine, device, .. } = self.counts;
        let device_time = u64::try_from(device.time.as_nanos()).unwrap_or(u64::MAX);
        let structure = gst::Structure::builder("nmsfilter-stats")
            .field("frames", self.counts.all_frames() as u64)
            .field("frames-without-tensors", self.counts.frames_without_tensors as u64)
            .field("frames-lost", self.counts.frames_lost as u64)
            .field("candidates", self.counts.candidates as u64)
            .field("survivors", self.counts.survivors as u64)
            .field("labels", gst::Array::new(labels.iter().map(|(label, _)| label)))
            .field("label-counts", gst::Array::new(labels.iter().map(|(_, count)| count)))
            .field("rejected", self.counts.rejected as u64)
            .field("engine", if engine.is_empty() { "none" } else { engine })
            .field("bytes-uploaded", device.bytes_uploaded)
            .field("bytes-downloaded", device.bytes_downloaded)
            .field("column-bytes-downloaded", device.column_bytes_downloaded)
            .field("mask-bytes-downloaded", device.mask_bytes_downloaded)
            .field("launches", device.launches)
            .field("rounds", device.rounds)
            .field("device-time-mean", device_time.checked_div(device.launches).unwrap_or(0));
        self.time.add_to(structure, "time").build()
    }
}

/// The counts of the frames of a buffer, without survivors.
#[derive(Clone, Copy, Default)]
pub(super) struct FrameCounts {
    pub frames: usize,
    pub frames_without_tensors: usize,
    pub frames_lost: usize,
    pub candidates: usize,
    pub survivors: usize,
    pub rejected: usize,
    /// Empty before the first frame.
    pub engine: &'static str,
    pub device: DeviceWork,
}

impl FrameCounts {
    fn all_frames(&self) -> usize {
        self.frames + self.frames_without_tensors + self.frames_lost
    }

    /// Adds the frames of a run.
    pub fn add(&mut self, outcome: &Outcome<'_>) {
        for frame in outcome.groups() {
            self.frames += 1;
            self.candidates += frame.candidates;
            self.survivors += frame.survivors.len();
            self.rejected += frame.rejected;
        }
        self.engine = outcome.engine();
        self.device += outcome.device();
    }
}
