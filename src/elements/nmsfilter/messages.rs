// SPDX-License-Identifier: MIT OR Apache-2.0
//! The messages that the element posts beside errors: warnings of missing tensors and of a GPU that failed, and the
//! counts at the end of the stream. No lock is held while a message is posted.

use std::time::Duration;

use gst::prelude::*;
use gst::subclass::prelude::*;

use super::debug_category::CAT;
use super::imp::NmsFilter;
use crate::elements::lock;
#[cfg(feature = "v1_20")]
use crate::input::inference_mark;

impl NmsFilter {
    /// Posts a warning with the reason why the GPU is not used any more.
    pub(super) fn warn_of_cpu_fallback(&self, why: &dyn std::fmt::Display) {
        gst::element_imp_warning!(
            self,
            gst::LibraryError::Failed,
            ("{why}; decoding continues on the CPU"),
            ["set backend=cpu to avoid this warning"]
        );
    }

    /// Counts the frames of a buffer without tensors. A warning is posted once if the first second of the
    /// stream has none, unless the frames had no region to run a model on.
    pub(super) fn count_without_tensors(
        &self,
        frames: usize,
        buffer: &gst::BufferRef,
        now: Duration,
    ) {
        gst::trace!(CAT, imp = self, "no tensors on this buffer");
        #[cfg(not(feature = "v1_20"))]
        let _ = buffer;
        #[cfg(feature = "v1_20")]
        if inference_mark::has_no_regions(buffer) {
            lock(&self.counter).count_without_regions();
            return;
        }
        let late = lock(&self.counter).count_without_tensors(frames, now);
        if late {
            self.warn_of_missing_tensors("first second");
        }
    }

    /// The times for which notices wait begin again: with another segment, or after a flush.
    pub(super) fn restart_clock(&self, segment: Option<&gst::Segment>) {
        if let Some(session) = &mut *lock(&self.session) {
            session.restart_clock(segment);
        }
        lock(&self.counter).restart_clock();
    }

    fn warn_of_missing_tensors(&self, period: &str) {
        let session = lock(&self.session);
        let text = session.as_ref().and_then(|session| session.decoder.notices.no_tensors(period));
        drop(session);
        if let Some(text) = text {
            gst::element_imp_warning!(self, gst::StreamError::Format, ("{text}"));
        }
    }

    /// Posts the warnings that are due at the end of the stream, and the counts.
    pub(super) fn end_stream(&self) {
        let without_tensors = lock(&self.counter).take_without_tensors();
        if without_tensors {
            self.warn_of_missing_tensors("stream");
        }
        let session = lock(&self.session).take();
        if let Some(mut session) = session {
            session.end_stream(&self.obj());
            *lock(&self.session) = Some(session);
        }
        self.post_stats();
    }

    /// Posts the counts, unless they have not changed since they were last posted.
    fn post_stats(&self) {
        let Some(structure) = lock(&self.counter).take_unposted() else {
            return;
        };
        let element = self.obj();
        gst::info!(CAT, obj = element, "{structure}");
        let message = gst::message::Element::builder(structure).src(&*element).build();
        // Fails if the element is not in a pipeline and therefore has no bus.
        let _ = element.post_message(message);
    }
}
