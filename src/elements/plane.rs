//! The samples of a mapped video frame, within the memory that is mapped.
//!
//! A frame's layout is what its `GstVideoMeta` says, and any element can have written that.
//! GStreamer maps the memory without comparing the two, and the binding's slices are as long as
//! the layout says, not as the memory is.

use gst_video::VideoFrameRef;
use gst_video::prelude::*;

/// Why a plane cannot be drawn on.
#[derive(Debug, thiserror::Error)]
#[error(
    "plane {plane} of the frame has {available} bytes from its first row on and a stride of {stride}; \
     expected {rows} rows of {row_bytes} bytes: the GstVideoMeta of the element upstream is wrong"
)]
pub(super) struct PlaneError {
    plane: usize,
    available: usize,
    stride: i32,
    rows: usize,
    row_bytes: usize,
}

/// Rows of samples, `stride` bytes from one to the next.
pub(super) struct Plane<'a> {
    /// Ends with the last sample of the last row.
    pub data: &'a mut [u8],
    pub stride: usize,
}

/// A plane of the frame from its first row on: at least one row of at least one byte.
///
/// # Errors
/// Where the mapped memory does not hold `rows` rows of `row_bytes` bytes in the frame's layout.
pub(super) fn plane<'a>(
    frame: &'a mut VideoFrameRef<&mut gst::BufferRef>,
    plane: usize,
    row_bytes: usize,
    rows: usize,
) -> Result<Plane<'a>, PlaneError> {
    let (data, available) = mapped(frame, plane);
    let stride = frame.plane_stride()[plane];
    let error = PlaneError { plane, available, stride, rows, row_bytes };
    // A single row has no next one.
    let stride = if rows == 1 { row_bytes } else { usize::try_from(stride).unwrap_or(0) };
    let needed = (rows - 1).checked_mul(stride).and_then(|rows| rows.checked_add(row_bytes));
    match needed {
        Some(needed) if stride >= row_bytes && needed <= available => {
            // SAFETY: `available` bytes from `data` on are mapped for reading and writing, for as long
            // as the frame exists, which `'a` borrows exclusively.
            let data = unsafe { std::slice::from_raw_parts_mut(data, needed) };
            Ok(Plane { data, stride })
        }
        _ => Err(error),
    }
}

/// Where a plane begins, and how many mapped bytes there are from there on.
fn mapped(frame: &mut VideoFrameRef<&mut gst::BufferRef>, plane: usize) -> (*mut u8, usize) {
    // SAFETY: the frame is mapped and borrowed.
    let frame = unsafe { &*frame.as_mut_ptr() };
    let meta: *const gst_video::ffi::GstVideoMeta = frame.meta.cast();
    // With the metadata, each of its planes is mapped by itself; without, all of them in one.
    // SAFETY: the metadata of a mapped frame is NULL or that of its buffer, which is borrowed too.
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
