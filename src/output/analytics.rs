// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes `GstAnalyticsODMtd`: objects in a `GstAnalyticsRelationMeta`.
//!
//! In: regions in pixels of the video frame. Out: one object per region. From GStreamer 1.26 on, the object of an
//! oriented box is oriented, and a region's mask becomes a `GstAnalyticsSegmentationMtd`. The object and its mask
//! are related in both directions, as in GStreamer's decoder `yolosegv8tensordec`. Before 1.26, the object of an
//! oriented box has the bounds of the box.
//!
//! The relation metadata has an adjacency matrix with a byte for each pair of objects, even if there are no
//! relations: n objects take n^2 bytes, that is, 1 MB for 1000 objects and 70 MB for 8400. The matrix has at least
//! one row per object. If the initial order is smaller, the matrix grows step by step and is copied at each step.
//! So only the limit on the number of regions bounds its size. A copy of the buffer copies the matrix. If a
//! downstream element such as a tracker adds an object, the order doubles, because the matrix grows by its initial
//! order.

use gst::glib;
use gst_newer::{
    AnalyticsODMtd, AnalyticsRelationMeta, Capabilities, Mask, OrientedLocation, RelTypes,
};

use super::{
    DetailedRegion, DetailedRegions, Labels, MaskBuffers, Region, analytics_keypoints,
    oriented_pixels,
};
use crate::regions::{self, AttachedObject, AttachedRegion};
use nmsfilter_core::decoder::classifier::ClassScore;
use nmsfilter_core::geometry::OrientedBox;

/// The size of an object in the relation metadata, in bytes.
const OBJECT_SIZE: usize = 56;

/// The size of a mask in the relation metadata, in bytes.
const MASK_SIZE: usize = 88;

/// Adds one object per region. Returns the id of the first object. The ids of the other objects follow in order;
/// the ids of masks and points come after them.
///
/// The metadata is created with enough room for all regions. With the default size it would grow in small steps and
/// copy the matrix in each step, which takes seconds for thousands of objects.
pub(super) fn attach(
    buffer: &mut gst::BufferRef,
    frame: [u32; 2],
    regions: DetailedRegions<'_>,
    labels: &mut Labels,
    mask_buffers: &mut MaskBuffers,
) -> Result<u32, gst::glib::BoolError> {
    let parents = parents(buffer, regions);
    let count = regions.regions.len().max(1);
    let newer = Capabilities::get();
    let [items, bytes] = size_of_details(regions, newer);
    let bytes = count * OBJECT_SIZE + bytes;
    let mut meta = AnalyticsRelationMeta::add_with_room(buffer, count + items, bytes)?;
    let first_id = meta.len() as u32;
    for detailed in regions.iter() {
        let region = detailed.region;
        let label = labels.label(region.class).quark;
        if let Some(oriented) = &detailed.oriented
            && newer.oriented.is_ok()
        {
            let location = oriented_location(oriented);
            meta.add_oriented_od_mtd(label, location, region.confidence)?;
            continue;
        }
        let [x, y, w, h] = region.pixels(frame).map(|side| side as i32);
        meta.add_od_mtd(label, x, y, w, h, region.confidence)?;
    }
    for (object, parent) in parents {
        let child = first_id + object as u32;
        meta.set_relation(RelTypes::IS_PART_OF, child, parent)?;
        meta.set_relation(RelTypes::CONTAIN, parent, child)?;
    }
    if newer.segmentation.is_ok() {
        add_masks(&mut meta, first_id, regions, mask_buffers)?;
    }
    if newer.keypoints.is_ok() {
        analytics_keypoints::add(&mut meta, first_id, regions, labels)?;
    }
    Ok(first_id)
}

/// Returns the object with this id. The region of interest with this id, if there is one, stands for the object only if
/// both have equal pixels.
fn with_id(
    objects: &[AttachedObject],
    id: i32,
    region: Option<&AttachedRegion<'_>>,
) -> Option<u32> {
    let object = objects.iter().find(|object| i64::from(object.id) == i64::from(id))?;
    let is_same = region.is_none_or(|region| region.rectangle.map(i64::from) == object.rectangle);
    is_same.then_some(object.id)
}

/// Returns the object on the buffer that has this id, or else the pixels of the region of interest with this id.
pub(super) fn object_of(
    buffer: &gst::BufferRef,
    id: i32,
    region: Option<&AttachedRegion<'_>>,
) -> Option<u32> {
    let objects = regions::objects(buffer);
    with_id(&objects, id, region).or_else(|| {
        let rectangle = region?.rectangle.map(i64::from);
        objects.iter().find(|object| object.rectangle == rectangle).map(|object| object.id)
    })
}

/// Returns the id that the next object gets.
pub(super) fn next_id(buffer: &gst::BufferRef) -> u32 {
    buffer.meta::<AnalyticsRelationMeta>().map_or(0, |meta| meta.len() as u32)
}

