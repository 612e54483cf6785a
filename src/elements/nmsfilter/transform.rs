// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element as a `BaseTransform`: start and stop, negotiation, and each buffer.
//!
//! In: caps, events, and buffers with tensors. Out: these buffers with regions; errors.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::subclass::base_transform::{InputBuffer, PrepareOutputBufferSuccess};
use gst_base::subclass::prelude::*;

use super::CAT;
use super::imp::NmsFilter;
use super::reading::check_caps;
use super::session::Session;
use super::settings::nvinfer_config::NvinferConfig;
use super::stats::Stats;
use crate::deepstream::layout::StructureLayout;
use crate::elements::{
    forward_allocation, frame_size, is_nvmm, lock, not_started, property, wrong_settings,
};
use crate::input::{analytics_batch, deepstream};
use crate::output::Labels;
use nmsfilter_core::engine;

impl BaseTransformImpl for NmsFilter {
    const MODE: gst_base::subclass::BaseTransformMode =
        gst_base::subclass::BaseTransformMode::AlwaysInPlace;
    // Metadata is attached to every buffer, so the element is never in passthrough mode.
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = true;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let properties = lock(&self.settings).clone();
        let path = properties.nvinfer_config.as_deref().filter(|path| !path.is_empty());
        let nvinfer = path.map(NvinferConfig::load).transpose().map_err(wrong_settings)?;
        let nvinfer = nvinfer.map(Arc::new);
        let settings = properties.with_nvinfer(nvinfer.as_ref());
        let ordinal = u32::try_from(settings.cuda_device_id).ok();
        let engine = engine::select(settings.backend.into(), ordinal).map_err(|error| {
            gst::error_msg!(
                gst::LibraryError::Init,
                ("{error}; backend=cuda needs an NVIDIA GPU, backend=auto does without"),
                ["backend {:?}, cuda-device-id {}", settings.backend, settings.cuda_device_id]
            )
        })?;
        settings.check_analytics().map_err(wrong_settings)?;
        settings.wanted_decoder().map_err(wrong_settings)?;
        let version = StructureLayout::parse_version(settings.deepstream_version.as_deref())
            .map_err(wrong_settings)?;
        let deepstream = deepstream::Reader::new(settings.unique_id, version);
        let file = settings.label_file.as_ref().filter(|file| !file.is_empty());
        let of_nvinfer = nvinfer.as_ref().and_then(|config| config.label_file.as_ref());
        let labels = match (file, of_nvinfer.filter(|_| !settings.was_set.contains("label-file"))) {
            (Some(file), _) => Labels::load(Path::new(file)),
            (None, Some(file)) => Labels::load_nvinfer(Path::new(file)),
            (None, None) => Ok(Labels::default()),
        };
        let labels = labels.map_err(|error| {
            gst::error_msg!(gst::ResourceError::OpenRead, ("{error}"), ["{error:?}"])
        })?;
        gst::debug!(CAT, imp = self, "on {}, {} labels", engine.description(), labels.count());
        *lock(&self.stats) = Stats::new(engine.name());
        let is_decoder_set = properties.was_set.contains("decoder");
        for warning in nvinfer.iter().flat_map(|config| config.warnings(is_decoder_set)) {
            gst::element_imp_warning!(self, gst::LibraryError::Settings, ("{warning}"));
        }
        *lock(&self.session) = Some(Session::new(engine, labels, deepstream, properties, settings));
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        self.end_stream();
        *lock(&self.session) = None;
        Ok(())
    }

    fn set_caps(&self, incaps: &gst::Caps, _outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        if analytics_batch::is_batch(incaps) {
            return self.set_batch_caps(incaps);
        }
        let frame = frame_size(incaps).map_err(|error| gst::loggable_error!(CAT, "{error}"))?;
        self.check_tensors(incaps, frame)?;
        if let Some(session) = lock(&self.session).as_mut() {
            session.set_caps(frame, is_nvmm(incaps));
        }
        Ok(())
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        match event.view() {
            gst::EventView::Eos(_) => self.end_stream(),
            gst::EventView::FlushStop(_) => self.restart_clock(None),
            gst::EventView::Segment(segment) => self.restart_clock(Some(segment.segment())),
            _ => {}
        }
        self.parent_sink_event(event)
    }

    fn propose_allocation(
        &self,
        _decide_query: Option<&gst::query::Allocation>,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        forward_allocation(self.obj().upcast_ref(), *CAT, query)
    }

    /// Copies a shared buffer (after a tee, for example) with the metadata that GStreamer would not copy:
    /// `GstTensorMeta` of GStreamer 1.26, and the sizes of DeepStream's frames.
    fn prepare_output_buffer(
        &self,
        inbuf: InputBuffer,
    ) -> Result<PrepareOutputBufferSuccess, gst::FlowError> {
        match inbuf {
            InputBuffer::Writable(_) => Ok(PrepareOutputBufferSuccess::InputBuffer),
            InputBuffer::Readable(shared) => {
                let mut copy = shared.copy();
                crate::input::tensor_meta::copy(shared, copy.make_mut());
                if let Some(session) = &mut *lock(&self.session) {
                    // A copy has this error, too, and reports it when it is read.
                    let _ = session.batches.complete_copy(shared, copy.make_mut());
                }
                Ok(PrepareOutputBufferSuccess::Buffer(copy))
            }
        }
    }

    fn transform_ip(
        &self,
        buffer: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let start = Instant::now();
        // The session is moved out of the mutex, so that no lock is held while the engine runs.
        let Some(mut session) = lock(&self.session).take() else {
            return Err(not_started(self.obj().upcast_ref()));
        };
        session.update_settings(&lock(&self.settings));
        let result = session.process(&self.obj(), buffer);
        let failure = session.decoder.failure.take();
        match &result {
            Ok(_) => session.count_labels(&mut lock(&self.stats)),
            Err(_) => session.decoder.notices.set_has_tensors(),
        }
        let context = result.as_ref().err().map(|_| session.to_string());
        if let Some(description) = session.decoder.engine.take_description() {
            gst::debug!(CAT, imp = self, "on {description}");
        }
        *lock(&self.session) = Some(session);

        if let Some(why) = failure {
            gst::element_imp_warning!(
                self,
                gst::LibraryError::Failed,
                ("{why}; decoding continues on the CPU"),
                ["set backend=cpu to avoid this warning"]
            );
        }
        match result {
            Ok(counts) => {
                gst::trace!(CAT, imp = self, "{counts:?}");
                lock(&self.stats).count(&counts, start.elapsed());
            }
            Err(error) => {
                let properties = property::non_default(self.obj().upcast_ref());
                let context = format!("{}; {properties}", context.unwrap_or_default());
                self.post_error_message(error.message(&context));
                return Err(gst::FlowError::Error);
            }
        }
        Ok(gst::FlowSuccess::Ok)
    }
}

