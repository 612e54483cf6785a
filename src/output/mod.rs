// SPDX-License-Identifier: MIT OR Apache-2.0
//! From surviving detections to metadata of the video frame.
//!
//! In: detections in pixels of the model's input. Out: metadata on the buffer. [`Mapping`] converts
//! a box to pixels of the video frame. [`attach`] writes it as `GstVideoRegionOfInterestMeta` and,
//! with the cargo feature `v1_24`, as `GstAnalyticsODMtd`; `deepstream` writes it as `NvDsObjectMeta`.

#[cfg(feature = "v1_24")]
mod analytics;
pub(crate) mod deepstream;
mod label;
mod mapping;
mod roi;

use gst::glib;

#[cfg(any(feature = "internals", feature = "onnxruntime"))]
pub use label::LabelError;
pub use label::Labels;
pub use mapping::{Mapping, MappingError, Region};
#[cfg(feature = "internals")]
pub use roi::roi_type;

/// The kinds of metadata to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// `GstVideoRegionOfInterestMeta` with a `detection` structure.
    pub roi: bool,
    /// `GstAnalyticsODMtd`; ignored by a build that cannot write it ([`HAS_ANALYTICS`]).
    pub analytics: bool,
    /// `NvDsObjectMeta`; ignored for buffers without DeepStream's metadata.
    pub nvds: bool,
}

/// Whether this build can write [`Kinds::analytics`].
pub const HAS_ANALYTICS: bool = cfg!(feature = "v1_24");

/// Attaches `regions` to `buffer`; `frame` is the width and height of the video frame in pixels.
/// The id of a region of interest is the id of its `GstAnalyticsODMtd` if that is attached too,
/// else the index of the region.
///
/// The relation metadata is attached even if there are no regions: without it, overlay elements
/// keep showing the boxes of earlier frames.
///
/// # Errors
/// If GStreamer cannot add an object to the relation metadata.
pub fn attach(
    buffer: &mut gst::BufferRef,
    frame: [u32; 2],
    regions: &[Region],
    labels: &mut Labels,
    kinds: Kinds,
) -> Result<(), glib::BoolError> {
    #[cfg(feature = "v1_24")]
    let first_id = match kinds.analytics {
        true => analytics::attach(buffer, frame, regions, labels)?,
        false => 0,
    };
    #[cfg(not(feature = "v1_24"))]
    let first_id = 0;

    if kinds.roi {
        roi::attach(buffer, frame, regions, labels, first_id);
    }
    Ok(())
}

/// Whether `buffer` already has `region`, with the same label and the same pixels, in metadata of
/// one of these kinds.
pub fn is_attached(
    buffer: &gst::BufferRef,
    frame: [u32; 2],
    region: &Region,
    labels: &mut Labels,
    kinds: Kinds,
) -> bool {
    let (label, pixels) = (labels.of(region.class).quark, region.pixels(frame));
    #[cfg(feature = "v1_24")]
    if kinds.analytics && analytics::is_attached(buffer, label, pixels) {
        return true;
    }
    kinds.roi && roi::is_attached(buffer, label, pixels)
}
