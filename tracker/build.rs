// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets the plugin's version.

fn main() {
    gst_plugin_version_helper::info();
}
