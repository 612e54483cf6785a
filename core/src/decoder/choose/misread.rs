// SPDX-License-Identifier: MIT OR Apache-2.0
//! Choices that are probably wrong.
//!
//! In: a [`Choice`]. Out: a fact that contradicts it.

use super::{Choice, choose, has_id};
use crate::decoder::layout::{Activation, BoxTransform, Field, Group, Reference};
use crate::decoder::{BoxFormat, Decoder, Layout, Options, Scores, decoders, model_family};
use crate::tensor::{HostImages, TensorError, TensorView};

/// Returns a tensor that `choice` reads although its id belongs to another decoder, with that decoder; `None` also if
/// that decoder reads the tensors alike, as `yolov5` and `yolox` do. The decoder was set then, since
/// a choice by id has no such tensor.
///
/// Ids that outputs of many families have are ignored.
pub fn contradicting_id<'t, 'm>(
    tensors: &'t [TensorView<'m>],
    choice: &Choice,
    options: Options,
) -> Option<(&'t TensorView<'m>, &'static Decoder)> {
    let has_name = |decoder: &Decoder, id: &str| {
        let mut roles = decoder.forms.iter().flat_map(|form| &form.roles);
        roles.any(|role| role.names.iter().any(|name| name == id))
    };
    let (tensor, other) = choice.layout.tensors().into_iter().find_map(|index| {
        let tensor = &tensors[index];
        let mut others = decoders().iter().copied().filter(|decoder| !decoder.family.has_usual_ids);
        let other = others.find(|decoder| has_id(decoder, tensor.id))?;
        let is_expected = has_id(choice.decoder, tensor.id) || has_name(choice.decoder, tensor.id);
        (!is_expected).then_some((tensor, other))
    })?;
    let is_same = choose(tensors, Some(other), options).is_ok_and(|by_id| {
        Layout { decoder: choice.layout.decoder, ..by_id.layout } == choice.layout
    });
    (!is_same).then_some((tensor, other))
}

/// Returns a tensor that `layout` does not read although it seems to have the boxes of another level: as many numbers of an
/// anchor as the boxes of a grid, in an equal dimension, for a number of anchors that no level has.
pub fn unread_level<'t, 'm>(
    tensors: &'t [TensorView<'m>],
    layout: &Layout,
) -> Option<&'t TensorView<'m>> {
    let read = layout.tensors();
    let group = layout.groups.iter().find(|it| matches!(it.reference, Reference::Grid(_)))?;
    let known = &tensors[group.boxes.tensor];
    // A tensor can have the anchors of one level or of all.
    let of_tensor = layout.groups.iter().filter(|it| it.boxes.tensor == group.boxes.tensor);
    let anchors: usize = of_tensor.map(|it| it.anchors).sum();
    let numbers = |tensor: &TensorView<'_>, anchors: usize| {
        tensor.shape.elements()?.checked_div(anchors.checked_mul(layout.images)?)
    };
    let channels = numbers(known, anchors).filter(|&channels| channels > 1)?;
    let stride = |at: usize| known.shape[at + 1..].iter().product::<usize>();
    let channel_axis = (0..known.shape.len())
        .find(|&at| known.shape[at] == channels && stride(at) == group.boxes.component_stride)?;
    tensors.iter().enumerate().find_map(|(index, tensor)| {
        let is_alike = tensor.shape.len() == known.shape.len()
            && tensor.shape[channel_axis] == channels
            && !read.contains(&index);
        let of_tensor = tensor.shape.elements()? / channels / layout.images.max(1);
        let is_other =
            of_tensor != anchors && layout.groups.iter().all(|it| it.anchors != of_tensor);
        (is_alike && is_other && of_tensor > 0).then_some(tensor)
    })
}

/// Returns true if `choice` reads rows of six numbers as boxes of center form with the scores of one or two classes,
/// and the number of classes is not set. Such rows are usually corners, score and class: the decoder `end2end`.
pub fn may_be_end_to_end(choice: &Choice, options: Options) -> bool {
    let is_row = |group: &Group| {
        (group.boxes.anchor_stride, group.boxes.component_stride) == (6, 1)
            && group.boxes.tensor == group.scores.tensor
            && group.class.is_none()
    };
    options.num_classes == 0
        && choice.layout.boxes.format == BoxFormat::Center
        && choice.layout.groups.iter().all(is_row)
}

/// More queries than any model of the DETR family has: most have 100 to 300, and models for crowded pictures have
/// 900.
const MANY_QUERIES: usize = 2000;

/// More classes than any detection dataset has: LVIS has 1203.
const MANY_CLASSES: usize = 4000;

