// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a line of JSON of the detections on each video frame.
//!
//! ```text
//! gst-launch-1.0 -q crowdtestsrc num-buffers=3 ! nmsfilter ! detectionjson ! fdsink
//! ```
//!
//! In: video buffers with detections as metadata, from `nmsfilter` or other elements. Out: a buffer with one line for
//! each, with its timestamp and duration. `json` has the fields. Pixels are not accessed.

mod imp;
mod settings;
mod undecoded;

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
