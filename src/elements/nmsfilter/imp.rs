// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `BaseTransform` subclass: properties, start and stop, negotiation, and `transform_ip`.
//!
//! In: buffers with tensors, and properties. Out: the same buffers with regions; messages and
//! `stats`.
#![allow(missing_docs, reason = "the derive macro generates accessors without documentation")]

use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Instant;

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::prelude::BaseTransformExtManual;
use gst_base::subclass::base_transform::{InputBuffer, PrepareOutputBufferSuccess};
use gst_base::subclass::prelude::*;

use super::debug_category::CAT;
use super::enums::{
    Attach, Backend, BoxFormat, Coordinates, Decoder, MaskSize, Method, NmsFilterLetterbox,
    Overlap, ScoreActivation,
};
use super::frame_counter::FrameCounter;
use super::nvinfer_config::NvinferConfig;
use super::session::Session;
use super::settings::{Settings, SettingsError};
use super::stats::FrameCounts;
use crate::elements::{any_video, filter_templates, frame_size, is_nvmm, lock, property};
#[cfg(feature = "v1_28")]
use crate::input::analytics_batch;
use crate::input::deepstream;
use crate::input::model::MAX_MODEL_SIDE;
use crate::output::Labels;
use nmsfilter_core::decoder::MAX_CLASSES;
use nmsfilter_core::engine;

