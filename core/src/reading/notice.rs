// SPDX-License-Identifier: MIT OR Apache-2.0
//! The notices of a reading, as values, and their texts.

use std::fmt;
use std::mem::{Discriminant, discriminant};

use super::evidence::GREATEST_ANGLE;
use super::interpretation::ReadBoxes;
use crate::decoder::classifier::{self, ClassScore};
use crate::decoder::model_family::ModelFamily;
use crate::wording::Setting::{
    self, Background, ClassThresholds, Classes, Coordinates, Exclusion, Labels, ModelSize,
    NumClasses, Quantization, ScoreActivation, ScoreThreshold,
};

/// A notice that tensors, settings or results are probably not what the user intended. Its text has the names of
/// settings in Rust, which a host replaces ([`phrase`](crate::wording::phrase)).
#[derive(Clone, Debug, PartialEq)]
pub struct Notice(pub(super) Finding);

/// The kind of a notice, whatever its numbers are; of a classifier's output, one for each output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NoticeKind(Discriminant<Finding>, Option<(usize, Discriminant<ClassFinding>)>);

/// A fact that contradicts how the tensors are read. `model` is the width and height of the model's input.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum Finding {
    // A decoder or setting, and the tensor or model family that it contradicts.
    #[error("decoder {decoder} reads the tensors, but {family}")]
    Family { decoder: &'static str, family: ModelFamily },
    #[error(
        "decoder {decoder} reads the tensor {tensor}, whose id belongs to decoder {other}; unset {}, or correct the \
         tensor's id",
        Setting::Decoder
    )]
    Id { decoder: &'static str, tensor: String, other: &'static str },
    #[error(
        "decoder {decoder} reads rows of six numbers in tensor {tensor} as a box and {classes} {}, but six numbers are \
         usually a box, a score and a class; set {}, or {} if the model has that many",
        if *classes == 1 { "class" } else { "classes" }, Setting::Decoder.to(other), NumClasses.to(classes)
    )]
    SixColumns { decoder: &'static str, tensor: String, classes: usize, other: &'static str },
    #[error(
        "decoder {decoder} reads rows of 85 numbers in tensor {tensor} as a box and 81 classes, but 85 numbers are usually a \
         box, objectness and the 80 classes of COCO; set {} or {}, or {} if the model has that many",
        Setting::Decoder.to("yolov5"), Setting::Decoder.to("yolox"), NumClasses.to(81)
    )]
    CocoColumns { decoder: &'static str, tensor: String },
    #[error(
        "decoder {decoder} reads {rows} rows of tensor {tensor} as boxes with {classes} class scores each, but models \
         with so few rows are usually end to end; set {}, or {} if the model has that many",
        Setting::Decoder.to(other), NumClasses.to(classes)
    )]
    FewRows {
        decoder: &'static str,
        tensor: String,
        rows: usize,
        classes: usize,
        other: &'static str,
    },
    #[error(
        "{}{ScoreThreshold}{} is {lowest} or more, but scores of decoder {decoder} are probabilities from 0 to 1, so \
         nothing is detected; set it to less than 1, such as 0.5",
        if *has_class_thresholds { "the least of " } else { "" },
        if *has_class_thresholds { format!(" and {ClassThresholds}") } else { String::new() }
    )]
    Threshold { has_class_thresholds: bool, lowest: f32, decoder: &'static str },
    #[error(
        "{} has none of the {count} classes (0 to {}) that decoder {decoder} reads, so nothing is detected; correct \
         {Classes}",
        Classes.to(listed), count - 1
    )]
    NoListedClass { listed: String, count: usize, decoder: &'static str },
    #[error(
        "each of the {count} classes that decoder {decoder} reads is excluded, so nothing is detected; correct \
         {Exclusion}"
    )]
    NoClass { count: usize, decoder: &'static str },
    #[error(
        "the scores in tensor {tensor} are multiples of its scale {scale}, but scores of decoder {decoder} are \
         probabilities from 0 to 1, so most of them are lost; export the model with a scale for the scores alone, or not \
         quantized, or correct {Quantization}"
    )]
    CoarseScores { tensor: String, scale: f32, decoder: &'static str },
    #[error(
        "decoder {decoder} does not read the tensor {tensor}, which seems to belong to the tensors that it reads; if it \
         {unread}"
    )]
    UnreadTensor { decoder: &'static str, tensor: String, unread: String },
    #[error(
        "decoder {decoder} reads {queries} queries of {classes} classes in tensor {tensor}, but such models have a few \
         hundred queries; correct {}",
        Setting::Decoder
    )]
    Queries { decoder: &'static str, tensor: String, queries: usize, classes: usize },
    #[error(
        "{corners} of {all} boxes in tensor {tensor} are corners, but decoder {decoder} reads {}, so boxes are wrong; correct \
         {}, or the tensor's id or signature that decides it",
        if *has_offsets { "offsets" } else { "centers and sizes" }, Setting::Decoder
    )]
    Corners { decoder: &'static str, tensor: String, corners: usize, all: usize, has_offsets: bool },
    #[error(
        "all scores in tensor {tensor} are from 0 to 1, but decoder {decoder} takes them for logits, so scores are wrong; set \
         {}",
        ScoreActivation.to("none")
    )]
    Probabilities { decoder: &'static str, tensor: String },
    #[error(
        "{0} has no effect: the boxes of decoder {decoder} have a fixed format; unset {0}",
        Setting::BoxFormat
    )]
    UnusedBoxFormat { decoder: &'static str },
    // Numbers that cannot occur if the tensors are read correctly.
    #[error(
        "a score is {score}, but scores of decoder {decoder} are probabilities from 0 to 1, so the tensors belong to \
         another model family, and boxes and classes are wrong; correct {}",
        Setting::Decoder
    )]
    Score { score: f32, decoder: &'static str },
    #[error(
        "a score is {score}, and {ScoreThreshold} is {threshold}: scores above 1 are not probabilities, but logits, \
         percentages or class numbers; correct {}, export the model with probabilities, or set {ScoreThreshold} to a \
         score of this kind",
        Setting::Decoder
    )]
    UnboundedScore { score: f32, threshold: f32 },
    #[error(
        "all {anchors} anchors are rejected: their numbers are NaN or infinite, or their boxes {}; check the model and \
         {}; {reading}",
        reading.fault(), Setting::Decoder
    )]
    AllRejected { anchors: usize, reading: ReadBoxes },
    #[error(
        "anchors rejected: {rejected}, candidates: {candidates}; most numbers are not boxes, or their boxes {}; {reading}",
        reading.fault()
    )]
    Rejected { rejected: usize, candidates: usize, reading: ReadBoxes },
    #[error(
        "all {boxes} boxes are within the first pixel{}, so they are probably normalized; set {}{}: auto is the unit of \
         the decoder's models and does not look at the numbers",
        of_input(*model), Coordinates.to("normalized"),
        if model.is_none() { format!(", and {ModelSize} for boxes in pixels") } else { String::new() }
    )]
    Normalized { boxes: usize, model: Option<[f32; 2]> },
    #[error(
        "all {boxes} boxes are in the upper left corner{}: their numbers are not pixels; check {} and {Coordinates}, and \
         that the model is exported with decoded boxes (YOLOX: --decode_in_inference)",
        of_input(*model), Setting::Decoder
    )]
    InCorner { boxes: usize, model: Option<[f32; 2]> },
    #[error(
        "{candidates} of {anchors} anchors are candidates, but in a detector's output most are background: decoder \
         {decoder} probably reads objectness as the score of class 0; set {} or {}",
        Setting::Decoder.to("yolov5"), Setting::Decoder.to("yolox")
    )]
    NoBackground { candidates: usize, anchors: usize, decoder: &'static str },
    #[error(
        "the scores of all {anchors} boxes reach the threshold: if the first of the two scores is the background's, set {}",
        Setting::Decoder.to("ultraface")
    )]
    BackgroundClass { anchors: usize },
    #[error(
        "{boxes} of {all} boxes reach beyond the model's input by more than a tenth of its size, so they are probably \
         corners, but decoder {decoder} reads them as center and size; set {}",
        Setting::Decoder.to("end2end")
    )]
    Beyond { boxes: usize, all: usize, decoder: &'static str },
    #[error(
        "{boxes} of {all} boxes are many times larger than the model's input of {}x{}; {reading}",
        model[0], model[1]
    )]
    Huge { boxes: usize, all: usize, model: [f32; 2], reading: ReadBoxes },
    #[error(
        "{boxes} of {all} boxes reach beyond the model's input by more than a tenth of its size; {reading}, and check that \
         the model is exported with decoded boxes (YOLOX: --decode_in_inference)"
    )]
    Outside { boxes: usize, all: usize, reading: ReadBoxes },
    #[error(
        "a box has class {class}, but classes of decoder {decoder} begin with {first}, so boxes get the labels of other \
         classes; correct {}, or describe the output in a layout whose classes begin with {class}",
        Setting::Decoder
    )]
    ClassBeforeFirst { class: u32, first: u32, decoder: &'static str },
    #[error(
        "a box has class {class}, but there are {labels} labels, for classes {first} to {}, so labels are probably those \
         of other classes; check {Labels}, and with which number the classes of decoder {decoder} begin",
        *labels as u32 + first - 1
    )]
    ClassWithoutLabel { class: u32, labels: usize, first: u32, decoder: &'static str },
    #[error(
        "{candidates} of {anchors} anchors are candidates, and nearly all boxes have class {class}, the {background} one, \
         which is probably the background; set {}, and for DETR {}",
        Background.to(background), ScoreActivation.to("softmax")
    )]
    BackgroundColumn { candidates: usize, anchors: usize, class: u32, background: &'static str },
    #[error(
        "{far} of {all} keypoints are far from their boxes, so they are not keypoints, or have another unit than the \
         boxes; correct {}, or describe the output in a layout with a unit for the points",
        Setting::Decoder
    )]
    Points { far: usize, all: usize },
    #[error(
        "an oriented box has an angle of {angle} radians, so angles are probably degrees; export the model with radians, \
         or describe the output in a layout with angle-factor = 0.017453293"
    )]
    Angles { angle: f32 },
    #[error(
        "a box has an angle of {angle} radians, so angles are probably degrees; multiply them by 0.017453293"
    )]
    BoxAngles { angle: f32 },
    /// Nothing is found.
    #[error("no detection in {text}")]
    Silence {
        text: String,
        /// The class of the best score that the text names.
        class: Option<u32>,
    },
    /// An output of a classifier, and its tensor.
    #[error("tensor {tensor}: {found}")]
    Class { output: usize, tensor: String, found: ClassFinding },
}

