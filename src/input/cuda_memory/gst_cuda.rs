// SPDX-License-Identifier: MIT OR Apache-2.0
//! The streams of GStreamer's CUDA library (1.24 and later).
//!
//! In: a `GstMemory`. Out: the stream on which its producer works. This crate is not linked to the
//! library. If memory of the library's allocator exists, the library is loaded in the process.

use std::ffi::{c_int, c_void};

use once_cell::sync::OnceCell;

use crate::device::ForeignStream;

/// `gst_is_cuda_memory`: whether the memory is of an allocator of the library.
type IsCudaMemory = unsafe extern "C" fn(*mut gst::ffi::GstMemory) -> c_int;
/// `gst_cuda_memory_get_stream`: the memory's `GstCudaStream` (transfer none), or null for the
/// default stream.
type GetStream = unsafe extern "C" fn(*mut gst::ffi::GstMemory) -> *mut c_void;
/// `gst_cuda_stream_get_handle`: the `CUstream` of a `GstCudaStream`.
type GetHandle = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

struct Library {
    is_cuda_memory: IsCudaMemory,
    get_stream: GetStream,
    get_handle: GetHandle,
}

impl Library {
    /// The library, if it is loaded and has all functions.
    fn get() -> Option<&'static Self> {
        static LIBRARY: OnceCell<Library> = OnceCell::new();
        LIBRARY.get_or_try_init(|| Self::find().ok_or(())).ok()
    }

    #[cfg(target_os = "linux")]
    fn find() -> Option<Self> {
        use std::ffi::{CStr, c_char};

        unsafe extern "C" {
            fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
            fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
        }
        const RTLD_LAZY: c_int = 1;
        /// Only if the library is loaded already.
        const RTLD_NOLOAD: c_int = 4;
        const LIBRARY: &CStr = c"libgstcuda-1.0.so.0";

        // SAFETY: the name is a C string. `RTLD_NOLOAD` loads nothing, so no initializers run. The
        // reference that `dlopen` adds is never released, so the library stays loaded.
        let library = unsafe { dlopen(LIBRARY.as_ptr(), RTLD_LAZY | RTLD_NOLOAD) };
        if library.is_null() {
            return None;
        }
        let function = |name: &CStr| {
            // SAFETY: the library is loaded and the name is a C string.
            let function = unsafe { dlsym(library, name.as_ptr()) };
            (!function.is_null()).then_some(function)
        };
        let is_cuda_memory = function(c"gst_is_cuda_memory")?;
        let get_stream = function(c"gst_cuda_memory_get_stream")?;
        let get_handle = function(c"gst_cuda_stream_get_handle")?;
        // SAFETY: the function types are those of gstcudamemory.h and gstcudastream.h.
        unsafe {
            Some(Self {
                is_cuda_memory: std::mem::transmute::<*mut c_void, IsCudaMemory>(is_cuda_memory),
                get_stream: std::mem::transmute::<*mut c_void, GetStream>(get_stream),
                get_handle: std::mem::transmute::<*mut c_void, GetHandle>(get_handle),
            })
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn find() -> Option<Self> {
        None
    }
}

/// The stream of `memory`; `None` if the memory is not the library's or uses the default stream.
///
/// # Safety
/// `memory` must be valid. The result must be used only while `memory` exists, which owns a
/// reference to the stream.
pub(super) unsafe fn stream_of(memory: *mut gst::ffi::GstMemory) -> Option<ForeignStream> {
    let library = Library::get()?;
    // SAFETY: the caller guarantees that the memory is valid. `get_stream` is called only if the
    // memory is the library's, and `get_handle` only with a stream that is not null.
    unsafe {
        if (library.is_cuda_memory)(memory) == 0 {
            return None;
        }
        let stream = (library.get_stream)(memory);
        if stream.is_null() {
            return None;
        }
        let handle = (library.get_handle)(stream);
        (!handle.is_null()).then(|| ForeignStream::from_raw(handle))
    }
}
