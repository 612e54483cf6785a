// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets the plugin's version, and what the library exports.

fn main() {
    gst_plugin_version_helper::info();
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // The entry points of the plugin nmsfilter, which is linked as a library, would keep all of its code.
        println!("cargo::rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
    }
}
