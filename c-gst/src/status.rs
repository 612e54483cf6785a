// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of a function, and the text of an error.

use std::cell::RefCell;
use std::ffi::{CString, c_char};

use crate::border::{self, Failure};

/// The result of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// Success.
    Ok = 0,
    /// An argument is NULL, or a field of a structure has no valid value.
    InvalidArgument = 1,
    /// GStreamer cannot be initialized, or is older than 1.20.
    Gstreamer = 2,
    /// The memory of a tensor is smaller than its shape requires, or not aligned for its elements.
    Tensor = 3,
    /// The GPU cannot be used, or a call of its driver failed.
    Device = 4,
    /// A defect of the library. Report it with the text of the error.
    Internal = 5,
}

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// The text of the error of the last function that returned another status than NMSFILTER_GST_STATUS_OK on this thread:
/// what was expected, what came, and what to do. It is valid until another function fails on this thread. Empty if none
/// has failed.
#[unsafe(no_mangle)]
pub extern "C" fn nmsfilter_gst_error_text() -> *const c_char {
    ERROR.with_borrow(|text| text.as_ptr())
}

/// Runs the body of a function.
pub fn run(function: impl FnOnce() -> Result<(), Failure>) -> Status {
    match border::guard(function) {
        Ok(()) => Status::Ok,
        Err(failure) => {
            ERROR.set(failure.c_text());
            failure.status
        }
    }
}
