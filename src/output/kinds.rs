// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kinds of metadata that regions become.
#![allow(missing_docs, reason = "the macro generates items without documentation")]

use gst::glib;

use crate::bindings::type_names::format;

/// The kinds of metadata to write, which are the values of the property `attach`.
#[glib::flags(name = "GstNmsFilterAttach", allow_name_conflict)]
pub enum Kinds {
    /// `GstVideoRegionOfInterestMeta` with a structure `detection` and, if the model outputs them, `keypoints` and
    /// `mask`.
    #[flags_value(name = "GstVideoRegionOfInterestMeta with a detection structure", nick = "roi")]
    ROI = 1,
    /// `GstAnalyticsODMtd`. With GStreamer 1.26, oriented boxes and `GstAnalyticsSegmentationMtd` are also written,
    /// and with 1.30, groups of keypoints. Ignored if the running GStreamer has no such metadata.
    #[flags_value(name = "GstAnalyticsODMtd (GStreamer 1.24 and later)", nick = "analytics")]
    ANALYTICS = 2,
    /// `NvDsObjectMeta`. Ignored for buffers without DeepStream metadata.
    #[flags_value(name = "NvDsObjectMeta, on buffers with DeepStream's metadata", nick = "nvds")]
    NVDS = 4,
}