/// A fact that contradicts how an output of a classifier is read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum ClassFinding {
    #[error(
        "it alone is read as scores of classes, and not {ignored}: an output is read if its number of classes is \
         {NumClasses} and, beside an output with one of the ids {} and {}, if it has such an id, too",
        classifier::IDS[0].0, classifier::IDS[1].0
    )]
    Ignored { ignored: String },
    #[error(
        "all of its numbers are whole, so they are probably no scores but a sequence, as of characters, or classes; read \
         such tensors in the application, or set {ScoreActivation} if they are scores"
    )]
    Whole,
    #[error(
        "the score of class {} is {}, so that the image has no class; expected finite numbers: correct the model, or the \
         range of its input",
        .0.class, .0.score
    )]
    NotFinite(ClassScore),
    #[error(
        "its numbers are probabilities, and softmax makes them almost equal; set {}, or give the tensor the id {}",
        ScoreActivation.to("none"), classifier::IDS[1].0
    )]
    Probabilities,
    #[error(
        "the score of class {} is {}, so the numbers are no probabilities; set {ScoreActivation} to softmax or sigmoid, or \
         to none if the scores are final",
        .0.class, .0.score
    )]
    NoProbability(ClassScore),
    #[error(
        "none of {images} images has a class: the best score is {} (class {}), and {ScoreThreshold} is {threshold}; set a \
         lower threshold, or compare the model's input (range, order of colors) with its training",
        best.score, best.class
    )]
    Silence { images: usize, best: ClassScore, threshold: f32 },
}

