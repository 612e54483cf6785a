// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes detector tensors and suppresses duplicate detections (non-maximum suppression), on the CPU
//! and on NVIDIA GPUs.
//!
//! Programs use these modules, which are stable:
//!
//! - [`nms`] decodes and suppresses.
//! - [`tensor`] describes tensors in host or device memory.
//! - [`cuda`] has what producers of tensors in device memory need of the CUDA driver.
//!
//! The other modules are public for the GStreamer plugins, tests and benchmarks of the same project. They may change
//! with any version, without notice:
//!
//! ```text
//! tensor ─► decoder ─► plan ─► engine ─► detail
//! views     what it    once    decode,   oriented boxes,
//!           means              suppress  points
//! ```
//!
//! `plan` has what is computed once for many runs: the decoder, its layout, and the engine's parameters for each
//! place of images. `device` is the CUDA driver, `geometry` what boxes and overlaps are, and the mapping of boxes to a
//! frame, `functions` the mathematical functions whose results have the same bits everywhere. `contradictions` finds
//! tensors that are misread.
#![warn(missing_docs)]

pub mod contradictions;
pub mod cuda;
pub mod decoder;
pub mod detail;
pub mod device;
pub mod engine;
pub mod functions;
pub mod geometry;
pub mod nms;
pub mod plan;
pub mod tensor;

/// The examples of the crate's page.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CratePage;
