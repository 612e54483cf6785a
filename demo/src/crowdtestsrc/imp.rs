// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `BaseSrc` subclass: properties, negotiation, seeking, and `fill`.
//!
//! In: properties and downstream caps. Out: video frames with a tensor, and the true boxes if
//! `truth` is true.
#![allow(missing_docs, reason = "the derive macro generates accessors without documentation")]

use std::sync::{LazyLock, Mutex};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::prelude::*;
use gst_base::subclass::prelude::*;
use gst_video::{VideoFormat, VideoInfo, VideoRegionOfInterestMeta};

use super::CrowdDecoder;
use super::draw::{Canvas, ChannelOrder};
use super::raw_tensor::RawTensor;
use super::scene::{Crowd, Scene, default_people};
use super::timeline::{Cursor, time_of};
use super::window_generator::WindowGenerator;
use crate::TensorMemory;
use crate::tensor_memory::TensorTransfer;
use gstnmsfilter::elements::{lock, property};
use gstnmsfilter::frame::{FrameError, FrameLayout, MappedFrame, PlaneMut};
use gstnmsfilter::input::InputError;
use gstnmsfilter::input::cuda_memory::UploadError;
use gstnmsfilter::input::custom_meta;
use gstnmsfilter::tensor::TensorError;

gstnmsfilter::debug_category!(CAT, "crowdtestsrc", "Crowd with known people");

/// The supported formats, each with the indices of red, green and blue in a pixel.
const FORMATS: [(VideoFormat, ChannelOrder); 4] = [
    (VideoFormat::Bgrx, [2, 1, 0]),
    (VideoFormat::Rgbx, [0, 1, 2]),
    (VideoFormat::Bgra, [2, 1, 0]),
    (VideoFormat::Rgba, [0, 1, 2]),
];

const DEFAULT_WIDTH: i32 = 1920;
const DEFAULT_HEIGHT: i32 = 1080;
const DEFAULT_RATE: i32 = 50;
/// Maximum side of a frame in pixels.
const MAX_FRAME_SIDE: i32 = 16_384;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Settings {
    people: u32,
    seed: u64,
    decoder: CrowdDecoder,
    truth: bool,
    memory: TensorMemory,
}

/// Reasons why a frame cannot be produced.
#[derive(Debug, thiserror::Error)]
enum FillError {
    #[error("the tensor's memory cannot be allocated or mapped: {0}")]
    Memory(#[from] glib::BoolError),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Tensor(#[from] TensorError),
    #[error(transparent)]
    Attach(#[from] InputError),
    #[error(transparent)]
    Upload(#[from] UploadError),
}

/// The scene, and everything else that depends on caps and settings. It is made again when they
/// change.
struct State {
    info: VideoInfo,
    layout: FrameLayout,
    settings: Settings,
    scene: Scene,
    canvas: Canvas,
    tensor: RawTensor,
    transfer: TensorTransfer,
    crowd: Crowd,
    generator: WindowGenerator,
}

impl State {
    fn new(info: VideoInfo, settings: Settings) -> Self {
        let (width, height) = (info.width(), info.height());
        let people = match settings.people {
            0 => default_people(width, height),
            people => people,
        };
        let scene = Scene::new(width, height, people, settings.seed);
        let canvas = Canvas::new(&scene, people as usize, order(&info));
        let tensor = RawTensor::new(settings.decoder, u64::from(width) * u64::from(height));
        let transfer = TensorTransfer::default();
        let (crowd, generator) = (Crowd::default(), WindowGenerator::default());
        let layout = FrameLayout::new(&info);
        Self { info, layout, settings, scene, canvas, tensor, transfer, crowd, generator }
    }

    /// Draws a frame into `buffer`. Attaches the tensor, and the true boxes if they are requested.
    fn fill(&mut self, frame: u64, buffer: &mut gst::BufferRef) -> Result<(), FillError> {
        self.scene.people(frame, &mut self.crowd);
        let windows = self.generator.windows(&self.scene, frame, &self.crowd);
        {
            let mut picture = MappedFrame::writable(buffer, &self.layout)?;
            let PlaneMut { data, stride } = picture.plane_mut(0);
            self.canvas.draw(self.crowd.people(), data, stride);
        }
        let tensor = self.tensor.with_windows(windows)?;
        let tensor = self.transfer.transfer(tensor, self.settings.memory)?;
        custom_meta::attach(buffer, &tensor)?;
        if self.settings.truth {
            self.attach_truth(buffer);
        }
        Ok(())
    }

    fn attach_truth(&self, buffer: &mut gst::BufferRef) {
        let clip = |value: f32, limit: u32| value.round().clamp(0.0, limit as f32) as u32;
        for person in self.crowd.people().iter().filter(|person| person.visible) {
            let [x1, y1, x2, y2] = person.head();
            let (x, y) = (clip(x1, self.scene.width), clip(y1, self.scene.height));
            let (w, h) = (clip(x2, self.scene.width) - x, clip(y2, self.scene.height) - y);
            VideoRegionOfInterestMeta::add(buffer, "truth", (x, y, w, h)).set_id(person.id as i32);
        }
    }
}

/// The instance data of the element.
#[derive(Default, glib::Properties)]
#[properties(wrapper_type = super::CrowdTestSrc)]
pub struct CrowdTestSrc {
    #[property(
        name = "people", get, set, type = u32, member = people,
        maximum = 100_000, default = Settings::default().people,
        nick = "People",
        blurb = "Number of people (0: proportional to the area, with 60 people at 1920x1080)",
        mutable_playing
    )]
    #[property(
        name = "seed", get, set, type = u64, member = seed,
        default = Settings::default().seed,
        nick = "Seed",
        blurb = "Seed of the random numbers that generate the crowd",
        mutable_playing
    )]
    #[property(
        name = "decoder", get, set, type = CrowdDecoder, member = decoder,
        builder(Settings::default().decoder)
            .nick("Decoder")
            .blurb("Decoder that can read the attached tensors")
            .mutable_playing()
    )]
    #[property(
        name = "truth", get, set, type = bool, member = truth,
        default = Settings::default().truth,
        nick = "Truth",
        blurb = "Attach the true boxes of the people's heads as regions of the type truth",
        mutable_playing
    )]
    #[property(
        name = "memory", get, set, type = TensorMemory, member = memory,
        builder(Settings::default().memory)
            .nick("Memory")
            .blurb("Memory that contains the tensors")
            .mutable_playing()
    )]
    settings: Mutex<Settings>,
    #[property(
        name = "is-live", type = bool,
        get = Self::live, set = Self::set_live,
        nick = "Is live",
        blurb = "Produce frames in real time, like a camera",
        mutable_ready
    )]
    state: Mutex<Option<State>>,
    cursor: Mutex<Cursor>,
}

