//! Objects in `GstAnalyticsRelationMeta`.
//!
//! That metadata has an adjacency matrix with a byte for each pair of objects, whether or not there
//! are relations: n objects take n squared bytes, 1 MB for 1000 and 70 MB for 8400. It has at least
//! as many rows as there are objects, whatever it is created with; a smaller initial order only
//! makes it grow, with a copy of the matrix at each step. So the limit on the number of regions
//! is what bounds it. A copy of the buffer copies the matrix, and an element downstream that adds
//! an object (a tracker) doubles its order, since it grows by the initial order.

use gst::glib;
use gst_analytics::{
    AnalyticsMetaRefExt, AnalyticsODMtd, AnalyticsRelationMeta, AnalyticsRelationMetaInitParams,
    AnalyticsRelationMetaODExt,
};

use super::{Labels, Region};

/// Bytes that one object takes in the relation metadata.
const OBJECT_SIZE: usize = 56;

/// Adds one object per region; returns the id of the first, the others count up from it.
///
/// The metadata is sized for the frame: left to itself it grows by small steps and copies a
/// square matrix at each, which takes seconds for thousands of objects.
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

/// Whether there is an object with this label and these pixels: left, top, width, height.
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
