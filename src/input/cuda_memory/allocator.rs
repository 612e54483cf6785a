// SPDX-License-Identifier: MIT OR Apache-2.0
//! The allocator of the plugin's device memory: how memory is created, mapped, shared and freed.
//!
//! In: a device address, with its size, its event, and a function that releases it. Out: a `GstMemory`. The memory
//! is read-only, so shared memory (`gst_memory_share`, which `gst_buffer_copy_region` uses) is a range of the
//! original device memory. A copy (`gst_memory_copy`) is in host memory of GStreamer's default allocator.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use gst::glib;
use gst::glib::translate::{IntoGlib, ToGlibPtr};
use gst::prelude::*;
use gst::subclass::prelude::*;

use super::{GST_MAP_CUDA, MEMORY_TYPE, NEED_SYNC, ready_event};
use crate::input::host_copy::HostCopy;
use nmsfilter_core::device::{Device, DeviceError, Event, Stream};

/// The function that releases device memory. It is called once, on any thread.
pub type Release = Box<dyn FnOnce() + Send + Sync>;

/// Creates a `GstMemory` for `len` bytes at the device address `address` of `device`. Readers wait for the event
/// `ready`, if there is one. `release` is called when the last reference to the memory is dropped. With [`renew`],
/// the producer can write the bytes again before that.
///
/// # Safety
/// Until `release` is called, `address` must be valid for reads of `len` bytes, and `ready` must exist.
///
/// The bytes must not be written after `ready` has completed (or, without `ready`, at any time). There is one
/// exception: after [`renew`] has returned true for the buffer that contains the memory, the bytes may be written
/// and `ready` may be recorded again, until the buffer or the memory is mapped or another reference to one of them
/// is made. Work that writes the bytes may still be pending then, if `ready` was recorded after this work.
pub unsafe fn wrap(
    device: &Arc<Device>,
    address: u64,
    len: usize,
    ready: Option<Event>,
    release: Release,
) -> gst::Memory {
    let memory = Box::new(CudaMemory {
        // SAFETY: all-zero bits are valid for `GstMemory`, a C structure. `init` initializes it below.
        parent: unsafe { MaybeUninit::zeroed().assume_init() },
        wrapped: Wrapped {
            device: device.clone(),
            address,
            len,
            ready,
            release: Some(release),
            mappings: AtomicUsize::new(0),
            host: HostCopy::default(),
        },
    });
    let memory = Box::into_raw(memory);
    // SAFETY: `CudaMemory` is `repr(C)`, and its first field is the `GstMemory` that is initialized here. The
    // `GstMemory` owns the box until `Allocator::free` drops it.
    unsafe {
        let allocator = ALLOCATOR.upcast_ref::<gst::Allocator>().to_glib_none().0;
        init(memory.cast(), allocator, null_mut(), len, 0..len, ready);
        gst::Memory::from_glib_full(memory.cast::<gst::ffi::GstMemory>())
    }
}

/// Initializes memory that is a `range` of the `maxsize` bytes of `parent`, or of this memory if `parent` is
/// null.
///
/// # Safety
/// The requirements of `gst_memory_init`: the pointers must be valid, except that `parent` may be null.
unsafe fn init(
    memory: *mut gst::ffi::GstMemory,
    allocator: *mut gst::ffi::GstAllocator,
    parent: *mut gst::ffi::GstMemory,
    maxsize: usize,
    range: Range<usize>,
    ready: Option<Event>,
) {
    let (offset, size) = (range.start, range.len());
    // The flag NEED_SYNC is for readers that do not support the event.
    let flags = gst::ffi::GST_MEMORY_FLAG_READONLY | ready.map_or(0, |_| NEED_SYNC);
    // SAFETY: the caller guarantees that the pointers are valid. The memory owns no reference to the event; the
    // caller of `wrap` keeps the event until the memory is released.
    unsafe {
        gst::ffi::gst_memory_init(memory, flags, allocator, parent, maxsize, 0, offset, size);
        if let Some(event) = ready {
            let (quark, event) = (ready_event().into_glib(), event.as_raw());
            gst::ffi::gst_mini_object_set_qdata(memory.cast(), quark, event, None);
        }
    }
}

