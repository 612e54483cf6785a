// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives the objects of each frame identities, and frames without inference predicted objects.
//!
//! ```text
//! gst-launch-1.0 crowdtestsrc ! nmsfilter ! objecttracker ! roioverlay tail-length=50 ! videoconvert ! autovideosink
//! ```
//!
//! In: video frames with regions of interest or analytics objects of any element. Out: the same buffers, with identities
//! ([`metadata`](crate::metadata)). A frame has no inference if [`inference_mark`](gstnmsfilter::input::inference_mark)
//! says so and it has no objects without a track. The element does not read pixels.

mod imp;

use gst::glib;
use gst::prelude::*;

glib::wrapper! {
    /// The element `objecttracker`.
    pub struct ObjectTracker(ObjectSubclass<imp::ObjectTracker>)
        @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// Registers the element with `plugin`.
///
/// # Errors
/// If GStreamer refuses to register it.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    let type_ = ObjectTracker::static_type();
    gst::Element::register(Some(plugin), "objecttracker", gst::Rank::NONE, type_)
}
