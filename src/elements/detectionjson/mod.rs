// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the detections on each video frame as a line of JSON.
//!
//! ```text
//! gst-launch-1.0 -q crowdtestsrc num-buffers=3 ! nmsfilter ! detectionjson ! fdsink
//! ```
//!
//! In: video buffers with detections as metadata, from `nmsfilter` or other elements. Out: for each of them a
//! buffer with one line, with the timestamp and duration of the frame. The module `json` documents the fields. The
//! element does not read pixels.

mod imp;
mod settings;
mod upstream;

use gst::glib;
use gst::prelude::*;

glib::wrapper! {
    /// The element `detectionjson`.
    pub struct DetectionJson(ObjectSubclass<imp::DetectionJson>)
        @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// Registers the element with `plugin`.
///
/// # Errors
/// If GStreamer refuses to register it.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    let type_ = DetectionJson::static_type();
    gst::Element::register(Some(plugin), "detectionjson", gst::Rank::NONE, type_)
}
