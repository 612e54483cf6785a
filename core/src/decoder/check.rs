// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checks of tensors that decoders share.
//!
//! In: a tensor, and numbers of its shape. Out: the error of what does not fit.

use super::layout::{Background, LayoutError, LayoutProblem};
use super::{MAX_CLASSES, Options};
use crate::tensor::{ElementType, TensorView};
use crate::wording::Setting::{self, Batch, NumClasses, Quantization, ScoreActivation};

/// The error of a shape that a decoder does not read.
pub(super) fn shape_error(tensor: &TensorView<'_>, decoder: &str, expected: &str) -> LayoutError {
    let text = format!("tensor {tensor}: decoder {decoder} expects {expected}");
    LayoutError::new(LayoutProblem::Shape, text)
}

/// The error for a batch of as many images.
pub(super) fn wrong_batch(tensor: &TensorView<'_>, batch: usize) -> LayoutError {
    let text = match batch {
        0 => format!(
            "tensor {tensor}: expected a batch of at least one image, got none; leave out empty batches"
        ),
        _ => format!(
            "tensor {tensor}: expected a batch dimension of 1, got {batch}; export the model with a batch size of 1, or \
             use {Batch}"
        ),
    };
    LayoutError::new(LayoutProblem::Batch, text)
}

pub(super) fn check_batch(
    tensor: &TensorView<'_>,
    images: usize,
    options: Options,
) -> Result<(), LayoutError> {
    if images == 1 || (options.batch && images > 0) {
        return Ok(());
    }
    Err(wrong_batch(tensor, images))
}

pub(super) fn check_element_type(tensor: &TensorView<'_>) -> Result<(), LayoutError> {
    let (problem, text) = match tensor.element {
        ElementType::F32 | ElementType::F16 => return Ok(()),
        ElementType::I8 | ElementType::U8 if tensor.quantization.is_some() => return Ok(()),
        ElementType::I8 | ElementType::U8 => (
            LayoutProblem::NotQuantized,
            format!(
                "tensor {tensor}: its elements are quantized, but their scale and zero point are not known; set \
                 {Quantization}"
            ),
        ),
        ElementType::I32 | ElementType::I64 | ElementType::Other(_) => (
            LayoutProblem::ElementType,
            format!(
                "tensor {tensor}: expected elements of type f32 or f16, or i8 or u8 with a scale; convert it upstream"
            ),
        ),
    };
    Err(LayoutError::new(problem, text))
}

/// A tensor, and a number that follows from its shape.
type Counted<'t, 'v> = (&'t TensorView<'v>, usize);

/// Checks that both tensors have equally many boxes.
pub(super) fn check_lengths(
    (boxes, count): Counted<'_, '_>,
    (scores, rows): Counted<'_, '_>,
) -> Result<(), LayoutError> {
    if count == rows {
        return Ok(());
    }
    let text = format!(
        "tensor {boxes} has {count} boxes, tensor {scores} has scores for {rows}; expected one row of scores for each box"
    );
    Err(LayoutError::new(LayoutProblem::Lengths, text))
}

/// The error for tensors with different numbers of images.
pub(super) fn other_images(
    (boxes, images): Counted<'_, '_>,
    (scores, others): Counted<'_, '_>,
) -> LayoutError {
    let text = format!(
        "tensor {boxes} is a batch of {images}, tensor {scores} one of {others}; expected the same number of images"
    );
    LayoutError::new(LayoutProblem::Images, text)
}

/// Checks that both tensors have equally many images.
pub(super) fn check_images(
    boxes: Counted<'_, '_>,
    scores: Counted<'_, '_>,
) -> Result<(), LayoutError> {
    if boxes.1 == scores.1 { Ok(()) } else { Err(other_images(boxes, scores)) }
}

/// Checks that there are as many classes as are set, if a number is set.
pub(super) fn check_num_classes(
    tensor: &TensorView<'_>,
    decoder: &str,
    classes: usize,
    options: Options,
) -> Result<(), LayoutError> {
    let expected = options.num_classes;
    if expected == 0 || classes == expected {
        return Ok(());
    }
    // The other meaning of scores of one class too many.
    let or_background = match classes == expected.saturating_add(1) {
        true => ", or if one score is the background's, set `options.background` to first or last",
        false => "",
    };
    let text = format!(
        "tensor {tensor}: read by decoder {decoder} it has {classes} classes, but {NumClasses} is {expected}; correct \
         {NumClasses}, or set it to 0 to take what the tensor has{or_background}"
    );
    Err(LayoutError::new(LayoutProblem::NumClasses(classes), text))
}

pub(super) fn check_classes(tensor: &TensorView<'_>, classes: usize) -> Result<(), LayoutError> {
    if classes <= MAX_CLASSES {
        return Ok(());
    }
    let text =
        format!("tensor {tensor}: {classes} classes are more than the {MAX_CLASSES} supported");
    Err(LayoutError::new(LayoutProblem::Classes, text))
}

/// The error of a single score, whose softmax is always 1.
pub(super) fn single_softmax(tensor: &TensorView<'_>, decoder: &str) -> LayoutError {
    let text = format!(
        "tensor {tensor}: decoder {decoder} reads one score for each anchor, and softmax of one score is always 1; set \
         {ScoreActivation} to sigmoid or none"
    );
    LayoutError::new(LayoutProblem::SingleSoftmax, text)
}

/// The error of scores of which none is left for a class beside the background's.
pub(super) fn no_background(
    tensor: &TensorView<'_>,
    decoder: &str,
    background: Background,
) -> LayoutError {
    let text = format!(
        "tensor {tensor}: decoder {decoder} reads one score for each anchor, so the {} is not the background's; unset {}",
        background.name(),
        Setting::Background
    );
    LayoutError::new(LayoutProblem::NoBackground, text)
}

/// The error of numbers of an anchor that can be the first or the last dimension.
pub(super) fn open_order(tensor: &TensorView<'_>, decoder: &str) -> LayoutError {
    let text = format!(
        "tensor {tensor}: decoder {decoder} can read it with the channels (the numbers of an anchor) first or last; set \
         {} to first or last",
        Setting::Channels
    );
    LayoutError::new(LayoutProblem::Channels, text)
}
