// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way of frames from one source after another into the detector pipeline.
//!
//! In: samples of a source. Out: buffers in an `appsrc`, with the number of the frame as their offset, the
//! time of arrival as metadata, and timestamps that go on from source to source.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// The caps of a reference timestamp that counts from 1970 on, as GStreamer's elements name it.
const UNIX: &str = "timestamp/x-unix";

/// The entry of the detector pipeline.
#[derive(Clone)]
pub struct Frames {
    appsrc: gst_app::AppSrc,
    unix: gst::Caps,
    count: Arc<AtomicU64>,
    /// Where the last frame ends, in nanoseconds of video.
    position: Arc<AtomicU64>,
}

impl Frames {
    /// Frames for this `appsrc`.
    pub fn new(appsrc: gst_app::AppSrc) -> Self {
        let unix = gst::Caps::new_empty_simple(UNIX);
        Self { appsrc, unix, count: Arc::default(), position: Arc::default() }
    }

    /// The number of frames so far.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Where the last frame ends.
    pub fn position(&self) -> gst::ClockTime {
        gst::ClockTime::from_nseconds(self.position.load(Ordering::Relaxed))
    }

    /// Adds a frame of a source that was started at `start`.
    pub fn push(
        &self,
        sample: &gst::Sample,
        start: gst::ClockTime,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let mut buffer = sample.buffer_owned().ok_or(gst::FlowError::Error)?;
        let segment = sample.segment().and_then(|segment| segment.downcast_ref::<gst::ClockTime>());
        let time = segment.and_then(|segment| segment.to_running_time(buffer.pts()));
        let pts = start + time.unwrap_or_default();
        let end = pts + buffer.duration().unwrap_or_default();
        self.position.store(end.nseconds(), Ordering::Relaxed);

        // A copy of the buffer that refers to the same pixels.
        let frame = buffer.make_mut();
        frame.set_pts(pts);
        frame.set_dts(gst::ClockTime::NONE);
        frame.set_offset(self.count.fetch_add(1, Ordering::Relaxed));
        gst::ReferenceTimestampMeta::add(frame, &self.unix, now(), None);
        self.appsrc.set_caps(sample.caps_owned().as_ref());
        self.appsrc.push_buffer(buffer)
    }

    /// Ends the stream: the detector pipeline processes the frames that it has.
    pub fn end(&self) {
        // Fails if the pipeline has been stopped.
        let _ = self.appsrc.end_of_stream();
    }
}

/// The time of arrival of a frame that went through [`Frames`], since 1970.
pub fn arrival(frame: &gst::BufferRef) -> Option<gst::ClockTime> {
    let mut metas = frame.iter_meta::<gst::ReferenceTimestampMeta>();
    let meta = metas.find(|meta| meta.reference().structure(0).is_some_and(|s| s.name() == UNIX));
    meta.map(|meta| meta.timestamp())
}

/// The time since 1970.
pub fn now() -> gst::ClockTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.ok().and_then(|since| since.try_into().ok()).unwrap_or_default()
}
