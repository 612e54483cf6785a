// SPDX-License-Identifier: MIT OR Apache-2.0
//! Video frames mapped to host memory.
//!
//! In: a buffer, and the layout for its caps. Out: the planes, which lie within the mapped memory.

use std::sync::LazyLock;

use gst::glib::BoolError;
use gst_video::ffi::GstVideoMeta;
use gst_video::prelude::*;
use gst_video::{VideoFrameFlags, VideoFrameRef};

use super::layout::{Extent, FrameError, FrameLayout, PLANES, UNKNOWN};

/// Distance of planes in a copy, so that samples of several bytes are where they are in GStreamer's own layout.
const ALIGNMENT: usize = 16;

/// A mapped frame. Dropping it unmaps the frame.
pub struct MappedFrame<B> {
    frame: VideoFrameRef<B>,
    planes: [Extent; PLANES],
}

/// The rows of a plane, for reading.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plane<'a> {
    /// The bytes from the first row to the last sample of the last row.
    pub data: &'a [u8],
    /// The distance between two rows, in bytes.
    pub stride: usize,
}

/// The rows of a plane, for writing.
#[derive(Debug)]
pub struct PlaneMut<'a> {
    /// The bytes from the first row to the last sample of the last row.
    pub data: &'a mut [u8],
    /// The distance between two rows, in bytes.
    pub stride: usize,
}

impl<'a> MappedFrame<&'a gst::BufferRef> {
    /// Maps `buffer` for reading.
    ///
    /// # Errors
    /// If the buffer cannot be mapped, or lacks a plane of `layout`.
    pub fn readable(buffer: &'a gst::BufferRef, layout: &FrameLayout) -> Result<Self, FrameError> {
        let maps_memory = layout.meta(buffer)?.map(has_default_map);
        let frame = VideoFrameRef::from_buffer_ref_readable(buffer, layout.info());
        checked(frame, layout, maps_memory)
    }

    /// Calls `convert` with a frame that GstVideoConverter can read safely. If the frame has less memory than
    /// GstVideoConverter reads, the frame is copied to `copy` first.
    pub fn convert<R>(
        &self,
        copy: &mut Vec<u8>,
        convert: impl FnOnce(&VideoFrameRef<&'a gst::BufferRef>) -> R,
    ) -> R {
        let planes = &self.planes[..self.frame.n_planes() as usize];
        if planes.iter().all(|plane| plane.missing == 0) {
            return convert(&self.frame);
        }
        let mut starts = [0; PLANES];
        copy.clear();
        for (plane, extent) in planes.iter().enumerate() {
            let start = copy.len().next_multiple_of(ALIGNMENT);
            starts[plane] = start;
            copy.resize(start, 0);
            copy.extend_from_slice(self.plane(plane).data);
            // Fill the missing bytes with the preceding row or tile.
            for _ in 0..extent.missing {
                copy.push(copy[copy.len() - extent.period.min(extent.len)]);
            }
        }
        // SAFETY: the structure is copied while the frame is mapped. GstVideoConverter reads the structure and its
        // planes, and `copy` has all bytes of the planes that it accesses. The borrowed value unmaps nothing.
        unsafe {
            let mut frame = std::ptr::read(self.frame.as_ptr());
            for (plane, &start) in starts.iter().enumerate().take(planes.len()) {
                frame.data[plane] = copy.as_mut_ptr().add(start).cast();
            }
            convert(&VideoFrameRef::<&gst::BufferRef>::from_glib_borrow(&frame))
        }
    }

    /// Returns the plane with this index.
    ///
    /// # Panics
    /// If the format has fewer planes.
    pub fn plane(&self, plane: usize) -> Plane<'_> {
        assert!(plane < self.frame.n_planes() as usize, "the format has such a plane");
        let Extent { len, stride, .. } = self.planes[plane];
        // SAFETY: `len` bytes from this address on are mapped for as long as the frame exists.
        let data = unsafe { std::slice::from_raw_parts(start(&self.frame, plane), len) };
        Plane { data, stride }
    }
}