/// The instance data of the element.
#[derive(Default, glib::Properties)]
#[properties(wrapper_type = super::NmsFilter)]
pub struct NmsFilter {
    #[property(
        name = "decoder", get, set, type = Decoder, member = decoder,
        builder(Settings::default().decoder)
            .nick("Decoder")
            .blurb("Which decoder reads the tensors: the model family that they come from")
            .mutable_playing()
    )]
    #[property(
        name = "box-format", get, set, type = BoxFormat, member = box_format,
        builder(Settings::default().box_format)
            .nick("Box format")
            .blurb("What the numbers of a box are; for decoder=boxes only")
            .mutable_playing()
    )]
    #[property(
        name = "coordinates", get, set, type = Coordinates, member = coordinates,
        builder(Settings::default().coordinates)
            .nick("Coordinates")
            .blurb("Unit of the box coordinates in the tensors")
            .mutable_playing()
    )]
    #[property(
        name = "method", get, set, type = Method, member = method,
        builder(Settings::default().method)
            .nick("Method")
            .blurb(
                "Which candidates survive. A candidate outranks another by higher score, at equal \
                 scores by lower anchor index; map-reduce does so, too, where the paper keeps \
                 both of two equal scores",
            )
            .mutable_playing()
    )]
    #[property(
        name = "overlap", get, set, type = Overlap, member = overlap,
        builder(Settings::default().overlap)
            .nick("Overlap")
            .blurb(
                "Overlap measure: two boxes conflict when they intersect and this holds; t is \
                 iou-threshold",
            )
            .mutable_playing()
    )]
    #[property(
        name = "iou-threshold", get, set, type = f32, member = iou_threshold,
        minimum = 0.0, maximum = 1.0, default = Settings::default().iou_threshold,
        nick = "IoU threshold",
        blurb = "Overlap t above which two boxes conflict, so that the higher-ranked can suppress the other",
        mutable_playing
    )]
    #[property(
        name = "score-threshold", get, set, type = f32, member = score_threshold,
        minimum = f32::MIN, maximum = f32::MAX, default = Settings::default().score_threshold,
        nick = "Score threshold",
        blurb = "Minimum score of a candidate; any number, since scores of some detectors exceed 1",
        mutable_playing
    )]
    #[property(
        name = "threshold-inclusive", get, set, type = bool, member = threshold_inclusive,
        default = Settings::default().threshold_inclusive,
        nick = "Threshold inclusive",
        blurb = "Whether two boxes also conflict at an overlap equal to the threshold (>= instead of >)",
        mutable_playing
    )]
    #[property(
        name = "pixel-offset", get, set, type = u32, member = pixel_offset,
        maximum = 1, default = Settings::default().pixel_offset,
        nick = "Pixel offset",
        blurb = "Pixels added to the sides of boxes and intersections when areas are computed (1: as in \
                 older programs)",
        mutable_playing
    )]
    #[property(
        name = "class-agnostic", get, set, type = bool, member = class_agnostic,
        default = Settings::default().class_agnostic,
        nick = "Class agnostic",
        blurb = "Whether boxes of different classes suppress each other",
        mutable_playing
    )]
    #[property(
        name = "multi-label", get, set, type = bool, member = multi_label,
        default = Settings::default().multi_label,
        nick = "Multi-label",
        blurb = "Whether every class of an anchor that reaches its score threshold gives a candidate, \
                 instead of the best class only",
        mutable_playing
    )]
    #[property(
        name = "max-candidates", get, set, type = u32, member = max_candidates,
        default = Settings::default().max_candidates,
        nick = "Max candidates",
        blurb = "Maximum number of candidates that enter suppression, the highest-ranked (0: no limit)",
        mutable_playing
    )]
    #[property(
        name = "max-detections", get, set, type = u32, member = max_detections,
        default = Settings::default().max_detections,
        nick = "Max detections",
        blurb = "Maximum number of survivors that are attached, the highest-ranked (0: no limit). A \
                 warning is posted once when the default is reached",
        mutable_playing
    )]
    #[property(
        name = "classes", get, set, type = Option<String>, member = classes,
        nick = "Classes",
        blurb = "Classes to keep, by number or by the label that regions have, as in person,7 (unset: all). A \
                 number is always a class number, even where a label is that number. A comma in a label is \
                 written \\, (\\\\, with gst-launch-1.0) and a backslash \\\\",
        mutable_playing
    )]
    #[property(
        name = "class-thresholds", get, set, type = Option<String>, member = class_thresholds,
        nick = "Class thresholds",
        blurb = "Score thresholds of single classes, as in person:0.5,7:0.3 (other classes: \
                 score-threshold). Classes are written as in the property classes",
        mutable_playing
    )]
    #[property(
        name = "class-iou-thresholds", get, set, type = Option<String>, member = class_iou_thresholds,
        nick = "Class IoU thresholds",
        blurb = "IoU thresholds of single classes, as in person:0.5,7:0.3 (other classes: iou-threshold); with \
                 class-agnostic=true, the class is that of the box of lower rank. Classes are written as in the \
                 property classes",
        mutable_playing
    )]
    #[property(
        name = "class-max-detections", get, set, type = Option<String>, member = class_max_detections,
        nick = "Class max detections",
        blurb = "Maximum numbers of survivors of single classes, as in person:100,7:20 (other classes, and 0: no \
                 limit). The highest-ranked are kept, and of these at most max-detections. Classes are written as \
                 in the property classes",
        mutable_playing
    )]
    #[property(
        name = "class-sizes", get, set, type = Option<String>, member = class_sizes,
        nick = "Class sizes",
        blurb = "Minimum and maximum width and height of candidates of single classes, in pixels of the frame, as \
                 in person:16x32..400x800,7:..64x64 (other classes: min-size and max-size). Classes are written as \
                 in the property classes",
        mutable_playing
    )]
    #[property(
        name = "min-size", get, set, type = f32, member = min_size,
        minimum = 0.0, default = Settings::default().min_size,
        nick = "Min size",
        blurb = "Minimum width and height of a candidate in pixels of the frame (0: no limit)",
        mutable_playing
    )]
    #[property(
        name = "max-size", get, set, type = f32, member = max_size,
        minimum = 0.0, default = Settings::default().max_size,
        nick = "Max size",
        blurb = "Maximum width and height of a candidate in pixels of the frame (0: no limit)",
        mutable_playing
    )]
    #[property(
        name = "masks", get, set, type = bool, member = masks,
        default = Settings::default().masks,
        nick = "Masks",
        blurb = "Whether survivors of a segmentation model have masks. If not, its prototypes are not read",
        mutable_playing
    )]
    #[property(
        name = "mask-size", get, set, type = MaskSize, member = mask_size,
        builder(Settings::default().mask_size)
            .nick("Mask size")
            .blurb("The pixels of masks. A mask covers the box of its region only")
            .mutable_playing()
    )]
    #[property(
        name = "score-activation", get, set, type = ScoreActivation, member = score_activation,
        builder(Settings::default().score_activation)
            .nick("Score activation")
            .blurb(
                "Function that turns the tensors' scores into probabilities; softmax needs two scores for each anchor, \
                 also if one is that of the background",
            )
            .mutable_playing()
    )]
    #[property(
        name = "layout-file", get, set, type = Option<String>, member = layout_file,
        nick = "Layout file",
        blurb = "Text file in UTF-8 that describes the tensors, for decoder=layout only: which are the boxes and the \
                 scores, and how they are computed",
        mutable_playing
    )]
    #[property(
        name = "quantization", get, set, type = Option<String>, member = quantization,
        nick = "Quantization",
        blurb = "Scale and zero point of tensors of type i8 or u8, as in output0:0.00390625:-128,boxes:0.5:3: \
                 an element q stands for (q - zero point) x scale (unset: those of the tensors' metadata, \
                 which this replaces). A comma in an id is written \\,",
        mutable_playing
    )]
    #[property(
        name = "label-file", get, set, type = Option<String>, member = label_file,
        nick = "Label file",
        blurb = "Text file in UTF-8 of at most 4 MiB with one label per line, the first for class 0; an \
                 empty line is a class without a label (unset or empty: the labels of the tensors' model \
                 description, else names of the decoder or numbers)",
        mutable_ready
    )]
    #[property(
        name = "num-classes", get, set, type = u32, member = num_classes,
        maximum = MAX_CLASSES as u32, default = Settings::default().num_classes,
        nick = "Number of classes",
        blurb = "Number of classes of the model (0: unknown). Tensors with another number are an \
                 error; decoder=auto accepts a YOLOv8 output with this number by its shape, or if it \
                 is 0, with the number of labels",
        mutable_playing
    )]
    #[property(
        name = "model-width", get, set, type = u32, member = model_width,
        maximum = MAX_MODEL_SIDE, default = Settings::default().model_width,
        nick = "Model width",
        blurb = "Width of the model's input in pixels (0, if model-height is 0 too: that of the tensors' model \
                 description, else that of the frame)",
        mutable_playing
    )]
    #[property(
        name = "model-height", get, set, type = u32, member = model_height,
        maximum = MAX_MODEL_SIDE, default = Settings::default().model_height,
        nick = "Model height",
        blurb = "Height of the model's input in pixels (0, if model-width is 0 too: that of the tensors' model \
                 description, else that of the frame)",
        mutable_playing
    )]
    #[property(
        name = "letterbox", get, set, type = NmsFilterLetterbox, member = letterbox,
        builder(Settings::default().letterbox)
            .nick("Letterbox")
            .blurb(
                "How the frame was fitted into the model's input; center and top-left need the size of \
                 the model's input, from the tensors' model description or from model-width and model-height",
            )
            .mutable_playing()
    )]
    #[property(
        name = "backend", get, set, type = Backend, member = backend,
        builder(Settings::default().backend)
            .nick("Backend")
            .blurb("Where tensors are decoded and duplicates suppressed")
            .mutable_ready()
    )]
    #[property(
        name = "cuda-device-id", get, set, type = i32, member = cuda_device_id,
        minimum = -1, default = Settings::default().cuda_device_id,
        nick = "CUDA device id",
        blurb = "Number of the GPU to use (-1: the one in whose memory the tensors are, or the first)",
        mutable_ready
    )]
    #[property(
        name = "attach", get, set, type = Attach, member = attach,
        default = Settings::default().attach,
        nick = "Attach",
        blurb = "Metadata to attach for each survivor",
        mutable_playing
    )]
    #[property(
        name = "keep-tensors", get, set, type = bool, member = keep_tensors,
        default = Settings::default().keep_tensors,
        nick = "Keep tensors",
        blurb = "Whether the tensors stay on the buffer (with tensors-from, those of that element); set it \
                 to false on the first of several nmsfilter elements that follow one another, and with \
                 DeepStream, so that nvinfer has its memory again before the buffer is pushed",
        mutable_playing
    )]
    #[property(
        name = "tensors-from", get, set, type = Option<String>, member = tensors_from,
        nick = "Tensors from",
        blurb = "The inference element whose tensors are decoded, if several upstream attach tensors: the \
                 name of an ortinference, or the element's number in their order, from 0 (unset: 0, with \
                 a warning if there are several). Digits are always a number. With DeepStream, set \
                 unique-id instead",
        mutable_ready
    )]
    #[property(
        name = "unique-id", get, set, type = u32, member = unique_id,
        default = Settings::default().unique_id,
        nick = "Unique id",
        blurb = "With DeepStream, the unique-id of the inference element whose tensors are decoded (0: the \
                 lowest in the batch)",
        mutable_ready
    )]
    #[property(
        name = "deepstream-version", get, set, type = Option<String>, member = deepstream_version,
        nick = "DeepStream version",
        blurb = "Version of DeepStream, such as 7.1, whose structures the metadata has; an error if they have \
                 other sizes (unset: what DeepStream's libraries report, or for an unknown version that of the \
                 same sizes, with a warning)",
        mutable_ready
    )]
    #[property(
        name = "nvinfer-config", get, set, type = Option<String>, member = nvinfer_config,
        nick = "Configuration of nvinfer",
        blurb = "Configuration file of nvinfer of at most 1 MiB, text or YAML, whose thresholds, limits, sizes and \
                 colors of classes, labels, letterbox and unique-id apply. A property that is set, even to its \
                 default, replaces that of the file: one for all classes that of class-attrs-all, one with a list \
                 of classes those of these classes",
        mutable_ready
    )]
    settings: Mutex<Settings>,
    /// `None` before start, after stop, and while `transform_ip` processes a frame.
    session: Mutex<Option<Session>>,
    counter: Mutex<FrameCounter>,
}

