// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a reading has to tell, as values, and their texts.

use std::fmt;
use std::mem::{Discriminant, discriminant};

use super::evidence::GREATEST_ANGLE;
use super::silence::Silence;
use crate::decoder::BoxFormat;
use crate::decoder::classifier::{self, ClassScore};
use crate::decoder::model_family::ModelFamily;
use crate::names::{Interface, Name, Value};

/// A notice that tensors, settings or results are probably not what the user intended. `Display` uses the names of the
/// Rust interface.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice(pub(super) Finding);

/// The kind of a notice, whatever its numbers are; of a classifier's output, one for each output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NoticeKind(Discriminant<Finding>, Option<(usize, Discriminant<ClassFinding>)>);

/// A fact that contradicts how the tensors are read. `model` is the width and height of the model's input.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Finding {
    // A decoder or setting, and the tensor or model family that it contradicts.
    Family {
        decoder: &'static str,
        family: ModelFamily,
    },
    Id {
        decoder: &'static str,
        tensor: String,
        other: &'static str,
    },
    SixColumns {
        decoder: &'static str,
        tensor: String,
        classes: usize,
        other: &'static str,
    },
    FewRows {
        decoder: &'static str,
        tensor: String,
        rows: usize,
        classes: usize,
        other: &'static str,
    },
    Threshold {
        has_class_thresholds: bool,
        lowest: f32,
        decoder: &'static str,
    },
    NoClass {
        listed: Option<String>,
        count: usize,
        decoder: &'static str,
    },
    CoarseScores {
        tensor: String,
        scale: f32,
        decoder: &'static str,
    },
    UnreadTensor {
        decoder: &'static str,
        tensor: String,
        unread: Unread,
    },
    Queries {
        decoder: &'static str,
        tensor: String,
        queries: usize,
        classes: usize,
    },
    UnusedBoxFormat {
        decoder: &'static str,
    },
    // Numbers that cannot occur if the tensors are read correctly.
    Score {
        score: f32,
        decoder: &'static str,
    },
    UnboundedScore {
        score: f32,
        threshold: f32,
    },
    AllRejected {
        anchors: usize,
        reading: ReadBoxes,
    },
    Rejected {
        rejected: usize,
        candidates: usize,
        reading: ReadBoxes,
    },
    Normalized {
        boxes: usize,
        model: Option<[f32; 2]>,
    },
    InCorner {
        boxes: usize,
        model: Option<[f32; 2]>,
    },
    NoBackground {
        candidates: usize,
        anchors: usize,
        decoder: &'static str,
    },
    BackgroundClass {
        anchors: usize,
    },
    Beyond {
        boxes: usize,
        all: usize,
        decoder: &'static str,
    },
    Huge {
        boxes: usize,
        all: usize,
        model: [f32; 2],
        reading: ReadBoxes,
    },
    ClassBeforeFirst {
        class: u32,
        first: u32,
        decoder: &'static str,
    },
    ClassWithoutLabel {
        class: u32,
        labels: usize,
        first: u32,
        decoder: &'static str,
    },
    BackgroundColumn {
        candidates: usize,
        anchors: usize,
        class: u32,
        background: &'static str,
    },
    Points {
        far: usize,
        all: usize,
    },
    Angles {
        angle: f32,
    },
    BoxAngles {
        angle: f32,
    },
    /// Nothing is found.
    Silence(Silence),
    /// An output of a classifier, and its tensor.
    Class {
        output: usize,
        tensor: String,
        found: ClassFinding,
    },
}

/// A fact that contradicts how an output of a classifier is read.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ClassFinding {
    Ignored { ignored: String },
    Whole,
    NotFinite(ClassScore),
    Probabilities,
    NoProbability(ClassScore),
    Silence { images: usize, is_one_of_several: bool, best: ClassScore, threshold: f32 },
}

/// A tensor that is not read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unread {
    Scores,
    Classes,
    Prototypes,
    Stride,
}

impl Notice {
    /// The notice of boxes of five numbers, the last of which is an angle.
    pub(crate) fn of_angles(boxes: &[f32]) -> Option<Self> {
        let angles = boxes.iter().skip(4).step_by(5).map(|angle| angle.abs());
        let angle = angles.fold(0.0, f32::max);
        (angle > GREATEST_ANGLE).then_some(Self(Finding::BoxAngles { angle }))
    }

    /// Returns the text with the names that `interface` uses for settings.
    pub fn text(&self, interface: Interface) -> impl fmt::Display + '_ {
        Text { finding: &self.0, interface }
    }

    /// The kind, of which a host tells one notice.
    pub fn kind(&self) -> NoticeKind {
        let of_output = match &self.0 {
            Finding::Class { output, found, .. } => Some((*output, discriminant(found))),
            _ => None,
        };
        NoticeKind(discriminant(&self.0), of_output)
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
            || matches!(self.0, Finding::Threshold { .. } | Finding::NoClass { .. })
    }

    /// Returns true if the decoder, and so the number of classes, is probably wrong.
    pub fn is_of_decoder(&self) -> bool {
        use Finding::{Family, FewRows, Id, SixColumns};
        matches!(self.0, Family { .. } | Id { .. } | SixColumns { .. } | FewRows { .. })
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text(Interface::Rust).fmt(f)
    }
}

