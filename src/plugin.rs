// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entry points of the plugin: GStreamer calls `plugin_init`, which registers the elements and the
//! custom metadata.
#![allow(missing_docs, reason = "the macro generates items without documentation")]

use gst_newer::Capabilities;

use crate::elements;
use crate::input::{custom_meta, inference_mark};

fn plugin_init(plugin: &gst::Plugin) -> Result<(), gst::glib::BoolError> {
    gst::info!(elements::nmsfilter::CAT, "{}", Capabilities::get());
    gst_newer::load_again_after_updates(plugin);
    custom_meta::register();
    inference_mark::register();
    elements::nmsfilter::register(plugin)?;
    elements::nmstensordec::register(plugin)?;
    elements::detectionjson::register(plugin)
}

gst::plugin_define!(
    nmsfilter,
    env!("CARGO_PKG_DESCRIPTION"),
    plugin_init,
    concat!(env!("CARGO_PKG_VERSION"), "-", env!("COMMIT_ID")),
    // The crate is "MIT OR Apache-2.0". GStreamer's list of licenses has the first only.
    "MIT/X11",
    env!("CARGO_PKG_NAME"),
    env!("CARGO_PKG_NAME"),
    // GStreamer's default for plugins without an address.
    "Unknown package origin",
    env!("BUILD_REL_DATE")
);
