//! The memory's own side: how it is made, mapped, shared and freed.
//!
//! Such memory is read-only, so a part of it (`gst_memory_share`, as `gst_buffer_copy_region`
//! does) is the same memory on the GPU at an offset. A copy (`gst_memory_copy`) is ordinary host
//! memory: GStreamer copies read-only memory in order to write to it.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::{Arc, LazyLock, OnceLock};

use gst::glib;
use gst::glib::translate::{IntoGlib, ToGlibPtr};
use gst::prelude::*;
use gst::subclass::prelude::*;

use super::{GST_MAP_CUDA, MEMORY_TYPE, NEED_SYNC, ready_event};
use crate::device::{Device, DeviceBuffer, DriverError, Event, Stream};

/// What is to be done with a device address that nobody needs any more.
pub type Release = Box<dyn FnOnce() + Send + Sync>;

/// Makes memory of `len` bytes at the `address` of `device`. Readers wait for `ready`, where there
/// is such an event; `release` is called when the last reference is gone.
///
/// # Safety
/// Until `release` is called the bytes must be there, nobody may write to them once `ready` has
/// come, and `ready` must live.
pub unsafe fn wrap(
    device: &Arc<Device>,
    address: u64,
    len: usize,
    ready: Option<Event>,
    release: Release,
) -> gst::Memory {
    let memory = Box::new(CudaMemory {
        // SAFETY: plain data, of which `gst_memory_init` fills in what matters.
        parent: unsafe { MaybeUninit::zeroed().assume_init() },
        wrapped: Wrapped {
            device: device.clone(),
            address,
            len,
            ready,
            release: Some(release),
            host: OnceLock::new(),
        },
    });
    let memory = Box::into_raw(memory);
    // SAFETY: a `CudaMemory` begins with the `GstMemory` that is initialized here, which then owns
    // the box; `Allocator::free` takes it back.
    unsafe {
        let allocator = ALLOCATOR.upcast_ref::<gst::Allocator>().to_glib_none().0;
        init(memory.cast(), allocator, null_mut(), len, 0..len, ready);
        gst::Memory::from_glib_full(memory.cast::<gst::ffi::GstMemory>())
    }
}

/// Initializes memory that is `range` of the `maxsize` bytes of `parent`, or of its own where that
/// is null.
///
/// # Safety
/// As for `gst_memory_init`.
unsafe fn init(
    memory: *mut gst::ffi::GstMemory,
    allocator: *mut gst::ffi::GstAllocator,
    parent: *mut gst::ffi::GstMemory,
    maxsize: usize,
    range: Range<usize>,
    ready: Option<Event>,
) {
    let (offset, size) = (range.start, range.len());
    // Readers that do not know of the event wait by GStreamer's own protocol.
    let flags = gst::ffi::GST_MEMORY_FLAG_READONLY | ready.map_or(0, |_| NEED_SYNC);
    // SAFETY: the caller answers for the pointers.
    unsafe {
        gst::ffi::gst_memory_init(memory, flags, allocator, parent, maxsize, 0, offset, size);
        if let Some(event) = ready {
            let (quark, event) = (ready_event().into_glib(), event.as_raw());
            gst::ffi::gst_mini_object_set_qdata(memory.cast(), quark, event, None);
        }
    }
}

/// Makes memory of a buffer in which work is done; it goes back to `release` in the end.
pub fn from_buffer(
    buffer: DeviceBuffer,
    len: usize,
    release: impl FnOnce(DeviceBuffer) + Send + Sync + 'static,
) -> gst::Memory {
    assert!(len <= buffer.len(), "the memory is as large as is claimed");
    let (device, address) = (buffer.device().clone(), buffer.address());
    // SAFETY: the buffer is there until it is released, and nobody else has it.
    unsafe { wrap(&device, address, len, None, Box::new(move || release(buffer))) }
}

/// `GstMemory` and what is wrapped. Parts of it are a `GstMemory` alone, whose parent is this.
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
    /// The bytes, once somebody has asked for them on the host.
    host: OnceLock<Result<Box<[u8]>, DriverError>>,
}

