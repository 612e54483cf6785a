// SPDX-License-Identifier: MIT OR Apache-2.0
//! The writer of keypoints in GStreamer's analytics metadata (1.30).
//!
//! In: the points of regions. Out: for each region with points a `GstAnalyticsGroupMtd` of `GstAnalyticsKeypointMtd`, in
//! which the lines of the skeleton are relations; the group is related to the region's object, and this to it.
//!
//! Each point is an item of the relation metadata, whose matrix has a byte for each pair of items: 100 people take 4 MB.

use arrayvec::ArrayVec;
use gst::glib;
use gst_analytics::{
    AnalyticsKeypointDimensions, AnalyticsRelationMeta, AnalyticsRelationMetaGroupExt, RelTypes,
};

use super::{DetailedRegions, KeypointLayout, Labels};
use nmsfilter_core::decoder::layout::MAX_COLUMN_COMPONENTS;
use nmsfilter_core::engine::detail::Point;

/// The size in bytes of one point in the relation metadata, with its place in the group.
const POINT_SIZE: usize = 80;

/// The number of items, and their size in bytes.
pub(super) fn size(regions: DetailedRegions<'_>) -> [usize; 2] {
    let points = regions.iter().map(|region| region.points.len());
    // A group for each region.
    let items = points.filter(|&count| count > 0).map(|count| count + 1).sum::<usize>();
    [items, items * POINT_SIZE]
}

/// Adds the points of each region. The object of the first region is `first_id`.
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
        let is_face = labels.of(region.region.class).is_face;
        let layout = KeypointLayout::of(region.points.len(), is_face);
        // A layout has no more numbers than that.
        let mut positions = ArrayVec::<i32, MAX_COLUMN_COMPONENTS>::new();
        let mut confidences = ArrayVec::<f32, { MAX_COLUMN_COMPONENTS / 2 }>::new();
        for point in region.points {
            let (position, confidence) = whole(point);
            positions.extend(position);
            confidences.push(confidence);
        }
        let pairs: ArrayVec<i32, 64> =
            layout.skeleton().iter().flatten().map(|&index| index as i32).collect();
        let group = meta.add_keypoints_group(
            tag(layout),
            AnalyticsKeypointDimensions::_2d,
            &positions,
            Some(&confidences),
            None,
            &pairs,
        )?;
        let group = group.id();
        for (from, to) in [(object, group), (group, object)] {
            meta.set_relation(RelTypes::RELATE_TO, from, to)?;
        }
    }
    Ok(())
}

/// The tag of a group, as GStreamer's documentation has them.
fn tag(layout: KeypointLayout) -> &'static str {
    match layout {
        KeypointLayout::Coco17 => "pose-17-kp",
        KeypointLayout::Face5 => "face-5-kp",
        KeypointLayout::Points => "points-kp",
    }
}

/// A point in whole pixels, and its confidence, which is its visibility: 0 if the point is not finite.
fn whole(point: &Point) -> ([i32; 2], f32) {
    let position = [point.x, point.y];
    match position.iter().all(|coordinate| coordinate.is_finite()) {
        true => (position.map(|coordinate| coordinate.round() as i32), point.visibility),
        false => ([0; 2], 0.0),
    }
}
