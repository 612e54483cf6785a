//! Decodes detector tensors on video buffers and suppresses duplicate detections.
//!
//! ```text
//! gst-launch-1.0 crowdtestsrc ! nmsfilter ! roioverlay ! videoconvert ! autovideosink
//! ```
//!
//! Survivors leave as region-of-interest metadata, and as `GstAnalyticsODMtd` where the plugin
//! was built for GStreamer 1.24 or later. Pixels are never touched. Place it before anything that
//! scales or crops: tensors describe the frame they were attached to.

mod class_rules;
mod counted;
#[cfg(feature = "internals")]
pub mod enums;
#[cfg(not(feature = "internals"))]
mod enums;
mod error;
mod imp;
mod notices;
mod plan;
mod session;
mod settings;
mod stats;
mod wait;
mod wanted;

use gst::glib;
use gst::prelude::*;

#[cfg(feature = "internals")]
pub use enums::Decoder;

glib::wrapper! {
    /// The element.
    pub struct NmsFilter(ObjectSubclass<imp::NmsFilter>)
        @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// Registers the element with `plugin`.
///
/// # Errors
/// Where GStreamer refuses it.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(Some(plugin), "nmsfilter", gst::Rank::NONE, NmsFilter::static_type())
}
