// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes detector tensors on video buffers and suppresses duplicate detections; decodes the scores of classifiers.
//!
//! ```text
//! gst-launch-1.0 crowdtestsrc ! nmsfilter ! roioverlay ! videoconvert ! autovideosink
//! ```
//!
//! In: video buffers with tensors as metadata. Out: these buffers with the survivors as
//! region-of-interest metadata, and as `GstAnalyticsODMtd` with GStreamer 1.24 or later. Pixels are not accessed. Place the element upstream of elements that scale or
//! crop: tensors describe the frame to which they were attached.

mod attach;
mod clock;
mod decode;
pub mod enums;
mod error;
mod imp;
mod model;
mod notices;
mod reading;
mod session;
mod setting_notices;
mod settings;
mod stats;
mod transform;
mod words;

use gst::glib;
use gst::prelude::*;
use gst_base::subclass::prelude::*;

crate::debug_category!(pub(crate) CAT, "nmsfilter", "Tensor decoding and non-maximum suppression");

glib::wrapper! {
    /// The element `nmsfilter`.
    pub struct NmsFilter(ObjectSubclass<imp::NmsFilter>)
        @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// A subclass of `nmsfilter`.
pub(super) trait NmsFilterImpl:
    BaseTransformImpl + ObjectSubclass<Type: IsA<NmsFilter>>
{
}

// SAFETY: the class adds no fields and no methods.
unsafe impl<T: NmsFilterImpl> IsSubclassable<T> for NmsFilter {}

/// Registers the element with `plugin`.
///
/// # Errors
/// If GStreamer refuses to register it.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(Some(plugin), "nmsfilter", gst::Rank::NONE, NmsFilter::static_type())
}
