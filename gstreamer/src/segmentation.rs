// SPDX-License-Identifier: MIT OR Apache-2.0
//! `GstAnalyticsSegmentationMtd` (1.26): masks.

use std::ptr::null_mut;

use gst::glib;
use gst::glib::translate::{IntoGlibPtr, from_glib_full};

use crate::library::{MtdType, SegmentationTable};
use crate::relations::{AnalyticsMtd, AnalyticsMtdRef, AnalyticsRelationMeta, added};

/// A picture with the masks of regions: a pixel has the id of its region.
#[derive(Debug)]
pub enum AnalyticsSegmentationMtd {}

impl AnalyticsMtd for AnalyticsSegmentationMtd {
    fn mtd_type() -> Option<MtdType> {
        let table = SegmentationTable::get().ok()?;
        // SAFETY: the function has no preconditions.
        Some(unsafe { (table.gst_analytics_segmentation_mtd_get_mtd_type)() })
    }
}

/// A picture of masks, and the rectangle of the frame that it covers.
#[derive(Debug)]
pub struct Mask {
    /// The picture, with a `GstVideoMeta`.
    pub buffer: gst::Buffer,
    /// Left and top of the rectangle in pixels.
    pub origin: [i32; 2],
    /// Width and height of the rectangle in pixels.
    pub size: [u32; 2],
}

impl AnalyticsMtdRef<'_, AnalyticsSegmentationMtd> {
    /// The ids of the regions.
    pub fn region_ids(&self) -> impl Iterator<Item = u32> {
        let table = table();
        let handle = self.handle();
        // SAFETY: the metadata has a segmentation with this id.
        let count = unsafe { (table.gst_analytics_segmentation_mtd_get_region_count)(&handle) };
        // SAFETY: as above; the index is less than the number of regions.
        (0..count).map(|index| unsafe {
            (table.gst_analytics_segmentation_mtd_get_region_id)(&self.handle(), index)
        })
    }

    /// The picture, if there is one.
    pub fn mask(&self) -> Option<Mask> {
        let ([mut x, mut y], [mut w, mut h]) = ([0; 2], [0; 2]);
        let get = table().gst_analytics_segmentation_mtd_get_mask;
        // SAFETY: as above. The function writes the four numbers, and returns a reference to the buffer or null.
        let buffer: Option<gst::Buffer> =
            unsafe { from_glib_full(get(&self.handle(), &mut x, &mut y, &mut w, &mut h)) };
        Some(Mask { buffer: buffer?, origin: [x, y], size: [w, h] })
    }
}

fn table() -> &'static SegmentationTable {
    SegmentationTable::get().expect("items of this kind are found only with its functions")
}

impl AnalyticsRelationMeta {
    /// Adds a picture with masks of instances of objects, and returns its id. The buffer must have a `GstVideoMeta` of the
    /// format GRAY8 or GRAY16.
    ///
    /// # Errors
    /// If the running GStreamer has no masks, if the buffer is not such a picture, or if there is not enough memory.
    pub fn add_segmentation_mtd(
        &mut self,
        mask: Mask,
        region_ids: &[u32],
    ) -> Result<u32, glib::BoolError> {
        /// `GST_SEGMENTATION_TYPE_INSTANCE`.
        const INSTANCE: i32 = 1;
        let add = SegmentationTable::get()?.gst_analytics_relation_meta_add_segmentation_mtd;
        let (meta, ids) = (self.as_mut(), region_ids.as_ptr().cast_mut());
        let Mask { buffer, origin: [x, y], size: [w, h] } = mask;
        let mut buffer = buffer.into_glib_ptr();
        // SAFETY: the metadata is writable. The function takes the buffer if it succeeds, and only reads the ids.
        let id = added("a mask", |new| unsafe {
            add(meta, buffer, INSTANCE, region_ids.len(), ids, x, y, w, h, new)
        });
        if id.is_ok() {
            buffer = null_mut();
        }
        // SAFETY: a buffer that the function has not taken is released.
        drop::<Option<gst::Buffer>>(unsafe { from_glib_full(buffer) });
        id
    }
}
