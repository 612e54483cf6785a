// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the streams of GStreamer's CUDA library (1.24 and later).
//!
//! In: a `GstMemory`. Out: the stream in which its producer works. This crate is not linked to the library, and
//! need not be: if memory of the library's allocator exists, the process has loaded the library.

use std::ffi::{c_int, c_void};

use libloading::os::unix::{Library as SharedLibrary, RTLD_LAZY};
use once_cell::sync::OnceCell;

use nmsfilter_core::device::ForeignStream;

/// `gst_is_cuda_memory`: returns whether the memory comes from an allocator of the library.
type IsCudaMemory = unsafe extern "C" fn(*mut gst::ffi::GstMemory) -> c_int;
/// `gst_cuda_memory_get_stream`: returns the memory's `GstCudaStream` (transfer none), or null for the default
/// stream.
type GetStream = unsafe extern "C" fn(*mut gst::ffi::GstMemory) -> *mut c_void;
/// `gst_cuda_stream_get_handle`: returns the `CUstream` of a `GstCudaStream`.
type GetHandle = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

struct GstCudaLibrary {
    is_cuda_memory: IsCudaMemory,
    get_stream: GetStream,
    get_handle: GetHandle,
    /// Keeps the functions loaded.
    _library: SharedLibrary,
}

impl GstCudaLibrary {
    /// Returns the library, if it is loaded and has all functions.
    fn get() -> Option<&'static Self> {
        static LIBRARY: OnceCell<GstCudaLibrary> = OnceCell::new();
        LIBRARY.get_or_try_init(|| Self::find().ok_or(())).ok()
    }

    fn find() -> Option<Self> {
        /// Opens a library only if it is already loaded.
        const RTLD_NOLOAD: c_int = 4;
        const LIBRARY: &str = "libgstcuda-1.0.so.0";

        // SAFETY: `RTLD_NOLOAD` loads nothing, so no initializers run. The functions have these types in
        // gstcudamemory.h and gstcudastream.h.
        unsafe {
            let library = SharedLibrary::open(Some(LIBRARY), RTLD_LAZY | RTLD_NOLOAD).ok()?;
            Some(Self {
                is_cuda_memory: *library.get(b"gst_is_cuda_memory").ok()?,
                get_stream: *library.get(b"gst_cuda_memory_get_stream").ok()?,
                get_handle: *library.get(b"gst_cuda_stream_get_handle").ok()?,
                _library: library,
            })
        }
    }
}

/// Returns the stream of `memory`, or `None` if the memory does not come from the library or uses the default
/// stream.
///
/// # Safety
/// `memory` must be valid. The result may only be used while `memory`, which owns a reference to the stream,
/// exists.
pub(super) unsafe fn producer_stream(memory: *mut gst::ffi::GstMemory) -> Option<ForeignStream> {
    let library = GstCudaLibrary::get()?;
    // SAFETY: the caller guarantees that the memory is valid. `get_stream` is only called if the memory comes from
    // the library, and `get_handle` only with a stream that is not null.
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
