//! Tensors in a GPU's memory, as `GstMemory`.
//!
//! A device address is handed over by the protocol of GStreamer's own CUDA elements: mapped with
//! `GST_MAP_READ | GST_MAP_CUDA`, the memory gives its device address; mapped without, it copies
//! itself to the host. [`wrap`] makes such memory of anyone's device address; [`MappedOnDevice`]
//! reads it, and `gst.cuda.memory` as others make it.

mod allocator;
mod upload;

use std::ffi::CStr;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use gst::glib::translate::from_glib;

use super::{Tensor, TensorError};
use crate::device::Event;
use allocator::CudaMemory;
pub use allocator::{Release, from_buffer, wrap};
pub use upload::{UploadError, Uploader};

/// The type of the memory that [`wrap`] makes.
pub const MEMORY_TYPE: &CStr = c"nmsfilter.cuda.memory";

/// The type of the memory that GStreamer's CUDA elements make.
const GST_CUDA_MEMORY_TYPE: &CStr = c"gst.cuda.memory";

/// Asks for the device's address when mapping (gstcudamemory.h).
const GST_MAP_CUDA: gst::ffi::GstMapFlags = gst::ffi::GST_MAP_FLAG_LAST << 1;

/// Set on `gst.cuda.memory` while its maker's work may be under way (gstcudamemory.h, 1.24).
const NEED_SYNC: gst::ffi::GstMemoryFlags = gst::ffi::GST_MEMORY_FLAG_LAST << 2;

/// The memory of `buffer`, where it is one piece and on a GPU.
fn memory_on_device(buffer: &gst::BufferRef) -> Option<(*mut gst::ffi::GstMemory, &CStr)> {
    if buffer.n_memory() != 1 {
        return None;
    }
    // SAFETY: there is one, which the buffer keeps.
    unsafe {
        let memory = gst::ffi::gst_buffer_peek_memory(buffer.as_mut_ptr(), 0);
        let types = [MEMORY_TYPE, GST_CUDA_MEMORY_TYPE];
        let found = types.into_iter().find(|memory_type| {
            from_glib(gst::ffi::gst_memory_is_type(memory, memory_type.as_ptr()))
        });
        found.map(|memory_type| (memory, memory_type))
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

/// When a device address may be read.
#[derive(Clone, Copy, Debug)]
pub enum Ready {
    /// At once.
    Now,
    /// After this event.
    After(Event),
    /// After all work in the context that owns the address.
    AfterOwner,
}

impl<'a> MappedOnDevice<'a> {
    /// Maps `buffer`, that of `tensor`; `None` where it is on no GPU.
    pub(super) fn new(
        tensor: &Tensor<'a>,
        buffer: &'a gst::BufferRef,
    ) -> Result<Option<Self>, TensorError> {
        let Some((memory, memory_type)) = memory_on_device(buffer) else {
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
        let ready = if memory_type == MEMORY_TYPE {
            // SAFETY: memory of this type is a `CudaMemory`.
            match unsafe { (*memory.cast::<CudaMemory>()).wrapped.ready } {
                Some(event) => Ready::After(event),
                None => Ready::Now,
            }
        } else {
            // SAFETY: the buffer keeps the memory.
            match unsafe { (*memory).mini_object.flags } & NEED_SYNC {
                0 => Ready::Now,
                _ => Ready::AfterOwner,
            }
        };
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
