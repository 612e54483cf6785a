// SPDX-License-Identifier: MIT OR Apache-2.0
//! `GstTensorMeta` (1.26): the tensors of GStreamer's inference elements.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use gst::glib;
use gst::glib::ffi::GQuark;
use gst::glib::translate::{IntoGlib, IntoGlibPtr};
use gst::prelude::*;

use crate::ffi::{GstTensor, GstTensorMeta};
use crate::library::{Missing, TensorTable};
use crate::metadata::metadata;

/// The type of a tensor's elements, as `GstTensorDataType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
#[allow(missing_docs, reason = "the names say it")]
pub enum TensorDataType {
    Int4,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint4,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Float16,
    Float32,
    Float64,
    Bfloat16,
    /// A type that GStreamer has introduced later.
    Later,
}

impl TensorDataType {
    /// The types in the order of their numbers.
    const ALL: [Self; 14] = [
        Self::Int4,
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::Uint4,
        Self::Uint8,
        Self::Uint16,
        Self::Uint32,
        Self::Uint64,
        Self::Float16,
        Self::Float32,
        Self::Float64,
        Self::Bfloat16,
    ];
}

/// The order of the dimensions, which is not read: producers set it differently for equal bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
#[allow(missing_docs, reason = "the names say it")]
pub enum TensorDimOrder {
    RowMajor,
    ColMajor,
}

/// A tensor, which owns a reference to its memory.
#[derive(Debug)]
#[repr(transparent)]
pub struct Tensor(NonNull<GstTensor>);

// SAFETY: a tensor is changed only by its owner, and the count of references of its memory is atomic.
unsafe impl Send for Tensor {}
// SAFETY: as above.
unsafe impl Sync for Tensor {}

/// The functions of tensors that exist.
fn table() -> &'static TensorTable {
    TensorTable::get().expect("tensors exist only with their functions")
}

impl Tensor {
    /// Makes a tensor of these dimensions; of `id`, 0 stands for none.
    ///
    /// # Errors
    /// If the running GStreamer has no tensors.
    pub fn new(
        id: GQuark,
        data_type: TensorDataType,
        data: Option<gst::Buffer>,
        order: TensorDimOrder,
        dims: &[usize],
    ) -> Result<Self, Missing> {
        let table = TensorTable::get()?;
        // SAFETY: the new tensor has room for the dimensions, and takes the reference to its memory.
        unsafe {
            let tensor = (table.gst_tensor_alloc)(dims.len());
            (*tensor).id = id;
            // `GST_TENSOR_LAYOUT_CONTIGUOUS`.
            (*tensor).layout = 0;
            (*tensor).data_type = data_type as i32;
            (*tensor).data = data.map_or(std::ptr::null_mut(), IntoGlibPtr::into_glib_ptr);
            (*tensor).dims_order = order as i32;
            (*tensor).num_dims = dims.len();
            let to = (&raw mut (*tensor).dims).cast::<usize>();
            std::ptr::copy_nonoverlapping(dims.as_ptr(), to, dims.len());
            Ok(Self(NonNull::new_unchecked(tensor)))
        }
    }

    /// Makes a tensor.
    ///
    /// # Panics
    /// If the running GStreamer has no tensors.
    pub fn new_simple(
        id: glib::Quark,
        data_type: TensorDataType,
        data: gst::Buffer,
        order: TensorDimOrder,
        dims: &[usize],
    ) -> Self {
        let tensor = Self::new(id.into_glib(), data_type, Some(data), order, dims);
        tensor.expect("GStreamer has tensors")
    }

    fn raw(&self) -> &GstTensor {
        // SAFETY: the tensor is valid.
        unsafe { self.0.as_ref() }
    }

    /// The id; 0 if there is none.
    pub fn id(&self) -> GQuark {
        self.raw().id
    }

    /// The type of the elements.
    pub fn data_type(&self) -> TensorDataType {
        let index = usize::try_from(self.raw().data_type).ok();
        let known = index.and_then(|index| TensorDataType::ALL.get(index).copied());
        known.unwrap_or(TensorDataType::Later)
    }

    /// The memory, if there is any. Nothing guarantees that it is as large as type and dimensions say.
    pub fn data(&self) -> Option<&gst::BufferRef> {
        let data = self.raw().data;
        // SAFETY: if the address is not null, the tensor owns a reference to the buffer.
        (!data.is_null()).then(|| unsafe { gst::BufferRef::from_ptr(data) })
    }

    /// The dimensions.
    pub fn dims(&self) -> &[usize] {
        // SAFETY: the array is behind the structure in the same memory, and as long as `num_dims` says. The address is
        // derived from that of the whole memory.
        unsafe {
            let dims = (&raw const (*self.0.as_ptr()).dims).cast::<usize>();
            std::slice::from_raw_parts(dims, self.raw().num_dims)
        }
    }
}

impl Clone for Tensor {
    fn clone(&self) -> Self {
        // SAFETY: the tensor is valid; the function returns another that shares its memory.
        unsafe { Self(NonNull::new_unchecked((table().gst_tensor_copy)(self.0.as_ptr()))) }
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: this value owns the tensor.
        unsafe { (table().gst_tensor_free)(self.0.as_ptr()) };
    }
}

// GStreamer 1.24 has another type of this name in a plugin, which the function does not return.
metadata! {
    TensorMeta, GstTensorMeta, TensorTable, gst_tensor_meta_api_get_type, gst_buffer_add_tensor_meta,
    /// Adds metadata without tensors. (The first versions of 1.26 return the buffer's metadata if it has some.)
}

impl TensorMeta {
    /// Replaces the tensors.
    pub fn set(&mut self, tensors: Vec<Tensor>) {
        let count = u32::try_from(tensors.len()).expect("nobody has so many tensors");
        let tensors = ManuallyDrop::new(tensors);
        // SAFETY: the function takes the tensors, and the array, which is allocated as it requires.
        unsafe {
            let bytes = tensors.len() * size_of::<*mut GstTensor>();
            let array = glib::ffi::g_malloc(bytes).cast::<*mut GstTensor>();
            std::ptr::copy_nonoverlapping(tensors.as_ptr().cast(), array, tensors.len());
            (table().gst_tensor_meta_set)(&mut self.0, count, array);
        }
    }

    /// The tensors.
    pub fn as_slice(&self) -> &[Tensor] {
        if self.0.tensors.is_null() {
            return &[];
        }
        // SAFETY: the metadata owns the array and the tensors.
        unsafe { std::slice::from_raw_parts(self.0.tensors.cast(), self.0.num_tensors) }
    }
}