/// End-to-end models have 300 rows. Other models have a row per grid cell, of which there are 1029 even for an
/// input of 224x224.
pub const FEW_ROWS: usize = 1000;

/// Returns true if `choice` reads more queries or classes than models of the family DETR have.
pub fn has_many_queries(choice: &Choice) -> bool {
    let layout = &choice.layout;
    choice.decoder.name() == "detr"
        && (layout.anchors() > MANY_QUERIES || layout.classes > MANY_CLASSES)
}

/// Returns the decoder of an end-to-end model that probably produced the output: the output has few rows, and
/// `choice` reads some numbers of each row as scores.
pub fn few_rows(choice: &Choice) -> Option<&'static str> {
    let other = model_family::end_to_end(choice.decoder.name())?;
    let is_row = |group: &Group| group.boxes.component_stride == 1;
    let layout = &choice.layout;
    (layout.anchors() <= FEW_ROWS && layout.groups.iter().all(is_row)).then_some(other)
}

/// Returns true if the shapes probably belong to another family.
pub(super) fn is_unlikely(choice: &Choice, options: Options) -> bool {
    let layout = &choice.layout;
    let is_any = layout.has_class_field();
    has_many_queries(choice)
        || few_rows(choice).is_some()
        || may_be_end_to_end(choice, options)
        || (layout.classes > MANY_CLASSES && !is_any)
        || (layout.anchors() < layout.score.components && layout.tensors().len() == 1)
}

/// How much the numbers of tensors contradict a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Contradiction {
    /// Not at all, or the numbers cannot be read.
    None,
    /// They are normalized, but read as pixels, or the reverse, or no corners: there are settings for these.
    Settings,
    /// They are no such boxes, classes or scores.
    Numbers,
}

/// So many numbers say whether they are offsets or logits.
const MANY_NUMBERS: usize = 50;