#[glib::object_subclass]
impl ObjectSubclass for NmsFilter {
    const NAME: &'static str = "GstNmsFilter";
    const ALLOW_NAME_CONFLICT: bool = true;
    type Type = super::NmsFilter;
    type ParentType = gst_base::BaseTransform;
}

/// All properties except `stats` are derived: the derive macro does not support `GstStructure`.
impl ObjectImpl for NmsFilter {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
            let stats = glib::ParamSpecBoxed::builder::<gst::Structure>("stats")
                .nick("Stats")
                .blurb(
                    "Since the element started: frames, frames-without-tensors, frames-lost (their \
                     tensors were in the memory of a GPU that failed), candidates, survivors, \
                     labels (of survivors, the most frequent first, at most 100) and label-counts, \
                     rejected (anchors whose numbers are no box, or whose box is outside the \
                     frame; with multi-label, pairs of anchor and class), engine (of the last \
                     frame), bytes-uploaded and bytes-downloaded (to and from the GPU), \
                     column-bytes-downloaded and mask-bytes-downloaded (the parts of \
                     bytes-downloaded that are keypoints and coefficients, and masks), launches \
                     (on the GPU), rounds (sum of the dependency depths there), device-time-mean \
                     (ns per launch, by the GPU's clock), time-mean, time-p50 and time-p99 (ns per \
                     buffer, which can be a batch of frames)",
                )
                .read_only()
                .build();
            let derived = NmsFilter::derived_properties().iter().cloned();
            derived.chain([stats]).collect()
        });
        &PROPERTIES
    }

    fn property(&self, id: usize, spec: &glib::ParamSpec) -> glib::Value {
        match spec.name() {
            "stats" => lock(&self.counter).structure().to_value(),
            _ => self.derived_property(id, spec),
        }
    }

    fn set_property(&self, id: usize, value: &glib::Value, spec: &glib::ParamSpec) {
        if property::accepts(*CAT, self.obj().upcast_ref(), value, spec) {
            self.derived_set_property(id, value, spec);
            lock(&self.settings).was_set.insert(spec.name());
        }
    }
}

