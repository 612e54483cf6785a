// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes detector tensors and suppresses duplicate detections (non-maximum suppression), on the CPU
//! and on NVIDIA GPUs.
//!
//! The crate builds the GStreamer plugin `nmsfilter`. Programs use it in three ways:
//!
//! - [`plugin_register_static`] registers the elements without a plugin file.
//! - [`input`] attaches tensors to video buffers, from host or device memory, for the element
//!   `nmsfilter` to read.
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
//! `device` is the CUDA driver, `deepstream` NVIDIA DeepStream's metadata, `geometry` what boxes and overlaps are. `elements` has the elements, which
//! connect these parts.
#![warn(missing_docs)]
#![cfg_attr(
    not(feature = "v1_20"),
    allow(unused, reason = "some parts serve elements and metadata that are left out")
)]

#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod decoder;
#[cfg(not(feature = "internals"))]
mod decoder;
#[cfg(all(feature = "gstreamer", feature = "internals"))]
#[doc(hidden)]
pub mod deepstream;
#[cfg(all(feature = "gstreamer", not(feature = "internals")))]
mod deepstream;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod device;
#[cfg(not(feature = "internals"))]
mod device;
#[cfg(all(feature = "gstreamer", feature = "internals"))]
#[doc(hidden)]
pub mod elements;
#[cfg(all(feature = "gstreamer", not(feature = "internals")))]
mod elements;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod engine;
#[cfg(not(feature = "internals"))]
mod engine;
#[cfg(feature = "gstreamer")]
mod file;
#[cfg(feature = "gstreamer")]
mod frame;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod geometry;
#[cfg(not(feature = "internals"))]
mod geometry;
#[cfg(all(feature = "onnxruntime", feature = "internals"))]
#[doc(hidden)]
pub mod inference;
#[cfg(all(feature = "onnxruntime", not(feature = "internals")))]
mod inference;
#[cfg(feature = "gstreamer")]
pub mod input;
pub mod nms;
#[cfg(all(feature = "gstreamer", feature = "internals"))]
#[doc(hidden)]
pub mod output;
#[cfg(all(feature = "gstreamer", not(feature = "internals")))]
mod output;
#[cfg(feature = "gstreamer")]
mod plugin;
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
