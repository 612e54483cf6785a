// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shapes of tensors as matrices, with the checks that decoders share.
//!
//! In: a tensor's shape. Out: the number of images, rows and columns, and fields of rows or columns.

use super::layout::{Field, LayoutError};
use super::{Decoder, MAX_CLASSES, Options};
use crate::tensor::{ElementType, TensorView};

/// The shape of a tensor as a batch of matrices, one per image.
pub(super) struct Matrix {
    pub images: usize,
    pub rows: usize,
    pub columns: usize,
}

impl Matrix {
    /// The matrices of a tensor `[rows, columns]`, `[1, rows, columns]`, or with [`Options::batch`]
    /// `[images, rows, columns]`, also with a dimension of 1 before the columns.
    ///
    /// # Errors
    /// If the tensor has another number of dimensions, another batch dimension or another element type.
    pub fn of(
        tensor: &TensorView<'_>,
        decoder: &dyn Decoder,
        options: Options,
    ) -> Result<Self, LayoutError> {
        check_element_type(tensor)?;
        match *tensor.shape {
            [rows, columns] => Ok(Self { images: 1, rows, columns }),
            [images, rows, columns] | [images, rows, 1, columns] => {
                check_batch(tensor, images, options)?;
                Ok(Self { images, rows, columns })
            }
            _ => Err(shape_error(tensor, decoder)),
        }
    }

    /// The field whose anchors are rows and whose components start at `column`. `tensor` is the number of the
    /// tensor's role.
    pub fn anchors_in_rows(&self, tensor: usize, column: usize) -> Field {
        Field {
            tensor,
            offset: column,
            image_stride: self.elements(),
            anchor_stride: self.columns,
            component_stride: 1,
        }
    }

    /// The field whose anchors are columns and whose components are all rows. `tensor` is the number of the tensor's
    /// role.
    pub fn anchors_in_columns(&self, tensor: usize) -> Field {
        Field {
            tensor,
            offset: 0,
            image_stride: self.elements(),
            anchor_stride: 1,
            component_stride: self.columns,
        }
    }

    /// The number of elements of an image. The shape has not been checked against the memory yet,
    /// so the product can overflow; engines return an error for a field beyond the memory.
    fn elements(&self) -> usize {
        self.rows.saturating_mul(self.columns)
    }
}

/// The error for a shape that the decoder does not support.
pub(super) fn shape_error(tensor: &TensorView<'_>, decoder: &dyn Decoder) -> LayoutError {
    let (decoder, expected) = (decoder.name(), decoder.expects().to_owned());
    LayoutError::Shape { tensor: tensor.to_string(), decoder, expected }
}

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
    (boxes, box_images): (&TensorView<'_>, usize),
    (scores, score_images): (&TensorView<'_>, usize),
) -> Result<(), LayoutError> {
    if box_images == score_images {
        return Ok(());
    }
    let (boxes, scores) = (boxes.to_string(), scores.to_string());
    Err(LayoutError::Images { boxes, box_images, scores, score_images })
}

pub(super) fn check_classes(tensor: &TensorView<'_>, classes: usize) -> Result<(), LayoutError> {
    if classes > MAX_CLASSES {
        return Err(LayoutError::Classes { tensor: tensor.to_string(), classes });
    }
    Ok(())
}
