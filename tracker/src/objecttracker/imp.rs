// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `BaseTransform` subclass: properties, events, and the state of each stream.
#![allow(missing_docs, reason = "the derive macro generates accessors without documentation")]

use std::sync::{LazyLock, Mutex};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::prelude::*;
use gst_base::subclass::prelude::*;
use gstnmsfilter::elements::{
    any_video, forward_allocation, frame_size, lock, not_started, pad_templates, property,
};
use gstnmsfilter::input::analytics_batch;
use gstnmsfilter::input::inference_mark;

use crate::metadata::{self, Identity, Object};
use crate::settings::{Algorithm, Settings};
use crate::stream::{FrameCaps, MAX_OBJECTS, NoIds, Stream};

gstnmsfilter::debug_category!(CAT, "objecttracker", "Identities of objects");

/// The duration of frames whose caps have no rate, in nanoseconds.
const USUAL_DURATION: u64 = 1_000_000_000 / 30;

/// The number of buffers after which the state of a stream without frames is dropped, when another stream begins.
const OLD: u64 = 10_000;

/// The instance data of the element.
#[derive(Default, glib::Properties)]
#[properties(wrapper_type = super::ObjectTracker)]
pub struct ObjectTracker {
    #[property(
        name = "algorithm", get, set, type = Algorithm, member = algorithm,
        builder(Algorithm::default())
            .nick("Algorithm")
            .blurb("Rule by which objects of successive frames are matched")
            .mutable_ready()
    )]
    #[property(
        name = "classes", get, set, type = Option<String>, member = classes,
        nick = "Classes",
        blurb = "Labels of the objects to track, separated by commas (unset or empty: all)",
        mutable_playing
    )]
    #[property(
        name = "class-agnostic", get, set, type = bool, member = class_agnostic,
        nick = "Class agnostic",
        blurb = "Whether a track can continue with an object of another class",
        mutable_ready
    )]
    #[property(
        name = "predict", get, set, type = bool, member = predict,
        default = Settings::default().predict,
        nick = "Predict",
        blurb = "Whether frames without inference get the predicted boxes of the tracks, marked as predicted",
        mutable_playing
    )]
    #[property(
        name = "max-age", get, set, type = f64, member = max_age,
        minimum = -1.0, maximum = 3600.0, default = Settings::default().max_age,
        nick = "Maximum age",
        blurb = "Seconds for which a track without an object is kept (negative: 1, and one frame with algorithm=sort)",
        mutable_ready
    )]
    #[property(
        name = "track-threshold", get, set, type = f32, member = track_threshold,
        minimum = 0.0, maximum = 1.0, default = Settings::default().track_threshold,
        nick = "Track threshold",
        blurb = "Score from which objects are matched first; others can only continue a track (algorithm=bytetrack)",
        mutable_ready
    )]
    #[property(
        name = "new-track-threshold", get, set, type = f32, member = new_track_threshold,
        minimum = 0.0, maximum = 1.0, default = Settings::default().new_track_threshold,
        nick = "Threshold of new tracks",
        blurb = "Score from which an object begins a track, if it is at least track-threshold (algorithm=bytetrack)",
        mutable_ready
    )]
    #[property(
        name = "match-threshold", get, set, type = f32, member = match_threshold,
        minimum = 0.0, maximum = 1.0, default = Settings::default().match_threshold,
        nick = "Match threshold",
        blurb = "Greatest distance (1 - IoU) between a track and its object (algorithm=bytetrack)",
        mutable_ready
    )]
    #[property(
        name = "second-match-threshold", get, set, type = f32, member = second_match_threshold,
        minimum = 0.0, maximum = 1.0, default = Settings::default().second_match_threshold,
        nick = "Second match threshold",
        blurb = "Greatest distance (1 - IoU) between a track and an object below track-threshold (algorithm=bytetrack)",
        mutable_ready
    )]
    #[property(
        name = "min-hits", get, set, type = u32, member = min_hits,
        minimum = 1, maximum = 1000, default = Settings::default().min_hits,
        nick = "Minimum hits",
        blurb = "Number of objects from which a track has an id (algorithm=sort, ocsort)",
        mutable_ready
    )]
    #[property(
        name = "iou-threshold", get, set, type = f32, member = iou_threshold,
        minimum = 0.0, maximum = 1.0, default = Settings::default().iou_threshold,
        nick = "IoU threshold",
        blurb = "Least IoU of a track and its object (algorithm=sort, ocsort)",
        mutable_ready
    )]
    #[property(
        name = "delta-t", get, set, type = u32, member = delta_t,
        minimum = 1, maximum = 1000, default = Settings::default().delta_t,
        nick = "Delta t",
        blurb = "Number of frames with inference over which the direction is computed (algorithm=ocsort)",
        mutable_ready
    )]
    #[property(
        name = "inertia", get, set, type = f32, member = inertia,
        minimum = 0.0, maximum = 1.0, default = Settings::default().inertia,
        nick = "Inertia",
        blurb = "Weight of the direction in a match (algorithm=ocsort)",
        mutable_ready
    )]
    settings: Mutex<Settings>,
    /// `None` before start and after stop.
    state: Mutex<Option<State>>,
}

