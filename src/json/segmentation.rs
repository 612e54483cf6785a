// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `GstAnalyticsSegmentationMtd`.
//!
//! In: relation metadata from any element. Out: the mask of one object. A picture that has the masks of several
//! objects is not read, because nothing says which of its regions belongs to which object.

use gst_newer::{AnalyticsMtdRef, AnalyticsSegmentationMtd, Mask};
use gst_video::{VideoFormat, VideoMeta};

use super::runs::{self, MaskRuns};

/// Reads a mask, if it contains a single object.
pub(super) fn read(mask: &AnalyticsMtdRef<'_, AnalyticsSegmentationMtd>) -> Option<MaskRuns> {
    // Region 0 is the background.
    if mask.region_ids().filter(|&id| id != 0).count() > 1 {
        return None;
    }
    let Mask { buffer, origin: [x, y], size: [w, h] } = mask.mask()?;
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
    Some(MaskRuns::new(rect, size, runs::runs(pixels)))
}
