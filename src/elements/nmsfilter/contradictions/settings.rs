// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings that contradict the tensors, or what is known of their model.
//!
//! In: what a plan was made of. Out: a [`SettingContradiction`] for each setting that is in force, although
//! something else is known. No number of a tensor is needed.

use super::super::enums::Decoder;
use super::super::plan::{PlanInput, StreamPlan};
use super::super::settings::Settings;
use crate::decoder::layout::{Activation, Column, Group};
use crate::decoder::model_family::{self, ModelFamily};
use crate::decoder::{self, Choice, MAX_CLASSES, Reason, Scores};
use crate::engine::ClassThresholds;
use crate::geometry::{Letterbox, Mapping};
use crate::input::model::ModelInput;
use crate::output::Labels;
use crate::tensor::{ElementType, TensorView};

/// A setting, and what it contradicts.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(in crate::elements::nmsfilter) enum SettingContradiction {
    #[error(
        "{origin} has {labels} labels, but decoder {decoder} reads {classes} classes, so labels are probably \
         wrong; set label-file to the labels of this model, or correct decoder"
    )]
    Labels { origin: &'static str, labels: usize, decoder: &'static str, classes: usize },
    #[error(
        "decoder {decoder} reads the tensor {tensor}, whose id is that of decoder {other}; unset decoder, or \
         correct the tensor's id"
    )]
    Id { decoder: &'static str, tensor: String, other: &'static str },
    #[error(
        "decoder {decoder} reads rows of six numbers in tensor {tensor} as a box and {classes} {classes_noun}, but \
         six are usually a box, a score and a class; set decoder=end2end, or num-classes={classes} if the model has \
         as many",
        classes_noun = if *classes == 1 { "class" } else { "classes" }
    )]
    SixColumns { decoder: &'static str, tensor: String, classes: usize },
    #[error(
        "decoder {decoder} reads {rows} rows of tensor {tensor} as boxes with {classes} class scores each, but models with \
         so few rows are usually end to end; set decoder={other}, or num-classes={classes} if the model has as many"
    )]
    FewRows {
        decoder: &'static str,
        tensor: String,
        rows: usize,
        classes: usize,
        other: &'static str,
    },
    #[error("decoder {decoder} reads the tensors, but {family}")]
    Family { decoder: &'static str, family: ModelFamily },
    #[error(
        "letterbox={set}, but the tensors' model has letterbox {known}, so boxes are displaced; set letterbox=auto"
    )]
    Letterbox { set: &'static str, known: &'static str },
    #[error(
        "model-width={} and model-height={}, but the tensors' model has an input of {}x{}, so boxes are \
         displaced; set both to 0",
        set[0], set[1], known[0], known[1]
    )]
    ModelSize { set: [u32; 2], known: [u32; 2] },
    #[error(
        "{properties} is {lowest} or more, but scores of decoder {decoder} are probabilities from 0 to 1, so \
         nothing is detected; set {properties} to less than 1, such as 0.5"
    )]
    Threshold { properties: &'static str, lowest: f32, decoder: &'static str },
    #[error(
        "classes={classes} has none of the {count} classes (0 to {}) that decoder {decoder} reads, so nothing is \
         detected; correct classes",
        count - 1
    )]
    NoClass { classes: String, count: usize, decoder: &'static str },
    #[error(
        "the scores in tensor {tensor} are multiples of its scale {scale}, but scores of decoder {decoder} are \
         probabilities from 0 to 1, so most of them are lost; export the model with a scale for the scores alone, \
         or not quantized, or correct quantization"
    )]
    CoarseScores { tensor: String, scale: f32, decoder: &'static str },
    #[error(
        "layout-file is set, but decoder {decoder} reads the tensors; set decoder=layout, or unset layout-file"
    )]
    UnusedLayoutFile { decoder: &'static str },
    #[error(
        "decoder {decoder} does not read the tensor {tensor}, which seems to belong to those that it reads; {advice}"
    )]
    UnreadTensor { decoder: &'static str, tensor: String, advice: &'static str },
    #[error(
        "decoder {decoder} reads {queries} queries of {classes} classes in tensor {tensor}, but such models have some \
         hundreds of queries; correct decoder"
    )]
    Queries { decoder: &'static str, tensor: String, queries: usize, classes: usize },
}

/// More queries than models of the DETR family have: most have 100 to 300, those for crowded pictures 900.
const MANY_QUERIES: usize = 2000;

/// End-to-end models have 300 rows, others a row for each of the cells of a grid, of which there are 1029 for an
/// input of 224x224.
const FEW_ROWS: usize = 1000;

/// More classes than detection datasets have: LVIS has 1203.
const MANY_CLASSES: usize = 4000;

/// The scale of quantized probabilities is 1/255 if a tensor has no other numbers. From this step on, thresholds and
/// the order of candidates have no meaning: a tensor has such a scale if it also has coordinates in pixels, or the
/// numbers of classes.
const COARSE_STEP: f32 = 0.05;

