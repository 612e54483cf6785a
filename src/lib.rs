// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GStreamer plugin `nmsfilter`, which decodes detector tensors and suppresses duplicate detections (non-maximum
//! suppression), on the CPU and on NVIDIA GPUs.
//!
//! Programs use these parts, which are stable:
//!
//! - [`plugin_register_static`] registers the elements without a plugin file.
//! - [`input`] attaches tensors to video buffers, from host or device memory, for the element
//!   `nmsfilter` to read.
//! - [`regions`] reads the regions of interest that the element attaches.
//! - [`tensor`] and [`cuda`] have the types that describe tensors. They are modules of `nmsfilter_core`, which decodes
//!   and suppresses without GStreamer.
//!
//! The other modules are public for the other plugins, tests and benchmarks of this project. They may change with
//! any version, without notice.
//!
//! Data flows through the folders of the source in this order:
//!
//! ```text
//! buffer ─► input ─► tensor ─► decoder ─► engine ─► output ─► the same buffer
//!           GStreamer  plain      what it    decode,   GStreamer
//!           metadata   views      means      suppress  metadata
//!                      \____ nmsfilter_core ________/
//! ```
//!
//! `deepstream` is NVIDIA DeepStream's metadata, and `json` the text of the element `detectionjson`. `elements` has the
//! elements, which connect these parts; those for tests and demonstrations are a package in demo/, the element
//! `ortinference` is one in inference/.
#![warn(missing_docs)]

pub mod bindings;
pub mod deepstream;
pub mod elements;
pub mod file;
pub mod frame;
pub mod input;
mod json;
pub mod output;
mod plugin;
pub mod regions;

pub use nmsfilter_core::{cuda, tensor};

pub use plugin::plugin_register_static;
