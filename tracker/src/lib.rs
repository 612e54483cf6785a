// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GStreamer plugin `objecttracker` with the element of this name, which gives detections identities.
//!
//! [`plugin_register_static`] registers the element without a plugin file. The other modules are public for tests of the
//! same project, and may change with any version: `algorithm` runs the library's trackers, `stream` is the state of a
//! stream, `metadata` reads and writes objects, and `objecttracker` is the element.
#![warn(missing_docs)]

pub mod algorithm;
pub mod metadata;
pub mod objecttracker;
mod plugin;
pub mod stream;

pub use plugin::plugin_register_static;
