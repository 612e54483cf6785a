// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element as GStreamer sees it: its properties, metadata and pads. In: values of properties. Out: settings, `stats`.
#![allow(missing_docs, reason = "the derive macro generates accessors without documentation")]

use std::sync::{LazyLock, Mutex};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;

use super::CAT;
use super::enums::{
    Attach, Backend, Background, BoxFormat, Channels, Coordinates, Decoder, MaskSize, Method,
    NmsFilterLetterbox, Overlap, PointLayout, RegionEdges, ScoreActivation,
};
use super::session::Session;
use super::settings::{Settings, property_name};
use super::stats::Stats;
use crate::elements::{any_video, filter_templates, lock, property};
use crate::input::analytics_batch;
use crate::input::model::MAX_MODEL_SIDE;
use nmsfilter_core::decoder::MAX_CLASSES;
use nmsfilter_core::engine::{Params, Scalar, ScalarKind};

/// The instance data of the element.
#[derive(Default, glib::Properties)]
#[properties(wrapper_type = super::NmsFilter)]
pub struct NmsFilter {
    #[property(
        name = "decoder", get, set, type = Decoder, member = decoder,
        builder(Settings::default().decoder)
            .nick("Decoder")
            .blurb("Which decoder reads the tensors: the model family that they come from. A classifier has no boxes: \
                 its classes are attached to the object that the tensors belong to, or to the frame")
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
        name = "channels", get, set, type = Channels, member = channels,
        builder(Settings::default().channels)
            .nick("Channels")
            .blurb(
                "Whether the numbers of an anchor or pixel are before or after the anchors in the tensors' dimensions, \
                 where their shapes fit both, as [1,84,84] of YOLOv8 or a model with [1,64,64,64] alone",
            )
            .mutable_playing()
    )]
    #[property(
        name = "method", get, set, type = Method, member = method,
        builder(Settings::default().method)
            .nick("Method")
            .blurb(
                "Which candidates survive, with which boxes and scores. A candidate outranks another by \
                 higher score, at equal scores by lower anchor index; map-reduce does so, too, where \
                 the paper keeps both of two equal scores",
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
        name = "pixel-offset", get, set, type = u32, member = pixel_offset,
        maximum = 1, default = Settings::default().pixel_offset,
        nick = "Pixel offset",
        blurb = "Pixels added to the sides of boxes and intersections when areas are computed (1: as in \
                 older programs)",
        mutable_playing
    )]
    #[property(
        name = "classes", get, set, type = Option<String>, member = classes,
        nick = "Classes",
        blurb = "Classes to keep, by number or by the label that regions have, as in person,7 (unset: all). A \
                 label stands for all classes that have it; a number is always a class number. A comma in a label is \
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
        name = "region-edges", get, set, type = RegionEdges, member = region_edges,
        builder(Settings::default().region_edges)
            .nick("Region edges")
            .blurb(
                "Boxes that touch an inner edge of their region, such as a tile. An edge is inner if it is more than \
                 edge-margin pixels away from the frame's edge; whole frames have no inner edges",
            )
            .mutable_playing()
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
                 also if one is that of the background. That of a classifier is softmax, unless its id or model says \
                 that its scores are probabilities",
            )
            .mutable_playing()
    )]
    #[property(
        name = "background", get, set, type = Background, member = background,
        builder(Settings::default().background)
            .nick("Background")
            .blurb(
                "Which of an anchor's scores is that of the background, also called \"no object\", and of no class. After \
                 the first score, the next is that of class 0, or of class 1 if num-classes, or else the number of labels, \
                 counts the background",
            )
            .mutable_playing()
    )]
    #[property(
        name = "keypoint-layout", get, set, type = PointLayout, member = keypoint_layout,
        builder(Settings::default().keypoint_layout)
            .nick("Keypoint layout")
            .blurb(
                "Meaning of the keypoints of every class, by which they are named in metadata and connected by lines, if there \
                 are as many",
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
                 empty line is a class without a label. Lines can begin with class numbers, as in 4: blue, and \
                 the file can be a JSON list or dictionary (unset or empty: the labels of the tensors' model \
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
        name = "keypoint-shape", get, set, type = Option<String>, member = keypoint_shape,
        nick = "Keypoint shape",
        blurb = "Number of keypoints of a detection and of the numbers of each, as in 17x3: 2 for x and y, 3 with a \
                 visibility (unset: that of the tensors' model description)",
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
        blurb = "With DeepStream, the unique-id of the inference element whose tensors are decoded, on frames, on \
                 objects or on regions of interest (0: the lowest on the frames of the batch)",
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
    pub(super) settings: Mutex<Settings>,
    /// `None` before start, after stop, and while `transform_ip` processes a frame.
    pub(super) session: Mutex<Option<Session>>,
    pub(super) stats: Mutex<Stats>,
}

#[glib::object_subclass]
impl ObjectSubclass for NmsFilter {
    const NAME: &'static str = "GstNmsFilter";
    const ALLOW_NAME_CONFLICT: bool = true;
    type Type = super::NmsFilter;
    type ParentType = gst_base::BaseTransform;
}

/// Properties that are neither in the core's table nor `stats` are derived: the derive macro does not support
/// `GstStructure`.
impl ObjectImpl for NmsFilter {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
            let stats = glib::ParamSpecBoxed::builder::<gst::Structure>("stats")
                .nick("Stats")
                .blurb(
                    "Since the element started: frames, frames-without-tensors, frames-lost (their \
                     tensors were in the memory of a GPU that failed), candidates, survivors (of a \
                     classifier: images and their classes), \
                     labels (of survivors, the most frequent first, at most 100) and label-counts, \
                     rejected (anchors whose numbers are no box, or whose box is outside the \
                     frame; with multi-label, pairs of anchor and class; of a classifier, images whose \
                     scores are not finite), engine (of the last \
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
            derived.chain(scalar_properties()).chain([stats]).collect()
        });
        &PROPERTIES
    }

    fn property(&self, id: usize, spec: &glib::ParamSpec) -> glib::Value {
        if spec.name() == "stats" {
            return lock(&self.stats).structure().to_value();
        }
        let scalar = scalar_value(&lock(&self.settings).scalars, spec.name());
        scalar.unwrap_or_else(|| self.derived_property(id, spec))
    }

    fn set_property(&self, id: usize, value: &glib::Value, spec: &glib::ParamSpec) {
        if property::accepts(*CAT, self.obj().upcast_ref(), value, spec) {
            let is_scalar = set_scalar(&mut lock(&self.settings).scalars, spec.name(), value);
            if !is_scalar {
                self.derived_set_property(id, value, spec);
            }
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
                 attaches the survivors as regions of interest; attaches the classes of classifiers to them",
                "The nmsfilter authors",
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let mut caps = any_video();
            caps.merge(analytics_batch::any_batch());
            filter_templates(&caps)
        });
        &TEMPLATES
    }
}

