// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws regions of interest with labels and confidences that are readable even in a crowd.
//!
//! ```text
//! gst-launch-1.0 crowdtestsrc ! nmsfilter ! roioverlay ! videoconvert ! autovideosink
//! ```
//!
//! In: video frames with `GstVideoRegionOfInterestMeta`. Out: these frames with the regions drawn
//! on them. Boxes are thin, with a dark outline, and have a color per class. If a region has an
//! oriented box, it is drawn instead of the rectangle. Masks are translucent. Keypoints are drawn
//! if their visibility is at least 0.5, and if they are people in COCO's format or faces, with the
//! lines of a skeleton. A label is drawn in full if there is enough space near its region.
//! Otherwise only the confidence and the id of the track are drawn, or nothing if the space is too small for them, too.
//! With `tail-length`, a line shows where the middle of a tracked region's lower edge was on the latest frames.
//!
//! Frames can have any format of 8 bits per sample that GStreamer knows, except tiled formats and
//! palettes. For frames in other formats or in a GPU's memory, put `videoconvert` (or an element
//! that downloads them) before `roioverlay`.
//!
//! The regions can come from any element. Regions without a pixel in the frame are not drawn. The
//! confidence is a finite double in the structure `detection`. Other values are ignored, and so are
//! structures whose fields do not fit together. If the memory of a frame is smaller than its
//! `GstVideoMeta` requires, the frame is not changed and a warning is posted.
//!
//! The font is part of the element, so that the picture is identical on every machine. It has the
//! letters of Latin script (Unicode's Basic Latin, Latin-1 Supplement and Latin Extended-A). A
//! label that has none of these letters and digits is drawn as its class, such as `class-3`. In all
//! other labels, and in labels without a class number, a question mark replaces each character that
//! the font lacks. A warning reports this once. If a region's type is not valid UTF-8, invalid
//! bytes count as one such character.

mod color;
mod details;
mod font;
mod imp;
mod label_placement;
mod mask;
mod region;
mod shapes;
mod surface;
mod tails;

use gst::glib;
use gst::prelude::*;

use gstnmsfilter::format_type_name as format;

glib::wrapper! {
    /// The element `roioverlay`.
    pub struct RoiOverlay(ObjectSubclass<imp::RoiOverlay>)
        @extends gst_video::VideoFilter, gst_base::BaseTransform, gst::Element, gst::Object;
}

/// Condition under which labels are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstRoiOverlayLabels", allow_name_conflict)]
pub enum LabelMode {
    /// A label is drawn if there is enough space, and is shortened if necessary.
    #[default]
    #[enum_value(name = "If there is enough space, and shortened if necessary", nick = "auto")]
    Auto = 0,
    /// Every region has its full label.
    #[enum_value(name = "On every region, in full", nick = "always")]
    Always = 1,
    /// Labels are not drawn.
    #[enum_value(name = "Never: only boxes are drawn", nick = "never")]
    Never = 2,
}

/// The property of a region that determines its color.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstRoiOverlayColorBy", allow_name_conflict)]
pub enum ColorBy {
    /// The class, or the label if there is no class.
    #[default]
    #[enum_value(name = "The class, or the label if there is no class", nick = "class")]
    Class = 0,
    /// All regions have a single color.
    #[enum_value(name = "Nothing: all regions have one color", nick = "none")]
    None = 1,
}

/// Registers the element with `plugin`.
///
/// # Errors
/// Returns an error if GStreamer refuses to register the element.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(Some(plugin), "roioverlay", gst::Rank::NONE, RoiOverlay::static_type())
}