/// The data that exists from start to stop.
#[derive(Default)]
struct State {
    /// The values at start.
    settings: Settings,
    /// The caps of frames; `None` for batches, whose frames have caps of their own, and before caps.
    caps: Option<FrameCaps>,
    streams: Vec<StreamState>,
    /// The number of buffers so far.
    buffers: u64,
    objects: Vec<Object>,
    identities: Vec<Option<Identity>>,
    has_warned: bool,
}

/// A stream of a batch, or the only one.
struct StreamState {
    number: u32,
    stream: Stream,
    /// The number of the buffer that had its latest frame.
    used: u64,
}

/// Reads caps of frames.
fn frame_caps(caps: &gst::CapsRef) -> Result<FrameCaps, String> {
    let rate = caps.structure(0).and_then(|caps| caps.get::<gst::Fraction>("framerate").ok());
    let rate = rate.filter(|rate| rate.numer() > 0 && rate.denom() > 0);
    let duration = rate.map_or(USUAL_DURATION, |rate| {
        (rate.denom() as u64 * 1_000_000_000 / rate.numer() as u64).max(1)
    });
    Ok(FrameCaps { size: frame_size(caps)?, duration })
}

impl State {
    /// Tracks the objects of a frame, or adds predicted ones. Returns false if there were too many.
    fn process(
        &mut self,
        frame: &mut gst::BufferRef,
        number: u32,
        caps: FrameCaps,
        live: &Settings,
    ) -> Result<bool, NoIds> {
        let Self { streams, buffers, objects, identities, settings, .. } = self;
        let index = streams.iter().position(|it| it.number == number).unwrap_or_else(|| {
            streams.retain(|it| *buffers - it.used <= OLD);
            streams.push(StreamState { number, stream: Stream::default(), used: 0 });
            streams.len() - 1
        });
        streams[index].used = *buffers;
        let stream = &mut streams[index].stream;
        stream.advance(caps, frame.pts().map(gst::ClockTime::nseconds), settings);
        metadata::read(frame, caps.size, objects);
        objects.retain(|object| live.has_class(object.label));
        if objects.is_empty() && inference_mark::is_inferred(frame) == Some(false) {
            if live.predict {
                metadata::add_predicted(frame, caps.size, stream.predicted(settings));
            }
            return Ok(true);
        }
        let is_complete = stream.update(objects, settings, identities)?;
        metadata::write(frame, objects, identities);
        Ok(is_complete)
    }
}

#[glib::object_subclass]
impl ObjectSubclass for ObjectTracker {
    const NAME: &'static str = "GstObjectTracker";
    const ALLOW_NAME_CONFLICT: bool = true;
    type Type = super::ObjectTracker;
    type ParentType = gst_base::BaseTransform;
}

impl ObjectImpl for ObjectTracker {
    fn properties() -> &'static [glib::ParamSpec] {
        Self::derived_properties()
    }

    fn property(&self, id: usize, spec: &glib::ParamSpec) -> glib::Value {
        self.derived_property(id, spec)
    }

    fn set_property(&self, id: usize, value: &glib::Value, spec: &glib::ParamSpec) {
        if property::accepts(*CAT, self.obj().upcast_ref(), value, spec) {
            self.derived_set_property(id, value, spec);
        }
    }
}

impl GstObjectImpl for ObjectTracker {}

impl ElementImpl for ObjectTracker {
    gstnmsfilter::element_metadata!(
        "Object tracker",
        "Filter/Analyzer/Video",
        "Gives regions of interest and analytics objects identities (ByteTrack, OC-SORT, SORT), and frames \
                 without inference the predicted boxes of the tracks"
    );

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let mut caps = any_video();
            caps.merge(analytics_batch::any_batch());
            pad_templates(&caps, &caps)
        });
        &TEMPLATES
    }
}

