// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that are mapped to host memory.
//!
//! In: a buffer, and the layout of its caps. Out: its planes; all are within the mapped memory.

use std::sync::LazyLock;

use gst_video::ffi::GstVideoMeta;
use gst_video::prelude::*;
use gst_video::{VideoFrameFlags, VideoFrameRef};

use super::layout::{Extent, FrameError, FrameLayout, PLANES};

/// A frame that is mapped until this is dropped.
pub struct Frame<B> {
    frame: VideoFrameRef<B>,
    planes: [Extent; PLANES],
}

/// The rows of a plane, for reading.
#[cfg(feature = "onnxruntime")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Plane<'a> {
    /// Begins with the first row, and ends with the last sample of the last row.
    pub data: &'a [u8],
    /// Bytes from row to row.
    pub stride: usize,
}

/// The rows of a plane, for writing.
#[cfg(feature = "internals")]
#[derive(Debug)]
pub struct PlaneMut<'a> {
    /// Begins with the first row, and ends with the last sample of the last row.
    pub data: &'a mut [u8],
    /// Bytes from row to row.
    pub stride: usize,
}

#[cfg(feature = "onnxruntime")]
impl<'a> Frame<&'a gst::BufferRef> {
    /// Maps `buffer` for reading.
    ///
    /// # Errors
    /// If it cannot be mapped, or does not have all planes of `layout`.
    pub fn readable(buffer: &'a gst::BufferRef, layout: &FrameLayout) -> Result<Self, FrameError> {
        let maps_memory = layout.meta(buffer)?.map(has_default_map);
        let frame = VideoFrameRef::from_buffer_ref_readable(buffer, layout.info())
            .map_err(|_| FrameError::Map)?;
        let planes = extents(&frame, layout, maps_memory)?;
        Ok(Self { frame, planes })
    }

    /// The frame as GStreamer's functions take it.
    pub fn as_frame_ref(&self) -> &VideoFrameRef<&'a gst::BufferRef> {
        &self.frame
    }

    /// The plane with this index.
    ///
    /// # Panics
    /// If the format has fewer planes.
    pub fn plane(&self, plane: usize) -> Plane<'_> {
        assert!(plane < self.frame.n_planes() as usize, "the format has such a plane");
        let Extent { len, stride } = self.planes[plane];
        // SAFETY: `len` bytes from there on are mapped for as long as the frame exists.
        let data = unsafe { std::slice::from_raw_parts(start(&self.frame, plane), len) };
        Plane { data, stride }
    }
}

#[cfg(feature = "internals")]
impl<'a> Frame<&'a mut gst::BufferRef> {
    /// Maps `buffer` for reading and writing.
    ///
    /// # Errors
    /// If it cannot be mapped, or does not have all planes of `layout`.
    pub fn writable(
        buffer: &'a mut gst::BufferRef,
        layout: &FrameLayout,
    ) -> Result<Self, FrameError> {
        let maps_memory = layout.meta(buffer)?.map(has_default_map);
        let frame = VideoFrameRef::from_buffer_ref_writable(buffer, layout.info())
            .map_err(|_| FrameError::Map)?;
        let planes = extents(&frame, layout, maps_memory)?;
        Ok(Self { frame, planes })
    }

    /// The plane with this index.
    ///
    /// # Panics
    /// If the format has fewer planes.
    pub fn plane_mut(&mut self, plane: usize) -> PlaneMut<'_> {
        assert!(plane < self.frame.n_planes() as usize, "the format has such a plane");
        let Extent { len, stride } = self.planes[plane];
        let first = start(&self.frame, plane).cast_mut();
        // SAFETY: `len` bytes from there on are mapped for reading and writing for as long as the frame exists,
        // which is borrowed exclusively.
        let data = unsafe { std::slice::from_raw_parts_mut(first, len) };
        PlaneMut { data, stride }
    }
}

/// The first row of a plane.
fn start<B>(frame: &VideoFrameRef<B>, plane: usize) -> *const u8 {
    // SAFETY: the pointer is that of the `GstVideoFrame` in `frame`.
    unsafe { (&(*frame.as_ptr()).data)[plane].cast() }
}

/// Compares the planes of a frame with the memory that is mapped for them. `has_default_map` is that of its metadata,
/// if there is one.
fn extents<B>(
    frame: &VideoFrameRef<B>,
    layout: &FrameLayout,
    has_default_map: Option<bool>,
) -> Result<[Extent; PLANES], FrameError> {
    let interlaced = frame.flags().contains(VideoFrameFlags::INTERLACED);
    let mut planes = [Extent::default(); PLANES];
    for (plane, extent) in planes.iter_mut().enumerate().take(layout.planes()) {
        let first = start(frame, plane);
        // SAFETY: the pointer is that of the `GstVideoFrame` in `frame`. The entries that are used were written when
        // it was mapped.
        let maps = unsafe { &(*frame.as_ptr()).map };
        // If the buffer has the metadata, each plane has a mapping of its own; otherwise one mapping has all.
        let available = match has_default_map {
            None => available(&maps[0], first),
            Some(true) => available(&maps[plane], first),
            // The function gives the address and the stride of memory that only its element knows.
            Some(false) if !first.is_null() => usize::MAX,
            Some(false) => 0,
        };
        *extent = layout.extent(plane, frame.plane_stride()[plane], available, interlaced)?;
    }
    Ok(planes)
}

/// The number of mapped bytes from `first` on.
fn available(map: &gst::ffi::GstMapInfo, first: *const u8) -> usize {
    let offset = first.addr().checked_sub(map.data.addr());
    offset.and_then(|offset| map.size.checked_sub(offset)).unwrap_or(0)
}

/// Whether planes are mapped by the function that GStreamer sets. It maps the buffer's memory at the plane's offset.
/// Elements with memory of other kinds set functions of their own.
fn has_default_map(meta: &GstVideoMeta) -> bool {
    static DEFAULT: LazyLock<Option<usize>> = LazyLock::new(|| {
        let mut buffer = gst::Buffer::from_slice([0_u8; 64]);
        let buffer = buffer.get_mut().expect("it is new");
        let flags = VideoFrameFlags::empty();
        let meta = gst_video::VideoMeta::add(buffer, flags, gst_video::VideoFormat::Gray8, 1, 1);
        // SAFETY: the metadata is that of the buffer.
        meta.ok().and_then(|meta| unsafe { (*meta.as_ptr()).map }).map(|map| map as usize)
    });
    meta.map.map(|map| map as usize) == *DEFAULT
}
