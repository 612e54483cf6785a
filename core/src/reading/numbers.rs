// SPDX-License-Identifier: MIT OR Apache-2.0
//! Contradictions between numbers and the way in which the tensors are read, and their texts.

use std::fmt;

use crate::decoder::BoxFormat;
use crate::names::{Interface, Name, Value};

/// Numbers that cannot occur if the tensors are read correctly. `model` is the width and height of the model's
/// input.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NumberContradiction {
    Score { score: f32, decoder: &'static str },
    UnboundedScore { score: f32, threshold: f32 },
    AllRejected { anchors: usize, reading: ReadBoxes },
    Rejected { rejected: usize, candidates: usize, reading: ReadBoxes },
    Normalized { boxes: usize, model: [f32; 2] },
    InCorner { boxes: usize, model: [f32; 2] },
    NoBackground { candidates: usize, anchors: usize, decoder: &'static str },
    BackgroundClass { anchors: usize },
    Huge { boxes: usize, all: usize, model: [f32; 2], reading: ReadBoxes },
    Beyond { boxes: usize, all: usize, decoder: &'static str },
    ClassBeforeFirst { class: u32, first: u32, decoder: &'static str },
    Points { far: usize, all: usize },
    Angles { angle: f32 },
}

impl NumberContradiction {
    /// Writes the text with the names of an interface.
    pub fn write(&self, f: &mut fmt::Formatter<'_>, names: Interface) -> fmt::Result {
        let (decoder, coordinates) = (names.name(Name::Decoder), names.name(Name::Coordinates));
        let threshold = names.name(Name::ScoreThreshold);
        let set_decoder = |name| names.value(Value::Decoder(name));
        match self {
            Self::Score { score, decoder: name } => write!(
                f,
                "a score is {score}, but scores of decoder {name} are probabilities from 0 to 1, so the tensors \
                 belong to another model family, and boxes and classes are wrong; correct {decoder}"
            ),
            Self::UnboundedScore { score, threshold: set } => write!(
                f,
                "a score is {score}, and {threshold} is {set}: scores above 1 are not probabilities, but \
                 logits, percentages or class numbers; correct {decoder}, export the model with probabilities, or \
                 set {threshold} to a score of this kind"
            ),
            Self::AllRejected { anchors, reading } => write!(
                f,
                "all {anchors} anchors are rejected: their numbers are NaN or infinite, or their boxes {}{}; check \
                 the model and {decoder}; {}",
                if reading.in_frame { "are outside the frame" } else { "have negative sides" },
                reading.rejected_classes(),
                reading.advice(names)
            ),
            Self::Rejected { rejected, candidates, reading } => write!(
                f,
                "anchors rejected: {rejected}, candidates: {candidates}; most numbers are not boxes, or are boxes \
                 {}{}; {}",
                if reading.in_frame { "outside the frame" } else { "with negative sides" },
                reading.rejected_classes(),
                reading.advice(names)
            ),
            Self::Normalized { boxes, model: [width, height] } => write!(
                f,
                "all {boxes} boxes are within the first pixel of the model's input of {width}x{height}, so they are \
                 probably normalized; set {}",
                names.value(Value::NormalizedCoordinates)
            ),
            Self::InCorner { boxes, model: [width, height] } => write!(
                f,
                "all {boxes} boxes are in the upper left corner of the model's input of {width}x{height}: their \
                 numbers are not pixels; check {decoder} and {coordinates}, and that the model is exported with \
                 decoded boxes (YOLOX: --decode_in_inference)"
            ),
            Self::NoBackground { candidates, anchors, decoder: name } => write!(
                f,
                "{candidates} of {anchors} anchors are candidates, but in a detector's output most are background: \
                 decoder {name} probably reads objectness as the score of class 0; set {} or {}",
                set_decoder("yolov5"),
                set_decoder("yolox")
            ),
            Self::BackgroundClass { anchors } => write!(
                f,
                "the scores of all {anchors} boxes reach the threshold: if the first of the two scores is the \
                 background's, set {}",
                set_decoder("ultraface")
            ),
            Self::Huge { boxes, all, model: [width, height], reading } => write!(
                f,
                "{boxes} of {all} boxes are many times larger than the model's input of {width}x{height}; {}",
                reading.advice(names)
            ),
            Self::Beyond { boxes, all, decoder: name } => write!(
                f,
                "{boxes} of {all} boxes reach beyond the model's input by more than a tenth of its size, so they are \
                 probably corners, but decoder {name} reads them as center and size; set {}",
                set_decoder("end2end")
            ),
            Self::ClassBeforeFirst { class, first, decoder: name } => write!(
                f,
                "a box has class {class}, but classes of decoder {name} begin with {first}, so boxes get the labels \
                 of other classes; correct {decoder}, or describe the output in a layout whose classes begin with \
                 {class}"
            ),
            Self::Points { far, all } => {
                write!(
                    f,
                    "{far} of {all} keypoints are far from their boxes, so they are not keypoints, or have another \
                     unit than the boxes; correct {decoder}, or describe the output in a layout with a unit for the \
                     points"
                )
            }
            Self::Angles { angle } => write!(
                f,
                "an oriented box has an angle of {angle} radians, so angles are probably degrees; export the model with \
                 radians, or describe the output in a layout with angle-factor = 0.017453293"
            ),
        }
    }
}

/// How boxes and classes are read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadBoxes {
    /// True if coordinates are read as normalized.
    pub normalized: bool,
    /// Width and height of the model's input in pixels; `None` if unknown.
    pub model: Option<[f32; 2]>,
    /// True if boxes outside a frame are rejected.
    pub in_frame: bool,
    /// The meaning of a box's numbers.
    pub format: BoxFormat,
    /// True if classes are numbers in a tensor. An anchor is rejected if its number is negative or not whole.
    pub class_field: bool,
}

impl ReadBoxes {
    /// Says for which classes anchors are rejected.
    fn rejected_classes(self) -> &'static str {
        if self.class_field {
            ", or the class column has numbers that are negative or not whole, so it does not contain classes"
        } else {
            ""
        }
    }

    /// Whether boxes are corners beside a class, as those of end-to-end models, of which RT-DETR has centers and sizes.
    fn can_be_centers(self) -> bool {
        self.format == BoxFormat::Corners && self.class_field
    }

    /// Says how coordinates are read, and what to check.
    fn advice(self, names: Interface) -> Advice {
        Advice { reading: self, names }
    }
}

struct Advice {
    reading: ReadBoxes,
    names: Interface,
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Self { reading: ReadBoxes { normalized, model, .. }, names } = self;
        let (decoder, format) = (names.name(Name::Decoder), names.name(Name::BoxFormat));
        if normalized {
            let pixels = names.value(Value::PixelCoordinates);
            write!(
                f,
                "coordinates are read as normalized: set {pixels} if they are pixels, or correct {decoder} or {format}"
            )?;
            return match self.reading.can_be_centers() {
                true => write!(
                    f,
                    ", or set {} if boxes are center and size",
                    names.value(Value::Decoder("detr-end2end"))
                ),
                false => Ok(()),
            };
        }
        f.write_str("coordinates are read as pixels")?;
        if let Some([width, height]) = model {
            write!(f, " of an input of {width}x{height}")?;
        }
        let normalized = names.value(Value::NormalizedCoordinates);
        write!(f, ": set {normalized} if they are from 0 to 1, or correct {decoder}, {format}")?;
        f.write_str(match names {
            Interface::Element => ", model-width and model-height, or letterbox",
            _ => " or the size of the model's input",
        })
    }
}
