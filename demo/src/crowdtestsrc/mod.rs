// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws a moving crowd, and attaches the raw windows that a sliding-window detector would output.
//!
//! ```text
//! gst-launch-1.0 crowdtestsrc ! nmsfilter ! roioverlay ! videoconvert ! autovideosink
//! ```
//!
//! Out: video frames, each with a detector's tensor as metadata. If `truth` is true, the true boxes
//! of the heads are attached as regions with the type `truth`, whose id is the person's index.
//! Pixels and tensors are reproducible:
//! they depend only on the seed, the size and the number of people.
//!
//! Unless the source is live, it supports seeking. A segment with a negative rate has the frames in
//! reverse order. It needs a stop position, since the stream is endless.

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

/// The decoder that can read the attached tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstCrowdTestSrcDecoder", allow_name_conflict)]
pub enum CrowdDecoder {
    /// A tensor that contains only the windows.
    #[default]
    #[enum_value(name = "Windows: [N,4] with x, y, side, score", nick = "windows")]
    Windows = 0,
    /// A YOLOv5 output. Some of its anchors contain the windows.
    #[enum_value(name = "YOLOv5: [1,25200,85], more for larger frames", nick = "yolov5")]
    Yolov5 = 1,
    /// A YOLOv8 output. Some of its anchors contain the windows.
    #[enum_value(name = "YOLOv8: [1,84,8400], more for larger frames", nick = "yolov8")]
    Yolov8 = 2,
}

/// Registers the element with `plugin`.
///
/// # Errors
/// Returns an error if GStreamer refuses to register the element.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(
        Some(plugin),
        "crowdtestsrc",
        gst::Rank::NONE,
        CrowdTestSrc::static_type(),
    )
}