impl BaseTransformImpl for ObjectTracker {
    const MODE: gst_base::subclass::BaseTransformMode =
        gst_base::subclass::BaseTransformMode::AlwaysInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let settings = lock(&self.settings).clone();
        *lock(&self.state) = Some(State { settings, ..State::default() });
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        *lock(&self.state) = None;
        Ok(())
    }

    fn set_caps(&self, incaps: &gst::Caps, _outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        self.begin_anew();
        let is_batch = analytics_batch::is_batch(incaps);
        let caps = (!is_batch).then(|| frame_caps(incaps)).transpose();
        let caps = caps.map_err(|error| gst::loggable_error!(CAT, "{error}"))?;
        if let Some(state) = lock(&self.state).as_mut() {
            state.caps = caps;
        }
        Ok(())
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        match event.view() {
            gst::EventView::StreamStart(_)
            | gst::EventView::FlushStop(_)
            | gst::EventView::Eos(_) => self.begin_anew(),
            gst::EventView::Segment(event) => {
                // Some sources repeat a segment. The base class has the position of the latest buffer in it.
                let current = self.obj().segment();
                let new = event.segment().downcast_ref::<gst::ClockTime>();
                let is_repeated = new.is_some_and(|new| {
                    let mut current = current.downcast_ref::<gst::ClockTime>().cloned();
                    current.iter_mut().for_each(|it| it.set_position(new.position()));
                    current.as_ref() == Some(new)
                });
                if !is_repeated {
                    self.begin_anew();
                }
            }
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

    fn transform_ip(
        &self,
        buffer: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        if gstnmsfilter::deepstream::is_on(buffer) {
            return self.fail(
                "the buffer is a batch of DeepStream, whose objects this element does not read; use nvtracker, \
                 DeepStream's tracker, in its place",
            );
        }
        // No lock is held while a message is posted.
        let result = {
            let settings = lock(&self.settings);
            lock(&self.state).as_mut().map(|state| {
                state.buffers += 1;
                let is_complete = process(buffer, state, &settings)?;
                Ok(!is_complete && !std::mem::replace(&mut state.has_warned, true))
            })
        };
        match result {
            None => return Err(not_started(self.obj().upcast_ref())),
            Some(Err(NoIds)) => return self.fail(&NoIds.to_string()),
            Some(Ok(false)) => {}
            Some(Ok(true)) => gst::element_imp_warning!(
                self,
                gst::StreamError::Failed,
                ("too many objects: at most {MAX_OBJECTS} of a class and frame have a track, and tracks begin anew where \
                     too many are kept; set a higher score-threshold, or a smaller max-age")
            ),
        }
        Ok(gst::FlowSuccess::Ok)
    }
}

/// Processes the frame, or each frame of a batch.
fn process(
    buffer: &mut gst::BufferRef,
    state: &mut State,
    settings: &Settings,
) -> Result<bool, NoIds> {
    if state.caps.is_none() {
        let mut is_complete = true;
        analytics_batch::try_for_each_frame(buffer, |mut frame| {
            let Some(Ok(caps)) = frame.caps.map(frame_caps) else { return Ok(()) };
            let stream = frame.stream;
            is_complete &= state.process(frame.make_mut(), stream, caps, settings)?;
            Ok(())
        })?;
        return Ok(is_complete);
    }
    let stream = {
        // A frame of one of several streams, of DL Streamer's gvastreammux.
        let batch = buffer.meta::<gst_newer::AnalyticsBatchMeta>();
        batch.and_then(|batch| Some(batch.streams().first()?.index())).unwrap_or(0)
    };
    match state.caps {
        Some(caps) => state.process(buffer, stream, caps, settings),
        None => Ok(true),
    }
}

impl ObjectTracker {
    /// Forgets the tracks of all streams.
    fn begin_anew(&self) {
        if let Some(state) = lock(&self.state).as_mut() {
            state.streams.clear();
        }
    }

    fn fail(&self, text: &str) -> Result<gst::FlowSuccess, gst::FlowError> {
        gst::element_imp_error!(self, gst::StreamError::Format, ("{text}"));
        Err(gst::FlowError::Error)
    }
}
