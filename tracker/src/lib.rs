// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GStreamer plugin `objecttracker` with the element of this name, which gives detections identities.
//!
//! [`plugin_register_static`] registers the element without a plugin file. `algorithm` runs the library's trackers,
//! `stream` is the state of a stream, `metadata` reads and writes objects, and `objecttracker` is the element.
#![warn(missing_docs)]

mod algorithm;
mod metadata;
mod objecttracker;
mod plugin;
mod settings;
mod stream;

pub use plugin::plugin_register_static;
