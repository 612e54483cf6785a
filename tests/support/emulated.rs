// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions that only the emulated driver has (kernels/emulate/libcuda.cpp): contexts and streams
//! of other producers, and pending work on them.

use std::ffi::{CStr, c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;

use gst::glib::translate::IntoGlib;
use nmsfilter_core::device::Driver;

use super::library::LoadedLibrary;
use super::skip::skip;

/// The emulated driver, which is loaded.
#[derive(Clone, Copy)]
pub struct Emulated {
    library: LoadedLibrary,
}

/// A `CUcontext`, `CUstream` or `CUevent`.
pub type Handle = *mut c_void;

impl Emulated {
    /// Returns the driver. If there is no driver, or a different one, returns `None` and reports a
    /// skip.
    pub fn get() -> Option<Self> {
        let library = Driver::get().ok().and_then(|_| LoadedLibrary::loaded("libcuda.so.1"));
        let found = library.filter(|library| library.has(c"nmsfilter_emulated_context"));
        if found.is_none() {
            skip("the emulated driver (kernels/emulate/libcuda.sh)");
        }
        found.map(|library| Self { library })
    }

    /// Returns a function of the library, which must have the type `T`.
    fn function<T: Copy>(self, name: &CStr) -> T {
        // SAFETY: callers pass the function's type.
        unsafe { self.library.function(name) }
    }

    /// Creates a context on a GPU, like a producer that calls `cuCtxCreate`.
    pub fn context(self, ordinal: c_int) -> Handle {
        type Create = unsafe extern "C" fn(c_int) -> Handle;
        // SAFETY: libcuda.cpp declares the function with this type.
        unsafe { self.function::<Create>(c"nmsfilter_emulated_context")(ordinal) }
    }

    /// Calls `act` while `context` is current.
    pub fn within<T>(self, context: Handle, act: impl FnOnce() -> T) -> T {
        let driver = Driver::get().unwrap();
        // SAFETY: the context is alive, and the context that is pushed is popped.
        unsafe {
            driver.cuCtxPushCurrent_v2(context.cast()).unwrap();
            let done = act();
            driver.cuCtxPopCurrent_v2(&mut null_mut()).unwrap();
            done
        }
    }

    /// Creates a stream of `context`.
    pub fn stream(self, context: Handle) -> Handle {
        let mut stream = null_mut();
        self.within(context, || {
            // SAFETY: the address points to a handle.
            unsafe { Driver::get().unwrap().cuStreamCreate(&mut stream, 0) }.unwrap();
        });
        stream.cast()
    }

    /// Returns an event that is recorded after the current work on `stream`, which belongs to
    /// `context`.
    pub fn event(self, context: Handle, stream: Handle) -> Handle {
        type Create = unsafe extern "C" fn(*mut Handle, c_int) -> c_int;
        type Record = unsafe extern "C" fn(Handle, Handle) -> c_int;
        let mut event = null_mut();
        self.within(context, || {
            // SAFETY: the driver declares the functions with these types, and the address points to
            // a handle.
            unsafe {
                assert_eq!(self.function::<Create>(c"cuEventCreate")(&mut event, 0), 0);
                assert_eq!(self.function::<Record>(c"cuEventRecord")(event, stream), 0);
            }
        });
        event
    }

    /// Adds a copy of `bytes` to `stream`. It is executed only when someone waits for it.
    pub fn pending_copy(self, stream: Handle, to: u64, bytes: &[u8]) {
        type Copy = unsafe extern "C" fn(Handle, u64, *const u8, usize);
        let copy = self.function::<Copy>(c"nmsfilter_emulated_pending_copy");
        // SAFETY: libcuda.cpp declares the function with this type.
        unsafe { copy(stream, to, bytes.as_ptr(), bytes.len()) };
    }

    /// Sets the owner that the driver reports for the allocation at `address`. If it is null, the
    /// driver reports none.
    pub fn set_owner(self, address: u64, owner: Handle) {
        type Set = unsafe extern "C" fn(u64, Handle);
        // SAFETY: libcuda.cpp declares the function with this type.
        unsafe { self.function::<Set>(c"nmsfilter_emulated_set_owner")(address, owner) };
    }

    /// Sets the address with which kernels access the allocation at `address`. If it is 0, kernels
    /// cannot access it.
    pub fn set_device_pointer(self, address: u64, pointer: u64) {
        type Set = unsafe extern "C" fn(u64, u64);
        let set = self.function::<Set>(c"nmsfilter_emulated_set_device_pointer");
        // SAFETY: libcuda.cpp declares the function with this type.
        unsafe { set(address, pointer) };
    }

    fn count(self, name: &CStr) -> c_int {
        type Count = unsafe extern "C" fn() -> c_int;
        // SAFETY: libcuda.cpp declares the function with this type.
        unsafe { self.function::<Count>(name)() }
    }

    /// Returns how often this thread has waited for all work of a context.
    pub fn context_waits(self) -> c_int {
        self.count(c"nmsfilter_emulated_context_waits")
    }

    /// Returns the priority of the stream in which this thread's last launch ran.
    pub fn launch_priority(self) -> c_int {
        self.count(c"nmsfilter_emulated_launch_priority")
    }

    /// Returns the number of bytes of device memory that this thread has allocated and not freed.
    pub fn device_bytes(self) -> i64 {
        // SAFETY: libcuda.cpp declares the function with this type.
        unsafe {
            self.function::<unsafe extern "C" fn() -> i64>(c"nmsfilter_emulated_device_bytes")()
        }
    }

    /// Returns the number of this thread's launches in which the candidates of an image were
    /// sorted.
    pub fn sorted_launches(self) -> c_int {
        self.count(c"nmsfilter_emulated_sorted_launches")
    }

    /// Returns the number of this thread's launches of the kernels of `kernels/resample.cu`.
    pub fn resample_launches(self) -> c_int {
        self.count(c"nmsfilter_emulated_resample_launches")
    }

    /// Returns the number of references to primary contexts.
    pub fn contexts_in_use(self) -> c_int {
        self.count(c"nmsfilter_emulated_contexts_in_use")
    }
}

/// The stub of GStreamer's CUDA library (kernels/emulate/gstcuda.cpp), which is loaded.
pub struct GstCuda(Emulated);

impl GstCuda {
    /// Loads the stub from the folder that `NMSFILTER_EMULATED_CUDA` names.
    pub fn load() -> Self {
        let folder = std::env::var("NMSFILTER_EMULATED_CUDA").expect("it names the folder");
        let path = Path::new(&folder).join("gstcuda/libgstcuda-1.0.so.0");
        // SAFETY: the only initializers of the library are for its own tables.
        Self(Emulated { library: unsafe { LoadedLibrary::open(&path) } })
    }

    /// Makes `memory` a `GstCudaMemory` of this stream. A null pointer is the default stream.
    pub fn set_stream(&self, memory: &gst::MemoryRef, stream: Handle) {
        type Set = unsafe extern "C" fn(*const gst::ffi::GstMemory, Handle);
        let set = self.0.function::<Set>(c"nmsfilter_emulated_set_stream");
        // SAFETY: gstcuda.cpp declares the function with this type. The memory is used only as a
        // key.
        unsafe { set(memory.as_ptr(), stream) };
    }
}

/// Attaches an event for which readers of the memory wait, as any producer of device memory can:
/// see `input::cuda_memory::READY_EVENT`.
pub fn set_ready_event(memory: &gst::MemoryRef, event: Handle) {
    let quark = gst::glib::Quark::from_str("nmsfilter.cuda.ready-event");
    let object = memory.as_ptr() as *mut gst::ffi::GstMiniObject;
    // SAFETY: a memory is a mini object, and does not take ownership of the event.
    unsafe {
        gst::ffi::gst_mini_object_set_qdata(object, quark.into_glib(), event, None);
    }
}
