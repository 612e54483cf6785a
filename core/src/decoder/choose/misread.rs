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
/// Ids that outputs of many families have are ignored ([`Decoder::has_usual_ids`]).
pub fn contradicting_id<'t, 'm>(
    tensors: &'t [TensorView<'m>],
    choice: &Choice,
    options: Options,
) -> Option<(&'t TensorView<'m>, &'static dyn Decoder)> {
    let has_name = |decoder: &dyn Decoder, id: &str| {
        decoder.forms().iter().flat_map(|form| form.roles()).any(|role| role.names.contains(&id))
    };
    let (tensor, other) = choice.layout.tensors().into_iter().find_map(|index| {
        let tensor = &tensors[index];
        let mut others = decoders().iter().copied().filter(|decoder| !decoder.has_usual_ids());
        let other = others.find(|decoder| has_id(*decoder, tensor.id))?;
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

/// Compares the numbers of the first image with what `choice` takes them for. Rows of zeros have no detection.
pub(super) fn contradiction(tensors: &[TensorView<'_>], choice: &Choice) -> Contradiction {
    let mut numbers = Numbers::default();
    match choice.layout.groups.iter().try_for_each(|group| numbers.add(tensors, choice, group)) {
        Ok(()) => numbers.contradiction(&choice.layout),
        Err(_) => Contradiction::None,
    }
}

/// The numbers of rows of some kind.
#[derive(Default)]
struct Numbers {
    rows: usize,
    /// With a class that is none, or a score that is no probability.
    wrong: usize,
    /// Whose last two numbers both are greater than the first two, as those of corners.
    ordered: usize,
    /// Of which one is less.
    inverted: usize,
    /// With a number below 0.
    negative: usize,
    /// Of which one of the last two is, as no size.
    hollow: usize,
    /// With no number beyond those of normalized boxes.
    small: usize,
    /// With a number far beyond these.
    large: usize,
}

/// So many rows of offsets have a number below 0.
const MANY_OFFSETS: usize = 50;

impl Numbers {
    fn add(
        &mut self,
        tensors: &[TensorView<'_>],
        choice: &Choice,
        group: &Group,
    ) -> Result<(), TensorError> {
        let read = |field: &Field, anchors: usize, components: usize| {
            let (field, tensor) = (*field, &tensors[field.tensor]);
            let elements = HostImages::new(tensor)?.holding(0)?;
            let number = move |anchor, component| {
                let element = elements.to_f32(field.index(anchor, component));
                tensor.quantization.map_or(element, |it| it.number(element))
            };
            Ok((0..anchors).map(move |row| (0..components).map(move |it| number(row, it))))
        };
        let score = choice.layout.score;
        let are_probabilities = choice.decoder.scores() == Scores::Probabilities
            && score.activation == Activation::None;
        let mut is_wrong = vec![false; group.anchors];
        if are_probabilities {
            for (row, scores) in read(&group.scores, group.anchors, score.columns())?.enumerate() {
                is_wrong[row] = scores.into_iter().any(|it| !(-0.01..=1.01).contains(&it));
            }
        }
        if let Some(class) = &group.class {
            for (row, class) in read(class, group.anchors, 1)?.enumerate() {
                is_wrong[row] |= class.into_iter().any(|it| it < -1.0 || it.fract() != 0.0);
            }
        }
        let components = group.box_components(&choice.layout.boxes).min(4);
        for (row, numbers) in read(&group.boxes, group.anchors, components)?.enumerate() {
            let all: Vec<f32> = numbers.collect();
            if all.iter().all(|&it| it == 0.0) {
                continue;
            }
            self.rows += 1;
            self.wrong += usize::from(is_wrong[row]);
            self.negative += usize::from(all.iter().any(|&it| it < 0.0));
            self.small += usize::from(all.iter().all(|it| (-0.5..=1.5).contains(it)));
            self.large += usize::from(all.iter().any(|it| it.abs() > 4.0));
            if let [left, top, right, bottom] = all[..] {
                self.ordered += usize::from(right > left && bottom > top);
                self.inverted += usize::from(right < left || bottom < top);
                self.hollow += usize::from(right < 0.0 || bottom < 0.0);
            }
        }
        Ok(())
    }

    fn contradiction(&self, layout: &Layout) -> Contradiction {
        let &Self { rows, wrong, ordered, inverted, negative, hollow, small, large } = self;
        let is_decoded = layout.boxes.transform == BoxTransform::None
            && layout.groups.iter().all(|group| group.reference == Reference::None);
        let is_most = |part: usize| part > 0 && 4 * part >= rows;
        // A few objects can have any numbers.
        let is_grid = layout.anchors() > FEW_ROWS;
        let are_corners = inverted == 0 && ordered >= if is_grid { 3 } else { 10 };
        let is_center = layout.boxes.format == BoxFormat::Center;
        // Offsets, logarithms and logits are of both signs.
        let are_offsets = negative > 0 || rows < MANY_OFFSETS;
        if is_most(wrong)
            || is_center && if is_decoded { are_corners || is_most(hollow) } else { !are_offsets }
        {
            return Contradiction::Numbers;
        }
        let is_other_unit = match layout.normalized {
            true => 2 * large >= rows,
            false => small == rows,
        };
        let is_inverted = layout.boxes.format == BoxFormat::Corners && is_most(inverted);
        match is_decoded && rows > 0 && (is_other_unit || is_inverted) {
            true => Contradiction::Settings,
            false => Contradiction::None,
        }
    }
}
