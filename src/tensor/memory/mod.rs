//! Tensors in a GPU's memory, as `GstMemory`.
//!
//! A device address is handed over by the protocol of GStreamer's own CUDA elements: mapped with
//! `GST_MAP_READ | GST_MAP_CUDA`, the memory gives its device address; mapped without, it copies
//! itself to the host. [`wrap`] makes such memory of anyone's device address; [`MappedOnDevice`]
//! reads it, and `gst.cuda.memory` as others make it. Nothing but this protocol is used on memory,
//! so that of another allocator with the same type name, as another copy of this crate in the
//! process has, is read like any other.

mod allocator;
mod gst_cuda;
mod upload;

use std::ffi::CStr;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::LazyLock;

use gst::glib;
use gst::glib::translate::{IntoGlib, from_glib};

use super::{Tensor, TensorError};
use crate::device::{Event, ForeignStream};
pub use allocator::{Release, from_buffer, wrap};
pub use upload::{UploadError, Uploader};

/// The type of the memory that [`wrap`] makes.
pub const MEMORY_TYPE: &CStr = c"nmsfilter.cuda.memory";

/// The name of the data (`gst_mini_object_set_qdata`) by which memory carries the event, a `CUevent`,
/// after which it may be read. The event must exist for as long as the memory. Whoever attaches one
/// to memory also sets `GST_CUDA_MEMORY_TRANSFER_NEED_SYNC`, for readers that do not know of it.
pub const READY_EVENT: &str = "nmsfilter.cuda.ready-event";

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

/// A tensor's device address, good for as long as this lives.
pub struct MappedOnDevice<'a> {
    memory: *mut gst::ffi::GstMemory,
    info: gst::ffi::GstMapInfo,
    /// What to wait for before reading.
    pub ready: Ready,
    buffer: PhantomData<&'a gst::BufferRef>,
}

/// When a device address may be read: never before its producer's work on it is done, and after
/// nothing else where that is known.
///
/// 1. Memory with an event ([`READY_EVENT`]), as [`wrap`] attaches: after that event.
/// 2. Other memory without the flag `GST_CUDA_MEMORY_TRANSFER_NEED_SYNC`: at once. GStreamer before
///    1.24 has no such flag; its elements wait for their work before they push a buffer.
/// 3. `gst.cuda.memory` with the flag, of GStreamer 1.24 and later: after what its stream
///    (`gst_cuda_memory_get_stream`) has been given so far. The GPU waits, and no thread.
/// 4. Any other memory with the flag: the calling thread waits for the context that owns it. Where
///    the driver names none, as for stream-ordered allocations, the tensor is refused.
#[derive(Clone, Copy, Debug)]
pub enum Ready {
    /// At once.
    Now,
    /// After this event.
    After(Event),
    /// After the work that this stream has been given so far.
    AfterStream(ForeignStream),
    /// After all work in the context that owns the address.
    AfterOwner,
}

impl Ready {
    /// Of memory that is mapped.
    ///
    /// # Safety
    /// It must be memory, and its event and stream must exist for as long as this is used.
    unsafe fn of(memory: *mut gst::ffi::GstMemory) -> Self {
        // SAFETY: the caller answers for the memory and what it names.
        unsafe {
            let quark = ready_event().into_glib();
            let event = gst::ffi::gst_mini_object_get_qdata(memory.cast(), quark);
            if !event.is_null() {
                return Self::After(Event::from_raw(event));
            }
            if (*memory).mini_object.flags & NEED_SYNC == 0 {
                return Self::Now;
            }
            gst_cuda::stream_of(memory).map_or(Self::AfterOwner, Self::AfterStream)
        }
    }
}

impl<'a> MappedOnDevice<'a> {
    /// Maps `buffer`, that of `tensor`; `None` where it is on no GPU.
    pub(super) fn new(
        tensor: &Tensor<'a>,
        buffer: &'a gst::BufferRef,
    ) -> Result<Option<Self>, TensorError> {
        let Some(memory) = memory_on_device(buffer) else {
            return Ok(None);
        };
        let mut info = MaybeUninit::uninit();
        let flags = gst::ffi::GST_MAP_READ | GST_MAP_CUDA;
        // SAFETY: the buffer keeps the memory; `info` is filled in where this succeeds.
        let info = unsafe {
            match from_glib(gst::ffi::gst_memory_map(memory, info.as_mut_ptr(), flags)) {
                true => info.assume_init(),
                false => {
                    let cause = "it gives no device address".to_owned();
                    return Err(TensorError::Map { tensor: tensor.to_string(), cause });
                }
            }
        };
        // SAFETY: the buffer keeps the memory, and that keeps its stream; who attaches an event
        // says that it exists as long.
        let ready = unsafe { Ready::of(memory) };
        Ok(Some(Self { memory, info, ready, buffer: PhantomData }))
    }

    /// The device's address of the first element.
    pub fn address(&self) -> u64 {
        self.info.data as u64
    }

    /// How many bytes are mapped.
    pub fn len(&self) -> usize {
        self.info.size
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for MappedOnDevice<'_> {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this.
        unsafe { gst::ffi::gst_memory_unmap(self.memory, &mut self.info) };
    }
}

impl fmt::Debug for MappedOnDevice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:#x} of a GPU, {:?}", self.len(), self.address(), self.ready)
    }
}
