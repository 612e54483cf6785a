// SPDX-License-Identifier: MIT OR Apache-2.0
//! The entry of the detector pipeline. In: samples from sources that follow each other. Out:
//! numbered buffers with continuous timestamps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gst::prelude::*;

/// The entry of the detector pipeline.
#[derive(Clone)]
pub struct Frames {
    appsrc: gst_app::AppSrc,
    count: Arc<AtomicU64>,
    have_ended: Arc<AtomicBool>,
    /// If true, timestamps are times of arrival instead of the file's timestamps. They continue
    /// when the source is restarted.
    by_arrival: bool,
}

impl Frames {
    /// Makes an entry that pushes frames to this `appsrc`.
    pub fn new(appsrc: gst_app::AppSrc, by_arrival: bool) -> Self {
        Self { appsrc, count: Arc::default(), have_ended: Arc::default(), by_arrival }
    }

    /// Returns the number of frames so far.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Adds a frame.
    pub fn push(&self, sample: &gst::Sample) -> Result<gst::FlowSuccess, gst::FlowError> {
        let mut buffer = sample.buffer_owned().ok_or(gst::FlowError::Error)?;
        // This copies only the buffer, which refers to the original pixels.
        let frame = buffer.make_mut();
        frame.set_offset(self.count.fetch_add(1, Ordering::Relaxed));
        if self.by_arrival {
            frame.set_pts(self.appsrc.current_running_time());
            frame.set_dts(gst::ClockTime::NONE);
        }
        self.appsrc.set_caps(sample.caps_owned().as_ref());
        self.appsrc.push_buffer(buffer)
    }

    /// Returns how long ago a frame arrived, if its timestamp is the time of arrival.
    pub fn age(&self, frame: &gst::BufferRef) -> Option<gst::ClockTime> {
        let now = self.appsrc.current_running_time().filter(|_| self.by_arrival)?;
        Some(now.saturating_sub(frame.pts()?))
    }

    /// Returns true if the stream was ended.
    pub fn have_ended(&self) -> bool {
        self.have_ended.load(Ordering::Relaxed)
    }

    /// Ends the stream. The detector pipeline still processes the frames that it has.
    pub fn end(&self) {
        self.have_ended.store(true, Ordering::Relaxed);
        // Fails if the pipeline was stopped, in which case the stream has ended already.
        let _ = self.appsrc.end_of_stream();
    }
}
