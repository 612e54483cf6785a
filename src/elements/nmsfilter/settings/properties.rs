// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of the element's properties, without the numbers and truth values of the core's table,
//! [`Params::SCALARS`].

use std::collections::BTreeSet;
use std::sync::Arc;

use super::nvinfer_config::NvinferConfig;
use crate::elements::nmsfilter::enums::{
    Backend, Background, BoxFormat, Channels, Coordinates, Decoder, MaskSize, Method,
    NmsFilterLetterbox, Overlap, PointLayout, RegionEdges, ScoreActivation,
};
use crate::input::model::MAX_MODEL_SIDE;
use crate::output::Kinds;
use crate::settings;
use nmsfilter_core::decoder::MAX_CLASSES;
use nmsfilter_core::engine::Params;

settings! {
/// The values of the properties.
pub(in crate::elements::nmsfilter) struct Settings {
    decoder: Decoder; "Decoder", playing,
        "Which decoder reads the tensors: the model family that they come from. A classifier has no boxes: its \
         classes are attached to the object that the tensors belong to, or to the frame";
    box_format: BoxFormat; "Box format", playing,
        "What the numbers of a box are; for decoder=boxes only";
    coordinates: Coordinates; "Coordinates", playing,
        "Unit of the box coordinates in the tensors";
    channels: Channels; "Channels", playing,
        "Whether the numbers of an anchor or pixel are before or after the anchors in the tensors' dimensions, where \
         their shapes fit both, as [1,84,84] of YOLOv8 or a model with [1,64,64,64] alone";
    method: Method; "Method", playing,
        "Which candidates survive, with which boxes and scores. A candidate outranks another by higher score, at \
         equal scores by lower anchor index; map-reduce does so, too, where the paper keeps both of two equal \
         scores";
    overlap: Overlap; "Overlap", playing,
        "Overlap measure: two boxes conflict when they intersect and this holds; t is iou-threshold";
    pixel_offset: u32, 0..=1; "Pixel offset", playing,
        "Pixels added to the sides of boxes and intersections when areas are computed (1: as in older programs)";
    classes: Option<String>; "Classes", playing,
        "Classes to keep, by number or by the label that regions have, as in person,7 (unset: all). A label stands \
         for all classes that have it; a number is always a class number. A comma in a label is written \\, (\\\\, \
         with gst-launch-1.0) and a backslash \\\\";
    class_thresholds: Option<String>; "Class thresholds", playing,
        "Score thresholds of single classes, as in person:0.5,7:0.3 (other classes: score-threshold). Classes are \
         written as in the property classes";
    class_iou_thresholds: Option<String>; "Class IoU thresholds", playing,
        "IoU thresholds of single classes, as in person:0.5,7:0.3 (other classes: iou-threshold); with \
         class-agnostic=true, the class is that of the box of lower rank. Classes are written as in the property \
         classes";
    class_max_detections: Option<String>; "Class max detections", playing,
        "Maximum numbers of survivors of single classes, as in person:100,7:20 (other classes, and 0: no limit). The \
         highest-ranked are kept, and of these at most max-detections. Classes are written as in the property \
         classes";
    class_sizes: Option<String>; "Class sizes", playing,
        "Minimum and maximum width and height of candidates of single classes, in pixels of the frame, as in \
         person:16x32..400x800,7:..64x64 (other classes: min-size and max-size). Classes are written as in the \
         property classes";
    min_size: f32, 0.0..=f32::MAX; "Min size", playing,
        "Minimum width and height of a candidate in pixels of the frame (0: no limit)";
    max_size: f32, 0.0..=f32::MAX; "Max size", playing,
        "Maximum width and height of a candidate in pixels of the frame (0: no limit)";
    region_edges: RegionEdges; "Region edges", playing,
        "Boxes that touch an inner edge of their region, such as a tile. An edge is inner if it is more than \
         edge-margin pixels away from the frame's edge; whole frames have no inner edges";
    mask_size: MaskSize; "Mask size", playing,
        "The pixels of masks. A mask covers the box of its region only";
    score_activation: ScoreActivation; "Score activation", playing,
        "Function that turns the tensors' scores into probabilities; softmax needs two scores for each anchor, also \
         if one is that of the background. That of a classifier is softmax, unless its id or model says that its \
         scores are probabilities";
    background: Background; "Background", playing,
        "Which of an anchor's scores is that of the background, also called \"no object\", and of no class. After \
         the first score, the next is that of class 0, or of class 1 if num-classes, or else the number of labels, \
         counts the background";
    keypoint_layout: PointLayout; "Keypoint layout", playing,
        "Meaning of the keypoints of every class, by which they are named in metadata and connected by lines, if \
         there are as many";
    layout_file: Option<String>; "Layout file", playing,
        "Text file in UTF-8 that describes the tensors, for decoder=layout only: which are the boxes and the scores, \
         and how they are computed";
    quantization: Option<String>; "Quantization", playing,
        "Scale and zero point of tensors of type i8 or u8, as in output0:0.00390625:-128,boxes:0.5:3: an element q \
         stands for (q - zero point) x scale (unset: those of the tensors' metadata, which this replaces). A comma \
         in an id is written \\,";
    label_file: Option<String>; "Label file", ready,
        "Text file in UTF-8 of at most 4 MiB with one label per line, the first for class 0; an empty line is a \
         class without a label. Lines can begin with class numbers, as in 4: blue, and the file can be a JSON list \
         or dictionary (unset or empty: the labels of the tensors' model description, else names of the decoder or \
         numbers)";
    num_classes: u32, 0..=MAX_CLASSES as u32; "Number of classes", playing,
        "Number of classes of the model (0: unknown). Tensors with another number are an error; decoder=auto accepts \
         a YOLOv8 output with this number by its shape, or if it is 0, with the number of labels";
    keypoint_shape: Option<String>; "Keypoint shape", playing,
        "Number of keypoints of a detection and of the numbers of each, as in 17x3: 2 for x and y, 3 with a \
         visibility (unset: that of the tensors' model description)";
    model_width: u32, 0..=MAX_MODEL_SIDE; "Model width", playing,
        "Width of the model's input in pixels (0, if model-height is 0 too: that of the tensors' model description, \
         else that of the frame)";
    model_height: u32, 0..=MAX_MODEL_SIDE; "Model height", playing,
        "Height of the model's input in pixels (0, if model-width is 0 too: that of the tensors' model description, \
         else that of the frame)";
    letterbox: NmsFilterLetterbox; "Letterbox", playing,
        "How the frame was fitted into the model's input; center and top-left need the size of the model's input, \
         from the tensors' model description or from model-width and model-height";
    backend: Backend; "Backend", ready,
        "Where tensors are decoded and duplicates suppressed";
    cuda_device_id: i32 = -1, -1..=i32::MAX; "CUDA device id", ready,
        "Number of the GPU to use (-1: the one in whose memory the tensors are, or the first)";
    attach: Kinds = Kinds::all(); "Attach", playing,
        "Metadata to attach for each survivor";
    keep_tensors: bool = true; "Keep tensors", playing,
        "Whether the tensors stay on the buffer (with tensors-from, those of that element); set it to false on the \
         first of several nmsfilter elements that follow one another, and with DeepStream, so that nvinfer has its \
         memory again before the buffer is pushed";
    tensors_from: Option<String>; "Tensors from", ready,
        "The inference element whose tensors are decoded, if several upstream attach tensors: the name of an \
         ortinference, or the element's number in their order, from 0 (unset: 0, with a warning if there are \
         several). Digits are always a number. With DeepStream, set unique-id instead";
    unique_id: u32; "Unique id", ready,
        "With DeepStream, the unique-id of the inference element whose tensors are decoded, on frames, on objects or \
         on regions of interest (0: the lowest on the frames of the batch)";
    deepstream_version: Option<String>; "DeepStream version", ready,
        "Version of DeepStream, such as 7.1, whose structures the metadata has; an error if they have other sizes \
         (unset: what DeepStream's libraries report, or for an unknown version that of the same sizes, with a \
         warning)";
    nvinfer_config: Option<String>; "Configuration of nvinfer", ready,
        "Configuration file of nvinfer of at most 1 MiB, text or YAML, whose thresholds, limits, sizes and colors of \
         classes, labels, letterbox and unique-id apply. A property that is set, even to its default, replaces that \
         of the file: one for all classes that of class-attrs-all, one with a list of classes those of these \
         classes";
} and {
    /// The parameters in the core's table. All other fields have their defaults.
    scalars: Params = Params { max_detections: 1000, ..Params::default() };
    /// The names of the properties that were set.
    was_set: BTreeSet<&'static str> = BTreeSet::new();
    /// The configuration of nvinfer that these values have been taken from, where a property was not set.
    nvinfer: Option<Arc<NvinferConfig>> = None;
}
}
