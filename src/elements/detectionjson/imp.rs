// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `BaseTransform` subclass: properties, start and stop, negotiation, and a new buffer for each frame.

use std::sync::{LazyLock, Mutex};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::prelude::*;
use gst_base::subclass::base_transform::GenerateOutputSuccess;
use gst_base::subclass::prelude::*;
use gst_video::VideoMeta;
use serde_json::value::RawValue;

use super::settings::Settings;
use super::upstream::{self, Files};
use crate::deepstream::FrameCaps;
use crate::deepstream::layout::StructureLayout;
use crate::elements::property::{self, Properties};
use crate::elements::{
    any_video, frame_size, is_nvmm, lock, not_started, pad_templates, wrong_settings,
};
use crate::input::{Tensors, inference_mark};
use crate::json::{Detections, Line};

crate::debug_category!(CAT, "detectionjson", "JSON of detections");

/// The media type of lines of JSON.
const NDJSON: &str = "application/x-ndjson";

/// The instance data of the element.
#[derive(Default)]
pub struct DetectionJson {
    settings: Mutex<Settings>,
    /// `None` before start and after stop.
    state: Mutex<Option<State>>,
}

/// The data that exists from start to stop.
#[derive(Debug, Default)]
struct State {
    source: Option<String>,
    tags: Option<Box<RawValue>>,
    add_empty_results: bool,
    /// `None` before caps.
    caps: Option<FrameCaps>,
    /// The number of buffers so far, with and without a line.
    frames: u64,
    files: Files,
    /// The path of the stream's file.
    file: Option<String>,
    detections: Detections,
    /// True if any frame so far had tensors but no detections.
    had_tensors: bool,
    /// The text of the last line.
    text: Vec<u8>,
}

impl State {
    fn new(settings: Settings) -> Result<Self, gst::ErrorMessage> {
        let version = StructureLayout::parse_version(settings.deepstream_version.as_deref());
        Ok(Self {
            tags: settings.tags().map_err(wrong_settings)?,
            detections: Detections::new(version.map_err(wrong_settings)?),
            source: settings.source,
            add_empty_results: settings.add_empty_results,
            ..Self::default()
        })
    }

    /// Returns the line for a frame or a batch, or `None` if a frame without detections gets no line.
    fn line(
        &mut self,
        frame: &gst::BufferRef,
        segment: &gst::Segment,
    ) -> Result<Option<gst::Buffer>, gst::ErrorMessage> {
        let caps = self.caps.ok_or_else(|| {
            gst::error_msg!(
                gst::CoreError::Negotiation,
                ("a buffer came before caps; expected video caps with width and height first")
            )
        })?;
        let index = self.frames;
        self.frames += 1;
        self.detections
            .read(frame, caps)
            .map_err(|error| gst::error_msg!(gst::StreamError::Format, ("{error}")))?;
        // Tensors other than DeepStream's.
        let has_tensors = || Tensors::of(frame).is_ok_and(|tensors| !tensors.is_empty());
        self.had_tensors = self.had_tensors || (self.detections.is_empty() && has_tensors());
        if !self.add_empty_results {
            if self.detections.is_empty() {
                return Ok(None);
            }
            self.detections.remove_empty_frames();
        }
        let line = Line {
            size: caps.size,
            index,
            source: self.source.as_deref(),
            file: self.file.as_deref(),
            timestamp: timestamp(frame, segment),
            unix_time: unix_time(frame),
            tags: self.tags.as_deref(),
            inferred: inference_mark::is_inferred(frame),
            detections: &self.detections,
        };
        line.write(&mut self.text).map_err(|error| {
            gst::error_msg!(gst::StreamError::Encode, ("a line cannot be written: {error}"))
        })?;
        let no_memory = |error| {
            gst::error_msg!(gst::StreamError::Encode, ("there is no memory for a line: {error}"))
        };
        let mut buffer = gst::Buffer::with_size(self.text.len()).map_err(no_memory)?;
        let new = buffer.get_mut().expect("the buffer is new");
        // This cannot fail, because the buffer is as large as the text.
        let _ = new.copy_from_slice(0, &self.text);
        frame.copy_into(new, gst::BufferCopyFlags::TIMESTAMPS, ..).map_err(no_memory)?;
        new.set_flags(frame.flags() & (gst::BufferFlags::DISCONT | gst::BufferFlags::GAP));
        Ok(Some(buffer))
    }
}

/// Returns the stream time of a frame in nanoseconds, the timestamp that `gvametaconvert` also writes.
fn timestamp(frame: &gst::BufferRef, segment: &gst::Segment) -> Option<u64> {
    let pts = frame.pts()?;
    let time = match segment.downcast_ref::<gst::ClockTime>() {
        Some(segment) => segment.to_stream_time(pts),
        None => Some(pts),
    };
    time.map(gst::ClockTime::nseconds)
}

/// Returns the wall-clock time of a frame in nanoseconds since 1970: its NTP time or, without one, its Unix time.
fn unix_time(frame: &gst::BufferRef) -> Option<u64> {
    /// The seconds from 1900 to 1970.
    const NTP_TO_UNIX: gst::ClockTime = gst::ClockTime::from_seconds(2_208_988_800);
    let time = |reference: &str| {
        let mut metas = frame.iter_meta::<gst::ReferenceTimestampMeta>();
        let is_reference =
            |caps: &gst::CapsRef| caps.structure(0).is_some_and(|caps| caps.name() == reference);
        metas.find(|meta| is_reference(meta.reference())).map(|meta| meta.timestamp())
    };
    let ntp = time("timestamp/x-ntp").and_then(|time| time.checked_sub(NTP_TO_UNIX));
    ntp.or_else(|| time("timestamp/x-unix")).map(gst::ClockTime::nseconds)
}