/// The contradictions of `settings`, with which `plan` was made for `input`, whose frames have this `mapping`.
pub(in crate::elements::nmsfilter) fn of_plan(
    plan: &StreamPlan,
    input: PlanInput<'_>,
    mapping: &Mapping,
    settings: &Settings,
    labels: &Labels,
) -> Vec<SettingContradiction> {
    let tensors = plan.quantization().applied(input.tensors);
    let input = PlanInput { tensors: &tensors, ..input };
    let is_normalized = plan.choice().layout.normalized;
    let thresholds = &plan.params(mapping).thresholds;
    // With the wrong decoder, the number of classes is wrong, too.
    let decoder_or_labels =
        of_decoder(plan, input, settings, labels).or_else(|| of_labels(plan, thresholds, labels));
    [
        decoder_or_labels,
        of_letterbox(settings, input.model, mapping),
        of_model_size(settings, input.model, is_normalized),
        of_thresholds(plan, thresholds, settings),
        of_steps(plan, input),
        of_layout_file(plan, settings),
        of_unread_tensors(plan, input),
        of_queries(plan, input),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Fewer labels than classes are right if the classes without one are excluded.
fn of_labels(
    plan: &StreamPlan,
    thresholds: &ClassThresholds,
    labels: &Labels,
) -> Option<SettingContradiction> {
    let (origin, count) = (labels.source()?, labels.count());
    let layout = &plan.choice().layout;
    let classes = layout.classes;
    // A class that is a number in a tensor can be any, if the number of classes is not set.
    if layout.has_class_field() && classes == MAX_CLASSES {
        return None;
    }
    let without_label = count as u32..classes as u32;
    let are_excluded = || without_label.map(|class| thresholds.of(class)).all(f32::is_infinite);
    if count == 0 || count == classes || (count < classes && are_excluded()) {
        return None;
    }
    let decoder = plan.choice().decoder.name();
    Some(SettingContradiction::Labels { origin, labels: count, decoder, classes })
}

fn of_decoder(
    plan: &StreamPlan,
    input: PlanInput<'_>,
    settings: &Settings,
    labels: &Labels,
) -> Option<SettingContradiction> {
    let decoder = plan.choice().decoder.name();
    if let Some(family) = input.family.filter(|family| !family.has_decoder(decoder)) {
        return Some(SettingContradiction::Family { decoder, family });
    }
    let options = input.decoder_options(settings, labels);
    let Choice { layout, reason, .. } = plan.choice();
    if let Some((tensor, other)) = decoder::contradicting_id(input.tensors, plan.choice(), options)
    {
        let (tensor, other) = (tensor.to_string(), other.name());
        return Some(SettingContradiction::Id { decoder, tensor, other });
    }
    let classes = layout.classes;
    let is_confirmed = *reason == Reason::Id || options.known_classes() == Some(classes);
    if let Some(other) = end_to_end(plan.choice()).filter(|_| !is_confirmed) {
        let rows = layout.anchors();
        let tensor = input.tensors[layout.groups[0].boxes.tensor].to_string();
        return Some(SettingContradiction::FewRows { decoder, tensor, rows, classes, other });
    }
    if is_confirmed || !decoder::may_be_end_to_end(plan.choice(), options) {
        return None;
    }
    let tensor = input.tensors[layout.groups[0].boxes.tensor].to_string();
    Some(SettingContradiction::SixColumns { decoder, tensor, classes })
}

/// The decoder of an end-to-end model that probably has the output: its rows are few, and `choice` reads numbers of
/// theirs as scores.
fn end_to_end(choice: &Choice) -> Option<&'static str> {
    let other = model_family::end_to_end(choice.decoder.name())?;
    let is_row = |group: &Group| group.boxes.component_stride == 1;
    let layout = &choice.layout;
    (layout.anchors() <= FEW_ROWS && layout.groups.iter().all(is_row)).then_some(other)
}

/// A letterbox that is only assumed, because the tensors do not have all of it, contradicts nothing. Nor does one
/// with which this frame has the same place in the model's input.
fn of_letterbox(
    settings: &Settings,
    model: ModelInput,
    mapping: &Mapping,
) -> Option<SettingContradiction> {
    let (set, known) = (settings.letterbox.letterbox()?, model.known_letterbox()?);
    let is_same = |known: Letterbox| {
        Mapping::new(mapping.frame(), mapping.model_size(), known)
            .is_ok_and(|as_known| as_known == *mapping)
    };
    (set != known && !is_same(known))
        .then(|| SettingContradiction::Letterbox { set: set.name(), known: known.name() })
}

/// Normalized coordinates of frames without a letterbox do not depend on the size of the model's input.
fn of_model_size(
    settings: &Settings,
    model: ModelInput,
    is_normalized: bool,
) -> Option<SettingContradiction> {
    let set = [settings.model_width, settings.model_height];
    let known = model.size?;
    let has_letterbox = settings.letterbox(model).0 != Letterbox::None;
    let is_used = has_letterbox || !is_normalized;
    (set != [0, 0] && set != known && is_used)
        .then_some(SettingContradiction::ModelSize { set, known })
}

fn of_thresholds(
    plan: &StreamPlan,
    thresholds: &ClassThresholds,
    settings: &Settings,
) -> Option<SettingContradiction> {
    let (decoder, count) = (plan.choice().decoder, plan.choice().layout.classes);
    let lowest = thresholds.lowest(count);
    let classes = settings.classes.clone().unwrap_or_default();
    if lowest == f32::INFINITY && !classes.is_empty() {
        return Some(SettingContradiction::NoClass { classes, count, decoder: decoder.name() });
    }
    let properties = match settings.class_thresholds {
        Some(_) => "the least of score-threshold and class-thresholds",
        None => "score-threshold",
    };
    (lowest > 1.0 && decoder.scores() == Scores::Probabilities)
        .then(|| SettingContradiction::Threshold { properties, lowest, decoder: decoder.name() })
}

/// Scores that are logits in the tensor can have such steps.
fn of_steps(plan: &StreamPlan, input: PlanInput<'_>) -> Option<SettingContradiction> {
    let Choice { decoder, layout, .. } = plan.choice();
    if decoder.scores() != Scores::Probabilities || layout.score.activation != Activation::None {
        return None;
    }
    let scores =
        layout.groups.iter().flat_map(|group| [Some(&group.scores), group.objectness.as_ref()]);
    scores.flatten().find_map(|field| {
        let tensor = &input.tensors[field.tensor];
        let scale = tensor.quantization?.scale();
        let (tensor, decoder) = (tensor.to_string(), decoder.name());
        (scale >= COARSE_STEP).then_some(SettingContradiction::CoarseScores {
            tensor,
            scale,
            decoder,
        })
    })
}

fn of_layout_file(plan: &StreamPlan, settings: &Settings) -> Option<SettingContradiction> {
    let is_set = settings.layout_file.as_ref().is_some_and(|file| !file.is_empty());
    (is_set && settings.decoder != Decoder::Layout)
        .then(|| SettingContradiction::UnusedLayoutFile { decoder: plan.choice().decoder.name() })
}

/// Tensors that are not read, although their shape is that of a part of what is read. Tensors that are found by their
/// ids are all that there is.
fn of_unread_tensors(plan: &StreamPlan, input: PlanInput<'_>) -> Option<SettingContradiction> {
    let Choice { decoder, layout, reason } = plan.choice();
    let decoder = decoder.name();
    if *reason == Reason::Id {
        return None;
    }
    let (read, anchors) = (layout.tensors(), layout.anchors());
    let unread = |(index, _): &(usize, &TensorView<'_>)| !read.contains(index);
    let has_anchors = |tensor: &TensorView<'_>| anchors > 1 && tensor.shape.contains(&anchors);
    let is_integer =
        |tensor: &TensorView<'_>| matches!(tensor.element, ElementType::I32 | ElementType::I64);
    let is_level = |tensor: &TensorView<'_>| {
        let columns = tensor.shape.last().filter(|&&columns| columns > 1);
        let is_same = |&index: &usize| input.tensors[index].shape.last() == columns;
        layout.groups.len() > 1 && columns.is_some() && read.iter().any(is_same)
    };
    // As many channels as there are numbers that would be coefficients.
    let is_prototypes = |tensor: &TensorView<'_>| {
        let has_channels = |column: &Column| tensor.shape.contains(&column.components);
        tensor.shape.len() == 4 && layout.columns.iter().any(has_channels)
    };
    let has_classes = layout.has_class_field() || layout.score.components > 1;
    input.tensors.iter().enumerate().filter(unread).find_map(|(_, tensor)| {
        let advice = match decoder {
            "windows" if has_anchors(tensor) => "if it has the scores of boxes, set decoder=boxes",
            "boxes" if !has_classes && has_anchors(tensor) && is_integer(tensor) => {
                "if it has the classes of boxes, give it the id labels, or set decoder=efficientnms or ssd-postprocess"
            }
            "yolov8-pose" | "end2end-pose" if is_prototypes(tensor) => {
                "if it has prototypes of masks, set decoder=yolov8-seg or end2end-seg"
            }
            _ if is_level(tensor) => "if it is that of a further stride, correct decoder",
            _ => return None,
        };
        let tensor = tensor.to_string();
        Some(SettingContradiction::UnreadTensor { decoder, tensor, advice })
    })
}

fn of_queries(plan: &StreamPlan, input: PlanInput<'_>) -> Option<SettingContradiction> {
    let Choice { decoder, layout, .. } = plan.choice();
    let (decoder, queries, classes) = (decoder.name(), layout.anchors(), layout.classes);
    if decoder != "detr" || (queries <= MANY_QUERIES && classes <= MANY_CLASSES) {
        return None;
    }
    let tensor = input.tensors[layout.groups[0].scores.tensor].to_string();
    Some(SettingContradiction::Queries { decoder, tensor, queries, classes })
}