/// Messages beside errors. No lock is held while one is posted.
impl NmsFilter {
    /// The times for which notices wait begin again: with another segment, or after a flush.
    fn restart_clock(&self, segment: Option<&gst::Segment>) {
        if let Some(session) = &mut *lock(&self.session) {
            session.restart_clock(segment);
        }
    }

    /// Posts the warnings that are due at the end of the stream, and the counts unless they have not changed since they were
    /// last posted.
    fn end_stream(&self) {
        let session = lock(&self.session).take();
        if let Some(mut session) = session {
            session.end_stream(&self.obj());
            *lock(&self.session) = Some(session);
        }
        let Some(structure) = lock(&self.stats).take_unposted() else {
            return;
        };
        let element = self.obj();
        gst::info!(CAT, obj = element, "{structure}");
        let message = gst::message::Element::builder(structure).src(&*element).build();
        // Fails if the element is not in a pipeline and therefore has no bus.
        let _ = element.post_message(message);
    }

    /// Posts an error if no decoder reads the tensors in the caps of frames of this size.
    fn check_tensors(&self, caps: &gst::Caps, frame: [u32; 2]) -> Result<(), gst::LoggableError> {
        let settings = lock(&self.settings).clone();
        check_caps(caps, &settings, frame).map_err(|error| {
            let text = format!("the tensors in the caps cannot be decoded: {error}");
            self.post_error_message(gst::error_msg!(
                gst::CoreError::Negotiation,
                ("{text}"),
                ["{caps}"]
            ));
            gst::loggable_error!(CAT, "{text}")
        })
    }

    /// The following buffers are batches with these caps. Posts an error if no decoder reads the tensors in the caps of a
    /// stream.
    fn set_batch_caps(&self, caps: &gst::Caps) -> Result<(), gst::LoggableError> {
        for caps in analytics_batch::streams(caps) {
            if let Ok(frame) = frame_size(&caps) {
                self.check_tensors(&caps, frame)?;
            }
        }
        if let Some(session) = lock(&self.session).as_mut() {
            session.has_streams = true;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_before_the_start_is_an_error_on_the_bus() {
        gst::init().unwrap();
        let element: super::super::NmsFilter = gst::glib::Object::new();
        let bus = gst::Bus::new();
        element.set_bus(Some(&bus));
        let mut buffer = gst::Buffer::new();
        let result = element.imp().transform_ip(buffer.get_mut().unwrap());
        assert_eq!(result, Err(gst::FlowError::Error));
        assert!(bus.pop_filtered(&[gst::MessageType::Error]).is_some());
    }
}
