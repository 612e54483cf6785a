// SPDX-License-Identifier: MIT OR Apache-2.0
//! The writer of `GstAnalyticsODMtd`: objects in a `GstAnalyticsRelationMeta`.
//!
//! In: regions in pixels of the video frame. Out: one object per region.
//!
//! The relation metadata has an adjacency matrix with a byte for each pair of objects, even without
//! relations: n objects take n^2 bytes, 1 MB for 1000 and 70 MB for 8400. The matrix has at least
//! one row per object; if the initial order is smaller, the matrix grows, and is copied at each
//! step. So only the limit on the number of regions bounds its size. A copy of the buffer copies
//! the matrix. A downstream element that adds an object, such as a tracker, doubles the order,
//! since the matrix grows by its initial order.

use gst::glib;
use gst_analytics::{
    AnalyticsMetaRefExt, AnalyticsODMtd, AnalyticsRelationMeta, AnalyticsRelationMetaInitParams,
    AnalyticsRelationMetaODExt,
};

use super::{Labels, Region};

/// The size in bytes of one object in the relation metadata.
const OBJECT_SIZE: usize = 56;

/// Adds one object per region. Returns the id of the first object; the ids of the other objects
/// follow in order.
///
/// The metadata is created with the size for all regions. With the default size it would grow by
/// small steps with a copy of the matrix at each, which takes seconds for thousands of objects.
pub(super) fn attach(
    buffer: &mut gst::BufferRef,
    frame: [u32; 2],
    regions: &[Region],
    labels: &mut Labels,
) -> Result<u32, gst::glib::BoolError> {
    let count = regions.len().max(1);
    let size = AnalyticsRelationMetaInitParams::new(count, count * OBJECT_SIZE);
    let mut meta = AnalyticsRelationMeta::add_full(buffer, &size);
    let first_id = meta.len() as u32;
    for region in regions {
        let label = labels.of(region.class).quark;
        let [x, y, w, h] = region.pixels(frame).map(|side| side as i32);
        meta.add_od_mtd(label, x, y, w, h, region.confidence)?;
    }
    Ok(first_id)
}

/// Whether the buffer has an object with this label and these pixels (left, top, width, height).
pub(super) fn is_attached(buffer: &gst::BufferRef, label: glib::Quark, pixels: [u32; 4]) -> bool {
    let pixels = pixels.map(|side| side as i32);
    buffer.iter_meta::<AnalyticsRelationMeta>().any(|meta| {
        meta.iter::<AnalyticsODMtd>().any(|object| {
            let location = object.location();
            object.obj_type() == Some(label)
                && location.is_ok_and(|location| {
                    [location.x, location.y, location.w, location.h] == pixels
                })
        })
    })
}
