// SPDX-License-Identifier: MIT OR Apache-2.0
//! What GStreamer has since 1.18, found at run time.
//!
//! The plugins are linked to functions of GStreamer 1.14 only. This crate declares each newer function once, with the
//! version that has it, and looks it up in the loaded libraries when it is first used (`library`). The other modules wrap
//! the functions: a type of metadata that the running GStreamer does not have is on no buffer, and cannot be added
//! ([`Missing`]). Structures that are read directly are in [`ffi`]; a test compares their layouts with the headers of
//! GStreamer 1.24, 1.26 and 1.28.
#![warn(missing_docs)]

mod batch;
mod capabilities;
mod custom_meta;
pub mod ffi;
mod formats;
mod keypoints;
mod library;
mod metadata;
mod objects;
mod relations;
mod segmentation;
mod tensors;
mod unique_list;

pub use batch::{AnalyticsBatchMeta, AnalyticsBatchStream};
pub use capabilities::Capabilities;
pub use custom_meta::CustomMeta;
pub use formats::raw_video_formats;
pub use library::{Missing, hide_from, load_again_after_updates};
pub use objects::{
    AnalyticsClassificationMtd, AnalyticsODMtd, AnalyticsTrackingMtd, Location, OrientedLocation,
    Track,
};
pub use relations::{
    AnalyticsMtd, AnalyticsMtdIter, AnalyticsMtdRef, AnalyticsRelationMeta, RelTypes,
};
pub use segmentation::{AnalyticsSegmentationMtd, Mask};
pub use tensors::{Tensor, TensorDataType, TensorDimOrder, TensorMeta};
pub use unique_list::unique_list;

/// The type of metadata that the running GStreamer does not have. No metadata has it, and GStreamer can search for it.
const NO_META: gst::glib::Type = gst::glib::Type::UNIT;
