// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws a moving crowd and attaches the raw windows that a sliding-window detector would give.
//!
//! ```text
//! gst-launch-1.0 crowdtestsrc ! nmsfilter ! roioverlay ! videoconvert ! autovideosink
//! ```
//!
//! Out: video frames, each with the tensor of a detector as metadata. With `truth=true`, the true
//! boxes of the heads are attached as regions of type `truth`. The same seed, size and number of
//! people give the same pixels and tensors on every run.
//!
//! Unless it is live, the source supports seeking. A segment with a negative rate has the same
//! frames in reverse order; it needs a stop position, since the stream has no end.

mod draw;
mod imp;
mod raw_tensor;
mod scene;
mod splitmix64;
mod timeline;
mod window_generator;

use gst::glib;
use gst::prelude::*;

use gstnmsfilter::format_type_name as format;

glib::wrapper! {
    /// The element `crowdtestsrc`.
    pub struct CrowdTestSrc(ObjectSubclass<imp::CrowdTestSrc>)
        @extends gst_base::BaseSrc, gst::Element, gst::Object;
}

/// The decoder whose input format the attached tensor has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstCrowdTestSrcDecoder", allow_name_conflict)]
pub enum CrowdDecoder {
    /// A tensor of the windows only.
    #[default]
    #[enum_value(name = "Windows: [N,4] of x, y, side, score", nick = "windows")]
    Windows = 0,
    /// A YOLOv5 output in which some anchors have the windows.
    #[enum_value(name = "YOLOv5: [1,25200,85], more for larger frames", nick = "yolov5")]
    Yolov5 = 1,
    /// A YOLOv8 output in which some anchors have the windows.
    #[enum_value(name = "YOLOv8: [1,84,8400], more for larger frames", nick = "yolov8")]
    Yolov8 = 2,
}

/// Registers the element with `plugin`.
///
/// # Errors
/// If GStreamer refuses to register it.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(
        Some(plugin),
        "crowdtestsrc",
        gst::Rank::NONE,
        CrowdTestSrc::static_type(),
    )
}
