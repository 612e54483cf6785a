// SPDX-License-Identifier: MIT OR Apache-2.0
//! The surfaces of a buffer: the frames of a batch in NVMM memory.
//!
//! In: a buffer whose caps have the feature [`NVMM`]. Out: the width and height of each frame's surface.
//!
//! The memory of such a buffer is an `NvBufSurface`, which contains the address of an array with an
//! `NvBufSurfaceParams` per frame. Only the caps say that the memory has this type; nothing in the memory
//! identifies it. Its content is therefore checked, and if its numbers contradict each other, the buffer counts as
//! one without surfaces.

use std::ffi::c_void;
use std::ptr::NonNull;

use super::batch::{BatchMeta, FrameMeta, LockedBatch, MAX_LIST};
use super::layout::{frame, surface, surface_params};
use super::record::Record;

/// The caps feature of buffers in NVMM memory.
pub const NVMM: &str = "memory:NVMM";

/// The properties of a buffer's caps that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameCaps {
    /// The width and height in pixels; in a batch, of the frames of one source.
    pub size: [u32; 2],
    /// True if the frames are in NVMM memory.
    pub is_nvmm: bool,
}

/// The maximum side of a surface in pixels; no hardware supports more.
const MAX_SURFACE_SIDE: u32 = 65_535;

/// The array of a buffer's surfaces.
#[derive(Debug)]
pub struct Surfaces<'a> {
    first: NonNull<c_void>,
    /// The number of surfaces that have a frame.
    filled: usize,
    /// The size of an array element in bytes.
    stride: usize,
    /// Keeps the memory mapped as long as the array is used.
    _memory: gst::MemoryMap<'a, gst::memory::Readable>,
}

impl BatchMeta<'_> {
    /// Returns the surfaces of `buffer`, which this batch belongs to. Returns `None` if the buffer is not in NVMM memory, if
    /// the memory does not have the size of an `NvBufSurface`, or if its content cannot be one. If the layout is an assumption, the memory
    /// must have exactly the expected size (as the memory of DeepStream's elements has), because the sizes in the
    /// pools do not confirm this structure.
    ///
    /// # Safety
    /// `caps` must be the buffer's.
    pub unsafe fn surfaces<'a>(
        &self,
        buffer: &'a gst::BufferRef,
        caps: Option<FrameCaps>,
    ) -> Option<Surfaces<'a>> {
        if !caps.is_some_and(|caps| caps.is_nvmm) || buffer.n_memory() != 1 {
            return None;
        }
        let memory = buffer.peek_memory(0).map_readable().ok()?;
        let layout = self.structures.layout;
        let is_known = self.structures.assumption.is_none();
        let is_aligned = memory.as_ptr().cast::<u64>().is_aligned();
        let is_other = !is_known && memory.len() > layout.surface_size;
        if memory.len() < layout.surface_size || is_other || !is_aligned {
            return None;
        }
        let first = NonNull::from(memory.as_slice()).cast();
        // SAFETY: the memory has the size of the structure.
        let found: Record<'_, surface::S> = unsafe { Record::new(first) };
        let [capacity, filled] =
            [surface::BATCH_SIZE, surface::NUM_FILLED].map(|field| found.read(field) as usize);
        let surfaces = found.read(surface::SURFACES);
        if filled > capacity || capacity > MAX_LIST || !surfaces.cast::<u64>().is_aligned() {
            return None;
        }
        let first = NonNull::new(surfaces)?;
        let stride = layout.surface_params_size;
        Some(Surfaces { first, filled, stride, _memory: memory })
    }
}

impl LockedBatch<'_> {
    /// Returns the size of `frame`: the size of its surface, or else the size in its metadata.
    ///
    /// nvinfer scales the surface that it gets, regardless of metadata and caps. The metadata has the size that the
    /// old nvstreammux wrote, but a later element may have changed the frame's size.
    pub fn size(&self, frame: FrameMeta<'_>, surfaces: Option<&Surfaces<'_>>) -> Option<[u32; 2]> {
        let surface = surfaces.and_then(|all| all.size(frame.read(frame::BATCH_ID) as usize));
        surface.or_else(|| self.muxed_size(frame))
    }
}

impl Surfaces<'_> {
    /// Returns the width and height of the surface with this index, which is the `batch_id` of a frame. `None` if
    /// there is no such surface, or if it has no pixels.
    fn size(&self, index: usize) -> Option<[u32; 2]> {
        if index >= self.filled {
            return None;
        }
        // SAFETY: in NVMM memory, the array has this many elements, and exists as long as the memory.
        let params: Record<'_, surface_params::S> =
            unsafe { Record::new(self.first.byte_add(index * self.stride)) };
        let size = params.read(surface_params::SIZE);
        size.iter().all(|side| (1..=MAX_SURFACE_SIDE).contains(side)).then_some(size)
    }
}
