//! The memory's own side: made, mapped, let go.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::{Arc, LazyLock, OnceLock};

use gst::glib;
use gst::glib::translate::ToGlibPtr;
use gst::prelude::*;
use gst::subclass::prelude::*;

use super::{GST_MAP_CUDA, MEMORY_TYPE};
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
    let flags = gst::ffi::GST_MEMORY_FLAG_READONLY;
    // SAFETY: a `CudaMemory` begins with the `GstMemory` that is initialised here, which then owns
    // the box; `Allocator::free` takes it back.
    unsafe {
        let allocator = ALLOCATOR.upcast_ref::<gst::Allocator>().to_glib_none().0;
        gst::ffi::gst_memory_init(memory.cast(), flags, allocator, null_mut(), len, 0, 0, len);
        gst::Memory::from_glib_full(memory.cast::<gst::ffi::GstMemory>())
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

/// `GstMemory` and what is wrapped.
#[repr(C)]
pub(super) struct CudaMemory {
    parent: gst::ffi::GstMemory,
    pub wrapped: Wrapped,
}

pub(super) struct Wrapped {
    device: Arc<Device>,
    address: u64,
    len: usize,
    pub ready: Option<Event>,
    release: Option<Release>,
    /// The bytes, once somebody has asked for them on the host.
    host: OnceLock<Result<Box<[u8]>, DriverError>>,
}

impl Wrapped {
    fn on_host(&self) -> Result<&[u8], DriverError> {
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

unsafe extern "C" fn map(
    memory: *mut gst::ffi::GstMemory,
    _maxsize: usize,
    flags: gst::ffi::GstMapFlags,
) -> *mut c_void {
    // SAFETY: the allocator makes no other memory; the reference that is mapped keeps it.
    let wrapped = unsafe { &(*memory.cast::<CudaMemory>()).wrapped };
    if flags & GST_MAP_CUDA != 0 {
        return wrapped.address as *mut c_void;
    }
    match wrapped.on_host() {
        Ok(bytes) => bytes.as_ptr().cast_mut().cast(),
        Err(error) => {
            gst::warning!(gst::CAT_RUST, "memory of {:?}: {error}", wrapped.device);
            null_mut()
        }
    }
}

unsafe extern "C" fn unmap(_memory: *mut gst::ffi::GstMemory) {}

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
            }
        }
    }

    impl GstObjectImpl for Allocator {}

    // SAFETY: it frees what `wrap` has made.
    unsafe impl AllocatorImpl for Allocator {
        unsafe fn alloc(
            &self,
            _size: usize,
            _params: &gst::AllocationParams,
        ) -> *mut gst::ffi::GstMemory {
            null_mut()
        }

        unsafe fn free(&self, memory: *mut gst::ffi::GstMemory) {
            // SAFETY: `wrap` made the box, and this is its last reference.
            drop(unsafe { Box::from_raw(memory.cast::<CudaMemory>()) });
        }
    }
}
