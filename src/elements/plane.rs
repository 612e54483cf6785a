// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checked access to the planes of a mapped video frame.
//!
//! In: a mapped frame and the size that a plane must have. Out: a slice that is within the mapped
//! memory. The layout of a frame comes from its `GstVideoMeta`, which any element can have written.
//! Neither `gst_video_frame_map` nor the slices of the bindings compare it with the size of the
//! memory.

use gst_video::VideoFrameRef;
use gst_video::prelude::*;

/// A plane whose layout exceeds its memory.
#[derive(Debug, thiserror::Error)]
#[error(
    "plane {plane} of the frame has {available} bytes from its first row on and a stride of {stride}; \
     expected {rows} rows of {row_bytes} bytes: the GstVideoMeta of the element upstream is wrong"
)]
pub struct PlaneError {
    plane: usize,
    available: usize,
    stride: i32,
    rows: usize,
    row_bytes: usize,
}

/// Rows of samples whose beginnings are `stride` bytes apart.
pub struct Plane<'a> {
    /// Ends with the last sample of the last row.
    pub data: &'a mut [u8],
    /// In bytes.
    pub stride: usize,
}

/// A plane of the frame from its first row on: at least one row of at least one byte.
///
/// # Errors
/// If the mapped memory does not hold `rows` rows of `row_bytes` bytes in the frame's layout.
pub fn plane<'a>(
    frame: &'a mut VideoFrameRef<&mut gst::BufferRef>,
    plane: usize,
    row_bytes: usize,
    rows: usize,
) -> Result<Plane<'a>, PlaneError> {
    let (data, available) = mapped(frame, plane);
    let stride = frame.plane_stride()[plane];
    let error = PlaneError { plane, available, stride, rows, row_bytes };
    // The stride of a single row is not used.
    let stride = if rows == 1 { row_bytes } else { usize::try_from(stride).unwrap_or(0) };
    let needed = (rows - 1).checked_mul(stride).and_then(|rows| rows.checked_add(row_bytes));
    match needed {
        Some(needed) if stride >= row_bytes && needed <= available => {
            // SAFETY: `available` bytes from `data` on are mapped for reading and writing, for as
            // long as the frame exists, which `'a` borrows exclusively.
            let data = unsafe { std::slice::from_raw_parts_mut(data, needed) };
            Ok(Plane { data, stride })
        }
        _ => Err(error),
    }
}

/// The first byte of a plane, and the number of mapped bytes from there on.
fn mapped(frame: &mut VideoFrameRef<&mut gst::BufferRef>, plane: usize) -> (*mut u8, usize) {
    // SAFETY: `as_mut_ptr` points to the `GstVideoFrame` that `frame` borrows and that stays mapped
    // for this call.
    let frame = unsafe { &*frame.as_mut_ptr() };
    let meta: *const gst_video::ffi::GstVideoMeta = frame.meta.cast();
    // If the buffer has the metadata, each plane has a mapping of its own; otherwise one mapping
    // has all. SAFETY: `meta` of a mapped frame is NULL or points to metadata of its buffer, which
    // the frame references.
    let map = match unsafe { meta.as_ref() } {
        None => &frame.map[0],
        Some(meta) if plane < meta.n_planes as usize => &frame.map[plane],
        Some(_) => return (std::ptr::null_mut(), 0),
    };
    let data: *mut u8 = frame.data[plane].cast();
    let offset = (data as usize).checked_sub(map.data as usize);
    let available = offset.and_then(|offset| map.size.checked_sub(offset));
    (data, available.unwrap_or(0))
}
