// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `GstTensorMeta`, which GStreamer's inference elements write (1.26 and later).
//!
//! In: a buffer. Out: its tensors. `dims_order` is not read, because producers set it differently
//! for equal bytes; decoders use ids and shapes. The metadata does not guarantee that the size
//! of the memory matches the shape; [`TensorView`](nmsfilter_core::tensor::TensorView) checks it.

use gst_newer::{Tensor, TensorDataType, TensorMeta};

use super::{AttachedTensor, Tensors};
use crate::bindings::strings;
use nmsfilter_core::tensor::{ElementType, Shape};

/// Reads the tensors of every `GstTensorMeta` on `buffer` into `tensors`. Tensors beyond its
/// capacity, or with more than [`MAX_DIMENSIONS`](nmsfilter_core::tensor::MAX_DIMENSIONS) dimensions, are only counted.
pub fn read<'a>(buffer: &'a gst::BufferRef, tensors: &mut Tensors<'a>) {
    buffer.iter_meta::<TensorMeta>().for_each(|meta| add(&meta, tensors));
}

/// Reads the tensors of a single `GstTensorMeta`. `index` is its index among the `GstTensorMeta` that have tensors.
pub fn read_one<'a>(buffer: &'a gst::BufferRef, index: usize, tensors: &mut Tensors<'a>) {
    let mut metas = buffer.iter_meta::<TensorMeta>().filter(|meta| !meta.as_slice().is_empty());
    if let Some(meta) = metas.nth(index) {
        add(&meta, tensors);
    }
}

/// Returns the number of `GstTensorMeta` on `buffer` that have tensors.
pub fn count(buffer: &gst::BufferRef) -> usize {
    buffer.iter_meta::<TensorMeta>().filter(|meta| !meta.as_slice().is_empty()).count()
}

fn add<'a>(meta: &gst::MetaRef<'a, TensorMeta>, tensors: &mut Tensors<'a>) {
    for tensor in slice(meta) {
        let Some(shape) = Shape::new(tensor.dims()) else {
            tensors.unread += 1;
            continue;
        };
        let element = element_type(tensor.data_type());
        tensors.push(AttachedTensor::new(id(tensor), element, shape, tensor.data()));
    }
}

/// Returns the tensors of a metadata item, with the lifetime of the buffer's borrow.
fn slice<'a>(meta: &gst::MetaRef<'a, TensorMeta>) -> &'a [Tensor] {
    let tensors: *const [Tensor] = meta.as_slice();
    // SAFETY: the metadata owns the array, and the buffer, which is borrowed immutably for `'a`, owns the metadata.
    // `as_slice()` returns a slice with the shorter lifetime of the borrow of `meta`.
    unsafe { &*tensors }
}

/// Replaces a tensor id that is not UTF-8. No decoder uses this text as an id.
const NOT_UTF8: &str = "(an id that is not UTF-8)";

/// Returns the tensor's id; empty if there is none.
pub(crate) fn id(tensor: &Tensor) -> &'static str {
    strings::of_quark(tensor.id()).map_or("", |id| id.to_str().unwrap_or(NOT_UTF8))
}

fn element_type(data_type: TensorDataType) -> ElementType {
    match data_type {
        TensorDataType::Float32 => ElementType::F32,
        TensorDataType::Float16 => ElementType::F16,
        TensorDataType::Int8 => ElementType::I8,
        TensorDataType::Uint8 => ElementType::U8,
        TensorDataType::Int32 => ElementType::I32,
        TensorDataType::Int64 => ElementType::I64,
        TensorDataType::Float64 => ElementType::Other("f64"),
        TensorDataType::Bfloat16 => ElementType::Other("bf16"),
        TensorDataType::Int16 => ElementType::Other("i16"),
        TensorDataType::Uint16 => ElementType::Other("u16"),
        TensorDataType::Uint32 => ElementType::Other("u32"),
        TensorDataType::Uint64 => ElementType::Other("u64"),
        _ => ElementType::Other("a type this plugin does not know"),
    }
}

/// Copies every `GstTensorMeta` of `from` to `to`, unless `to` already has one.
///
/// GStreamer 1.28 copies this metadata with a buffer, but GStreamer 1.26 does not.
pub fn copy(from: &gst::BufferRef, to: &mut gst::BufferRef) {
    if to.meta::<TensorMeta>().is_some() {
        return;
    }
    for meta in from.iter_meta::<TensorMeta>() {
        if let Ok(mut added) = TensorMeta::add(to) {
            added.set(meta.as_slice().to_vec());
        }
    }
}

/// Removes each `GstTensorMeta` whose tensors `remove` selects from `buffer`.
pub fn remove_if(buffer: &mut gst::BufferRef, mut remove: impl FnMut(&[Tensor]) -> bool) {
    use gst::buffer::BufferMetaForeachAction::{Keep, Remove};
    buffer.foreach_meta_mut(|mut meta| {
        let tensors = meta.downcast_ref::<TensorMeta>();
        let is_removed = tensors.is_some_and(|meta| remove(meta.as_slice()));
        std::ops::ControlFlow::Continue(if is_removed { Remove } else { Keep })
    });
}

/// Removes a single `GstTensorMeta` from `buffer`. `index` is its index among the `GstTensorMeta` that have
/// tensors.
pub fn remove_one(buffer: &mut gst::BufferRef, index: usize) {
    let mut next = 0;
    remove_if(buffer, |tensors| {
        let is_removed = !tensors.is_empty() && next == index;
        next += usize::from(!tensors.is_empty());
        is_removed
    });
}