/// Returns whether the producer of a memory may write it again. This requires that `buffer` has exactly one memory,
/// which [`wrap`] created, and that nothing else has a reference to this memory or a mapping of it. If the result
/// is true, the copy in host memory, if there is one, is marked as outdated: the next mapping makes a new copy,
/// with the existing allocation and stream.
///
/// A reader has finished with the memory when it drops its reference. If other threads have references, the result
/// is false until the last of them is dropped. Afterwards the result is true, and everything that these threads did
/// happens before the call.
///
/// A pool keeps a reference to each of its buffers, and attaches further references to frames:
///
/// ```no_run
/// use std::sync::Arc;
///
/// use gstnmsfilter::cuda::{DeviceBuffer, DriverError, OwnedEvent, Stream};
/// use gstnmsfilter::input::cuda_memory::renew;
///
/// struct Slot {
///     /// Contains the memory that `wrap` created.
///     buffer: gst::Buffer,
///     /// The objects that the memory wraps. The function that releases the memory also owns a reference.
///     owned: Arc<(DeviceBuffer, OwnedEvent)>,
/// }
///
/// /// Writes to the first free buffer, and returns a reference to it. `write` submits work to `stream` that
/// /// writes the device memory.
/// fn next(
///     pool: &mut [Slot],
///     stream: &Stream,
///     write: impl FnOnce(&DeviceBuffer) -> Result<(), DriverError>,
/// ) -> Result<Option<gst::Buffer>, DriverError> {
///     let is_free = |slot: &mut Slot| slot.buffer.get_mut().is_some_and(renew);
///     let Some(index) = pool.iter_mut().position(is_free) else { return Ok(None) };
///     let Slot { buffer, owned } = &pool[index];
///     let (memory, event) = &**owned;
///     write(memory)?;
///     stream.record(event)?;
///     Ok(Some(buffer.clone()))
/// }
/// ```
pub fn renew(buffer: &mut gst::BufferRef) -> bool {
    if buffer.n_memory() != 1 {
        return false;
    }
    let allocator: *mut gst::ffi::GstAllocator =
        ALLOCATOR.upcast_ref::<gst::Allocator>().to_glib_none().0;
    // SAFETY: the buffer has a memory with the index 0, and owns a reference to it. Memory of this allocator
    // without a parent is a `CudaMemory`.
    //
    // If the buffer's reference is the only one, no other code can make another one meanwhile: references are made
    // from references, and the buffer is borrowed exclusively. Shared memory owns a reference to its parent, so
    // there is no shared memory, either. GStreamer drops a reference with an atomic release operation, and the load
    // acquires. So everything that code with other references did, including mapping and unmapping, happens before,
    // and the exclusive reference below is the only one to the `CudaMemory`.
    unsafe {
        let memory = gst::ffi::gst_buffer_peek_memory(buffer.as_mut_ptr(), 0);
        if (*memory).allocator != allocator || !(*memory).parent.is_null() {
            return false;
        }
        let references = AtomicI32::from_ptr(&raw mut (*memory).mini_object.refcount);
        if references.load(Ordering::Acquire) != 1 {
            return false;
        }
        if wrapped(memory).mappings.load(Ordering::Acquire) != 0 {
            return false;
        }
        (*memory.cast::<CudaMemory>()).wrapped.host.discard();
    }
    true
}

/// A `GstMemory` with the wrapped device memory. Shared memory is just a `GstMemory`, whose parent is a
/// `CudaMemory`.
#[repr(C)]
struct CudaMemory {
    parent: gst::ffi::GstMemory,
    wrapped: Wrapped,
}

struct Wrapped {
    device: Arc<Device>,
    address: u64,
    len: usize,
    ready: Option<Event>,
    release: Option<Release>,
    /// The number of mappings of this memory and of memory that is shared from it.
    mappings: AtomicUsize,
    /// The copy in host memory. It is made by the first mapping without `GST_MAP_CUDA` after the memory was created
    /// or renewed.
    host: HostCopy,
}

impl Wrapped {
    fn host_copy(&self) -> Result<&[u8], DeviceError> {
        let open = || Ok(Stream::new(&self.device)?);
        let ordinal = self.device.ordinal();
        // SAFETY: the caller of `wrap` guarantees that the address is valid for reads of `len` bytes.
        unsafe { self.host.get((self.address, self.len), ordinal, self.ready, open) }
    }
}

impl Drop for Wrapped {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            release();
        }
    }
}

/// Returns the device memory that `memory` or its parent wraps.
///
/// # Safety
/// `memory` must be valid memory of this allocator as long as the result is used.
unsafe fn wrapped<'a>(memory: *mut gst::ffi::GstMemory) -> &'a Wrapped {
    // SAFETY: memory of this allocator without a parent is a `CudaMemory`, and shared memory owns a reference to
    // its parent.
    unsafe { &(*root(memory).cast::<CudaMemory>()).wrapped }
}

/// Returns the parent of shared memory, or `memory` itself if it is not shared.
///
/// # Safety
/// `memory` must be valid.
unsafe fn root(memory: *mut gst::ffi::GstMemory) -> *mut gst::ffi::GstMemory {
    // SAFETY: the caller guarantees that the memory is valid.
    let parent = unsafe { (*memory).parent };
    if parent.is_null() { memory } else { parent }
}

