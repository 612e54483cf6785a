// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entry points of the plugin: GStreamer calls `plugin_init`, which registers the element and the custom metadata.
#![allow(missing_docs, reason = "the macro generates items without documentation")]

use gstnmsfilter::input::inference_mark;

use crate::objecttracker;

fn plugin_init(plugin: &gst::Plugin) -> Result<(), gst::glib::BoolError> {
    inference_mark::register();
    objecttracker::register(plugin)
}

gst::plugin_define!(
    objecttracker,
    env!("CARGO_PKG_DESCRIPTION"),
    plugin_init,
    concat!(env!("CARGO_PKG_VERSION"), "-", env!("COMMIT_ID")),
    // src/plugin.rs of nmsfilter has the reason.
    "MIT/X11",
    env!("CARGO_PKG_NAME"),
    env!("CARGO_PKG_NAME"),
    "Unknown package origin",
    env!("BUILD_REL_DATE")
);