#[glib::object_subclass]
impl ObjectSubclass for DetectionJson {
    const NAME: &'static str = "GstDetectionJson";
    const ALLOW_NAME_CONFLICT: bool = true;
    type Type = super::DetectionJson;
    type ParentType = gst_base::BaseTransform;
}

impl ObjectImpl for DetectionJson {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> =
            LazyLock::new(|| Settings::specs().collect());
        &PROPERTIES
    }

    fn property(&self, _id: usize, spec: &glib::ParamSpec) -> glib::Value {
        lock(&self.settings).value(spec.name()).expect("GObject knows the properties")
    }

    fn set_property(&self, _id: usize, value: &glib::Value, spec: &glib::ParamSpec) {
        if property::accepts(*CAT, self.obj().upcast_ref(), value, spec) {
            lock(&self.settings).set_value(spec.name(), value);
        }
    }
}

impl GstObjectImpl for DetectionJson {}

impl ElementImpl for DetectionJson {
    crate::element_metadata!(
        "JSON of detections",
        "Converter/Metadata/Video",
        "Writes the regions of interest, analytics objects and DeepStream objects on each video frame as one \
                 line of JSON, with the fields of DL Streamer's gvametaconvert"
    );

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> =
            LazyLock::new(|| pad_templates(&any_video(), &gst::Caps::new_empty_simple(NDJSON)));
        &TEMPLATES
    }
}

impl BaseTransformImpl for DetectionJson {
    const MODE: gst_base::subclass::BaseTransformMode =
        gst_base::subclass::BaseTransformMode::NeverInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let settings = lock(&self.settings).clone();
        *lock(&self.state) = Some(State::new(settings)?);
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        *lock(&self.state) = None;
        Ok(())
    }

    fn transform_caps(
        &self,
        direction: gst::PadDirection,
        _caps: &gst::Caps,
        filter: Option<&gst::Caps>,
    ) -> Option<gst::Caps> {
        let caps = match direction {
            gst::PadDirection::Sink => gst::Caps::new_empty_simple(NDJSON),
            _ => any_video(),
        };
        Some(match filter {
            Some(filter) => filter.intersect_with_mode(&caps, gst::CapsIntersectMode::First),
            None => caps,
        })
    }

    fn set_caps(&self, incaps: &gst::Caps, _outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        let size = frame_size(incaps).map_err(|error| gst::loggable_error!(CAT, "{error}"))?;
        if let Some(state) = lock(&self.state).as_mut() {
            state.caps = Some(FrameCaps { size, is_nvmm: is_nvmm(incaps) });
        }
        Ok(())
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        if let gst::EventView::StreamStart(start) = event.view()
            && let Some(state) = lock(&self.state).as_mut()
        {
            state.file = state.files.of_stream(start.stream_id(), self.obj().upcast_ref());
        }
        self.parent_sink_event(event)
    }

    /// Proposes any kind of memory and any layout of pixels, because the element does not read them.
    fn propose_allocation(
        &self,
        _decide_query: Option<&gst::query::Allocation>,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        query.add_allocation_meta::<VideoMeta>(None);
        Ok(())
    }

    fn generate_output(&self) -> Result<GenerateOutputSuccess, gst::FlowError> {
        let segment = self.obj().segment();
        let queued = lock(&self.state).as_mut().map(|state| {
            let frame = self.take_queued_buffer()?;
            let had_tensors = state.had_tensors;
            let result = state.line(&frame, &segment);
            Some((frame, result, state.had_tensors && !had_tensors))
        });
        let Some((frame, result, has_first_tensors)) =
            queued.ok_or_else(|| not_started(self.obj().upcast_ref()))?
        else {
            return Ok(GenerateOutputSuccess::NoOutput);
        };
        // No lock may be held while a message is posted.
        // A decoder may leave the tensors on the frame: tensors alone do not show that a decoder is missing.
        if has_first_tensors && !upstream::has_decoder(self.obj().upcast_ref()) {
            gst::element_imp_warning!(
                self,
                gst::StreamError::Format,
                ("the frames carry tensors that no element upstream decodes, so there are no detections; put nmsfilter \
                  between the inference element and detectionjson")
            );
        }
        match result {
            Ok(Some(line)) => Ok(GenerateOutputSuccess::Buffer(line)),
            Ok(None) => {
                gst::trace!(CAT, imp = self, "no detections on this buffer");
                // Downstream does not wait for a line for the time of this frame.
                if let Some(pts) = frame.pts() {
                    let gap = gst::event::Gap::builder(pts).duration(frame.duration()).build();
                    self.obj().src_pad().push_event(gap);
                }
                Ok(GenerateOutputSuccess::Dropped)
            }
            Err(error) => {
                self.post_error_message(error);
                Err(gst::FlowError::Error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_before_the_start_is_an_error_on_the_bus() {
        gst::init().unwrap();
        let element: super::super::DetectionJson = glib::Object::new();
        let bus = gst::Bus::new();
        element.set_bus(Some(&bus));
        assert_eq!(element.imp().generate_output().err(), Some(gst::FlowError::Error));
        assert!(bus.pop_filtered(&[gst::MessageType::Error]).is_some());
    }
}
