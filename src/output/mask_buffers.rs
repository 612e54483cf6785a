// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buffers for the masks of `GstAnalyticsSegmentationMtd`.
//!
//! In: a mask of bits. Out: a buffer of the format GRAY8 with a `GstVideoMeta`. The buffers come from pools, and
//! return to them when the metadata is freed, so a stream allocates no buffers once it is warm.

use gst::glib;
use gst::prelude::*;
use gst_video::{VideoBufferPool, VideoFormat, VideoInfo};

use super::MaskRows;

/// Pools of buffers for masks. Empty before GStreamer 1.26, which introduced metadata for masks.
#[derive(Debug, Default)]
pub struct MaskBuffers {
    /// The pools by size: the buffers of the pool with index i have 2^i times [`SMALLEST`] bytes.
    pools: Vec<Option<VideoBufferPool>>,
}

/// The size of the smallest buffers in bytes.
const SMALLEST: usize = 4096;

impl MaskBuffers {
    /// Returns a buffer in which the pixels of `mask` have the value `value`, and all others 0. Rows are not
    /// padded, because GStreamer's `segmentationoverlay` ignores the stride.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub(super) fn filled(
        &mut self,
        mask: &MaskRows<'_>,
        value: u8,
    ) -> Result<gst::Buffer, glib::BoolError> {
        let [width, height] = [mask.shape.width, mask.shape.height].map(|side| side as usize);
        let pixels = width * height;
        let acquired = self.pool(pixels)?.acquire_buffer(None);
        let mut buffer =
            acquired.map_err(|_| glib::bool_error!("no buffer for a mask of {width}x{height}"))?;
        let writable = buffer.get_mut().expect("a buffer of a pool has one reference");
        // SAFETY: the buffer is writable, and its pool adds a GstVideoMeta to every buffer. The memory has at least
        // one byte per pixel.
        unsafe {
            let meta = gst_video::ffi::gst_buffer_get_video_meta(writable.as_mut_ptr());
            (*meta).width = mask.shape.width;
            (*meta).height = mask.shape.height;
            (*meta).stride[0] = width as i32;
        }
        let mut map =
            writable.map_writable().map_err(|_| glib::bool_error!("a mask cannot be mapped"))?;
        let rows = map[..pixels].chunks_exact_mut(width.max(1));
        for (row, bits) in rows.zip(mask.rows.chunks_exact(mask.shape.stride().max(1))) {
            for (pixels, &bits) in row.chunks_mut(8).zip(bits) {
                for (i, pixel) in pixels.iter_mut().enumerate() {
                    *pixel = (bits >> (7 - i) & 1) * value;
                }
            }
        }
        drop(map);
        Ok(buffer)
    }

    /// Returns the pool with the smallest buffers that have at least this many bytes.
    fn pool(&mut self, bytes: usize) -> Result<&VideoBufferPool, glib::BoolError> {
        let index = bytes.div_ceil(SMALLEST).next_power_of_two().trailing_zeros() as usize;
        if index >= self.pools.len() {
            self.pools.resize(index + 1, None);
        }
        if self.pools[index].is_none() {
            self.pools[index] = Some(pool((SMALLEST << index) as u32)?);
        }
        Ok(self.pools[index].as_ref().expect("it was made above"))
    }
}

/// Creates and activates a pool of buffers with this many bytes. The pool grows to the number of buffers that are
/// in use at a time.
fn pool(bytes: u32) -> Result<VideoBufferPool, glib::BoolError> {
    let pool = VideoBufferPool::new();
    let info = VideoInfo::builder(VideoFormat::Gray8, bytes, 1).build()?;
    let mut config = pool.config();
    config.set_params(Some(&info.to_caps()?), bytes, 0, 0);
    config.add_option(gst_video::BUFFER_POOL_OPTION_VIDEO_META);
    pool.set_config(config)?;
    pool.set_active(true)?;
    Ok(pool)
}

impl Drop for MaskBuffers {
    fn drop(&mut self) {
        for pool in self.pools.iter().flatten() {
            // Buffers that are in use are freed when they return.
            let _ = pool.set_active(false);
        }
    }
}
