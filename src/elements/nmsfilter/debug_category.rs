// SPDX-License-Identifier: MIT OR Apache-2.0
//! The debug category of the element.

use std::sync::LazyLock;

pub(super) static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "nmsfilter",
        gst::DebugColorFlags::empty(),
        Some("Tensor decoding and non-maximum suppression"),
    )
});
