// SPDX-License-Identifier: MIT OR Apache-2.0
//! `GstMemory` in device memory.
//!
//! In: a device address ([`wrap`]), or a buffer with memory that `wrap` or GStreamer's CUDA elements created. Out:
//! a `GstMemory` to attach, or a [`DeviceSlice`] to read.
//!
//! The interface is compatible with GStreamer's CUDA elements: if the memory is mapped with `GST_MAP_READ |
//! GST_MAP_CUDA`, the mapping has its device address; without `GST_MAP_CUDA`, it has a copy in host memory. Readers
//! use nothing else of the memory. So they can also read memory of another allocator that uses this type name, for
//! example in another copy of this crate in the process.

mod allocator;
mod gst_cuda;
mod upload;

use std::ffi::CStr;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::LazyLock;

use gst::glib;
use gst::glib::translate::{IntoGlib, from_glib};

pub use allocator::{Release, renew, wrap};
pub use nmsfilter_core::device::READY_EVENT;
use nmsfilter_core::device::{Event, Ready};
use nmsfilter_core::tensor::DeviceSlice;
pub use upload::{UploadError, Uploader, from_buffer};

/// The memory type of the memory that [`wrap`] creates.
pub const MEMORY_TYPE: &CStr = c"nmsfilter.cuda.memory";

fn ready_event() -> glib::Quark {
    static QUARK: LazyLock<glib::Quark> = LazyLock::new(|| glib::Quark::from_str(READY_EVENT));
    *QUARK
}

/// The memory type that GStreamer's CUDA elements use.
const GST_CUDA_MEMORY_TYPE: &CStr = c"gst.cuda.memory";

/// `GST_MAP_CUDA` in gstcudamemory.h: maps memory to its device address.
const GST_MAP_CUDA: gst::ffi::GstMapFlags = gst::ffi::GST_MAP_FLAG_LAST << 1;

/// `GST_CUDA_MEMORY_TRANSFER_NEED_SYNC` in gstcudamemory.h (1.24): the producer's work may be pending.
const NEED_SYNC: gst::ffi::GstMemoryFlags = gst::ffi::GST_MEMORY_FLAG_LAST << 2;

/// Returns the memory of `buffer`, if it is a single `GstMemory` in device memory.
fn memory_on_device(buffer: &gst::BufferRef) -> Option<*mut gst::ffi::GstMemory> {
    if buffer.n_memory() != 1 {
        return None;
    }
    // SAFETY: the buffer has a memory with the index 0, and owns a reference to it.
    unsafe {
        let memory = gst::ffi::gst_buffer_peek_memory(buffer.as_mut_ptr(), 0);
        let is = |memory_type: &&CStr| {
            from_glib(gst::ffi::gst_memory_is_type(memory, memory_type.as_ptr()))
        };
        [MEMORY_TYPE, GST_CUDA_MEMORY_TYPE].iter().any(is).then_some(memory)
    }
}

/// Returns whether `buffer` consists of a single `GstMemory` in device memory.
pub fn is_on_device(buffer: &gst::BufferRef) -> bool {
    memory_on_device(buffer).is_some()
}

/// Determines when memory may be read: never before its producer's work has completed and, if possible, without
/// waiting for other work.
///
/// 1. Memory with an event ([`READY_EVENT`]), which [`wrap`] attaches, may be read after this event.
/// 2. Other memory without the flag `GST_CUDA_MEMORY_TRANSFER_NEED_SYNC` may be read immediately. GStreamer before
///    1.24 does not have this flag; its elements wait for their work before they push a buffer.
/// 3. A `gst.cuda.memory` with the flag, from GStreamer 1.24 or later, may be read after the work that has been
///    submitted to its stream (`gst_cuda_memory_get_stream`) so far.
/// 4. For any other memory with the flag, the calling thread waits for the context that owns the memory. If the
///    driver cannot name this context, as for stream-ordered allocations, engines return an error.
///
/// # Safety
/// `memory` must be valid, and its event and stream must exist as long as the result is used.
unsafe fn ready(memory: *mut gst::ffi::GstMemory) -> Ready {
    // SAFETY: the caller guarantees that the memory is valid, and that its event and stream exist.
    unsafe {
        let quark = ready_event().into_glib();
        let event = gst::ffi::gst_mini_object_get_qdata(memory.cast(), quark);
        if !event.is_null() {
            return Ready::After(Event::from_raw(event));
        }
        if (*memory).mini_object.flags & NEED_SYNC == 0 {
            return Ready::Now;
        }
        gst_cuda::producer_stream(memory).map_or(Ready::AfterOwner, Ready::AfterStream)
    }
}

/// A buffer that is mapped to its device address until this is dropped.
#[derive(Debug)]
pub struct DeviceMapping<'a> {
    memory: *mut gst::ffi::GstMemory,
    info: gst::ffi::GstMapInfo,
    slice: DeviceSlice,
    buffer: PhantomData<&'a gst::BufferRef>,
}

impl<'a> DeviceMapping<'a> {
    /// Maps `buffer`. Returns `None` if it is not in device memory.
    ///
    /// # Errors
    /// If the memory cannot be mapped to a device address.
    pub fn new(buffer: &'a gst::BufferRef) -> Result<Option<Self>, String> {
        let Some(memory) = memory_on_device(buffer) else {
            return Ok(None);
        };
        let mut info = MaybeUninit::uninit();
        let flags = gst::ffi::GST_MAP_READ | GST_MAP_CUDA;
        // SAFETY: the buffer owns a reference to the memory, and `info` is initialized if the call succeeds.
        let info = unsafe {
            if from_glib(gst::ffi::gst_memory_map(memory, info.as_mut_ptr(), flags)) {
                info.assume_init()
            } else {
                return Err("it has no device address".to_owned());
            }
        };
        // SAFETY: the buffer owns a reference to the memory, and the memory owns a reference to its stream. The
        // memory's event exists as long as the memory. The producer guarantees that the mapped address is valid for
        // `info.size` bytes.
        let slice = unsafe { DeviceSlice::new(info.data as u64, info.size, ready(memory)) };
        Ok(Some(Self { memory, info, slice, buffer: PhantomData }))
    }

    /// Returns the mapped bytes.
    pub fn slice(&self) -> DeviceSlice {
        self.slice
    }
}

impl Drop for DeviceMapping<'_> {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped with this `info`, and is unmapped once.
        unsafe { gst::ffi::gst_memory_unmap(self.memory, &mut self.info) };
    }
}