/// Adds the classes of an image that an output of a classifier has found, which are related to its object, if there is
/// one.
pub(super) fn add_classes(
    buffer: &mut gst::BufferRef,
    object: Option<u32>,
    (output, classes): (usize, &[ClassScore]),
    labels: &mut Labels,
) -> Result<(), glib::BoolError> {
    let (scores, quarks): (Vec<f32>, Vec<glib::Quark>) =
        classes.iter().map(|it| (it.score, labels.quark_of_output(output, it.class))).unzip();
    let mut meta = AnalyticsRelationMeta::add(buffer)?;
    let id = meta.add_cls_mtd(&scores, &quarks)?;
    for (from, to) in object.into_iter().flat_map(|object| [(object, id), (id, object)]) {
        meta.set_relation(RelTypes::RELATE_TO, from, to)?;
    }
    Ok(())
}

/// For each region that was found in an object of the buffer: its index, and the id of the object.
fn parents(buffer: &gst::BufferRef, found: DetailedRegions<'_>) -> Vec<(usize, u32)> {
    if found.regions.iter().all(|region| region.parent.is_none()) {
        return Vec::new();
    }
    let attached: Vec<AttachedRegion<'_>> = regions::iter(buffer).collect();
    let objects = regions::objects(buffer);
    let parent_of = |(index, region): (usize, &Region)| {
        let parent = region.parent?;
        let attached = attached.iter().find(|region| region.id == parent);
        Some((index, with_id(&objects, parent, attached)?))
    };
    found.regions.iter().enumerate().filter_map(parent_of).collect()
}

/// Returns the number of items other than objects, and their size in bytes.
fn size_of_details(regions: DetailedRegions<'_>, newer: &Capabilities) -> [usize; 2] {
    let masks = if newer.segmentation.is_ok() { regions.masks() } else { 0 };
    let keypoints = newer.keypoints.map(|()| analytics_keypoints::size(regions));
    let [points, bytes] = keypoints.unwrap_or_default();
    [masks + points, masks * MASK_SIZE + bytes]
}

fn oriented_location(oriented: &OrientedBox) -> OrientedLocation {
    let ([x, y, w, h], r) = oriented_pixels(oriented);
    OrientedLocation { x, y, w, h, r }
}

/// Adds a segmentation for each region with a mask. `first_id` is the id of the first region's object.
fn add_masks(
    meta: &mut gst::MetaRefMut<'_, AnalyticsRelationMeta, gst::meta::Standalone>,
    first_id: u32,
    regions: DetailedRegions<'_>,
    mask_buffers: &mut MaskBuffers,
) -> Result<(), glib::BoolError> {
    /// The default number of colors of GStreamer's `segmentationoverlay`. This element takes the value of a pixel
    /// modulo the number of colors plus one, and draws nothing if the result is 0.
    const COLORS: usize = 10;
    for (index, region) in regions.iter().enumerate() {
        let Some(mask) = region.mask else { continue };
        let value = 1 + index % COLORS;
        let buffer = mask_buffers.filled(&mask, value as u8)?;
        // According to the documentation of this metadata, the background is a region, too.
        let region_ids = [0, value as u32];
        let [left, top, right, bottom] = mask.shape.area.map(|edge| edge.round() as i32);
        let (width, height) = (right.saturating_sub(left), bottom.saturating_sub(top));
        let size = [width, height].map(|side| side.max(1) as u32);
        let mask = Mask { buffer, origin: [left, top], size };
        let id = meta.add_segmentation_mtd(mask, &region_ids)?;
        let object = first_id + index as u32;
        for (from, to) in [(object, id), (id, object)] {
            meta.set_relation(RelTypes::RELATE_TO, from, to)?;
        }
    }
    Ok(())
}

/// Returns whether the buffer has an object with this label, the pixels of `region`, and its parent, if that is an object.
pub(super) fn is_attached(
    buffer: &gst::BufferRef,
    label: glib::Quark,
    frame: [u32; 2],
    region: DetailedRegion<'_>,
) -> bool {
    if buffer.meta::<AnalyticsRelationMeta>().is_none() {
        return false;
    }
    let oriented = region.oriented.filter(|_| Capabilities::get().oriented.is_ok());
    let [x, y, w, h] = region.region.pixels(frame).map(|side| side as i32);
    let upright = OrientedLocation { x, y, w, h, r: 0.0 };
    let location = Some(oriented.as_ref().map_or(upright, oriented_location));
    let parent = parents(buffer, DetailedRegions::from(std::slice::from_ref(region.region)));
    let parent = parent.first().map(|&(_, parent)| parent);
    if parent.is_none() && region.region.parent.is_some() {
        return false;
    }
    buffer.iter_meta::<AnalyticsRelationMeta>().any(|meta| {
        let has_parent = |id| {
            let mut of = meta.iter_direct_related::<AnalyticsODMtd>(id, RelTypes::IS_PART_OF);
            of.next().map(|object| object.id()) == parent
        };
        meta.iter::<AnalyticsODMtd>().any(|object| {
            let id = object.id();
            object.obj_type() == Some(label)
                && object.oriented_location() == location
                && has_parent(id)
        })
    })
}
