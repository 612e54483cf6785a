//! What every engine checks of a layout before it reads anything: [`Layout`]'s fields are public,
//! so nothing else says that they address elements that there are.

use super::{EngineError, MAX_IMAGES, Params};
use crate::decoder::{Field, Layout, MAX_CLASSES};
use crate::tensor::{TensorError, TensorView};

/// Checks that indices can be counted, and that every number that `layout` addresses is an element
/// of its tensor. Reads no element and, unless there is an error, allocates nothing.
pub(super) fn validate(
    tensors: &[TensorView<'_>],
    layout: &Layout,
    params: &Params,
) -> Result<(), EngineError> {
    let &Layout { images, anchors, classes, boxes, box_format, scores, objectness, .. } = layout;
    if images == 0 || images > MAX_IMAGES {
        return Err(EngineError::Images { images });
    }
    // Anchors, and with multi_label pairs of anchor and class, are counted by u32.
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
            return Err(EngineError::ObjectnessApart { expected, got });
        }
        check_field("objectness", objectness, [images, anchors, 1], tensors)?;
    }
    Ok(())
}

/// Checks that `components` numbers of each of `anchors` anchors of each of `images` images are elements
/// of the tensor.
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
    // Images, anchors and components fit 32 bits, so that nothing overflows here.
    let steps = |count: usize, stride: usize| (count as u128 - 1) * stride as u128;
    let last = field.offset as u128
        + steps(images, field.image_stride)
        + steps(anchors, field.anchor_stride)
        + steps(components, field.component_stride);
    if last >= elements as u128 {
        let tensor = tensor.to_string();
        return Err(EngineError::FieldOutside { field: name, tensor, last, held: elements });
    }
    Ok(())
}
