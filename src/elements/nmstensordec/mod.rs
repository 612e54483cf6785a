// SPDX-License-Identifier: MIT OR Apache-2.0
//! `nmsfilter` for GStreamer's autoplugging: `tensordecodebin` of GStreamer 1.28 chooses it by the tensors in the caps.
//!
//! ```text
//! gst-launch-1.0 ... ! onnxinference model-file=yolov8n.onnx ! tensordecodebin ! objectdetectionoverlay ! ...
//! ```
//!
//! In: video buffers with `GstTensorMeta`, and caps with the tensors' ids. Out: the same buffers with the survivors, and
//! without the tensors that were decoded. It is `nmsfilter` but for these rules:
//!
//! - Its sink template has the groups of tensors that it decodes ([`groups`]). Caps without tensors are refused.
//! - `tensordecodebin` links every decoder whose template has the tensors of the caps, one behind the other, the one of
//!   the highest rank first. Decoders of GStreamer that come behind would add each object a second time. So the tensors
//!   are removed, or, for decoders that end with an error without them, replaced by tensors without detections.

mod consume;
pub mod groups;
mod imp;

use gst::glib;
use gst::prelude::*;

use super::nmsfilter::NmsFilter;

glib::wrapper! {
    /// The element `nmstensordec`.
    pub struct NmsTensorDec(ObjectSubclass<imp::NmsTensorDec>)
        @extends NmsFilter, gst_base::BaseTransform, gst::Element, gst::Object;
}

/// Above that of GStreamer's decoders, which have `PRIMARY` at most.
const RANK: i32 = 300;

/// Registers the element with `plugin`, if this GStreamer has caps with tensors.
///
/// # Errors
/// If GStreamer refuses to register it.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    // The metadata of analytics has tensors since 1.26, caps since 1.28.
    if groups::sink_caps().is_none() {
        return Ok(());
    }
    let rank = gst::Rank::from(RANK);
    gst::Element::register(Some(plugin), "nmstensordec", rank, NmsTensorDec::static_type())
}
