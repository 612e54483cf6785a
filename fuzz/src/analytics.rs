// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes tensors as `GstTensorMeta`.

use gst_newer::{Tensor, TensorDataType, TensorDimOrder, TensorMeta};

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
    let (id, data) = match id {
        None => (0, None),
        Some(id) => (raw::quark(id), Some(data)),
    };
    let dims: Vec<usize> = spec.dims.iter().map(|&dim| dim as usize).collect();
    let order = TensorDimOrder::RowMajor;
    // Without this metadata, there is nothing to fuzz.
    let Ok(tensor) = Tensor::new(id, data_type, data, order, &dims) else { return };
    if let Ok(mut meta) = TensorMeta::add(buffer) {
        meta.set(vec![tensor]);
    }
}
