// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checks of tensors that decoders share.
//!
//! In: a tensor, and numbers of its shape. Out: the error of what does not fit.

use super::layout::LayoutError;
use super::{MAX_CLASSES, Options};
use crate::tensor::{ElementType, TensorView};

/// The error for a batch of as many images.
pub(super) fn wrong_batch(tensor: &TensorView<'_>, batch: usize) -> LayoutError {
    let tensor = tensor.to_string();
    match batch {
        0 => LayoutError::NoImages { tensor },
        _ => LayoutError::Batch { tensor, batch },
    }
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
    let tensor_text = || tensor.to_string();
    match tensor.element {
        ElementType::F32 | ElementType::F16 => Ok(()),
        ElementType::I8 | ElementType::U8 if tensor.quantization.is_some() => Ok(()),
        ElementType::I8 | ElementType::U8 => {
            Err(LayoutError::NotQuantized { tensor: tensor_text() })
        }
        ElementType::I32 | ElementType::I64 | ElementType::Other(_) => {
            Err(LayoutError::ElementType { tensor: tensor_text() })
        }
    }
}

/// Checks that both tensors have equally many boxes.
pub(super) fn check_lengths(
    (boxes, box_count): (&TensorView<'_>, usize),
    (scores, score_count): (&TensorView<'_>, usize),
) -> Result<(), LayoutError> {
    if box_count == score_count {
        return Ok(());
    }
    let (boxes, scores) = (boxes.to_string(), scores.to_string());
    Err(LayoutError::Lengths { boxes, box_count, scores, score_count })
}

/// Checks that both tensors have equally many images.
pub(super) fn check_images(
    boxes: (&TensorView<'_>, usize),
    scores: (&TensorView<'_>, usize),
) -> Result<(), LayoutError> {
    if boxes.1 == scores.1 { Ok(()) } else { Err(wrong_images(boxes, scores)) }
}

/// The error for tensors with different numbers of images.
pub(super) fn wrong_images(
    (boxes, box_images): (&TensorView<'_>, usize),
    (scores, score_images): (&TensorView<'_>, usize),
) -> LayoutError {
    let (boxes, scores) = (boxes.to_string(), scores.to_string());
    LayoutError::Images { boxes, box_images, scores, score_images }
}

/// Checks that there are as many classes as are set, if a number is set.
pub(super) fn check_num_classes(
    tensor: &TensorView<'_>,
    decoder: &'static str,
    classes: usize,
    options: Options,
) -> Result<(), LayoutError> {
    match options.num_classes {
        0 => Ok(()),
        expected if classes == expected => Ok(()),
        expected => {
            Err(LayoutError::NumClasses { tensor: tensor.to_string(), decoder, classes, expected })
        }
    }
}

pub(super) fn check_classes(tensor: &TensorView<'_>, classes: usize) -> Result<(), LayoutError> {
    if classes > MAX_CLASSES {
        return Err(LayoutError::Classes { tensor: tensor.to_string(), classes });
    }
    Ok(())
}
