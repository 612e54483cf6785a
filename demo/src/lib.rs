// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plugin `nmsfilterdemo`: elements that test and demonstrate `nmsfilter`.
//!
//! `crowdtestsrc` and `tensorreplay` attach tensors to frames, and `roioverlay` draws regions of
//! interest. Programs that link this crate call [`plugin_register_static`].

pub mod crowdtestsrc;
mod grid;
pub mod roioverlay;
mod tensor_memory;
pub mod tensorreplay;

use gstnmsfilter::input::custom_meta;

pub use tensor_memory::TensorMemory;

fn plugin_init(plugin: &gst::Plugin) -> Result<(), gst::glib::BoolError> {
    gst_newer::load_again_after_updates(plugin);
    custom_meta::register();
    crowdtestsrc::register(plugin)?;
    roioverlay::register(plugin)?;
    tensorreplay::register(plugin)
}

gst::plugin_define!(
    nmsfilterdemo,
    env!("CARGO_PKG_DESCRIPTION"),
    plugin_init,
    concat!(env!("CARGO_PKG_VERSION"), "-", env!("COMMIT_ID")),
    // GStreamer's list of licenses has only this one of the two (see src/plugin.rs).
    "MIT/X11",
    env!("CARGO_PKG_NAME"),
    env!("CARGO_PKG_NAME"),
    "Unknown package origin",
    env!("BUILD_REL_DATE")
);