fn order(info: &VideoInfo) -> ChannelOrder {
    let format = FORMATS.iter().find(|(format, _)| *format == info.format());
    format.expect("the pad template has these formats only").1
}

#[glib::object_subclass]
impl ObjectSubclass for CrowdTestSrc {
    const NAME: &'static str = "GstCrowdTestSrc";
    const ALLOW_NAME_CONFLICT: bool = true;
    type Type = super::CrowdTestSrc;
    type ParentType = gst_base::BaseSrc;
}

impl ObjectImpl for CrowdTestSrc {
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

    fn constructed(&self) {
        self.parent_constructed();
        self.obj().set_format(gst::Format::Time);
    }
}

impl GstObjectImpl for CrowdTestSrc {}

impl ElementImpl for CrowdTestSrc {
    gstnmsfilter::element_metadata!(
        "Crowd test source",
        "Source/Video",
        "Draws a moving crowd and attaches the raw windows that a detector would output"
    );

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let caps = gst_video::VideoCapsBuilder::new()
                .format_list(FORMATS.map(|(format, _)| format))
                .width_range(1..=MAX_FRAME_SIDE)
                .height_range(1..=MAX_FRAME_SIDE)
                .framerate_range(gst::Fraction::new(1, i32::MAX)..=gst::Fraction::new(i32::MAX, 1))
                .build();
            let template = gst::PadTemplate::new(
                "src",
                gst::PadDirection::Src,
                gst::PadPresence::Always,
                &caps,
            );
            vec![template.expect("the template is valid")]
        });
        &TEMPLATES
    }
}

impl BaseSrcImpl for CrowdTestSrc {
    fn start(&self) -> Result<(), gst::ErrorMessage> {
        *lock(&self.cursor) = Cursor::default();
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        *lock(&self.state) = None;
        Ok(())
    }

    fn fixate(&self, mut caps: gst::Caps) -> gst::Caps {
        caps.truncate();
        let structure = caps.make_mut().structure_mut(0).expect("caps to fixate are not empty");
        structure.fixate_field_nearest_int("width", DEFAULT_WIDTH);
        structure.fixate_field_nearest_int("height", DEFAULT_HEIGHT);
        structure.fixate_field_nearest_fraction("framerate", gst::Fraction::new(DEFAULT_RATE, 1));
        self.parent_fixate(caps)
    }

    fn set_caps(&self, caps: &gst::Caps) -> Result<(), gst::LoggableError> {
        let info = VideoInfo::from_caps(caps)
            .map_err(|_| gst::loggable_error!(CAT, "expected raw video caps, got {caps}"))?;
        gst::debug!(CAT, imp = self, "drawing {caps}");
        let mut state = lock(&self.state);
        if let Some(state) = state.as_ref() {
            lock(&self.cursor).change_rate(&state.info, &info);
        }
        *state = Some(State::new(info, *lock(&self.settings)));
        Ok(())
    }

