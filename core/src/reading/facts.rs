// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds decoders and settings that contradict the tensors for which they were chosen.
//!
//! In: the facts of a plan. Out: a [`PlanContradiction`] per contradiction. Only ids, shapes and settings are
//! compared; no element of a tensor is read.

use std::fmt;

use super::Warning;
use crate::decoder::layout::{Activation, Column, Group, Reference};
use crate::decoder::model_family::{self, ModelFamily};
use crate::decoder::{self, Choice, Options, Reason, Scores};
use crate::engine::ClassThresholds;
use crate::names::{Interface, Name, Value};
use crate::tensor::TensorView;

/// The facts of a plan.
#[derive(Clone, Copy)]
pub struct PlanFacts<'a> {
    /// The decoder and the layout.
    pub choice: &'a Choice,
    /// The tensors, including their quantization.
    pub tensors: &'a [TensorView<'a>],
    /// The options with which the decoder was chosen.
    pub options: Options,
    /// The score thresholds.
    pub thresholds: &'a ClassThresholds,
    /// True if some classes have score thresholds in addition to the general threshold.
    pub has_class_thresholds: bool,
    /// The list of included classes, if there is one.
    pub classes: Option<&'a str>,
    /// The family of the model. `None` if it is unknown, or if the model is a plain detector.
    pub family: Option<ModelFamily>,
}

/// A decoder or setting, and the tensor or model family that it contradicts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PlanContradiction {
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
}

/// A tensor that is not read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unread {
    Scores,
    Classes,
    Prototypes,
    Stride,
}

impl PlanContradiction {
    /// Returns whether the decoder, and with it the number of classes, is probably wrong.
    pub fn concerns_decoder(&self) -> bool {
        matches!(
            self,
            Self::Family { .. } | Self::Id { .. } | Self::SixColumns { .. } | Self::FewRows { .. }
        )
    }

    /// Returns whether no score can reach its threshold.
    pub fn concerns_thresholds(&self) -> bool {
        matches!(self, Self::Threshold { .. } | Self::NoClass { .. })
    }

    /// Writes the text with the names of an interface.
    pub fn write(&self, f: &mut fmt::Formatter<'_>, names: Interface) -> fmt::Result {
        let word = names.name(Name::Decoder);
        let set_decoder = |name| names.value(Value::Decoder(name));
        let set_classes = |number| names.value(Value::NumClasses(number));
        match self {
            Self::Family { decoder, family } => {
                write!(f, "decoder {decoder} reads the tensors, but {family}")
            }
            Self::Id { decoder, tensor, other } => write!(
                f,
                "decoder {decoder} reads the tensor {tensor}, whose id belongs to decoder {other}; unset {word}, or \
                 correct the tensor's id"
            ),
            Self::SixColumns { decoder, tensor, classes, other } => write!(
                f,
                "decoder {decoder} reads rows of six numbers in tensor {tensor} as a box and {classes} {}, but six \
                 numbers are usually a box, a score and a class; set {}, or {} if the model has that many",
                if *classes == 1 { "class" } else { "classes" },
                set_decoder(other),
                set_classes(*classes)
            ),
            Self::FewRows { decoder, tensor, rows, classes, other } => write!(
                f,
                "decoder {decoder} reads {rows} rows of tensor {tensor} as boxes with {classes} class scores each, \
                 but models with so few rows are usually end to end; set {}, or {} if the model has that many",
                set_decoder(other),
                set_classes(*classes)
            ),
            Self::Threshold { has_class_thresholds, lowest, decoder } => {
                let all = names.name(Name::ScoreThreshold);
                let classes = names.name(Name::ClassThresholds);
                if *has_class_thresholds {
                    write!(f, "the least of {all} and {classes}")?;
                } else {
                    f.write_str(all)?;
                }
                write!(
                    f,
                    " is {lowest} or more, but scores of decoder {decoder} are probabilities from 0 to 1, so \
                     nothing is detected; set it to less than 1, such as 0.5"
                )
            }
            Self::NoClass { listed: Some(classes), count, decoder } => write!(
                f,
                "classes={classes} has none of the {count} classes (0 to {}) that decoder {decoder} reads, so nothing \
                 is detected; correct classes",
                count - 1
            ),
            Self::NoClass { listed: None, count, decoder } => {
                let advice = match names {
                    Interface::Element => {
                        "; correct class-thresholds, or topk and filter-out-class-ids in nvinfer-config"
                    }
                    _ => "",
                };
                write!(
                    f,
                    "each of the {count} classes that decoder {decoder} reads is excluded, so nothing is \
                     detected{advice}"
                )
            }
            Self::CoarseScores { tensor, scale, decoder } => write!(
                f,
                "the scores in tensor {tensor} are multiples of its scale {scale}, but scores of decoder {decoder} \
                 are probabilities from 0 to 1, so most of them are lost; export the model with a scale for the \
                 scores alone, or not quantized, or correct {}",
                names.name(Name::Quantization)
            ),
            Self::UnreadTensor { decoder, tensor, unread } => {
                write!(
                    f,
                    "decoder {decoder} does not read the tensor {tensor}, which seems to belong to the tensors that \
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
                            "if it belongs to another stride, correct {word}, or give the decoder all tensors of the \
                             stride"
                        )
                    }
                }
            }
            Self::Queries { decoder, tensor, queries, classes } => write!(
                f,
                "decoder {decoder} reads {queries} queries of {classes} classes in tensor {tensor}, but such models \
                 have a few hundred queries; correct {word}"
            ),
            Self::UnusedBoxFormat { decoder } => {
                let name = names.name(Name::BoxFormat);
                write!(
                    f,
                    "{name} has no effect: the boxes of decoder {decoder} have a fixed format; unset {name}"
                )
            }
        }
    }
}

