// SPDX-License-Identifier: MIT OR Apache-2.0
//! The surfaces of a buffer: the frames of a batch in NVMM memory.
//!
//! In: a buffer whose caps have the feature [`NVMM`]. Out: the width and height of the surface of each frame.
//!
//! The memory of such a buffer is an `NvBufSurface`, which has the address of an array with an
//! `NvBufSurfaceParams` for each frame. Nothing in the memory identifies it, so only the caps do. What it has is
//! read as far as its numbers agree with each other; otherwise the buffer has no surfaces.

use std::ffi::c_void;
use std::ptr::NonNull;

use super::BatchMeta;
use super::batch::MAX_LIST;
use super::layout::{surface, surface_params};
use super::record::Record;

/// The feature of the caps of buffers in NVMM memory.
pub const NVMM: &str = "memory:NVMM";

/// The greatest side of a surface in pixels: more than any hardware has.
const MAX_SURFACE_SIDE: u32 = 65_535;

/// The array of a buffer's surfaces.
#[derive(Debug)]
pub struct Surfaces<'a> {
    first: NonNull<c_void>,
    /// The number of surfaces that have a frame.
    filled: usize,
    /// The size of an element of the array.
    stride: usize,
    /// Exists as long as the array.
    _memory: gst::MemoryMap<'a, gst::memory::Readable>,
}

impl BatchMeta<'_> {
    /// The surfaces of `buffer`, which has this batch; `None` if its memory does not have the size of an
    /// `NvBufSurface`, or what it has cannot be one. If the layout is an assumption, the memory must have that size
    /// exactly, as that of DeepStream's elements does: no pool has the structure.
    ///
    /// # Safety
    /// The caps of the buffer must have the feature [`NVMM`].
    pub unsafe fn surfaces<'a>(&self, buffer: &'a gst::BufferRef) -> Option<Surfaces<'a>> {
        if buffer.n_memory() != 1 {
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

impl Surfaces<'_> {
    /// Width and height of the surface at this index, which a frame has as its `batch_id`; `None` if there is none,
    /// or it has no pixels.
    pub fn size(&self, index: usize) -> Option<[u32; 2]> {
        if index >= self.filled {
            return None;
        }
        // SAFETY: in NVMM memory the array has as many elements, and exists as long as the memory.
        let size = unsafe {
            let params = Record(self.first.byte_add(index * self.stride));
            [params.read(surface_params::WIDTH), params.read(surface_params::HEIGHT)]
        };
        size.iter().all(|side| (1..=MAX_SURFACE_SIDE).contains(side)).then_some(size)
    }
}
