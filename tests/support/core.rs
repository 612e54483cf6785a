// SPDX-License-Identifier: MIT OR Apache-2.0
//! The modules of `support` for test programs of the main package. These programs are also built
//! without GStreamer, and cannot use the plugin `nmsfilterdemo`.
#![allow(dead_code, reason = "each test program uses some of it")]

pub mod data;
pub mod engines;
#[cfg(feature = "gstreamer")]
pub mod frame;
pub mod layout_scene;
pub mod library;
pub mod oriented_scene;
#[cfg(feature = "gstreamer")]
pub mod pipeline;
pub mod project;
pub mod random_layout;
pub mod recorded;
pub mod scene;
pub mod skip;

/// The function that registers each plugin.
#[cfg(feature = "gstreamer")]
const PLUGINS: [fn() -> Result<(), gst::glib::BoolError>; 1] =
    [gstnmsfilter::plugin_register_static];
