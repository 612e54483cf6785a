// SPDX-License-Identifier: MIT OR Apache-2.0
//! A structure of DeepStream in memory.
//!
//! In: an address and offsets of [`layout`](super::layout). Out: values of fields. Whether the field and its type are
//! right is the caller's responsibility.

use std::ffi::c_void;
use std::ptr::NonNull;

/// A structure of DeepStream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record(pub NonNull<c_void>);

impl Record {
    pub fn as_ptr(self) -> *mut c_void {
        self.0.as_ptr()
    }

    /// The address of the field at `offset`.
    ///
    /// # Safety
    /// The structure must exist and have a field there.
    pub unsafe fn at(self, offset: usize) -> *mut c_void {
        // SAFETY: the field is inside of the structure.
        unsafe { self.0.as_ptr().byte_add(offset) }
    }

    /// The value of the field at `offset`.
    ///
    /// # Safety
    /// As [`at`](Self::at), and the field must have the type `T`.
    pub unsafe fn read<T: Copy>(self, offset: usize) -> T {
        // SAFETY: the caller guarantees the field and its type; DeepStream aligns fields.
        unsafe { self.at(offset).cast::<T>().read() }
    }

    /// Sets the field at `offset`.
    ///
    /// # Safety
    /// As [`read`](Self::read), and nothing else may access the structure.
    pub unsafe fn write<T: Copy>(self, offset: usize, value: T) {
        // SAFETY: as above.
        unsafe { self.at(offset).cast::<T>().write(value) }
    }

    /// Sets the four fields at these offsets from `offset`: of a rectangle or a color.
    ///
    /// # Safety
    /// As [`write`](Self::write), for each field.
    pub unsafe fn write_four<T: Copy>(self, offset: usize, fields: [usize; 4], values: [T; 4]) {
        for (field, value) in fields.into_iter().zip(values) {
            // SAFETY: as above.
            unsafe { self.write(offset + field, value) };
        }
    }
}
