// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws regions of interest with label and confidence, readable in a crowd.
//!
//! ```text
//! gst-launch-1.0 crowdtestsrc ! nmsfilter ! roioverlay ! videoconvert ! autovideosink
//! ```
//!
//! In: video frames with `GstVideoRegionOfInterestMeta`. Out: the same frames with the regions
//! drawn. Boxes are thin, with a dark outline, and have a color per class. An oriented box is drawn instead of its bounds;
//! masks are translucent; of keypoints those with a visibility of at least 0.5 are drawn, with the lines of a skeleton
//! if they are those of people in COCO or of faces. A label is drawn in full
//! if there is enough space near its region, otherwise the confidence only, otherwise nothing.
//!
//! Frames are in any format of 8 bits per sample that GStreamer knows, except tiles and palettes. For others, and for
//! frames in a GPU's memory, put `videoconvert` (or the element that downloads them) before `roioverlay`.
//!
//! The regions can come from any element. Regions without a pixel in the frame are not drawn. The
//! confidence is a finite double in the structure `detection`; other values are ignored, and so are structures whose
//! fields do not fit together. If the
//! memory of a frame is smaller than its `GstVideoMeta` requires, the frame is not changed and a
//! warning is posted.
//!
//! The font is part of the element, so that the same regions give the same picture on every machine. It has the
//! letters of Latin script (Unicode's Basic Latin, Latin-1 Supplement and Latin Extended-A). A label
//! without a letter or digit of these is drawn as its class, `class-3`; in other labels, and in those without a class
//! number, a question mark replaces each character that the font does not have. A warning reports it once. Invalid bytes
//! in a type that is not UTF-8 count as one such character.

mod color;
mod details;
mod font;
mod imp;
mod label_placement;
mod region;
mod shapes;
mod surface;

use gst::glib;
use gst::prelude::*;

use gstnmsfilter::format_type_name as format;

glib::wrapper! {
    /// The element `roioverlay`.
    pub struct RoiOverlay(ObjectSubclass<imp::RoiOverlay>)
        @extends gst_video::VideoFilter, gst_base::BaseTransform, gst::Element, gst::Object;
}

/// When labels are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstRoiOverlayLabels", allow_name_conflict)]
pub enum LabelMode {
    /// If there is enough space, shortened if necessary.
    #[default]
    #[enum_value(name = "If there is enough space, shortened if necessary", nick = "auto")]
    Auto = 0,
    /// On every region, in full.
    #[enum_value(name = "On every region, in full", nick = "always")]
    Always = 1,
    /// Never.
    #[enum_value(name = "Never: boxes alone", nick = "never")]
    Never = 2,
}

/// What the color of a region depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstRoiOverlayColorBy", allow_name_conflict)]
pub enum ColorBy {
    /// The class, or the label where there is no class.
    #[default]
    #[enum_value(name = "The class, or the label where there is no class", nick = "class")]
    Class = 0,
    /// All regions have one color.
    #[enum_value(name = "Nothing: all regions have one color", nick = "none")]
    None = 1,
}

/// Registers the element with `plugin`.
///
/// # Errors
/// If GStreamer refuses to register it.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(Some(plugin), "roioverlay", gst::Rank::NONE, RoiOverlay::static_type())
}