/// The `GstMemoryMapFunction`. Returns the address of the parent's first byte; GStreamer adds the offset of
/// `memory`.
unsafe extern "C" fn map(
    memory: *mut gst::ffi::GstMemory,
    _maxsize: usize,
    flags: gst::ffi::GstMapFlags,
) -> *mut c_void {
    // SAFETY: GStreamer calls this function for memory of this allocator, to which its caller owns a reference.
    let wrapped = unsafe { wrapped(memory) };
    let address = if flags & GST_MAP_CUDA != 0 {
        wrapped.address as *mut c_void
    } else {
        match wrapped.host_copy() {
            Ok(bytes) => bytes.as_ptr().cast_mut().cast(),
            Err(error) => {
                gst::warning!(gst::CAT_RUST, "memory of {:?}: {error}", wrapped.device);
                return null_mut();
            }
        }
    };
    wrapped.mappings.fetch_add(1, Ordering::Relaxed);
    address
}

/// The `GstMemoryUnmapFunction`, which is called once per mapping.
unsafe extern "C" fn unmap(memory: *mut gst::ffi::GstMemory) {
    // SAFETY: GStreamer calls this function for memory of this allocator, to which its caller owns a reference.
    let wrapped = unsafe { wrapped(memory) };
    wrapped.mappings.fetch_sub(1, Ordering::Release);
}

/// The `GstMemoryShareFunction`. Shares `size` bytes of `memory` starting at `offset`, or all bytes from `offset`
/// on if `size` is -1.
unsafe extern "C" fn share(
    memory: *mut gst::ffi::GstMemory,
    offset: isize,
    size: isize,
) -> *mut gst::ffi::GstMemory {
    // SAFETY: GStreamer calls this function for memory of this allocator, to which its caller owns a reference.
    let (original, wrapped) = unsafe { (&*memory, wrapped(memory)) };
    let end = original.offset + original.size;
    let start = original.offset.checked_add_signed(offset);
    let range = start.and_then(|start| match usize::try_from(size) {
        Ok(size) => Some(start..start.checked_add(size)?),
        Err(_) => Some(start..end),
    });
    // GStreamer's allocators allow the range to include bytes that `gst_memory_resize` excluded; this allocator
    // does, too.
    let Some(range) =
        range.filter(|range| range.start <= range.end && range.end <= original.maxsize)
    else {
        return null_mut();
    };
    // SAFETY: `init` initializes the zeroed `GstMemory`, and the allocator and the parent are valid. The
    // `GstMemory` owns the box until `Allocator::free` drops it.
    unsafe {
        let shared = Box::into_raw(Box::new(MaybeUninit::<gst::ffi::GstMemory>::zeroed())).cast();
        init(shared, original.allocator, root(memory), original.maxsize, range, wrapped.ready);
        shared
    }
}

static ALLOCATOR: LazyLock<Allocator> = LazyLock::new(|| {
    let allocator: Allocator = glib::Object::new();
    // The allocator exists until the process ends. Without this flag, the leaks tracer would report it.
    allocator.set_object_flags(gst::ObjectFlags::MAY_BE_LEAKED);
    allocator
});

glib::wrapper! {
    pub struct Allocator(ObjectSubclass<imp::Allocator>) @extends gst::Allocator, gst::Object;
}

mod imp {
    use super::*;

    #[derive(Default)]
    pub struct Allocator;

    #[glib::object_subclass]
    impl ObjectSubclass for Allocator {
        const NAME: &'static str = "GstNmsFilterCudaAllocator";
        const ALLOW_NAME_CONFLICT: bool = true;
        type Type = super::Allocator;
        type ParentType = gst::Allocator;
    }

    impl ObjectImpl for Allocator {
        fn constructed(&self) {
            self.parent_constructed();
            let obj = self.obj();
            let allocator: *mut gst::ffi::GstAllocator =
                obj.upcast_ref::<gst::Allocator>().to_glib_none().0;
            // SAFETY: the allocator is under construction, so no other code has a reference to it.
            unsafe {
                (*allocator).object.flags |= gst::ffi::GST_ALLOCATOR_FLAG_CUSTOM_ALLOC;
                (*allocator).mem_type = MEMORY_TYPE.as_ptr();
                (*allocator).mem_map = Some(map);
                (*allocator).mem_unmap = Some(unmap);
                (*allocator).mem_share = Some(share);
            }
        }
    }

    impl GstObjectImpl for Allocator {}

    // SAFETY: `alloc` returns null, which means failure, and `free` drops the boxes that `wrap` and `share` create.
    unsafe impl AllocatorImpl for Allocator {
        unsafe fn alloc(
            &self,
            _size: usize,
            _params: &gst::AllocationParams,
        ) -> *mut gst::ffi::GstMemory {
            null_mut()
        }

        unsafe fn free(&self, memory: *mut gst::ffi::GstMemory) {
            // SAFETY: the last reference was dropped, so the box has no other owner. Memory without a parent is a
            // `CudaMemory` that `wrap` created; memory with a parent is a `GstMemory` that `share` created.
            unsafe {
                if (*memory).parent.is_null() {
                    drop(Box::from_raw(memory.cast::<CudaMemory>()));
                } else {
                    drop(Box::from_raw(memory));
                }
            }
        }
    }
}
