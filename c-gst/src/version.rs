// SPDX-License-Identifier: MIT OR Apache-2.0
//! The version of the library.

/// The version of the library: major x 10000 + minor x 100 + patch. The header's version is NMSFILTER_GST_VERSION.
#[unsafe(no_mangle)]
pub extern "C" fn nmsfilter_gst_version() -> u32 {
    number(env!("CARGO_PKG_VERSION_MAJOR")) * 10_000
        + number(env!("CARGO_PKG_VERSION_MINOR")) * 100
        + number(env!("CARGO_PKG_VERSION_PATCH"))
}

fn number(text: &str) -> u32 {
    text.parse().unwrap_or_default()
}