/// The properties, with the element's defaults.
fn scalar_properties() -> impl Iterator<Item = glib::ParamSpec> {
    let defaults = Settings::default().scalars;
    Params::SCALARS.iter().map(move |scalar| scalar_property(scalar, &defaults))
}

fn scalar_property(scalar: &Scalar, defaults: &Params) -> glib::ParamSpec {
    let name = &property_name(scalar);
    match scalar.kind {
        ScalarKind::Flag(flag) => glib::ParamSpecBoolean::builder(name)
            .default_value((flag.get)(defaults))
            .nick(scalar.title)
            .blurb(scalar.text)
            .mutable_playing()
            .build(),
        ScalarKind::Count(count) => glib::ParamSpecUInt::builder(name)
            .default_value((count.get)(defaults) as u32)
            .nick(scalar.title)
            .blurb(scalar.text)
            .mutable_playing()
            .build(),
        ScalarKind::Number { minimum, maximum, field } => glib::ParamSpecFloat::builder(name)
            .minimum(minimum)
            .maximum(maximum)
            .default_value((field.get)(defaults))
            .nick(scalar.title)
            .blurb(scalar.text)
            .mutable_playing()
            .build(),
    }
}

fn find(property: &str) -> Option<&'static Scalar> {
    Params::SCALARS.iter().find(|scalar| property_name(scalar) == property)
}

/// The value of a property, or `None` if the property is not in the table.
fn scalar_value(params: &Params, property: &str) -> Option<glib::Value> {
    Some(match find(property)?.kind {
        ScalarKind::Flag(flag) => (flag.get)(params).to_value(),
        ScalarKind::Count(count) => ((count.get)(params) as u32).to_value(),
        ScalarKind::Number { field, .. } => (field.get)(params).to_value(),
    })
}

/// Sets a property to a value of its type. Returns false if the property is not in the table.
fn set_scalar(params: &mut Params, property: &str, value: &glib::Value) -> bool {
    const TYPE: &str = "GObject passes values of the property's type";
    let Some(scalar) = find(property) else { return false };
    match scalar.kind {
        ScalarKind::Flag(flag) => (flag.set)(params, value.get().expect(TYPE)),
        ScalarKind::Count(count) => {
            (count.set)(params, value.get::<u32>().expect(TYPE) as usize);
        }
        ScalarKind::Number { field, .. } => (field.set)(params, value.get().expect(TYPE)),
    }
    true
}