/// More queries than any model of the DETR family has: most have 100 to 300, and models for crowded pictures have
/// 900.
const MANY_QUERIES: usize = 2000;

/// End-to-end models have 300 rows. Other models have a row per grid cell, of which there are 1029 even for an
/// input of 224x224.
const FEW_ROWS: usize = 1000;

/// More classes than any detection dataset has: LVIS has 1203.
const MANY_CLASSES: usize = 4000;

/// From this scale on, quantized scores are useless: thresholds and the order of candidates lose their meaning. A
/// tensor that has nothing but probabilities has the scale 1/255. A coarse scale occurs if the tensor also contains
/// coordinates in pixels or class numbers.
const COARSE_STEP: f32 = 0.05;

/// The contradictions of a plan.
pub fn of_plan(facts: PlanFacts<'_>) -> impl Iterator<Item = Warning> {
    [
        check_decoder(facts),
        check_thresholds(facts),
        check_steps(facts),
        check_unread_tensors(facts),
        check_queries(facts),
        check_box_format(facts),
    ]
    .into_iter()
    .flatten()
    .map(Warning::from)
}

fn check_decoder(facts: PlanFacts<'_>) -> Option<PlanContradiction> {
    let PlanFacts { choice, tensors, options, family, .. } = facts;
    let Choice { layout, reason, .. } = choice;
    let decoder = choice.decoder.name();
    // Whether the model selects the detections itself is not known of every model.
    let is_of = |family: &ModelFamily| {
        family.has_decoder(decoder)
            || (layout.anchors() <= FEW_ROWS && family.has_end_to_end_decoder(decoder))
    };
    if let Some(family) = family.filter(|family| !is_of(family)) {
        return Some(PlanContradiction::Family { decoder, family });
    }
    if let Some((tensor, other)) = decoder::contradicting_id(tensors, choice, options) {
        let (tensor, other) = (tensor.to_string(), other.name());
        return Some(PlanContradiction::Id { decoder, tensor, other });
    }
    let classes = layout.classes;
    let is_confirmed = *reason == Reason::Id || options.known_classes() == Some(classes);
    if let Some(other) = end_to_end(choice).filter(|_| !is_confirmed) {
        let rows = layout.anchors();
        let tensor = tensors[layout.groups[0].boxes.tensor].to_string();
        return Some(PlanContradiction::FewRows { decoder, tensor, rows, classes, other });
    }
    if is_confirmed || !decoder::may_be_end_to_end(choice, options) {
        return None;
    }
    let tensor = tensors[layout.groups[0].boxes.tensor].to_string();
    // RT-DETR has centers and sizes in such rows, too.
    let other = if decoder == "detr" { "detr-end2end" } else { "end2end" };
    Some(PlanContradiction::SixColumns { decoder, tensor, classes, other })
}

/// Returns the decoder of an end-to-end model that probably produced the output: the output has few rows, and
/// `choice` reads some numbers of each row as scores.
fn end_to_end(choice: &Choice) -> Option<&'static str> {
    let other = model_family::end_to_end(choice.decoder.name())?;
    let is_row = |group: &Group| group.boxes.component_stride == 1;
    let layout = &choice.layout;
    (layout.anchors() <= FEW_ROWS && layout.groups.iter().all(is_row)).then_some(other)
}

/// Looks for score thresholds that no probability can reach.
fn check_thresholds(facts: PlanFacts<'_>) -> Option<PlanContradiction> {
    let PlanFacts { choice, thresholds, has_class_thresholds, .. } = facts;
    let count = choice.layout.classes;
    let lowest = thresholds.lowest(count);
    let decoder = choice.decoder.name();
    if lowest == f32::INFINITY && !thresholds.per_class.is_empty() {
        let listed = facts.classes.map(str::to_owned);
        return Some(PlanContradiction::NoClass { listed, count, decoder });
    }
    (lowest > 1.0 && choice.decoder.scores() == Scores::Probabilities)
        .then_some(PlanContradiction::Threshold { has_class_thresholds, lowest, decoder })
}

