// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams of the caller.
//!
//! In: the argument `stream`, or an array whose library has a current stream. Out: the handle, a `CUstream`.

use pyo3::prelude::*;

use crate::error::{Error, Result};
use crate::input::type_name;

/// The handle of the legacy default stream (`CU_STREAM_LEGACY`), which does not depend on the current context.
pub const LEGACY: usize = 1;

/// The handle with the legacy default stream under one number: libraries also give 0 for it.
pub fn normalized(stream: usize) -> usize {
    if stream == 0 { LEGACY } else { stream }
}

/// The handle of the argument `stream`: a number, or a stream of PyTorch, CuPy or cuda.core.
pub fn from_argument(stream: Option<&Bound<'_, PyAny>>) -> Result<Option<usize>> {
    let Some(stream) = stream else { return Ok(None) };
    if let Ok(number) = stream.extract::<usize>() {
        return Ok(Some(normalized(number)));
    }
    for attribute in ["cuda_stream", "ptr"] {
        if let Some(handle) = stream.getattr_opt(attribute)? {
            return Ok(Some(normalized(handle.extract()?)));
        }
    }
    if let Some(protocol) = stream.getattr_opt("__cuda_stream__")? {
        let (_, handle): (i32, usize) = protocol.call0()?.extract()?;
        return Ok(Some(normalized(handle)));
    }
    Err(Error::Type(format!(
        "stream: expected the handle of a CUDA stream, or a stream of PyTorch, CuPy or cuda.core, got \
         {}; without it, the current stream of the arrays' library is used",
        type_name(stream)
    )))
}

/// The current stream of the library of an object that is on a GPU, if the library is known.
pub fn current_stream(object: &Bound<'_, PyAny>) -> Result<Option<usize>> {
    let py = object.py();
    let module = object.get_type().module()?;
    let stream = match module.to_str()?.split('.').next() {
        Some("cupy") => {
            let cuda = py.import("cupy")?.getattr("cuda")?;
            cuda.call_method0("get_current_stream")?.getattr("ptr")?
        }
        Some("torch") => {
            let cuda = py.import("torch")?.getattr("cuda")?;
            cuda.call_method1("current_stream", (object.getattr("device")?,))?
                .getattr("cuda_stream")?
        }
        _ => return Ok(None),
    };
    Ok(Some(normalized(stream.extract()?)))
}
