// SPDX-License-Identifier: MIT OR Apache-2.0
//! The entry of the detector pipeline. In: samples of one source after another. Out: numbered buffers with
//! continuous timestamps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gst::prelude::*;

/// The entry of the detector pipeline.
#[derive(Clone)]
pub struct Frames {
    appsrc: gst_app::AppSrc,
    count: Arc<AtomicU64>,
    have_ended: Arc<AtomicBool>,
    /// Whether timestamps are the time of arrival, so that they go on when the source starts again, instead of
    /// those of the file.
    by_arrival: bool,
}

impl Frames {
    /// Frames for this `appsrc`.
    pub fn new(appsrc: gst_app::AppSrc, by_arrival: bool) -> Self {
        Self { appsrc, count: Arc::default(), have_ended: Arc::default(), by_arrival }
    }

    /// The number of frames so far.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Adds a frame.
    pub fn push(&self, sample: &gst::Sample) -> Result<gst::FlowSuccess, gst::FlowError> {
        let mut buffer = sample.buffer_owned().ok_or(gst::FlowError::Error)?;
        // A copy of the buffer that refers to the same pixels.
        let frame = buffer.make_mut();
        frame.set_offset(self.count.fetch_add(1, Ordering::Relaxed));
        if self.by_arrival {
            frame.set_pts(self.appsrc.current_running_time());
            frame.set_dts(gst::ClockTime::NONE);
        }
        self.appsrc.set_caps(sample.caps_owned().as_ref());
        self.appsrc.push_buffer(buffer)
    }

    /// The time since a frame came, if its timestamp says when that was.
    pub fn age(&self, frame: &gst::BufferRef) -> Option<gst::ClockTime> {
        let now = self.appsrc.current_running_time().filter(|_| self.by_arrival)?;
        Some(now.saturating_sub(frame.pts()?))
    }

    /// Whether the stream was ended.
    pub fn have_ended(&self) -> bool {
        self.have_ended.load(Ordering::Relaxed)
    }

    /// Ends the stream: the detector pipeline processes the frames that it has.
    pub fn end(&self) {
        self.have_ended.store(true, Ordering::Relaxed);
        // Fails if the pipeline has been stopped, and then the stream has ended.
        let _ = self.appsrc.end_of_stream();
    }
}
