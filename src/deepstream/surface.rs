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
use super::layout::{surface, surface_params};
use super::record::Record;

/// The caps feature of buffers in NVMM memory.
pub const NVMM: &str = "memory:NVMM";

/// The properties of a buffer's caps that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameCaps {
    /// The width and height in pixels; of a batch, those of the frames of one source.
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
    /// `caps` must be those of the buffer.
    pub unsafe fn surfaces<'a>(
        &self,
        buffer: &'a gst::BufferRef,
        caps: Option<FrameCaps>,
    ) -> Option<Surfaces<'a>> {
        if !caps.is_some_and(|caps| caps.is_nvmm) || buffer.n_memory() != 1 {
            return None;
        }
        let memory = buffer.peek_memory(0).map_readable().ok()?;
        let layout = self.structures().layout;
        let is_known = self.structures().assumption.is_none();
        if memory.len() < layout.surface_size || (!is_known && memory.len() > layout.surface_size) {
            return None;
        }
        let number = |offset| {
            let bytes = memory[offset..offset + 4].try_into().expect("it has four bytes");
            u32::from_ne_bytes(bytes) as usize
        };
        let (capacity, filled) = (number(surface::BATCH_SIZE), number(surface::NUM_FILLED));
        let address = memory[surface::SURFACES..surface::SURFACES + size_of::<usize>()].try_into();
        let address = usize::from_ne_bytes(address.expect("it has as many bytes"));
        if filled > capacity || capacity > MAX_LIST || address % align_of::<u64>() != 0 {
            return None;
        }
        let first = NonNull::new(std::ptr::with_exposed_provenance_mut(address))?;
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
        let surface = surfaces.and_then(|all| all.size(self.batch_id(frame)));
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
        let size = unsafe {
            let params = Record(self.first.byte_add(index * self.stride));
            [params.read(surface_params::WIDTH), params.read(surface_params::HEIGHT)]
        };
        size.iter().all(|side| (1..=MAX_SURFACE_SIDE).contains(side)).then_some(size)
    }
}