/// A number of corners, of how many boxes of the first image, which `choice` reads as centers and sizes, or as offsets from
/// anchors or cells.
pub fn misread_corners(tensors: &[TensorView<'_>], choice: &Choice) -> Option<(usize, usize)> {
    let layout = &choice.layout;
    if layout.boxes.format != BoxFormat::Center || !have_four_numbers(layout) {
        return None;
    }
    let mut boxes = Vec::new();
    for group in &layout.groups {
        boxes.extend(boxes_of(tensors, group).ok()?.map(|(_, numbers)| numbers));
    }
    if is_decoded(layout) {
        return are_corners(layout, &boxes).then_some((count(&boxes, is_ordered), boxes.len()));
    }
    // Offsets are of both signs.
    let is_corners = |it: &[f32; 4]| is_ordered(it) && is_near_unit(it);
    let corners = count(&boxes, is_corners);
    (boxes.len() >= MANY_NUMBERS && 4 * corners >= 3 * boxes.len())
        .then_some((corners, boxes.len()))
}

/// Returns true if `choice` takes scores of the first image for logits that all are from 0 to 1. Logits are of both signs.
pub fn are_probabilities(tensors: &[TensorView<'_>], choice: &Choice) -> bool {
    let score = choice.layout.score;
    if score.activation == Activation::None {
        return false;
    }
    let (mut len, mut greatest) = (0, 0.0);
    for group in &choice.layout.groups {
        let Ok(number) = reader(tensors, &group.scores) else { return false };
        for row in 0..group.anchors {
            for component in 0..score.columns() {
                let number = number(row, component);
                if !(0.0..=1.0).contains(&number) {
                    return false;
                }
                (len, greatest) = (len + 1, number.max(greatest));
            }
        }
    }
    len >= MANY_NUMBERS && greatest > 0.0
}

/// Compares the numbers of the first image with what `choice` takes them for.
pub(super) fn contradiction(tensors: &[TensorView<'_>], choice: &Choice) -> Contradiction {
    let layout = &choice.layout;
    match have_four_numbers(layout).then(|| boxes_and_wrong(tensors, choice)) {
        Some(Ok((boxes, wrong))) if !boxes.is_empty() => compare(layout, &boxes, wrong),
        _ => Contradiction::None,
    }
}

/// Returns true if each box has four numbers or more in the field of boxes.
fn have_four_numbers(layout: &Layout) -> bool {
    let has_four = |it: &Group| layout.boxes.field_components(it.sizes.is_some()) >= 4;
    layout.groups.iter().all(has_four)
}

/// The numbers of a field of the first image, by row and component.
fn reader(
    tensors: &[TensorView<'_>],
    field: &Field,
) -> Result<impl Fn(usize, usize) -> f32, TensorError> {
    let (field, number) = (*field, HostImages::new(&tensors[field.tensor])?.numbers(0)?);
    Ok(move |row, component| number(field.index(row, component)))
}

/// The rows of a group with the numbers of their boxes, without rows of zeros, which are no detections.
fn boxes_of(
    tensors: &[TensorView<'_>],
    group: &Group,
) -> Result<impl Iterator<Item = (usize, [f32; 4])>, TensorError> {
    let number = reader(tensors, &group.boxes)?;
    let boxes = (0..group.anchors).map(move |row| (row, [0, 1, 2, 3].map(|at| number(row, at))));
    Ok(boxes.filter(|(_, numbers)| *numbers != [0.0; 4]))
}

/// The numbers of all boxes, and how many have a number that is no class, or a score that is no probability.
fn boxes_and_wrong(
    tensors: &[TensorView<'_>],
    choice: &Choice,
) -> Result<(Vec<[f32; 4]>, usize), TensorError> {
    let score = choice.layout.score;
    let are_probabilities =
        choice.decoder.scores == Scores::Probabilities && score.activation == Activation::None;
    let (mut boxes, mut wrong) = (Vec::new(), 0);
    for group in &choice.layout.groups {
        let of_score = are_probabilities.then(|| reader(tensors, &group.scores)).transpose()?;
        let of_class = group.class.as_ref().map(|field| reader(tensors, field)).transpose()?;
        for (row, numbers) in boxes_of(tensors, group)? {
            boxes.push(numbers);
            let is_class = |class: f32| class >= -1.0 && class.fract() == 0.0;
            let is_wrong = |score: f32| !(-0.01..=1.01).contains(&score);
            let has_wrong = of_class.as_ref().is_some_and(|of| !is_class(of(row, 0)))
                || of_score.as_ref().is_some_and(|of| {
                    (0..score.columns()).any(|component| is_wrong(of(row, component)))
                });
            wrong += usize::from(has_wrong);
        }
    }
    Ok((boxes, wrong))
}

fn is_decoded(layout: &Layout) -> bool {
    layout.boxes.transform == BoxTransform::None
        && layout.groups.iter().all(|group| group.reference == Reference::None)
}

fn count(boxes: &[[f32; 4]], is: impl Fn(&[f32; 4]) -> bool) -> usize {
    boxes.iter().filter(|it| is(it)).count()
}

fn is_ordered([left, top, right, bottom]: &[f32; 4]) -> bool {
    right > left && bottom > top
}

fn is_inverted([left, top, right, bottom]: &[f32; 4]) -> bool {
    right < left || bottom < top
}

fn is_near_unit(numbers: &[f32; 4]) -> bool {
    numbers.iter().all(|it| (-0.5..=1.5).contains(it))
}

/// Returns whether boxes that are read as centers and sizes are corners. A few objects can have any numbers.
fn are_corners(layout: &Layout, boxes: &[[f32; 4]]) -> bool {
    let many = if layout.anchors() > FEW_ROWS { 3 } else { 10 };
    count(boxes, is_inverted) == 0 && count(boxes, is_ordered) >= many
}

fn compare(layout: &Layout, boxes: &[[f32; 4]], wrong: usize) -> Contradiction {
    let is_most = |part: usize| part > 0 && 4 * part >= boxes.len();
    let is_decoded = is_decoded(layout);
    let is_other = match layout.boxes.format {
        BoxFormat::Center if is_decoded => {
            let has_negative_side = |it: &[f32; 4]| it[2] < 0.0 || it[3] < 0.0;
            are_corners(layout, boxes) || is_most(count(boxes, has_negative_side))
        }
        // Offsets, logarithms and logits are of both signs: in 40 % of the rows or more. Of corners, few are left of the
        // picture or above it: 3 to 6 % of UltraFace's rows.
        BoxFormat::Center => {
            let negative = count(boxes, |it| it.iter().any(|&it| it < 0.0));
            boxes.len() >= MANY_NUMBERS && 8 * negative < boxes.len()
        }
        _ => false,
    };
    let is_other_unit = match layout.normalized {
        true => 2 * count(boxes, |it| it.iter().any(|it| it.abs() > 4.0)) >= boxes.len(),
        false => count(boxes, is_near_unit) == boxes.len(),
    };
    let has_inverted =
        layout.boxes.format == BoxFormat::Corners && is_most(count(boxes, is_inverted));
    match (is_other || is_most(wrong), is_decoded && (is_other_unit || has_inverted)) {
        (true, _) => Contradiction::Numbers,
        (false, true) => Contradiction::Settings,
        (false, false) => Contradiction::None,
    }
}