impl Notice {
    /// The notice of boxes of five numbers, the last of which is an angle.
    pub(crate) fn of_angles(boxes: &[f32]) -> Option<Self> {
        let angles = boxes.iter().skip(4).step_by(5).map(|angle| angle.abs());
        let angle = angles.fold(0.0, f32::max);
        (angle > GREATEST_ANGLE).then_some(Self(Finding::BoxAngles { angle }))
    }

    /// The kind, of which a host tells one notice.
    pub fn kind(&self) -> NoticeKind {
        let of_output = match &self.0 {
            Finding::Class { output, found, .. } => Some((*output, discriminant(found))),
            _ => None,
        };
        NoticeKind(discriminant(&self.0), of_output)
    }

    /// The class that the notice names, and the output if it is a classifier's, so that a host can add its label.
    pub fn class(&self) -> Option<(Option<usize>, u32)> {
        use ClassFinding::{NoProbability, NotFinite, Silence};
        match &self.0 {
            Finding::Silence { class, .. } => Some((None, (*class)?)),
            Finding::BackgroundColumn { class, .. } => Some((None, *class)),
            Finding::Class {
                output,
                found: NotFinite(best) | NoProbability(best) | Silence { best, .. },
                ..
            } => Some((Some(*output), best.class)),
            _ => None,
        }
    }

    /// Returns true if the decoder and the settings contradict the tensors, rather than numbers in the tensors the
    /// decoder.
    pub fn is_of_settings(&self) -> bool {
        use Finding::{CoarseScores, Queries, UnreadTensor, UnusedBoxFormat};
        self.explains_silence()
            || matches!(
                self.0,
                CoarseScores { .. } | Queries { .. } | UnreadTensor { .. } | UnusedBoxFormat { .. }
            )
    }

    /// Returns true if nothing is detected, or nothing right, as long as the decoder or the thresholds are not
    /// corrected.
    pub(super) fn explains_silence(&self) -> bool {
        self.is_of_decoder()
            || matches!(
                self.0,
                Finding::Threshold { .. } | Finding::NoClass { .. } | Finding::NoListedClass { .. }
            )
    }

    /// Returns true if the decoder, and so the number of classes, is probably wrong.
    pub fn is_of_decoder(&self) -> bool {
        use Finding::{CocoColumns, Family, FewRows, Id, SixColumns};
        matches!(
            self.0,
            Family { .. } | Id { .. } | SixColumns { .. } | CocoColumns { .. } | FewRows { .. }
        )
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names the size of the model's input, if it is known.
fn of_input(model: Option<[f32; 2]>) -> String {
    model.map_or_else(String::new, |[width, height]| {
        format!(" of the model's input of {width}x{height}")
    })
}
