// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checks that every engine makes before it reads an element.
//!
//! In: tensors, layout, parameters. Out: an error if the layout addresses anything that does not exist. The
//! fields of [`Layout`] are public, so a program can pass any values.

use super::{EngineError, MAX_IMAGES, Params};
use crate::decoder::{Field, Layout, MAX_CLASSES};
use crate::tensor::{TensorError, TensorView};

/// Checks that indices fit 32 bits, and that every element that `layout` addresses is within the shape of its
/// tensor. Reads no element and, unless there is an error, does not allocate.
pub(super) fn validate(
    tensors: &[TensorView<'_>],
    layout: &Layout,
    params: &Params,
) -> Result<(), EngineError> {
    let &Layout { images, anchors, classes, boxes, box_format, scores, objectness, .. } = layout;
    if images == 0 || images > MAX_IMAGES {
        return Err(EngineError::Images { images });
    }
    // The index of an anchor, and with multi_label of a pair of anchor and class, is a u32.
    if u32::try_from(anchors).is_err() {
        return Err(EngineError::Anchors { anchors });
    }
    if classes == 0 || classes > MAX_CLASSES {
        return Err(EngineError::Classes { classes });
    }
    let pairs = anchors as u64 * classes as u64;
    if params.multi_label && u32::try_from(pairs).is_err() {
        return Err(EngineError::Pairs { anchors, classes });
    }
    check_field("boxes", boxes, [images, anchors, box_format.components()], tensors)?;
    check_field("scores", scores, [images, anchors, classes], tensors)?;
    if let Some(objectness) = objectness {
        if objectness.tensor != scores.tensor {
            let (expected, got) = (scores.tensor, objectness.tensor);
            return Err(EngineError::ObjectnessTensor { expected, got });
        }
        check_field("objectness", objectness, [images, anchors, 1], tensors)?;
    }
    // All memories of images are checked before the first is read, so that every engine returns the same error.
    for tensor in layout.tensors().map(|index| &tensors[index]) {
        if tensor.has_separate_images() {
            tensor.checked_len()?;
        }
    }
    Ok(())
}

/// Checks that the field's `components` elements per anchor, of `anchors` anchors per image, of `images`
/// images, are within the shape of the tensor; and if its images are in separate allocations, within the
/// memory of their image.
fn check_field(
    name: &'static str,
    field: Field,
    [images, anchors, components]: [usize; 3],
    tensors: &[TensorView<'_>],
) -> Result<(), EngineError> {
    let tensor = tensors.get(field.tensor).ok_or(EngineError::NoTensor {
        field: name,
        index: field.tensor,
        tensors: tensors.len(),
    })?;
    let elements = tensor
        .shape
        .elements()
        .ok_or_else(|| TensorError::TooLarge { tensor: tensor.to_string() })?;
    if anchors == 0 {
        return Ok(());
    }
    // Numbers of images, anchors and components fit 32 bits, and strides 64 bits: no overflow in 128 bits.
    let steps = |count: usize, stride: usize| (count as u128 - 1) * stride as u128;
    let last = field.offset as u128
        + steps(images, field.image_stride)
        + steps(anchors, field.anchor_stride)
        + steps(components, field.component_stride);
    if last >= elements as u128 {
        let tensor = tensor.to_string();
        return Err(EngineError::FieldOutside { field: name, tensor, last, held: elements });
    }
    if tensor.has_separate_images() {
        // Image i of the layout is image i of the tensor: with as many images, consecutive images begin as
        // far apart as there are elements in one.
        let count = tensor.shape.first().copied().unwrap_or(0);
        let held = elements / count.max(1);
        let is_separate = images == count && (images == 1 || field.image_stride == held);
        let last = last - steps(images, field.image_stride);
        if !is_separate || last >= held as u128 {
            let (tensor, stride) = (tensor.to_string(), field.image_stride);
            return Err(EngineError::FieldAcrossImages {
                field: name,
                tensor,
                images,
                stride,
                last,
                held,
            });
        }
    }
    Ok(())
}
