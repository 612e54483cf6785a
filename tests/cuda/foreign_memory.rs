// SPDX-License-Identifier: MIT OR Apache-2.0
//! Test double for the memory of GStreamer's CUDA elements. Its type is `gst.cuda.memory` or any
//! other.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use gst::glib;
use gst::glib::translate::ToGlibPtr;
use gst::prelude::*;
use gst::subclass::prelude::*;
use nmsfilter_core::device::{Device, DeviceBuffer, PinnedBuffer, Stream};

const GST_MAP_CUDA: gst::ffi::GstMapFlags = gst::ffi::GST_MAP_FLAG_LAST << 1;
const NEED_SYNC: gst::ffi::GstMemoryFlags = gst::ffi::GST_MEMORY_FLAG_LAST << 2;

#[repr(C)]
struct Foreign {
    parent: gst::ffi::GstMemory,
    data: DeviceBuffer,
}

unsafe extern "C" fn map(
    memory: *mut gst::ffi::GstMemory,
    _maxsize: usize,
    flags: gst::ffi::GstMapFlags,
) -> *mut c_void {
    assert_ne!(flags & GST_MAP_CUDA, 0, "the memory is not mapped for the host");
    // SAFETY: all memory of this allocator is of the type `Foreign`.
    unsafe { (*memory.cast::<Foreign>()).data.address() as *mut c_void }
}

unsafe extern "C" fn unmap(_memory: *mut gst::ffi::GstMemory) {}

mod imp {
    use super::*;

    #[derive(Default)]
    pub struct Allocator;

    #[glib::object_subclass]
    impl ObjectSubclass for Allocator {
        const NAME: &'static str = "TestForeignCudaAllocator";
        type Type = super::Allocator;
        type ParentType = gst::Allocator;
    }

    impl ObjectImpl for Allocator {}
    impl GstObjectImpl for Allocator {}

    // SAFETY: `free` releases what `buffer_of_type` allocates.
    unsafe impl AllocatorImpl for Allocator {
        unsafe fn free(&self, memory: *mut gst::ffi::GstMemory) {
            // SAFETY: `buffer_of_type` made the pointer from a box.
            drop(unsafe { Box::from_raw(memory.cast::<Foreign>()) });
        }
    }
}

glib::wrapper! {
    pub struct Allocator(ObjectSubclass<imp::Allocator>) @extends gst::Allocator, gst::Object;
}

/// Returns an allocator whose memory has this type. The allocator lives as long as the process.
fn allocator(memory_type: &'static CStr) -> *mut gst::ffi::GstAllocator {
    let allocator: Allocator = glib::Object::new();
    let raw: *mut gst::ffi::GstAllocator = allocator.upcast_ref::<gst::Allocator>().to_glib_full();
    // SAFETY: nothing else refers to the allocator yet.
    unsafe {
        (*raw).mem_type = memory_type.as_ptr();
        (*raw).mem_map = Some(map);
        (*raw).mem_unmap = Some(unmap);
    }
    raw
}

/// Copies `bytes` to device memory. With `needs_sync`, the memory has the flag for pending work.
pub fn buffer(device: &Arc<Device>, bytes: &[u8], needs_sync: bool) -> gst::Buffer {
    buffer_of_type(c"gst.cuda.memory", device, bytes, needs_sync).0
}

/// Copies `bytes` to device memory of any type, and returns its device address, too.
pub fn buffer_of_type(
    memory_type: &'static CStr,
    device: &Arc<Device>,
    bytes: &[u8],
    needs_sync: bool,
) -> (gst::Buffer, u64) {
    let data = DeviceBuffer::new(device, bytes.len()).unwrap();
    let address = data.address();
    let (stream, pinned) =
        (Stream::new(device).unwrap(), PinnedBuffer::new(device, bytes.len()).unwrap());
    // SAFETY: the pinned memory has as many bytes as `bytes`.
    unsafe { pinned.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    stream.upload(&pinned, &data, bytes.len()).unwrap();
    stream.synchronize().unwrap();
    // SAFETY: `GstMemory` is plain data, and its fields are set below.
    let parent = unsafe { std::mem::zeroed() };
    let memory = Box::into_raw(Box::new(Foreign { parent, data }));
    let len = bytes.len();
    let allocator = allocator(memory_type);
    // SAFETY: a `Foreign` begins with the `GstMemory` that is initialized here.
    let memory = unsafe {
        gst::ffi::gst_memory_init(memory.cast(), 0, allocator, null_mut(), len, 0, 0, len);
        let raw: *mut gst::ffi::GstMemory = memory.cast();
        if needs_sync {
            (*raw).mini_object.flags |= NEED_SYNC;
        }
        gst::Memory::from_glib_full(raw)
    };
    let mut buffer = gst::Buffer::new();
    buffer.make_mut().append_memory(memory);
    (buffer, address)
}
