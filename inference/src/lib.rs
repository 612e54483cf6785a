// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entry points of the plugin `onnxruntime`, which registers the element `ortinference`.
#![allow(missing_docs, reason = "the macro generates items without documentation")]

fn plugin_init(plugin: &gst::Plugin) -> Result<(), gst::glib::BoolError> {
    gstnmsfilter::register_inference(plugin)
}

gst::plugin_define!(
    onnxruntime,
    env!("CARGO_PKG_DESCRIPTION"),
    plugin_init,
    concat!(env!("CARGO_PKG_VERSION"), "-", env!("COMMIT_ID")),
    // The crate is "MIT OR Apache-2.0". GStreamer's list of licenses only contains the first one.
    "MIT/X11",
    env!("CARGO_PKG_NAME"),
    env!("CARGO_PKG_NAME"),
    "Unknown package origin",
    env!("BUILD_REL_DATE")
);
