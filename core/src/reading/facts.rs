// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds decoders and settings that contradict the tensors for which they were chosen.
//!
//! In: a choice, and its facts and settings. Out: a [`Notice`] per contradiction. Only ids, shapes and settings are
//! compared, and the first buffer's numbers with what centers, offsets and logits can be.

use super::notice::{Finding, Notice};
use super::{Facts, Settings};
use crate::decoder::layout::{Activation, Column, Group, Reference};
use crate::decoder::model_family::ModelFamily;
use crate::decoder::{self, BoxFormat, Choice, Options, Reason, Scores, misread};
use crate::engine::ClassThresholds;
use crate::tensor::TensorView;
use crate::wording::Setting;

/// From this scale on, quantized scores are useless: thresholds and the order of candidates lose their meaning. A
/// tensor that has nothing but probabilities has the scale 1/255. A coarse scale occurs if the tensor also contains
/// coordinates in pixels or class numbers.
const COARSE_STEP: f32 = 0.05;

/// The notices that follow from a choice of a decoder, its facts and its settings.
pub(super) fn notices(
    choice: &Choice,
    facts: &Facts<'_>,
    settings: &Settings<'_>,
    thresholds: &ClassThresholds,
) -> Vec<Notice> {
    let findings = [
        check_decoder(choice, facts, settings.options),
        check_thresholds(choice, settings, thresholds),
        check_steps(choice, facts.tensors),
        check_unread_tensors(choice, facts.tensors),
        check_queries(choice, facts.tensors),
        check_box_format(choice, settings.options),
    ];
    findings.into_iter().flatten().map(Notice).collect()
}

/// The notices that follow from the numbers of the first buffer, which are copied from device memory if that can be mapped.
pub(super) fn number_notices(choice: &Choice, tensors: &[TensorView<'_>]) -> Vec<Notice> {
    let (decoder, group) = (choice.decoder.name(), &choice.layout.groups[0]);
    let corners = misread::misread_corners(tensors, choice).map(|(corners, all)| {
        let tensor = tensors[group.boxes.tensor].to_string();
        let has_offsets = group.reference != Reference::None;
        Finding::Corners { decoder, tensor, corners, all, has_offsets }
    });
    let scores = misread::are_probabilities(tensors, choice).then(|| {
        let tensor = tensors[group.scores.tensor].to_string();
        Finding::Probabilities { decoder, tensor }
    });
    corners.into_iter().chain(scores).map(Notice).collect()
}

fn check_decoder(choice: &Choice, facts: &Facts<'_>, options: Options) -> Option<Finding> {
    let &Facts { tensors, family, .. } = facts;
    let Choice { layout, reason, .. } = choice;
    let decoder = choice.decoder.name();
    let tensor = || tensors[layout.groups[0].boxes.tensor].to_string();
    // It is not known of every model whether it selects the detections itself.
    let is_of =
        |family: &ModelFamily| family.has_decoder(decoder, layout.anchors() <= misread::FEW_ROWS);
    if let Some(family) = family.filter(|family| !is_of(family)) {
        return Some(Finding::Family { decoder, family });
    }
    if let Some((tensor, other)) = misread::contradicting_id(tensors, choice, options) {
        let (tensor, other) = (tensor.to_string(), other.name());
        return Some(Finding::Id { decoder, tensor, other });
    }
    let classes = layout.classes;
    let is_confirmed = *reason == Reason::Id || options.known_classes() == Some(classes);
    // Advice must be possible to follow.
    let is_read = |other: &&'static str| {
        let options = Options { num_classes: 0, ..options };
        decoder::by_name(other)
            .is_some_and(|other| decoder::choose(tensors, Some(other), options).is_ok())
    };
    // One label fits many readings.
    let is_certain =
        is_confirmed && (classes > 1 || *reason == Reason::Id || options.num_classes == 1);
    if let Some(other) = misread::few_rows(choice).filter(|other| !is_certain && is_read(other)) {
        let rows = layout.anchors();
        return Some(Finding::FewRows { decoder, tensor: tensor(), rows, classes, other });
    }
    if is_confirmed {
        return None;
    }
    if layout.has_rows_without_objectness() && layout.score.components == 81 {
        return Some(Finding::CocoColumns { decoder, tensor: tensor() });
    }
    if !misread::may_be_end_to_end(choice, options) {
        return None;
    }
    // RT-DETR has centers and sizes in such rows, too.
    let other = if decoder == "detr" { "detr-end2end" } else { "end2end" };
    Some(Finding::SixColumns { decoder, tensor: tensor(), classes, other })
}

/// Looks for score thresholds that no probability can reach.
fn check_thresholds(
    choice: &Choice,
    settings: &Settings<'_>,
    thresholds: &ClassThresholds,
) -> Option<Finding> {
    let has_class_thresholds = settings.has_class_thresholds;
    let count = choice.layout.classes;
    let lowest = thresholds.lowest(count);
    let decoder = choice.decoder.name();
    if lowest == f32::INFINITY && !thresholds.per_class.is_empty() {
        return Some(match settings.classes.map(str::to_owned) {
            Some(listed) => Finding::NoListedClass { listed, count, decoder },
            None => Finding::NoClass { count, decoder },
        });
    }
    (lowest > 1.0 && choice.decoder.scores == Scores::Probabilities).then_some(Finding::Threshold {
        has_class_thresholds,
        lowest,
        decoder,
    })
}

