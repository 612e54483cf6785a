// SPDX-License-Identifier: MIT OR Apache-2.0
//! Helpers that several test programs use. Programs of the package `nmsfilter-core` use `core.rs` instead.
#![allow(dead_code, reason = "each test program uses some of it")]

pub mod batches;
pub mod data;
pub mod emulated;
pub mod engines;
pub mod layout_scene;
pub mod library;
pub mod methods;
pub mod needs;
pub mod onnx;
pub mod oriented_scene;
pub mod pipeline;
pub mod play;
pub mod process;
pub mod project;
pub mod random_layout;
pub mod recorded;
pub mod scene;
pub mod scratch;
pub mod skip;

/// Returns the folder of the plugins: `NMSFILTER_TEST_PLUGINS`, or this program's folder, where
/// cargo builds them.
pub fn plugins_folder() -> std::path::PathBuf {
    let named = std::env::var_os("NMSFILTER_TEST_PLUGINS").map(std::path::PathBuf::from);
    named.unwrap_or_else(|| std::env::current_exe().unwrap().parent().unwrap().to_owned())
}

/// The function that registers each plugin.
const PLUGINS: [fn() -> Result<(), gst::glib::BoolError>; 2] =
    [gstnmsfilter::plugin_register_static, gstnmsfilterdemo::plugin_register_static];
