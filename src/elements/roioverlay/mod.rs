//! Draws regions of interest with label and confidence, readable in a crowd.
//!
//! ```text
//! gst-launch-1.0 crowdtestsrc ! nmsfilter ! roioverlay ! videoconvert ! autovideosink
//! ```
//!
//! Boxes are thin, with a dark outline, in a color per class. A label is drawn where it has room:
//! in full, else the confidence alone, else not at all, so that labels never bury the picture.
//!
//! Any element can have attached the regions. Those without a pixel in the frame are not drawn. A
//! type that is not UTF-8 shows U+FFFD, or a question mark where the font lacks it. The confidence
//! is a finite double in the structure `detection`; anything else counts as none. A frame whose
//! memory is smaller than its `GstVideoMeta` says passes undrawn, with a warning.

mod color;
mod font;
mod imp;
mod label_placement;
mod surface;

use gst::glib;
use gst::prelude::*;

use crate::type_names::format;

glib::wrapper! {
    /// The element.
    pub struct RoiOverlay(ObjectSubclass<imp::RoiOverlay>)
        @extends gst_video::VideoFilter, gst_base::BaseTransform, gst::Element, gst::Object;
}

/// When labels are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstRoiOverlayLabels", allow_name_conflict)]
pub enum LabelMode {
    /// Where they have room.
    #[default]
    #[enum_value(name = "Where they have room, shortened where that helps", nick = "auto")]
    Auto = 0,
    /// On every region, in full.
    #[enum_value(name = "On every region, in full", nick = "always")]
    Always = 1,
    /// Never.
    #[enum_value(name = "Never: boxes alone", nick = "never")]
    Never = 2,
}

/// Registers the element with `plugin`.
///
/// # Errors
/// Where GStreamer refuses it.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(Some(plugin), "roioverlay", gst::Rank::NONE, RoiOverlay::static_type())
}
