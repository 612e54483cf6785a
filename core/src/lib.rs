// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes detector tensors and suppresses duplicate detections (non-maximum suppression), on the CPU
//! and on NVIDIA GPUs.
//!
//! Programs use these modules, which are stable:
//!
//! - [`nms`] decodes and suppresses.
//! - [`tensor`] describes tensors in host or device memory.
//! - [`cuda`] has the parts of the CUDA driver that producers of tensors in device memory need.
//!
//! The other modules are public for the GStreamer plugins, tests and benchmarks of this project. They may change
//! with any version, without notice:
//!
//! ```text
//! tensor ─► decoder ─► reading ─► engine ─► detections
//! views     what it    once       decode,
//!           means                 suppress
//! ```
//!
//! `reading` has what is computed once for many runs (the decoder, its layout, and the engine's parameters), and finds
//! tensors that are misread.
//! `device` is the CUDA driver, `geometry` has boxes, overlaps, and the mapping of boxes to a frame, `functions` the
//! mathematical functions whose results have equal bits everywhere. `signature` recognizes models by their inputs and
//! outputs. `wording` replaces the names of settings in texts.
#![warn(missing_docs)]

pub mod decoder;
pub mod device;
pub mod engine;
pub mod functions;
pub mod geometry;
mod named;
pub mod nms;
pub mod reading;
pub mod signature;
pub mod tensor;
pub mod wording;

/// Parts of the CUDA driver for producers of tensors in device memory: a GPU and its primary context,
/// memory, streams, events and kernels; and the events that a reader of device memory waits for.
///
/// The driver is loaded at run time. Calls make the GPU's primary context current on the calling thread
/// and restore the one before; the CUDA runtime, and libraries that use it, work in this context.
pub mod cuda {
    pub use crate::device::{
        Device, DeviceBuffer, DeviceError, DeviceRows, DriverError, Event, ForeignStream, Kernel,
        Module, OwnedEvent, PinnedBuffer, Ready, Stream,
    };
}

/// The examples of the crate's page.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CratePage;
