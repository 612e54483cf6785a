// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a detector with ONNX Runtime and attaches its raw output tensors.
//!
//! ```text
//! gst-launch-1.0 filesrc location=picture.jpg ! decodebin ! videoconvert ! ortinference model=yolov8n.onnx \
//!   ! nmsfilter ! roioverlay ! videoconvert ! pngenc ! filesink location=boxes.png
//! ```
//!
//! In: video frames. Out: these buffers with the model's outputs as tensors (`NmsFilterTensor` metadata), in GPU
//! memory if a GPU ran the model. The frame's pixels are not changed: the model gets a scaled copy.

mod enums;
mod imp;
mod latency;
mod messages;
mod schedule;
mod settings;
mod state;
mod stats;
mod transform;

use gst::glib;
use gst::prelude::*;

glib::wrapper! {
    /// The element `ortinference`.
    pub struct OrtInference(ObjectSubclass<imp::OrtInference>)
        @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// Registers the element with `plugin`.
///
/// # Errors
/// If GStreamer refuses to register it.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(
        Some(plugin),
        "ortinference",
        gst::Rank::NONE,
        OrtInference::static_type(),
    )
}
