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
    /// The name of the engine that processed the last frame.
    engine: Option<&'static str>,
    frames: u64,
    frames_without_tensors: u64,
    frames_lost: u64,
    candidates: u64,
    survivors: u64,
    /// The number of survivors with each label.
    labels: BTreeMap<glib::Quark, u64>,
    rejected: u64,
    device: DeviceWork,
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
        Self { engine: Some(engine), ..Self::default() }
    }

    /// The counts, unless no frame was counted or they have not changed since the last call.
    pub fn take_unposted(&mut self) -> Option<gst::Structure> {
        let is_due = !self.posted && self.frames > 0;
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
        self.add_without_tensors(frames);
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

    fn add_without_tensors(&mut self, frames: usize) {
        self.posted = false;
        self.frames += frames as u64;
        self.frames_without_tensors += frames as u64;
    }

    /// Counts the frames of a buffer with tensors that took `time` in the element. The time counts
    /// if a frame was decoded.
    pub fn count(&mut self, outcome: &FrameCounts, time: Duration) {
        self.set_has_tensors();
        self.add_without_tensors(outcome.frames_without_tensors);
        self.frames += outcome.frames_lost as u64;
        self.frames_lost += outcome.frames_lost as u64;
        if outcome.frames == 0 {
            return;
        }
        self.frames += outcome.frames as u64;
        self.candidates += outcome.candidates as u64;
        self.survivors += outcome.survivors as u64;
        self.rejected += outcome.rejected as u64;
        self.engine = Some(outcome.engine);
        self.device += outcome.device;
        self.time.add(time);
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

    /// Mean duration of a launch in nanoseconds, by the GPU's clock.
    fn device_time_mean(&self) -> u64 {
        let total = u64::try_from(self.device.time.as_nanos()).unwrap_or(u64::MAX);
        total.checked_div(self.device.launches).unwrap_or(0)
    }

    /// The structure of the property `stats` and the message `nmsfilter-stats`; times are in
    /// nanoseconds.
    pub fn structure(&self) -> gst::Structure {
        let labels = self.most_frequent_labels();
        let structure = gst::Structure::builder("nmsfilter-stats")
            .field("frames", self.frames)
            .field("frames-without-tensors", self.frames_without_tensors)
            .field("frames-lost", self.frames_lost)
            .field("candidates", self.candidates)
            .field("survivors", self.survivors)
            .field("labels", gst::Array::new(labels.iter().map(|(label, _)| label)))
            .field("label-counts", gst::Array::new(labels.iter().map(|(_, count)| count)))
            .field("rejected", self.rejected)
            .field("engine", self.engine.unwrap_or("none"))
            .field("bytes-uploaded", self.device.bytes_uploaded)
            .field("bytes-downloaded", self.device.bytes_downloaded)
            .field("column-bytes-downloaded", self.device.column_bytes_downloaded)
            .field("mask-bytes-downloaded", self.device.mask_bytes_downloaded)
            .field("launches", self.device.launches)
            .field("rounds", self.device.rounds)
            .field("device-time-mean", self.device_time_mean());
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
    pub engine: &'static str,
    pub device: DeviceWork,
}

impl FrameCounts {
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