impl GstObjectImpl for NmsFilter {}

impl ElementImpl for NmsFilter {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Non-maximum suppression filter",
                "Filter/Analyzer/Video",
                "Decodes detector tensors on video buffers, suppresses duplicate detections and \
                 attaches the survivors as regions of interest",
                "The nmsfilter authors",
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let caps = any_video();
            #[cfg(feature = "v1_28")]
            let caps = {
                let mut caps = caps;
                caps.merge(analytics_batch::any_batch());
                caps
            };
            filter_templates(&caps)
        });
        &TEMPLATES
    }
}

impl BaseTransformImpl for NmsFilter {
    const MODE: gst_base::subclass::BaseTransformMode =
        gst_base::subclass::BaseTransformMode::AlwaysInPlace;
    // Metadata is attached to every buffer, so the element is never in passthrough mode.
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = true;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let properties = lock(&self.settings).clone();
        let path = properties.nvinfer_config.as_deref().filter(|path| !path.is_empty());
        let nvinfer = path.map(NvinferConfig::load).transpose().map_err(|error| {
            gst::error_msg!(gst::LibraryError::Settings, ("{error}"), ["{error:?}"])
        })?;
        let nvinfer = nvinfer.map(Arc::new);
        let settings = properties.with_nvinfer(nvinfer.as_ref());
        let ordinal = u32::try_from(settings.cuda_device_id).ok();
        let selection = engine::select(settings.backend.into(), ordinal).map_err(|error| {
            gst::error_msg!(
                gst::LibraryError::Init,
                ("{error}; backend=cuda needs an NVIDIA GPU, backend=auto does without"),
                ["backend {:?}, cuda-device-id {}", settings.backend, settings.cuda_device_id]
            )
        })?;
        if let Err(error @ SettingsError::NoAnalytics) = settings.check() {
            return Err(gst::error_msg!(
                gst::LibraryError::Settings,
                ("{error}"),
                ["built without the feature v1_24"]
            ));
        }
        settings.wanted_decoder().map_err(|error| {
            gst::error_msg!(gst::LibraryError::Settings, ("{error}"), ["{error:?}"])
        })?;
        let version = settings.deepstream_version().map_err(|error| {
            gst::error_msg!(gst::LibraryError::Settings, ("{error}"), ["{error:?}"])
        })?;
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
        gst::debug!(CAT, imp = self, "on {}, {} labels", selection.description, labels.count());
        let engine = selection.engine;
        *lock(&self.counter) = FrameCounter::new(engine.name());
        for warning in nvinfer.iter().flat_map(|config| config.warnings(&properties)) {
            gst::element_imp_warning!(self, gst::LibraryError::Settings, ("{warning}"));
        }
        *lock(&self.session) = Some(Session::new(engine, labels, deepstream, properties, nvinfer));
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        self.end_stream();
        *lock(&self.session) = None;
        Ok(())
    }

    fn set_caps(&self, incaps: &gst::Caps, _outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        #[cfg(feature = "v1_28")]
        if analytics_batch::is_batch(incaps) {
            return self.set_batch_caps(incaps);
        }
        let frame = frame_size(incaps).map_err(|error| gst::loggable_error!(CAT, "{error}"))?;
        #[cfg(feature = "v1_28")]
        self.check_tensors(incaps, frame)?;
        if let Some(session) = lock(&self.session).as_mut() {
            session.set_caps(frame, is_nvmm(incaps));
        }
        Ok(())
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        if event.type_() == gst::EventType::Eos {
            self.end_stream();
        }
        self.parent_sink_event(event)
    }

    /// Forwards the query: the element does not access pixels, so that any allocation is allowed
    /// which downstream supports.
    fn propose_allocation(
        &self,
        _decide_query: Option<&gst::query::Allocation>,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        match self.obj().src_pad().peer_query(query) {
            true => Ok(()),
            false => Err(gst::loggable_error!(CAT, "downstream proposes no allocation")),
        }
    }

    /// Removes the pools: the element never allocates a frame.
    fn decide_allocation(
        &self,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        while query.allocation_pools().next().is_some() {
            query.remove_nth_allocation_pool(0);
        }
        Ok(())
    }

    /// Copies a shared buffer (after a tee, for example) with the metadata that the copy does not have otherwise:
    /// `GstTensorMeta` of GStreamer 1.26, and the sizes of DeepStream's frames.
    fn prepare_output_buffer(
        &self,
        inbuf: InputBuffer,
    ) -> Result<PrepareOutputBufferSuccess, gst::FlowError> {
        match inbuf {
            InputBuffer::Writable(_) => Ok(PrepareOutputBufferSuccess::InputBuffer),
            InputBuffer::Readable(shared) => {
                let mut copy = shared.copy();
                #[cfg(feature = "v1_26")]
                crate::input::tensor_meta::copy(shared, copy.make_mut());
                if let Some(session) = &mut *lock(&self.session) {
                    // An error is that of the copy, too, and is reported when that is read.
                    let _ = session.complete_copy(shared, copy.make_mut());
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
            return Err(gst::FlowError::Flushing);
        };
        session.update_settings(&lock(&self.settings));
        let result = session.process(&self.obj(), buffer).copied();
        let failure = session.decoder.take_failure();
        if result.is_ok() {
            lock(&self.counter).count_labels(session.labels());
        }
        let context = result.as_ref().err().map(|_| session.to_string());
        if let Some(description) = session.take_description() {
            gst::debug!(CAT, imp = self, "on {description}");
        }
        *lock(&self.session) = Some(session);

        if let Some(failure) = failure {
            self.warn_of_cpu_fallback(&failure);
        }
        match result {
            Ok(FrameCounts {
                frames: 0, frames_lost: 0, frames_without_tensors: frames, ..
            }) => {
                // There are no frames at all in a batch of which no stream has one.
                if frames > 0 {
                    self.count_without_tensors(frames, buffer.pts());
                }
            }
            Ok(counts) => {
                gst::trace!(
                    CAT,
                    imp = self,
                    "{} frames, {} candidates, {} survivors, {} rejected",
                    counts.frames,
                    counts.candidates,
                    counts.survivors,
                    counts.rejected,
                );
                lock(&self.counter).count(&counts, start.elapsed());
            }
            Err(error) => {
                lock(&self.counter).set_has_tensors();
                let properties = property::non_default(self.obj().upcast_ref());
                let context = format!("{}; {properties}", context.unwrap_or_default());
                self.post_error_message(error.message(&context));
                return Err(gst::FlowError::Error);
            }
        }
        Ok(gst::FlowSuccess::Ok)
    }
}

impl NmsFilter {
    /// Posts an error if no decoder reads the tensors in the caps of frames of this size.
    #[cfg(feature = "v1_28")]
    fn check_tensors(&self, caps: &gst::Caps, frame: [u32; 2]) -> Result<(), gst::LoggableError> {
        let settings = lock(&self.settings).clone();
        super::tensor_caps::check(caps, &settings, frame).map_err(|error| {
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
    #[cfg(feature = "v1_28")]
    fn set_batch_caps(&self, caps: &gst::Caps) -> Result<(), gst::LoggableError> {
        for caps in analytics_batch::streams(caps) {
            if let Ok(frame) = frame_size(&caps) {
                self.check_tensors(&caps, frame)?;
            }
        }
        if let Some(session) = lock(&self.session).as_mut() {
            session.set_has_streams();
        }
        Ok(())
    }

    /// Posts a warning with the reason why the GPU is not used any more.
    fn warn_of_cpu_fallback(&self, why: &dyn std::fmt::Display) {
        gst::element_imp_warning!(
            self,
            gst::LibraryError::Failed,
            ("{why}; decoding continues on the CPU"),
            ["set backend=cpu to avoid this warning"]
        );
    }

    /// Counts the frames of a buffer without tensors. A warning is posted once if the first second of the
    /// stream has none.
    fn count_without_tensors(&self, frames: usize, pts: Option<gst::ClockTime>) {
        gst::trace!(CAT, imp = self, "no tensors on this buffer");
        let late = lock(&self.counter).count_without_tensors(frames, pts);
        if late {
            self.warn_of_missing_tensors("first second");
        }
    }

    fn warn_of_missing_tensors(&self, period: &str) {
        let session = lock(&self.session);
        let text = session.as_ref().and_then(|session| session.decoder.warnings.no_tensors(period));
        drop(session);
        // No lock is held while the message is posted.
        if let Some(text) = text {
            gst::element_imp_warning!(self, gst::StreamError::Format, ("{text}"));
        }
    }

    /// Posts the warnings that are due at the end of the stream, and the counts. No lock is held meanwhile.
    fn end_stream(&self) {
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
