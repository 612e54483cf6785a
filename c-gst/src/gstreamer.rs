// SPDX-License-Identifier: MIT OR Apache-2.0
//! GStreamer itself: its initialization, its version, and pointers to its buffers.

use std::sync::OnceLock;

use gst::glib::translate::from_glib;
use gstnmsfilter::input::custom_meta;

use crate::Status;
use crate::border::{Failure, check_pointer};
use crate::status::run;

/// The oldest GStreamer that has metadata of custom types.
const OLDEST: (u32, u32) = (1, 20);

/// Initializes GStreamer if the program has not done so, and registers the metadata of tensors. The other functions call
/// this, too: a program calls it to learn early whether GStreamer can be used.
#[unsafe(no_mangle)]
pub extern "C" fn nmsfilter_gst_init() -> Status {
    run(init)
}

/// # Errors
/// If GStreamer cannot be initialized or is too old.
pub fn init() -> Result<(), Failure> {
    static DONE: OnceLock<()> = OnceLock::new();
    if DONE.get().is_some() {
        return Ok(());
    }
    let (major, minor, micro, _) = gst::version();
    if (major, minor) < OLDEST {
        let (oldest_major, oldest_minor) = OLDEST;
        return Err(Failure::new(
            Status::Gstreamer,
            format!(
                "expected GStreamer {oldest_major}.{oldest_minor} or later, which has metadata of custom types, got \
                 {major}.{minor}.{micro}; install a newer one"
            ),
        ));
    }
    gst::init().map_err(|error| {
        Failure::new(Status::Gstreamer, format!("GStreamer cannot be initialized: {error}"))
    })?;
    custom_meta::register();
    // Another thread may have set it meanwhile.
    let _ = DONE.set(());
    Ok(())
}

/// The buffer at `pointer`, for reading.
///
/// # Errors
/// If it is NULL, or not a buffer.
///
/// # Safety
/// `pointer` is NULL, or a mini object that exists and is not written during `'a`.
pub unsafe fn buffer<'a>(pointer: *mut gst::ffi::GstBuffer) -> Result<&'a gst::BufferRef, Failure> {
    check_pointer(pointer, "buffer")?;
    // SAFETY: every mini object begins with its type.
    let found = unsafe { (*pointer).mini_object.type_ };
    // SAFETY: the function has no preconditions.
    if found != unsafe { gst::ffi::gst_buffer_get_type() } {
        return Err(Failure::argument("buffer: expected a GstBuffer, got another object"));
    }
    // SAFETY: it is a buffer; the caller guarantees the rest.
    Ok(unsafe { gst::BufferRef::from_ptr(pointer) })
}

/// The buffer at `pointer`, for writing its metadata.
///
/// # Errors
/// If it is NULL, not a buffer, or not writable.
///
/// # Safety
/// `pointer` is NULL, or a mini object that exists and that no other code uses during `'a`.
pub unsafe fn writable_buffer<'a>(
    pointer: *mut gst::ffi::GstBuffer,
) -> Result<&'a mut gst::BufferRef, Failure> {
    // SAFETY: the caller guarantees it.
    unsafe { buffer(pointer) }?;
    // SAFETY: it is a buffer.
    if !unsafe { from_glib(gst::ffi::gst_mini_object_is_writable(pointer.cast())) } {
        return Err(Failure::argument(
            "buffer: expected a writable GstBuffer, got one with several references; call gst_buffer_make_writable",
        ));
    }
    // SAFETY: it is a buffer with one reference, which the caller has.
    Ok(unsafe { gst::BufferRef::from_mut_ptr(pointer) })
}