struct Text<'a> {
    finding: &'a Finding,
    interface: Interface,
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.finding.write(f, self.interface)
    }
}

impl Finding {
    /// Writes the text with the names of an interface.
    fn write(&self, f: &mut fmt::Formatter<'_>, names: Interface) -> fmt::Result {
        let (decoder, coordinates) = (names.name(Name::Decoder), names.name(Name::Coordinates));
        let threshold = names.name(Name::ScoreThreshold);
        let set_decoder = |name| names.value(Value::Decoder(name));
        let set_classes = |number| names.value(Value::NumClasses(number));
        match self {
            Self::Family { decoder: name, family } => {
                write!(f, "decoder {name} reads the tensors, but {family}")
            }
            Self::Id { decoder: name, tensor, other } => write!(
                f,
                "decoder {name} reads the tensor {tensor}, whose id belongs to decoder {other}; unset {decoder}, or \
                 correct the tensor's id"
            ),
            Self::SixColumns { decoder: name, tensor, classes, other } => write!(
                f,
                "decoder {name} reads rows of six numbers in tensor {tensor} as a box and {classes} {}, but six \
                 numbers are usually a box, a score and a class; set {}, or {} if the model has that many",
                if *classes == 1 { "class" } else { "classes" },
                set_decoder(other),
                set_classes(*classes)
            ),
            Self::FewRows { decoder: name, tensor, rows, classes, other } => write!(
                f,
                "decoder {name} reads {rows} rows of tensor {tensor} as boxes with {classes} class scores each, \
                 but models with so few rows are usually end to end; set {}, or {} if the model has that many",
                set_decoder(other),
                set_classes(*classes)
            ),
            Self::Threshold { has_class_thresholds, lowest, decoder: name } => {
                let all = names.name(Name::ScoreThreshold);
                let classes = names.name(Name::ClassThresholds);
                if *has_class_thresholds {
                    write!(f, "the least of {all} and {classes}")?;
                } else {
                    f.write_str(all)?;
                }
                write!(
                    f,
                    " is {lowest} or more, but scores of decoder {name} are probabilities from 0 to 1, so \
                     nothing is detected; set it to less than 1, such as 0.5"
                )
            }
            Self::NoClass { listed: Some(classes), count, decoder: name } => write!(
                f,
                "classes={classes} has none of the {count} classes (0 to {}) that decoder {name} reads, so nothing \
                 is detected; correct classes",
                count - 1
            ),
            Self::NoClass { listed: None, count, decoder: name } => {
                let advice = match names {
                    Interface::Element => {
                        "; correct class-thresholds, or topk and filter-out-class-ids in nvinfer-config"
                    }
                    _ => "",
                };
                write!(
                    f,
                    "each of the {count} classes that decoder {name} reads is excluded, so nothing is \
                     detected{advice}"
                )
            }
            Self::CoarseScores { tensor, scale, decoder: name } => write!(
                f,
                "the scores in tensor {tensor} are multiples of its scale {scale}, but scores of decoder {name} \
                 are probabilities from 0 to 1, so most of them are lost; export the model with a scale for the \
                 scores alone, or not quantized, or correct {}",
                names.name(Name::Quantization)
            ),
            Self::UnreadTensor { decoder: name, tensor, unread } => {
                write!(
                    f,
                    "decoder {name} does not read the tensor {tensor}, which seems to belong to the tensors that \
                     it reads; "
                )?;
                match unread {
                    Unread::Scores => {
                        write!(f, "if it has the scores of boxes, set {}", set_decoder("boxes"))
                    }
                    Unread::Classes => write!(
                        f,
                        "if it has the classes of boxes, give it the id labels, or set {} or {}",
                        set_decoder("efficientnms"),
                        set_decoder("ssd-postprocess")
                    ),
                    Unread::Prototypes => write!(
                        f,
                        "if it has prototypes of masks, set {} or {}",
                        set_decoder("yolov8-seg"),
                        set_decoder("end2end-seg")
                    ),
                    Unread::Stride => {
                        write!(
                            f,
                            "if it belongs to another stride, correct {decoder}, or give the decoder all tensors of the \
                             stride"
                        )
                    }
                }
            }
            Self::Queries { decoder: name, tensor, queries, classes } => write!(
                f,
                "decoder {name} reads {queries} queries of {classes} classes in tensor {tensor}, but such models \
                 have a few hundred queries; correct {decoder}"
            ),
            Self::UnusedBoxFormat { decoder: name } => {
                let format = names.name(Name::BoxFormat);
                write!(
                    f,
                    "{format} has no effect: the boxes of decoder {name} have a fixed format; unset {format}"
                )
            }
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
            Self::Normalized { boxes, model } => {
                write!(f, "all {boxes} boxes are within the first pixel")?;
                let set = names.value(Value::NormalizedCoordinates);
                let unit =
                    "auto is the unit of the decoder's models and does not look at the numbers";
                match model {
                    Some([width, height]) => write!(
                        f,
                        " of the model's input of {width}x{height}, so they are probably normalized; set {set}: {unit}"
                    ),
                    None => write!(
                        f,
                        ", so they are probably normalized; set {set}, and {} for boxes in pixels: {unit}",
                        names.name(Name::ModelSize)
                    ),
                }
            }
            Self::InCorner { boxes, model } => {
                write!(f, "all {boxes} boxes are in the upper left corner of the model's input")?;
                if let Some([width, height]) = model {
                    write!(f, " of {width}x{height}")?;
                }
                write!(
                    f,
                    ": their numbers are not pixels; check {decoder} and {coordinates}, and that the model is exported \
                     with decoded boxes (YOLOX: --decode_in_inference)"
                )
            }
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
            Self::Beyond { boxes, all, decoder: name } => write!(
                f,
                "{boxes} of {all} boxes reach beyond the model's input by more than a tenth of its size, so they are \
                 probably corners, but decoder {name} reads them as center and size; set {}",
                set_decoder("end2end")
            ),
            Self::Huge { boxes, all, model: [width, height], reading } => write!(
                f,
                "{boxes} of {all} boxes are many times larger than the model's input of {width}x{height}; {}",
                reading.advice(names)
            ),
            Self::ClassBeforeFirst { class, first, decoder: name } => write!(
                f,
                "a box has class {class}, but classes of decoder {name} begin with {first}, so boxes get the labels \
                 of other classes; correct {decoder}, or describe the output in a layout whose classes begin with \
                 {class}"
            ),
            Self::ClassWithoutLabel { class, labels, first, decoder: name } => write!(
                f,
                "a box has class {class}, but there are {labels} labels, for classes {first} to {}, so labels are \
                 probably those of other classes; check {}, and with which number the classes of decoder {name} begin",
                *labels as u32 + first - 1,
                names.name(Name::Labels)
            ),
            Self::BackgroundColumn { candidates, anchors, class, background } => write!(
                f,
                "{candidates} of {anchors} anchors are candidates, and nearly all boxes have class {class}, the \
                 {background} one, which is probably the background; set {}",
                names.value(Value::Background(background))
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
            Self::BoxAngles { angle } => write!(
                f,
                "a box has an angle of {angle} radians, so angles are probably degrees; multiply them by 0.017453293"
            ),
            Self::Silence(silence) => silence.write(f, names),
            Self::Class { tensor, found, .. } => found.write(f, names, tensor),
        }
    }
}

impl ClassFinding {
    /// Writes the text about the output of this tensor with the names of an interface.
    fn write(&self, f: &mut fmt::Formatter<'_>, names: Interface, tensor: &str) -> fmt::Result {
        let activation = names.name(Name::ScoreActivation);
        let [logits, probabilities] = classifier::IDS.map(|(id, _)| id);
        match self {
            Self::Ignored { ignored } => write!(
                f,
                "only {tensor} is read as scores of classes, and not {ignored}: an output is read if its number of \
                 classes is {} and, beside an output with one of the ids {logits} and {probabilities}, if it has such an \
                 id, too",
                names.name(Name::NumClasses)
            ),
            Self::Whole => write!(
                f,
                "tensor {tensor}: all of its numbers are whole, so they are probably no scores but a sequence, as of \
                 characters, or classes; read such tensors in the application, or set {activation} if they are scores"
            ),
            Self::NotFinite(ClassScore { class, score }) => write!(
                f,
                "tensor {tensor}: the score of class {class} is {score}, so that the image has no class; expected finite \
                 numbers: correct the model, or the range of its input"
            ),
            Self::Probabilities => write!(
                f,
                "tensor {tensor}: its numbers are probabilities, and softmax makes them almost equal; set \
                 {activation}=none, or give the tensor the id {probabilities}"
            ),
            Self::NoProbability(ClassScore { class, score }) => write!(
                f,
                "tensor {tensor}: the score of class {class} is {score}, so the numbers are no probabilities; set \
                 {activation} to softmax or sigmoid, or to none if the scores are final"
            ),
            &Self::Silence { images, is_one_of_several, best, threshold } => {
                write!(f, "none of {images} images has a class")?;
                if is_one_of_several {
                    write!(f, " of the tensor {tensor}")?;
                }
                let (ClassScore { class, score }, set) = (best, names.name(Name::ScoreThreshold));
                write!(
                    f,
                    ": the best score is {score} (class {class}), and {set} is {threshold}; set a lower threshold, or \
                     compare the model's input (range, order of colors) with its training"
                )
            }
        }
    }
}

/// How boxes and classes are read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ReadBoxes {
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

    /// True if boxes are corners beside a class, as those of end-to-end models, of which RT-DETR has centers and sizes.
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
