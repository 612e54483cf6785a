// SPDX-License-Identifier: MIT OR Apache-2.0
//! Removes tensors that have been decoded.
//!
//! In: a buffer whose tensors have been decoded. Out: the buffer without these tensors. Other tensors on the
//! buffer stay, for example a classifier's beside a detector's, which are decoded instead. GStreamer has decoders that end with an error if their tensors are
//! missing; such tensors are replaced by tensors with equal ids that have a single anchor whose numbers are all 0,
//! which means no detection.

use gst::glib;
use gst_newer::{Tensor, TensorDataType, TensorDimOrder, TensorMeta};

use super::groups::{GROUPS, REQUIRED, is_classifier};
use crate::input::tensor_meta;
use nmsfilter_core::decoder::TensorGroup;

/// Removes or replaces the tensors that have been decoded.
pub(super) fn consume(buffer: &mut gst::BufferRef) {
    let has_detections = buffer.iter_meta::<TensorMeta>().any(|meta| {
        GROUPS.iter().any(|group| !is_classifier(group) && is_in(group, meta.as_slice()))
    });
    let is_decoded = |group: &&TensorGroup| !(has_detections && is_classifier(group));
    for mut meta in buffer.iter_meta_mut::<TensorMeta>() {
        let mut decoded = GROUPS.iter().filter(is_decoded);
        let Some(group) = decoded.find(|group| is_in(group, meta.as_slice())) else {
            continue;
        };
        let is_other = |tensor: &&Tensor| {
            let id = tensor_meta::id(tensor);
            group.tensors.iter().all(|decoded| decoded.id != id)
        };
        let mut tensors: Vec<Tensor> = meta.as_slice().iter().filter(is_other).cloned().collect();
        if REQUIRED.contains(&group.id) {
            tensors.extend(without_detections(group));
        }
        meta.set(tensors);
    }
    // Metadata without tensors is removed, because decoders do not expect it.
    tensor_meta::remove_if(buffer, <[Tensor]>::is_empty);
}

/// Returns true if these are all tensors of the group. One id is in two groups.
fn is_in(group: &TensorGroup, tensors: &[Tensor]) -> bool {
    let has = |id: &str| tensors.iter().any(|tensor| tensor_meta::id(tensor) == id);
    group.tensors.iter().all(|tensor| has(tensor.id))
}

/// The tensors of a group with one anchor, whose numbers are 0.
fn without_detections(group: &TensorGroup) -> impl Iterator<Item = Tensor> {
    group.tensors.iter().map(|tensor| {
        let dims: Vec<usize> = tensor.dims.iter().map(|side| side.unwrap_or(1)).collect();
        let numbers = vec![0u8; dims.iter().product::<usize>() * size_of::<f32>()];
        let (kind, order) = (TensorDataType::Float32, TensorDimOrder::RowMajor);
        let id = glib::Quark::from_str(tensor.id);
        Tensor::new_simple(id, kind, gst::Buffer::from_mut_slice(numbers), order, &dims)
    })
}
