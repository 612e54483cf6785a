// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GStreamer plugin `onnxruntime` with the element `ortinference`, which runs ONNX models with ONNX Runtime.
//!
//! [`plugin_register_static`] registers the element without a plugin file. The modules are public for tests and
//! benchmarks of this project, and may change with any version, without notice: `regions` chooses the parts of a
//! frame, `inference` runs a model on them, and `elements` has the element.
#![warn(missing_docs)]

pub mod elements;
pub mod inference;
#[cfg(test)]
#[path = "../../core/src/device/tests/kernel_headers.rs"]
#[allow(dead_code, reason = "the core uses more of it")]
mod kernel_headers;
mod plugin;
pub mod regions;

pub use plugin::plugin_register_static;
