//! What leaves: surviving detections, placed in the frame and hung on the buffer.
//!
//! [`Mapping`] takes a box from the model's input to the video frame; [`attach`] writes it as
//! `GstVideoRegionOfInterestMeta` and, with the cargo feature `v1_24`, as `GstAnalyticsODMtd`.

#[cfg(feature = "v1_24")]
mod analytics;
mod kinds;
mod label;
mod mapping;
mod roi;

use gst::glib;

pub use kinds::Attach;
pub use label::{LabelError, Labels};
pub use mapping::{Letterbox, Mapping, MappingError, Region};
pub(crate) use roi::roi_type;

/// Whether this build can write [`Attach::ANALYTICS`].
pub const HAS_ANALYTICS: bool = cfg!(feature = "v1_24");

/// Hangs `regions` of a frame of `frame` pixels on `buffer`. A region's id is that of its
/// `GstAnalyticsODMtd` where there is one, else its position.
///
/// The relation metadata is attached even for no regions: overlays take its absence for "no
/// news" and keep showing the boxes of earlier frames.
///
/// # Errors
/// Where GStreamer cannot add an object to the relation metadata.
pub fn attach(
    buffer: &mut gst::BufferRef,
    frame: [u32; 2],
    regions: &[Region],
    labels: &mut Labels,
    kinds: Attach,
) -> Result<(), glib::BoolError> {
    #[cfg(feature = "v1_24")]
    let first_id = match kinds.contains(Attach::ANALYTICS) {
        true => analytics::attach(buffer, frame, regions, labels)?,
        false => 0,
    };
    #[cfg(not(feature = "v1_24"))]
    let first_id = 0;

    if kinds.contains(Attach::ROI) {
        roi::attach(buffer, frame, regions, labels, first_id);
    }
    Ok(())
}

/// Whether `buffer` already carries `region`, with the same label and pixels, in metadata of these
/// kinds.
pub fn is_attached(
    buffer: &gst::BufferRef,
    frame: [u32; 2],
    region: &Region,
    labels: &mut Labels,
    kinds: Attach,
) -> bool {
    let (label, pixels) = (labels.of(region.class).quark, region.pixels(frame));
    #[cfg(feature = "v1_24")]
    if kinds.contains(Attach::ANALYTICS) && analytics::is_attached(buffer, label, pixels) {
        return true;
    }
    kinds.contains(Attach::ROI) && roi::is_attached(buffer, label, pixels)
}
