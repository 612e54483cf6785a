// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes tensors as `GstTensorMeta`.

use gst::glib;
use gst::glib::translate::{IntoGlib, IntoGlibPtr};
use gst_analytics::{TensorDataType, ffi};

use crate::raw;
use crate::tensors::Spec;

/// Writes a tensor whose id can be any bytes. A tensor without an id gets no memory either.
pub fn write(buffer: &mut gst::BufferRef, spec: &Spec, data: gst::Buffer, id: Option<&[u8]>) {
    let data_type = match spec.element {
        "f32" => TensorDataType::Float32,
        "f16" => TensorDataType::Float16,
        "f64" => TensorDataType::Float64,
        "i8" => TensorDataType::Int8,
        "u8" => TensorDataType::Uint8,
        "bf16" => TensorDataType::Bfloat16,
        "i64" => TensorDataType::Int64,
        _ => TensorDataType::Int32,
    };
    let quark = id.map_or(0, raw::quark);
    // SAFETY: the tensor has room for all dimensions and owns its data, and the metadata owns the
    // tensor.
    unsafe {
        let tensor = ffi::gst_tensor_alloc(spec.dims.len());
        (*tensor).id = quark;
        (*tensor).layout = ffi::GST_TENSOR_LAYOUT_CONTIGUOUS;
        (*tensor).data_type = data_type.into_glib();
        (*tensor).data = match id {
            None => std::ptr::null_mut(),
            Some(_) => data.into_glib_ptr(),
        };
        let dims = (*tensor).dims.as_mut_ptr();
        for (i, &dim) in spec.dims.iter().enumerate() {
            *dims.add(i) = dim as usize;
        }
        let meta = ffi::gst_buffer_add_tensor_meta(buffer.as_mut_ptr());
        let array = glib::ffi::g_malloc(size_of::<*mut ffi::GstTensor>());
        *array.cast::<*mut ffi::GstTensor>() = tensor;
        ffi::gst_tensor_meta_set(meta, 1, array.cast());
    }
}
