#![allow(missing_docs, reason = "the items that the macro makes carry no documentation")]

use gst::glib;

use crate::type_names::format;

/// Which metadata to write.
#[glib::flags(name = "GstNmsFilterAttach", allow_name_conflict)]
pub enum Attach {
    /// `GstVideoRegionOfInterestMeta` with a `detection` structure.
    #[flags_value(name = "GstVideoRegionOfInterestMeta with a detection structure", nick = "roi")]
    ROI = 1,
    /// `GstAnalyticsODMtd`, where the plugin was built for GStreamer 1.24 or later.
    #[flags_value(name = "GstAnalyticsODMtd (GStreamer 1.24 and later)", nick = "analytics")]
    ANALYTICS = 2,
}
