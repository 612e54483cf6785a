// SPDX-License-Identifier: MIT OR Apache-2.0
//! The name by which programs load the library (soname), and what it exports.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        let major = env!("CARGO_PKG_VERSION_MAJOR");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libnmsfilter-gst.so.{major}");
        // The entry points of the plugin, which is linked too, are not part of the interface.
        println!("cargo::rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
    }
}
