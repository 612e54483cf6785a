// SPDX-License-Identifier: MIT OR Apache-2.0
//! `nmsfilter` for GStreamer's autoplugging: `tensordecodebin` of GStreamer 1.28 chooses this element if the caps
//! contain a known group of tensors.
//!
//! ```text
//! gst-launch-1.0 ... ! onnxinference model-file=yolov8n.onnx ! tensordecodebin ! objectdetectionoverlay ! ...
//! ```
//!
//! In: video buffers with `GstTensorMeta`, and caps with the tensors' ids. Out: these buffers with the
//! survivors, and without the decoded tensors. The element differs from `nmsfilter` in two points:
//!
//! - Its sink template lists the groups of tensors that it decodes ([`groups`]). Caps without tensors are refused.
//! - It removes the decoded tensors. `tensordecodebin` links every decoder whose template matches the tensors in
//!   the caps, one after the other, in descending rank. GStreamer's own decoders come later in this chain and would
//!   add each object a second time. For decoders that end with an error if tensors are missing, the tensors are
//!   replaced by tensors without detections.

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

/// The rank of the element, higher than the rank of GStreamer's decoders, which have at most `PRIMARY`.
const RANK: i32 = 300;

/// Registers the element with `plugin`, if the running GStreamer supports tensors in caps.
///
/// # Errors
/// If GStreamer refuses to register it.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    // The analytics metadata has tensors since 1.26, but caps only since 1.28.
    if groups::sink_caps().is_none() {
        return Ok(());
    }
    let rank = gst::Rank::from(RANK);
    gst::Element::register(Some(plugin), "nmstensordec", rank, NmsTensorDec::static_type())
}
