// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entry points of the plugin: GStreamer calls `plugin_init`, which registers the element and the custom metadata.
#![allow(missing_docs, reason = "the macro generates items without documentation")]

use gstnmsfilter::input::custom_meta;

use crate::elements;

fn plugin_init(plugin: &gst::Plugin) -> Result<(), gst::glib::BoolError> {
    gst_newer::load_again_after_updates(plugin);
    custom_meta::register();
    elements::ortinference::register(plugin)
}

gst::plugin_define!(
    onnxruntime,
    env!("CARGO_PKG_DESCRIPTION"),
    plugin_init,
    concat!(env!("CARGO_PKG_VERSION"), "-", env!("COMMIT_ID")),
    // src/plugin.rs has the reason.
    "MIT/X11",
    env!("CARGO_PKG_NAME"),
    env!("CARGO_PKG_NAME"),
    "Unknown package origin",
    env!("BUILD_REL_DATE")
);
