// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes surviving detections as metadata of the video frame.
//!
//! In: detections in pixels of the model's input, and the mapping to the frame. Out: metadata on the buffer. A
//! [`Region`] is a detection in pixels of the frame. [`attach`] writes it as `GstVideoRegionOfInterestMeta` and,
//! from GStreamer 1.24 on, as `GstAnalyticsODMtd`; `deepstream` writes it as `NvDsObjectMeta`. `classification` attaches the classes of images to the objects that they
//! are pictures of. Each kind of metadata also gets the details of a region other
//! than its upright box ([`RegionDetail`]), if it has fields for them.

mod analytics;
mod analytics_keypoints;
mod classification;
pub(crate) mod deepstream;
mod detailed;
mod detection_template;
mod keypoint_layout;
mod kinds;
mod label;
mod label_file;
mod mask_area;
mod mask_buffers;
pub(crate) mod object_parent;
mod oriented_pixels;
mod region;
mod roi;

use gst::glib;
use gst_newer::Capabilities;

pub use classification::ClassifiedImage;
pub use detailed::{DetailedRegion, DetailedRegions, MaskRows};
pub use keypoint_layout::KeypointLayout;
pub use kinds::Kinds;
pub use label::LabelError;
pub use label::Labels;
pub(crate) use mask_area::mask_area;
pub use mask_buffers::MaskBuffers;
pub(crate) use oriented_pixels::oriented_pixels;
pub use region::{FrameId, FrameRegions, Region};
pub use region::{RegionDetail, RegionMask};
pub use roi::{add as add_region, roi_type};

/// Attaches `regions` to `buffer`. `frame` is the width and height of the video frame in pixels. The ids of the
/// regions of interest continue after the greatest id on the buffer. If objects (`GstAnalyticsODMtd`) are attached,
/// too, a region gets the id of its object, unless another region on the buffer already has one of these ids.
///
/// The relation metadata is attached even if there are no regions: without it, overlay elements keep showing the
/// boxes of earlier frames.
///
/// # Errors
/// If GStreamer cannot add an object to the relation metadata.
pub fn attach(
    buffer: &mut gst::BufferRef,
    frame: [u32; 2],
    regions: DetailedRegions<'_>,
    labels: &mut Labels,
    mask_buffers: &mut MaskBuffers,
    kinds: Kinds,
) -> Result<(), glib::BoolError> {
    let has_relations = Capabilities::get().relations.is_ok();
    let kinds = if has_relations { kinds } else { kinds - Kinds::ANALYTICS };
    if !regions.classified.is_empty() {
        return classification::attach(buffer, frame, regions, labels, kinds);
    }
    let first_object = if kinds.contains(Kinds::ANALYTICS) {
        Some(analytics::attach(buffer, frame, regions, labels, mask_buffers)?)
    } else {
        None
    };

    if kinds.contains(Kinds::ROI) {
        let first_id = first_id(roi::next_id(buffer), first_object, regions.regions.len());
        roi::attach(buffer, frame, regions, labels, first_id);
    }
    Ok(())
}

/// Chooses the id of the first of `count` regions of interest. `next` is the number after the greatest id on the
/// buffer, and `first_object` is the id of the first region's object.
fn first_id(next: u32, first_object: Option<u32>, count: usize) -> u32 {
    match first_object {
        None => next,
        Some(first) if first >= next => first,
        // Some of the objects' ids are in use. A region with the id of another region's object would be misleading,
        // so the regions get ids after all of these objects.
        Some(first) => next.max(first.saturating_add(count as u32)),
    }
}

/// Returns whether metadata of one of these kinds on `buffer` already has a region with the label, the pixels and the
/// parent of the first of `found`, or whether regions of interest already have the classes of its images.
pub fn is_attached(
    buffer: &gst::BufferRef,
    frame: [u32; 2],
    found: DetailedRegions<'_>,
    labels: &mut Labels,
    kinds: Kinds,
) -> bool {
    let Some(region) = found.iter().next() else {
        return kinds.contains(Kinds::ROI)
            && classification::is_attached(buffer, frame, found, labels);
    };
    let label = labels.label(region.region.class).quark;
    if kinds.contains(Kinds::ANALYTICS) && analytics::is_attached(buffer, label, frame, region) {
        return true;
    }
    let parent = region.region.parent;
    kinds.contains(Kinds::ROI)
        && roi::is_attached(buffer, label, region.region.pixels(frame), parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_have_the_ids_of_their_objects_unless_another_region_has_one() {
        // No region is on the buffer, or only regions of another nmsfilter, whose objects have equal ids.
        assert_eq!(first_id(0, Some(0), 5), 0);
        assert_eq!(first_id(3, Some(3), 5), 3);
        assert_eq!(first_id(3, Some(7), 5), 7);
        // A region of another element has the id 0, which is also the id of the first object.
        assert_eq!(first_id(1, Some(0), 5), 5);
        assert_eq!(first_id(9, Some(2), 5), 9);
        assert_eq!(first_id(4, None, 5), 4);
    }
}