/// Looks for scores with a coarse scale. If the tensor has logits, such a scale is normal.
fn check_steps(choice: &Choice, tensors: &[TensorView<'_>]) -> Option<Finding> {
    let Choice { decoder, layout, .. } = choice;
    if decoder.scores != Scores::Probabilities || layout.score.activation != Activation::None {
        return None;
    }
    let scores =
        layout.groups.iter().flat_map(|group| [Some(&group.scores), group.objectness.as_ref()]);
    scores.flatten().find_map(|field| {
        let tensor = &tensors[field.tensor];
        let scale = tensor.quantization?.scale();
        let (tensor, decoder) = (tensor.to_string(), decoder.name());
        (scale >= COARSE_STEP).then_some(Finding::CoarseScores { tensor, scale, decoder })
    })
}

/// Looks for tensors that are not read, although their shape suggests that they belong to the tensors that are
/// read. If the tensors were found by their ids, only tensors of another level can be missing.
fn check_unread_tensors(choice: &Choice, tensors: &[TensorView<'_>]) -> Option<Finding> {
    let Choice { decoder: of, layout, reason } = choice;
    let decoder = of.name();
    if let Some(tensor) = misread::unread_level(tensors, layout) {
        let unread = format!(
            "belongs to another stride, correct {}, or give the decoder all tensors of the stride",
            Setting::Decoder
        );
        let tensor = tensor.to_string();
        return Some(Finding::UnreadTensor { decoder, tensor, unread });
    }
    // Models of many families have outputs with the ids of the decoder boxes.
    if *reason == Reason::Id && !of.family.has_usual_ids {
        return None;
    }
    let (read, anchors) = (layout.tensors(), layout.anchors());
    let unread = |(index, _): &(usize, &TensorView<'_>)| !read.contains(index);
    let has_anchors = |tensor: &TensorView<'_>| anchors > 1 && tensor.shape.contains(&anchors);
    // A number for each anchor.
    let has_number = |tensor: &TensorView<'_>| {
        has_anchors(tensor) && tensor.shape.elements() == Some(anchors * layout.images)
    };
    // A number for each image beside boxes that have been selected: how many rows have one.
    let is_count = |tensor: &TensorView<'_>| tensor.shape.elements() == Some(layout.images);
    // Prototypes have as many channels as there are numbers that could be mask coefficients.
    let is_prototypes = |tensor: &TensorView<'_>| {
        let has_channels = |column: &Column| tensor.shape.contains(&column.components);
        tensor.shape.len() == 4 && layout.columns.iter().any(has_channels)
    };
    let has_classes = layout.has_class_field() || layout.score.components > 1;
    // All numbers of the anchors of grids are in one tensor.
    let is_grid = |group: &Group| matches!(group.reference, Reference::Grid(_));
    let is_one_grid = read.len() == 1 && layout.groups.iter().all(is_grid);
    tensors.iter().enumerate().filter(unread).find_map(|(_, tensor)| {
        let set = |decoder| Setting::Decoder.to(decoder);
        let both = || [set("efficientnms"), set("ssd-postprocess")];
        let unread = match decoder {
            _ if (decoder == "windows" || is_one_grid) && has_anchors(tensor) => {
                format!("has the scores of boxes, set {}", set("boxes"))
            }
            "boxes" if !has_classes && has_number(tensor) => {
                let [nms, ssd] = both();
                format!("has the classes of boxes, give it the id labels, or set {nms} or {ssd}")
            }
            "boxes" if layout.has_class_field() && anchors > 1 && is_count(tensor) => {
                let [nms, ssd] = both();
                format!(
                    "has the number of rows with a box, set {nms} if boxes have x before y, or {ssd} if they are \
                     normalized and have y before x"
                )
            }
            "yolov8-pose" | "end2end-pose" if is_prototypes(tensor) => {
                let (yolov8, yolo26) = (set("yolov8-seg"), set("end2end-seg"));
                format!("has prototypes of masks, set {yolov8} or {yolo26}")
            }
            _ => return None,
        };
        let tensor = tensor.to_string();
        Some(Finding::UnreadTensor { decoder, tensor, unread })
    })
}

fn check_queries(choice: &Choice, tensors: &[TensorView<'_>]) -> Option<Finding> {
    let Choice { decoder, layout, .. } = choice;
    let (decoder, queries, classes) = (decoder.name(), layout.anchors(), layout.classes);
    if !misread::has_many_queries(choice) {
        return None;
    }
    let tensor = tensors[layout.groups[0].scores.tensor].to_string();
    Some(Finding::Queries { decoder, tensor, queries, classes })
}

/// Looks for a box format that the decoder ignores.
fn check_box_format(choice: &Choice, options: Options) -> Option<Finding> {
    let is_set = options.box_format != BoxFormat::default();
    let decoder = choice.decoder.name();
    (is_set && !choice.decoder.has_box_format()).then_some(Finding::UnusedBoxFormat { decoder })
}