impl<'a> MappedFrame<&'a mut gst::BufferRef> {
    /// Maps `buffer` for reading and writing.
    ///
    /// # Errors
    /// If the buffer cannot be mapped, or lacks a plane of `layout`.
    pub fn writable(
        buffer: &'a mut gst::BufferRef,
        layout: &FrameLayout,
    ) -> Result<Self, FrameError> {
        let maps_memory = layout.meta(buffer)?.map(has_default_map);
        let frame = VideoFrameRef::from_buffer_ref_writable(buffer, layout.info());
        checked(frame, layout, maps_memory)
    }

    /// Returns the plane with this index, for writing.
    ///
    /// # Panics
    /// If the format has fewer planes.
    pub fn plane_mut(&mut self, plane: usize) -> PlaneMut<'_> {
        assert!(plane < self.frame.n_planes() as usize, "the format has such a plane");
        let Extent { len, stride, .. } = self.planes[plane];
        let first = start(&self.frame, plane).cast_mut();
        // SAFETY: `len` bytes from this address on are mapped for reading and writing for as long as the frame
        // exists, and the frame is borrowed exclusively.
        let data = unsafe { std::slice::from_raw_parts_mut(first, len) };
        PlaneMut { data, stride }
    }
}

/// Returns the address of a plane's first row.
fn start<B>(frame: &VideoFrameRef<B>, plane: usize) -> *const u8 {
    // SAFETY: the pointer points to the `GstVideoFrame` in `frame`.
    unsafe { (&(*frame.as_ptr()).data)[plane].cast() }
}

/// Compares the planes of a mapped frame with the memory that is mapped for them. `has_default_map` is the result of the
/// function of this name for the frame's `GstVideoMeta`, or `None` without metadata.
fn checked<B>(
    frame: Result<VideoFrameRef<B>, BoolError>,
    layout: &FrameLayout,
    has_default_map: Option<bool>,
) -> Result<MappedFrame<B>, FrameError> {
    let frame = frame.map_err(|_| {
        FrameError(
            "the frame cannot be mapped: its memory has fewer bytes than its caps or its GstVideoMeta need, or the CPU \
             cannot access it"
                .into(),
        )
    })?;
    let interlaced = frame.flags().contains(VideoFrameFlags::INTERLACED);
    let mut planes = [Extent::default(); PLANES];
    for (plane, extent) in planes.iter_mut().enumerate().take(layout.planes.len()) {
        let first = start(&frame, plane);
        // SAFETY: the pointer points to the `GstVideoFrame` in `frame`. Mapping the frame wrote the entries that
        // are used below.
        let maps = unsafe { &(*frame.as_ptr()).map };
        // With `GstVideoMeta` each plane is mapped separately; without it, a single mapping contains all planes.
        let available = match has_default_map {
            None => available(&maps[0], first),
            Some(true) => available(&maps[plane], first),
            // The element's map function returned an address and a stride; only the element knows the memory's
            // size.
            Some(false) if !first.is_null() => UNKNOWN,
            Some(false) => 0,
        };
        *extent = layout.extent(plane, frame.plane_stride()[plane], available, interlaced)?;
    }
    Ok(MappedFrame { frame, planes })
}

/// Returns the number of mapped bytes from `first` on.
fn available(map: &gst::ffi::GstMapInfo, first: *const u8) -> usize {
    let offset = first.addr().checked_sub(map.data.addr());
    offset.and_then(|offset| map.size.checked_sub(offset)).unwrap_or(0)
}

/// Returns whether the frame's planes are mapped by GStreamer's default function, which maps the buffer's memory at
/// the plane's offset. Elements with other kinds of memory install their own function.
fn has_default_map(meta: &GstVideoMeta) -> bool {
    static DEFAULT: LazyLock<Option<usize>> = LazyLock::new(|| {
        let mut buffer = gst::Buffer::from_slice([0_u8; 64]);
        let buffer = buffer.get_mut().expect("it is new");
        let flags = VideoFrameFlags::empty();
        let meta = gst_video::VideoMeta::add(buffer, flags, gst_video::VideoFormat::Gray8, 1, 1);
        // SAFETY: the metadata belongs to the buffer.
        meta.ok().and_then(|meta| unsafe { (*meta.as_ptr()).map }).map(|map| map as usize)
    });
    meta.map.map(|map| map as usize) == *DEFAULT
}
