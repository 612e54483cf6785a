// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes keypoints to GStreamer's analytics metadata (1.30).
//!
//! In: the points of regions. Out: for each region with points, a `GstAnalyticsGroupMtd` of
//! `GstAnalyticsKeypointMtd`. The lines of the skeleton are relations in the group. The group and the region's
//! object are related in both directions.
//!
//! Each point is an item of the relation metadata, whose matrix has a byte for each pair of items: 100 people take
//! 4 MB.

use std::ffi::CStr;

use arrayvec::ArrayVec;
use gst::glib;
use gst_newer::{AnalyticsRelationMeta, RelTypes};

use super::{DetailedRegions, KeypointLayout, Labels};
use nmsfilter_core::decoder::layout::MAX_COLUMN_COMPONENTS;
use nmsfilter_core::engine::detail::Point;

/// The size of a point in the relation metadata, including its place in the group, in bytes.
const POINT_SIZE: usize = 80;

/// Returns the number of items, and their size in bytes.
pub(super) fn size(regions: DetailedRegions<'_>) -> [usize; 2] {
    let points = regions.iter().map(|region| region.points.len());
    // Each region with points also has a group.
    let items = points.filter(|&count| count > 0).map(|count| count + 1).sum::<usize>();
    [items, items * POINT_SIZE]
}

/// Adds the points of each region. `first_id` is the id of the first region's object.
pub(super) fn add(
    meta: &mut gst::MetaRefMut<'_, AnalyticsRelationMeta, gst::meta::Standalone>,
    first_id: u32,
    regions: DetailedRegions<'_>,
    labels: &mut Labels,
) -> Result<(), glib::BoolError> {
    for (object, region) in (first_id..).zip(regions.iter()) {
        if region.points.is_empty() {
            continue;
        }
        let layout = labels.keypoint_layout(region.region.class, region.points.len());
        // A layout has at most this many numbers.
        let mut positions = ArrayVec::<[i32; 2], { MAX_COLUMN_COMPONENTS / 2 }>::new();
        let mut confidences = ArrayVec::<f32, { MAX_COLUMN_COMPONENTS / 2 }>::new();
        for point in region.points {
            let (position, confidence) = whole(point);
            positions.push(position);
            confidences.push(confidence);
        }
        let pair = |pair: &[usize; 2]| pair.map(|index| index as i32);
        let pairs: ArrayVec<[i32; 2], 32> = layout.skeleton().iter().map(pair).collect();
        let group = meta.add_keypoints_group(tag(layout), &positions, &confidences, &pairs)?;
        for (from, to) in [(object, group), (group, object)] {
            meta.set_relation(RelTypes::RELATE_TO, from, to)?;
        }
    }
    Ok(())
}

/// Returns the tag that GStreamer's documentation defines for a group of such points.
fn tag(layout: KeypointLayout) -> &'static CStr {
    match layout {
        KeypointLayout::Coco17 => c"pose-17-kp",
        KeypointLayout::Face5 => c"face-5-kp",
        KeypointLayout::Points => c"points-kp",
    }
}

/// Returns a point in whole pixels, and its visibility as its confidence. The confidence is 0 if the point is not
/// finite.
fn whole(point: &Point) -> ([i32; 2], f32) {
    let position = [point.x, point.y];
    if position.iter().all(|coordinate| coordinate.is_finite()) {
        (position.map(|coordinate| coordinate.round() as i32), point.visibility)
    } else {
        ([0; 2], 0.0)
    }
}
