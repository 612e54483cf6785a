// SPDX-License-Identifier: MIT OR Apache-2.0
//! The debug category of the element `ortinference` and of all modules in this folder.

use std::sync::LazyLock;

pub static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "ortinference",
        gst::DebugColorFlags::empty(),
        Some("Inference with ONNX Runtime"),
    )
});
