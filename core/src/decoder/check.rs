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

/// A tensor, and a number that follows from its shape.
type Counted<'t, 'v> = (&'t TensorView<'v>, usize);

/// The error for tensors with different numbers.
pub(super) fn differ(
    of: fn((String, usize), (String, usize)) -> LayoutError,
    first: Counted<'_, '_>,
    second: Counted<'_, '_>,
) -> LayoutError {
    of((first.0.to_string(), first.1), (second.0.to_string(), second.1))
}

/// Checks that both tensors have equally many boxes.
pub(super) fn check_lengths(
    boxes: Counted<'_, '_>,
    scores: Counted<'_, '_>,
) -> Result<(), LayoutError> {
    if boxes.1 == scores.1 { Ok(()) } else { Err(differ(LayoutError::Lengths, boxes, scores)) }
}

/// Checks that both tensors have equally many images.
pub(super) fn check_images(
    boxes: Counted<'_, '_>,
    scores: Counted<'_, '_>,
) -> Result<(), LayoutError> {
    if boxes.1 == scores.1 { Ok(()) } else { Err(differ(LayoutError::Images, boxes, scores)) }
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
