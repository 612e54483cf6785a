// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts and times since the element started.
//!
//! In: the counts of each buffer. Out: the structure for the property and message `stats`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use gst::glib;

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

    /// Counts the frames of a buffer that took `time` in the element. The time counts if a frame was decoded.
    pub fn count(&mut self, outcome: &FrameCounts, time: Duration) {
        // A batch whose streams all have no frame has nothing to count.
        self.posted &= outcome.all_frames() == 0;
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

    /// Counts a survivor with this label.
    pub fn count_label(&mut self, label: glib::Quark) {
        *self.labels.entry(label).or_default() += 1;
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
#[derive(Clone, Copy, Debug, Default)]
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

    /// Adds the frames of a run, without their survivors.
    pub fn add(&mut self, outcome: &Outcome<'_>) {
        for frame in outcome.groups() {
            self.frames += 1;
            self.candidates += frame.candidates;
            self.rejected += frame.rejected;
        }
        self.engine = outcome.engine;
        self.device += outcome.device;
    }
}