/// Looks for scores with a coarse scale. If the tensor has logits, such a scale is normal.
fn check_steps(facts: PlanFacts<'_>) -> Option<PlanContradiction> {
    let Choice { decoder, layout, .. } = facts.choice;
    if decoder.scores() != Scores::Probabilities || layout.score.activation != Activation::None {
        return None;
    }
    let scores =
        layout.groups.iter().flat_map(|group| [Some(&group.scores), group.objectness.as_ref()]);
    scores.flatten().find_map(|field| {
        let tensor = &facts.tensors[field.tensor];
        let scale = tensor.quantization?.scale();
        let (tensor, decoder) = (tensor.to_string(), decoder.name());
        (scale >= COARSE_STEP).then_some(PlanContradiction::CoarseScores { tensor, scale, decoder })
    })
}

/// Looks for tensors that are not read, although their shape suggests that they belong to the tensors that are
/// read. If the tensors were found by their ids, none but those of another level is missing.
fn check_unread_tensors(facts: PlanFacts<'_>) -> Option<PlanContradiction> {
    let Choice { decoder: choice, layout, reason } = facts.choice;
    let decoder = choice.name();
    if let Some(tensor) = decoder::unread_level(facts.tensors, layout) {
        let (tensor, unread) = (tensor.to_string(), Unread::Stride);
        return Some(PlanContradiction::UnreadTensor { decoder, tensor, unread });
    }
    // Models of many families have outputs with the ids of the decoder boxes.
    if *reason == Reason::Id && !choice.has_usual_ids() {
        return None;
    }
    let (read, anchors) = (layout.tensors(), layout.anchors());
    let unread = |(index, _): &(usize, &TensorView<'_>)| !read.contains(index);
    let has_anchors = |tensor: &TensorView<'_>| anchors > 1 && tensor.shape.contains(&anchors);
    // A number for each anchor.
    let has_number = |tensor: &TensorView<'_>| {
        has_anchors(tensor) && tensor.shape.elements() == Some(anchors * layout.images)
    };
    // Prototypes have as many channels as there are numbers that could be mask coefficients.
    let is_prototypes = |tensor: &TensorView<'_>| {
        let has_channels = |column: &Column| tensor.shape.contains(&column.components);
        tensor.shape.len() == 4 && layout.columns.iter().any(has_channels)
    };
    let has_classes = layout.has_class_field() || layout.score.components > 1;
    // All numbers of the anchors of grids are in one tensor.
    let is_grid = |group: &Group| matches!(group.reference, Reference::Grid(_));
    let is_one_grid = read.len() == 1 && layout.groups.iter().all(is_grid);
    facts.tensors.iter().enumerate().filter(unread).find_map(|(_, tensor)| {
        let unread = match decoder {
            "windows" if has_anchors(tensor) => Unread::Scores,
            _ if is_one_grid && has_anchors(tensor) => Unread::Scores,
            "boxes" if !has_classes && has_number(tensor) => Unread::Classes,
            "yolov8-pose" | "end2end-pose" if is_prototypes(tensor) => Unread::Prototypes,
            _ => return None,
        };
        let tensor = tensor.to_string();
        Some(PlanContradiction::UnreadTensor { decoder, tensor, unread })
    })
}

fn check_queries(facts: PlanFacts<'_>) -> Option<PlanContradiction> {
    let Choice { decoder, layout, .. } = facts.choice;
    let (decoder, queries, classes) = (decoder.name(), layout.anchors(), layout.classes);
    if decoder != "detr" || (queries <= MANY_QUERIES && classes <= MANY_CLASSES) {
        return None;
    }
    let tensor = facts.tensors[layout.groups[0].scores.tensor].to_string();
    Some(PlanContradiction::Queries { decoder, tensor, queries, classes })
}

/// Looks for a box format that the decoder ignores. Decoders do not state whether they use it, so the layout is
/// compared with the layout without this setting.
fn check_box_format(facts: PlanFacts<'_>) -> Option<PlanContradiction> {
    let PlanFacts { choice: Choice { decoder, layout, .. }, tensors, options, .. } = facts;
    let box_format = Options::default().box_format;
    if options.box_format == box_format {
        return None;
    }
    let without = decoder::choose(tensors, Some(*decoder), Options { box_format, ..options });
    let is_obeyed = without.map_or(true, |other| other.layout.boxes != layout.boxes);
    (!is_obeyed).then_some(PlanContradiction::UnusedBoxFormat { decoder: decoder.name() })
}
