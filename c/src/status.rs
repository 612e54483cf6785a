// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of a function, and the text of an error.

use std::cell::RefCell;
use std::ffi::{CString, c_char};

use nmsfilter_core::nms::{DescriptionError, EngineError, NmsError};

use crate::border::{self, Failure};
use crate::words::in_c;

/// The result of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// Success.
    Ok = 0,
    /// An argument is NULL, or a field of a structure has no valid value.
    InvalidArgument = 1,
    /// The decoder is unknown, no decoder reads the tensors, or the text is not a layout.
    Decoder = 2,
    /// The memory of a tensor cannot be read: it is smaller than its shape requires, not aligned for its elements, or not in
    /// the memory that the structure names.
    Tensor = 3,
    /// The backend cannot do this. The text names a backend that can.
    Unsupported = 4,
    /// The GPU cannot be used, or a call of its driver failed.
    Device = 5,
    /// A defect of the library. Report it with the text of the error, and free the handle.
    Internal = 6,
}

impl From<NmsError> for Failure {
    fn from(error: NmsError) -> Self {
        let status = match &error {
            NmsError::Param(error) => return error.clone().into(),
            NmsError::UnknownDecoder { .. } | NmsError::Choice(_) => Status::Decoder,
            NmsError::Engine(error) if error.is_device_error() => Status::Device,
            NmsError::Engine(
                EngineError::Unsupported { .. }
                | EngineError::NeedsHost { .. }
                | EngineError::ImagesOnDevice { .. }
                | EngineError::Overlap { .. }
                | EngineError::Method(_),
            ) => Status::Unsupported,
            NmsError::Engine(
                EngineError::Tensor(_)
                | EngineError::OtherDevice { .. }
                | EngineError::Address(_)
                | EngineError::UnknownProducer { .. },
            ) => Status::Tensor,
            NmsError::Engine(_) => Status::Decoder,
            _ => Status::InvalidArgument,
        };
        Self::new(status, in_c(&error))
    }
}

impl From<DescriptionError> for Failure {
    fn from(error: DescriptionError) -> Self {
        Self::new(Status::Decoder, error)
    }
}

thread_local! {
    /// The text of an error without a handle.
    static ERROR: RefCell<CString> = RefCell::default();
}

/// The text of the last error without a handle on this thread.
pub fn thread_error() -> *const c_char {
    ERROR.with_borrow(|text| text.as_ptr())
}

/// Runs the body of a function that has no handle.
pub fn run(function: impl FnOnce() -> Result<(), Failure>) -> Status {
    match border::guard(function) {
        Ok(()) => Status::Ok,
        Err(failure) => {
            ERROR.set(failure.c_text());
            failure.status
        }
    }
}

/// The error state of a handle.
#[derive(Default)]
pub struct Errors {
    text: CString,
    /// True if a panic has left the content in an unknown state.
    is_broken: bool,
}

impl Errors {
    /// The text of the handle's last error.
    pub fn text(&self) -> *const c_char {
        self.text.as_ptr()
    }
}

/// A handle, which keeps the error of its last function that failed.
pub trait Handle: Sized {
    fn errors(&mut self) -> &mut Errors;

    /// Runs the body of a function of the handle at `handle`.
    ///
    /// # Safety
    /// `handle` is NULL, or valid and not used elsewhere meanwhile.
    unsafe fn run(
        handle: *mut Self,
        function: impl FnOnce(&mut Self) -> Result<(), Failure>,
    ) -> Status {
        // SAFETY: the caller guarantees it.
        let Some(handle) = (unsafe { handle.as_mut() }) else {
            return run(|| Err(Failure::argument("the handle: expected a pointer, got NULL")));
        };
        if handle.errors().is_broken {
            // The text of the defect remains.
            return Status::Internal;
        }
        match border::guard(|| function(handle)) {
            Ok(()) => Status::Ok,
            Err(failure) => {
                let errors = handle.errors();
                errors.text = failure.c_text();
                errors.is_broken = failure.status == Status::Internal;
                failure.status
            }
        }
    }
}

/// Makes a handle and stores it at `to`, where NULL is stored if it cannot be made.
///
/// # Safety
/// `to` is NULL or valid for writes.
pub unsafe fn create<T>(to: *mut *mut T, new: impl FnOnce() -> Result<T, Failure>) -> Status {
    run(|| {
        border::check_pointer(to, "the handle")?;
        // SAFETY: it is not NULL; the caller guarantees the rest.
        unsafe { *to = std::ptr::null_mut() };
        let handle = Box::into_raw(Box::new(new()?));
        // SAFETY: as above.
        unsafe { *to = handle };
        Ok(())
    })
}

/// Frees a handle that [`create`] made.
///
/// # Safety
/// `handle` is NULL, or was made by [`create`], and is not used any more.
pub unsafe fn free<T>(handle: *mut T) {
    if !handle.is_null() {
        // There is no result to report a defect with.
        let _ = border::guard(|| {
            // SAFETY: the handle was made of a box, and the caller does not use it any more.
            drop(unsafe { Box::from_raw(handle) });
            Ok(())
        });
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[derive(Default)]
    struct Example(Errors);

    impl Handle for Example {
        fn errors(&mut self) -> &mut Errors {
            &mut self.0
        }
    }

    #[test]
    fn a_handle_is_not_used_after_a_defect() {
        let mut example = Example::default();
        // SAFETY: the handle is valid.
        let mut run = |fail: bool| unsafe {
            Example::run(&mut example, |_| if fail { panic!("a defect") } else { Ok(()) })
        };
        assert_eq!(run(false), Status::Ok);
        assert_eq!(run(true), Status::Internal);
        assert_eq!(run(false), Status::Internal);
        // SAFETY: the text belongs to the handle.
        let text = unsafe { CStr::from_ptr(example.0.text()) };
        assert_eq!(text, c"a defect of this library: a defect; report it");
    }
}
