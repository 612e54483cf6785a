// SPDX-License-Identifier: MIT OR Apache-2.0
//! The extension module `nmsfilter._core`.
//!
//! In: arrays of Python's libraries, in host or device memory (`input`). Out: the core's results as arrays of the same
//! library (`array`). Code that need not be fast is written in Python, in the folder nmsfilter.

mod array;
mod boxes;
mod decoder;
mod detections;
mod device;
mod dlpack;
mod dtype;
mod error;
mod hold;
mod input;
mod merged_boxes;
mod numpy;
mod options;
mod rows;
mod self_test;
mod settings;
mod signature;
mod source;
mod stream;
mod words;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<array::Array>()?;
    module.add_class::<decoder::Decoder>()?;
    module.add_class::<detections::Detections>()?;
    module.add_function(wrap_pyfunction!(decoder::decoders, module)?)?;
    module.add_function(wrap_pyfunction!(options::slices, module)?)?;
    module.add_function(wrap_pyfunction!(hold::hold, module)?)?;
    module.add_function(wrap_pyfunction!(hold::release_held, module)?)?;
    module.add_function(wrap_pyfunction!(hold::gather, module)?)?;
    module.add_function(wrap_pyfunction!(signature::describe, module)?)?;
    module.add_function(wrap_pyfunction!(signature::fit, module)?)?;
    module.add_function(wrap_pyfunction!(signature::output_id, module)?)?;
    module.add_function(wrap_pyfunction!(self_test::test_gpu, module)?)?;
    module.add_function(wrap_pyfunction!(merged_boxes::suppress, module)?)?;
    module.add_function(wrap_pyfunction!(boxes::nms, module)?)?;
    module.add_function(wrap_pyfunction!(boxes::batched_nms, module)?)?;
    module.add_function(wrap_pyfunction!(boxes::nms_rotated, module)?)?;
    module.add_function(wrap_pyfunction!(boxes::batched_nms_rotated, module)?)
}
