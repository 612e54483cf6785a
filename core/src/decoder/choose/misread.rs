// SPDX-License-Identifier: MIT OR Apache-2.0
//! Choices that are probably wrong.
//!
//! In: a [`Choice`]. Out: a fact that contradicts it.

use super::{Choice, choose, has_id};
use crate::decoder::layout::Group;
use crate::decoder::{BoxFormat, Decoder, Layout, Options, decoders};
use crate::tensor::TensorView;

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
