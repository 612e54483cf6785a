// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work on a GPU, in the order of the caller's stream.

use std::ffi::c_void;
use std::sync::Arc;

use nmsfilter_core::cuda::{Device, DeviceBuffer, ForeignStream, Stream};
use pyo3::prelude::*;

use crate::array::Memory;
use crate::dlpack::{self, ExchangeApi, Tensor};
use crate::dtype::Dtype;
use crate::error::Result;
use crate::stream::normalized;

/// The caller's stream. The caller has it exist during the call.
pub fn foreign(stream: usize) -> ForeignStream {
    let handle: *mut c_void = std::ptr::with_exposed_provenance_mut(stream);
    // SAFETY: it is the handle that the library of the caller's arrays, or the caller, has given.
    unsafe { ForeignStream::from_raw(handle) }
}

/// Memory on `device` for `count` elements of 4 or 8 bytes: of the library of the caller's arrays if that has functions and
/// allocates in the order of `stream`, its current one; else of the driver. Its bytes are not initialized.
pub fn allocate(
    py: Python<'_>,
    library: Option<&'static ExchangeApi>,
    device: &Arc<Device>,
    stream: usize,
    dtype: Dtype,
    count: usize,
) -> Result<Memory> {
    if let Some(table) = library {
        let ordinal = device.ordinal() as i32;
        if normalized(table.current_stream(py, ordinal)?) == stream {
            let (mut shape, mut strides) = ([count as i64], [1]);
            let prototype = Tensor {
                data: std::ptr::null_mut(),
                device: dlpack::Device { kind: dlpack::CUDA, ordinal },
                ndim: 1,
                dtype: dtype.dlpack(),
                shape: shape.as_mut_ptr(),
                strides: strides.as_mut_ptr(),
                byte_offset: 0,
            };
            return Ok(Memory::Library(table.allocate(py, &prototype)?));
        }
    }
    Ok(Memory::Device(DeviceBuffer::new(device, count * dtype.size())?))
}

/// Makes an importer's stream wait for the work of `writer`. `stream` is the argument of `__dlpack__`: `None` for the
/// legacy default stream, -1 for an importer that needs no order.
pub fn await_writer(
    device: &Arc<Device>,
    writer: usize,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let reader: i64 = match stream {
        Some(stream) => stream.extract()?,
        None => 0,
    };
    if reader == -1 {
        return Ok(());
    }
    let reader = normalized(reader as usize);
    if reader != writer {
        let reader = Stream::of_other_code(device, foreign(reader));
        reader.wait_for_stream(foreign(writer)).map_err(crate::error::Error::from)?;
    }
    Ok(())
}