impl Wrapped {
    fn host_copy(&self) -> Result<&[u8], DriverError> {
        let copy = || {
            let stream = Stream::new(&self.device)?;
            if let Some(ready) = self.ready {
                stream.wait_for(ready)?;
            }
            let mut bytes = vec![0; self.len].into_boxed_slice();
            // SAFETY: `wrap`'s caller answers for the bytes.
            unsafe { stream.download(self.address, &mut bytes) }?;
            Ok(bytes)
        };
        self.host.get_or_init(copy).as_deref().map_err(Clone::clone)
    }
}

impl Drop for Wrapped {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            release();
        }
    }
}

/// What the memory wraps, or the memory that it is a part of.
///
/// # Safety
/// It must be memory of this allocator, and be there for as long as the result is used.
unsafe fn wrapped<'a>(memory: *mut gst::ffi::GstMemory) -> &'a Wrapped {
    // SAFETY: the allocator makes no other memory; a part holds a reference to its parent.
    unsafe { &(*root(memory).cast::<CudaMemory>()).wrapped }
}

/// The memory that this is a part of, or itself.
///
/// # Safety
/// It must be memory.
unsafe fn root(memory: *mut gst::ffi::GstMemory) -> *mut gst::ffi::GstMemory {
    // SAFETY: the caller answers for it.
    let parent = unsafe { (*memory).parent };
    if parent.is_null() { memory } else { parent }
}

/// Gives the address of the first byte there is; GStreamer adds the memory's offset.
unsafe extern "C" fn map(
    memory: *mut gst::ffi::GstMemory,
    _maxsize: usize,
    flags: gst::ffi::GstMapFlags,
) -> *mut c_void {
    // SAFETY: GStreamer passes memory of this allocator, to which its caller has a reference.
    let wrapped = unsafe { wrapped(memory) };
    if flags & GST_MAP_CUDA != 0 {
        return wrapped.address as *mut c_void;
    }
    match wrapped.host_copy() {
        Ok(bytes) => bytes.as_ptr().cast_mut().cast(),
        Err(error) => {
            gst::warning!(gst::CAT_RUST, "memory of {:?}: {error}", wrapped.device);
            null_mut()
        }
    }
}

unsafe extern "C" fn unmap(_memory: *mut gst::ffi::GstMemory) {}

/// `size` bytes of `memory` from `offset` on, as memory; all of the rest where `size` is -1.
unsafe extern "C" fn share(
    memory: *mut gst::ffi::GstMemory,
    offset: isize,
    size: isize,
) -> *mut gst::ffi::GstMemory {
    // SAFETY: GStreamer passes memory of this allocator, to which its caller has a reference.
    let (of, wrapped) = unsafe { (&*memory, wrapped(memory)) };
    let end = of.offset + of.size;
    let start = of.offset.checked_add_signed(offset);
    let range = start.and_then(|start| match usize::try_from(size) {
        Ok(size) => Some(start..start.checked_add(size)?),
        Err(_) => Some(start..end),
    });
    // As for any memory, what was cut off by a resize can be had back.
    let Some(range) = range.filter(|range| range.start <= range.end && range.end <= of.maxsize)
    else {
        return null_mut();
    };
    // SAFETY: plain data, initialized next; `Allocator::free` takes the box back.
    unsafe {
        let shared = Box::into_raw(Box::new(MaybeUninit::<gst::ffi::GstMemory>::zeroed())).cast();
        init(shared, of.allocator, root(memory), of.maxsize, range, wrapped.ready);
        shared
    }
}

static ALLOCATOR: LazyLock<Allocator> = LazyLock::new(|| {
    let allocator: Allocator = glib::Object::new();
    // Allocators live as long as the process.
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
            // SAFETY: nobody has the allocator yet.
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

    // SAFETY: it frees what `wrap` and `share` have made.
    unsafe impl AllocatorImpl for Allocator {
        unsafe fn alloc(
            &self,
            _size: usize,
            _params: &gst::AllocationParams,
        ) -> *mut gst::ffi::GstMemory {
            null_mut()
        }

        unsafe fn free(&self, memory: *mut gst::ffi::GstMemory) {
            // SAFETY: this is the last reference to a box that `share` has made where there is a
            // parent, to which GStreamer has just dropped its reference, and `wrap` where there is
            // none.
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
