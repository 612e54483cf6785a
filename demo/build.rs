// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tells the plugin its version.

fn main() {
    gst_plugin_version_helper::info();
}
