// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes detector tensors and suppresses duplicate detections (non-maximum suppression), on the CPU
//! and on NVIDIA GPUs.
//!
//! The crate builds the GStreamer plugin `nmsfilter`. Programs use it in four ways:
//!
//! - [`plugin_register_static`] registers the elements without a plugin file.
//! - [`input`] attaches tensors to video buffers, from host or device memory, for the element
//!   `nmsfilter` to read.
//! - [`regions`] reads the regions of interest that the element attaches.
//! - [`nms`] decodes and suppresses without GStreamer (also with `default-features = false`).
//!
//! Data flows through the folders of the source in this order:
//!
//! ```text
//! buffer ─► input ─► tensor ─► decoder ─► engine ─► output ─► the same buffer
//!           GStreamer  plain      what it    decode,   GStreamer
//!           metadata   views      means      suppress  metadata
//!                      \____ core: no GStreamer ____/
//! ```
//!
//! `plan` has what is computed once for many buffers: the decoder, its layout, and the engine's parameters for each
//! place of images. `device` is the CUDA driver, `deepstream` NVIDIA DeepStream's metadata, `geometry` what boxes and
//! overlaps are, and the mapping of boxes to a frame.
//! `elements` has the elements, which connect these parts; those for tests and demonstrations are a package of
//! their own, in demo/.
#![warn(missing_docs)]

mod contradictions;
mod decoder;
#[cfg(feature = "gstreamer")]
mod deepstream;
mod detail;
mod device;
#[cfg(feature = "gstreamer")]
mod elements;
mod engine;
#[cfg(feature = "gstreamer")]
mod file;
#[cfg(any(feature = "onnxruntime", all(feature = "gstreamer", feature = "internals")))]
mod frame;
mod functions;
mod geometry;
#[cfg(feature = "onnxruntime")]
mod inference;
#[cfg(feature = "gstreamer")]
pub mod input;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;
#[cfg(feature = "gstreamer")]
mod json;
pub mod nms;
#[cfg(feature = "gstreamer")]
mod output;
mod plan;
#[cfg(feature = "gstreamer")]
mod plugin;
#[cfg(feature = "gstreamer")]
pub mod regions;
pub mod tensor;
#[cfg(feature = "gstreamer")]
mod text;
#[cfg(feature = "gstreamer")]
mod type_names;

pub mod cuda;

#[cfg(feature = "gstreamer")]
pub use plugin::plugin_register_static;
#[cfg(feature = "onnxruntime")]
pub use plugin::register_inference;

/// The examples of the crate's page.
#[cfg(doctest)]
#[doc = include_str!("README.md")]
struct CratePage;
