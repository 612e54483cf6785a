//! Tensors in a GPU's memory, as `GstMemory`.
//!
//! A device address is handed over by the protocol of GStreamer's own CUDA elements: mapped with
//! `GST_MAP_READ | GST_MAP_CUDA`, the memory gives its device address; mapped without, it copies
//! itself to the host. [`wrap`] makes such memory of anyone's device address; [`DeviceMapping`]
//! reads it, and `gst.cuda.memory` as others make it. Nothing but this protocol is used on memory,
//! so that of another allocator with the same type name, as another copy of this crate in the
//! process has, is read like any other.

mod allocator;
mod gst_cuda;
mod upload;

use std::ffi::CStr;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::LazyLock;

use gst::glib;
use gst::glib::translate::{IntoGlib, from_glib};

pub use crate::device::READY_EVENT;
use crate::device::{Event, Ready};
use crate::tensor::DeviceSlice;
pub use allocator::{Release, from_buffer, wrap};
pub use upload::{UploadError, Uploader};

/// The type of the memory that [`wrap`] makes.
pub const MEMORY_TYPE: &CStr = c"nmsfilter.cuda.memory";

fn ready_event() -> glib::Quark {
    static QUARK: LazyLock<glib::Quark> = LazyLock::new(|| glib::Quark::from_str(READY_EVENT));
    *QUARK
}

/// The type of the memory that GStreamer's CUDA elements make.
const GST_CUDA_MEMORY_TYPE: &CStr = c"gst.cuda.memory";

/// Asks for the device's address when mapping (gstcudamemory.h).
const GST_MAP_CUDA: gst::ffi::GstMapFlags = gst::ffi::GST_MAP_FLAG_LAST << 1;

/// Set on `gst.cuda.memory` while its maker's work may be under way (gstcudamemory.h, 1.24).
const NEED_SYNC: gst::ffi::GstMemoryFlags = gst::ffi::GST_MEMORY_FLAG_LAST << 2;

/// The memory of `buffer`, where it is one piece and on a GPU.
fn memory_on_device(buffer: &gst::BufferRef) -> Option<*mut gst::ffi::GstMemory> {
    if buffer.n_memory() != 1 {
        return None;
    }
    // SAFETY: there is one, which the buffer keeps.
    unsafe {
        let memory = gst::ffi::gst_buffer_peek_memory(buffer.as_mut_ptr(), 0);
        let is = |memory_type: &&CStr| {
            from_glib(gst::ffi::gst_memory_is_type(memory, memory_type.as_ptr()))
        };
        [MEMORY_TYPE, GST_CUDA_MEMORY_TYPE].iter().any(is).then_some(memory)
    }
}

/// Whether `buffer` is one piece of a GPU's memory.
pub fn is_on_device(buffer: &gst::BufferRef) -> bool {
    memory_on_device(buffer).is_some()
}

/// When memory may be read: never before its producer's work on it has completed, and without waiting
/// for other work if that is possible.
///
/// 1. Memory with an event ([`READY_EVENT`]), as [`wrap`] attaches: after that event.
/// 2. Other memory without the flag `GST_CUDA_MEMORY_TRANSFER_NEED_SYNC`: at once. GStreamer before
///    1.24 has no such flag; its elements wait for their work before they push a buffer.
/// 3. `gst.cuda.memory` with the flag, of GStreamer 1.24 and later: after what has been submitted to its
///    stream (`gst_cuda_memory_get_stream`) so far.
/// 4. Any other memory with the flag: the calling thread waits for the context that owns it. If the
///    driver names none, as for stream-ordered allocations, the tensor is refused.
///
/// # Safety
/// It must be memory, and its event and stream must exist for as long as the result is used.
unsafe fn ready(memory: *mut gst::ffi::GstMemory) -> Ready {
    // SAFETY: the caller guarantees the memory and what it names.
    unsafe {
        let quark = ready_event().into_glib();
        let event = gst::ffi::gst_mini_object_get_qdata(memory.cast(), quark);
        if !event.is_null() {
            return Ready::After(Event::from_raw(event));
        }
        if (*memory).mini_object.flags & NEED_SYNC == 0 {
            return Ready::Now;
        }
        gst_cuda::stream_of(memory).map_or(Ready::AfterOwner, Ready::AfterStream)
    }
}

/// A buffer's device address, mapped for as long as this value lives.
pub(super) struct DeviceMapping<'a> {
    memory: *mut gst::ffi::GstMemory,
    info: gst::ffi::GstMapInfo,
    slice: DeviceSlice,
    buffer: PhantomData<&'a gst::BufferRef>,
}

impl<'a> DeviceMapping<'a> {
    /// Maps `buffer`; `None` if it is not device memory.
    ///
    /// # Errors
    /// If the memory gives no device address.
    pub fn new(buffer: &'a gst::BufferRef) -> Result<Option<Self>, String> {
        let Some(memory) = memory_on_device(buffer) else {
            return Ok(None);
        };
        let mut info = MaybeUninit::uninit();
        let flags = gst::ffi::GST_MAP_READ | GST_MAP_CUDA;
        // SAFETY: the buffer keeps the memory; `info` is filled in if this succeeds.
        let info = unsafe {
            match from_glib(gst::ffi::gst_memory_map(memory, info.as_mut_ptr(), flags)) {
                true => info.assume_init(),
                false => return Err("it gives no device address".to_owned()),
            }
        };
        // SAFETY: the buffer keeps the memory, and the memory keeps its stream and its event; the
        // producer guarantees the bytes behind the mapped address.
        let slice = unsafe { DeviceSlice::new(info.data as u64, info.size, ready(memory)) };
        Ok(Some(Self { memory, info, slice, buffer: PhantomData }))
    }

    /// The mapped bytes.
    pub fn slice(&self) -> DeviceSlice {
        self.slice
    }
}

impl Drop for DeviceMapping<'_> {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this.
        unsafe { gst::ffi::gst_memory_unmap(self.memory, &mut self.info) };
    }
}
