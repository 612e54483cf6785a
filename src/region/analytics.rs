use gst_analytics::{
    AnalyticsRelationMeta, AnalyticsRelationMetaInitParams, AnalyticsRelationMetaODExt,
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
