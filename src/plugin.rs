//! The plugin's entry points for GStreamer.
#![allow(missing_docs, reason = "the items that the macro makes carry no documentation")]

use crate::elements;

fn plugin_init(plugin: &gst::Plugin) -> Result<(), gst::glib::BoolError> {
    elements::register(plugin)
}

gst::plugin_define!(
    nmsfilter,
    env!("CARGO_PKG_DESCRIPTION"),
    plugin_init,
    concat!(env!("CARGO_PKG_VERSION"), "-", env!("COMMIT_ID")),
    // The license of the two that GStreamer's list knows.
    "MIT/X11",
    env!("CARGO_PKG_NAME"),
    env!("CARGO_PKG_NAME"),
    // GStreamer's own words where there is no address.
    "Unknown package origin",
    env!("BUILD_REL_DATE")
);
