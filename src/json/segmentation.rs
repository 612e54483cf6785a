// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `GstAnalyticsSegmentationMtd`, a type that the Rust bindings do not have.
//!
//! In: relation metadata from any element. Out: the mask of one object. A picture that has the masks of several
//! objects is not read, because nothing says which of its regions belongs to which object.

use std::mem::MaybeUninit;

use gst::glib::translate::from_glib_full;
use gst_analytics::{AnalyticsMtd, AnalyticsRelationMeta, ffi};
use gst_video::{VideoFormat, VideoMeta};

use super::runs::{self, MaskRuns};

/// Stands for `GstAnalyticsSegmentationMtd` as a type argument.
#[derive(Debug)]
pub(super) enum AnalyticsSegmentationMtd {}

// SAFETY: `mtd_type` returns the type of `GstAnalyticsSegmentationMtd`.
unsafe impl AnalyticsMtd for AnalyticsSegmentationMtd {
    fn mtd_type() -> ffi::GstAnalyticsMtdType {
        // SAFETY: the function has no preconditions.
        unsafe { ffi::gst_analytics_segmentation_mtd_get_mtd_type() }
    }
}

/// Reads the mask with this id, if it contains a single object.
pub(super) fn read(meta: &gst::MetaRef<'_, AnalyticsRelationMeta>, id: u32) -> Option<MaskRuns> {
    // SAFETY: the functions that get this pointer only read.
    let handle = ffi::GstAnalyticsSegmentationMtd { id, meta: unsafe { meta.as_mut_ptr() } };
    // SAFETY: the metadata has a segmentation with this id.
    let regions = unsafe { ffi::gst_analytics_segmentation_mtd_get_region_count(&handle) };
    // SAFETY: as above; the index is less than the number of regions.
    let ids = (0..regions)
        .map(|index| unsafe { ffi::gst_analytics_segmentation_mtd_get_region_id(&handle, index) });
    // Region 0 is the background.
    if ids.filter(|&id| id != 0).count() > 1 {
        return None;
    }
    let [mut x, mut y] = [0; 2];
    let [mut w, mut h] = [MaybeUninit::uninit(); 2];
    // SAFETY: as above. The function writes the four numbers, and returns a reference to the buffer or null.
    let (buffer, [w, h]) = unsafe {
        let buffer = ffi::gst_analytics_segmentation_mtd_get_mask(
            &handle,
            &mut x,
            &mut y,
            w.as_mut_ptr(),
            h.as_mut_ptr(),
        );
        (from_glib_full::<_, Option<gst::Buffer>>(buffer), [w, h].map(|side| side.assume_init()))
    };
    let buffer = buffer?;
    let picture = buffer.meta::<VideoMeta>()?;
    let size = [picture.width(), picture.height()];
    runs::area(size)?;
    let bytes_per_pixel = match picture.format() {
        VideoFormat::Gray8 => 1,
        VideoFormat::Gray16Le | VideoFormat::Gray16Be => 2,
        _ => return None,
    };
    let map = buffer.map_readable().ok()?;
    let [width, height] = size.map(|side| side as usize);
    let stride = usize::try_from(*picture.stride().first()?).ok()?;
    let row_bytes = width.checked_mul(bytes_per_pixel)?;
    let first = *picture.offset().first()?;
    let end = stride.checked_mul(height - 1)?.checked_add(row_bytes)?.checked_add(first)?;
    if stride < row_bytes || end > map.len() {
        return None;
    }
    let pixels = (0..height).flat_map(|row| {
        let row = &map[first + row * stride..][..row_bytes];
        row.chunks_exact(bytes_per_pixel).map(|pixel| pixel.iter().any(|&byte| byte != 0))
    });
    let rect = [f64::from(x), f64::from(y), f64::from(w), f64::from(h)];
    Some(MaskRuns { rect, size, runs: runs::runs(pixels) })
}