    fn decide_allocation(
        &self,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        let (caps, _) = query.get_owned();
        let caps = caps.ok_or_else(|| gst::loggable_error!(CAT, "expected caps in the query"))?;
        let info = VideoInfo::from_caps(&caps)
            .map_err(|_| gst::loggable_error!(CAT, "expected raw video caps, got {caps}"))?;
        let proposed = query.allocation_pools().next();
        let has_proposal = proposed.is_some();
        let (pool, size, min, max) = proposed.unwrap_or((None, 0, 0, 0));
        let requested = PoolParams { size: size.max(info.size() as u32), min, max };
        let with_video_meta = query.find_allocation_meta::<gst_video::VideoMeta>().is_some();

        let proposed = pool.and_then(|pool| {
            let params = configure(&pool, &caps, requested, with_video_meta);
            if params.is_none() {
                gst::info!(
                    CAT,
                    imp = self,
                    "{pool:?} is not used: it cannot be configured for {caps}"
                );
            }
            Some((pool, params?))
        });
        let own_pool = || {
            let pool: gst::BufferPool = gst_video::VideoBufferPool::new().upcast();
            let params = configure(&pool, &caps, requested, with_video_meta)?;
            Some((pool, params))
        };
        let (pool, PoolParams { size, min, max }) = proposed
            .or_else(own_pool)
            .ok_or_else(|| gst::loggable_error!(CAT, "no buffer pool accepts {caps}"))?;
        if has_proposal {
            query.set_nth_allocation_pool(0, Some(&pool), size, min, max)
        } else {
            query.add_allocation_pool(Some(&pool), size, min, max)
        }
        self.parent_decide_allocation(query)
    }

    fn is_seekable(&self) -> bool {
        !self.live()
    }

    fn do_seek(&self, segment: &mut gst::Segment) -> bool {
        let Some(segment) = segment.downcast_ref::<gst::ClockTime>() else {
            return false;
        };
        let backwards = segment.rate() < 0.0;
        // The stream is endless, so there is no default stop position.
        if backwards && segment.stop().is_none() {
            gst::info!(CAT, imp = self, "a seek with a negative rate needs a stop position");
            return false;
        }
        // gst_segment_do_seek has set the position to the start, or to the stop if the rate is
        // negative. If the seek sets neither, the position is unchanged.
        let position = segment.position().unwrap_or_default();
        *lock(&self.cursor) = Cursor::new(position, backwards);
        true
    }

    fn fill(
        &self,
        _offset: u64,
        _length: u32,
        buffer: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let settings = *lock(&self.settings);
        let mut state = lock(&self.state);
        let state = state.as_mut().ok_or(gst::FlowError::NotNegotiated)?;
        if state.settings != settings {
            *state = State::new(state.info.clone(), settings);
        }
        let frame = lock(&self.cursor).next(&state.info).ok_or(gst::FlowError::Eos)?;
        state.fill(frame, buffer).map_err(|error| {
            gst::element_imp_error!(self, gst::StreamError::Failed, ("{error}"), ["frame {frame}"]);
            gst::FlowError::Error
        })?;
        let pts = time_of(&state.info, frame);
        buffer.set_pts(pts);
        buffer.set_duration(time_of(&state.info, frame + 1) - pts);
        buffer.set_offset(frame);
        buffer.set_offset_end(frame + 1);
        Ok(gst::FlowSuccess::Ok)
    }

    fn times(&self, buffer: &gst::BufferRef) -> (Option<gst::ClockTime>, Option<gst::ClockTime>) {
        // Given these times, the base class of a live source waits on the clock before it pushes
        // the buffer.
        match (self.live(), buffer.pts()) {
            (true, Some(pts)) => (Some(pts), buffer.duration().map(|duration| pts + duration)),
            _ => (None, None),
        }
    }
}

impl CrowdTestSrc {
    fn live(&self) -> bool {
        BaseSrcExt::is_live(&*self.obj())
    }

    fn set_live(&self, live: bool) {
        BaseSrcExt::set_live(&*self.obj(), live);
    }
}

/// Size of a pool's buffers in bytes, and their minimum and maximum number. The maximum 0 means no
/// limit.
#[derive(Clone, Copy)]
struct PoolParams {
    size: u32,
    min: u32,
    max: u32,
}

/// Configures `pool`. Returns the resulting parameters, or `None` if the pool cannot be used. If
/// `with_video_meta` is true, the pool may choose the layout of frames.
fn configure(
    pool: &gst::BufferPool,
    caps: &gst::Caps,
    PoolParams { size, min, max }: PoolParams,
    with_video_meta: bool,
) -> Option<PoolParams> {
    let mut config = pool.config();
    config.set_params(Some(caps), size, min, max);
    if with_video_meta {
        config.add_option(gst_video::BUFFER_POOL_OPTION_VIDEO_META.as_ref());
    }
    if pool.set_config(config).is_err() {
        // The pool may have adjusted the configuration. In this case, the adjusted configuration
        // must be set again.
        let adjusted = pool.config();
        adjusted.validate_params(Some(caps), size, min, max).ok()?;
        pool.set_config(adjusted).ok()?;
    }
    let (_, size, min, max) = pool.config().params()?;
    Some(PoolParams { size, min, max })
}
