// SPDX-License-Identifier: MIT OR Apache-2.0
//! A structure of DeepStream in memory.
//!
//! In: an address, and offsets in [`layout`](super::layout). Out: the values of fields. The caller must ensure that
//! the field exists and has the right type.

use std::ffi::c_void;
use std::ptr::NonNull;

/// A structure of DeepStream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record(pub NonNull<c_void>);

impl Record {
    pub fn as_ptr(self) -> *mut c_void {
        self.0.as_ptr()
    }

    /// Returns the address of the field at `offset`.
    ///
    /// # Safety
    /// The structure must exist, and must have a field at this offset.
    pub unsafe fn at(self, offset: usize) -> *mut c_void {
        // SAFETY: the field is inside the structure.
        unsafe { self.0.as_ptr().byte_add(offset) }
    }

    /// Reads the field at `offset`.
    ///
    /// # Safety
    /// See [`at`](Self::at). In addition, the field must have the type `T`.
    pub unsafe fn read<T: Copy>(self, offset: usize) -> T {
        // SAFETY: the caller guarantees the field and its type; DeepStream aligns fields.
        unsafe { self.at(offset).cast::<T>().read() }
    }

    /// Writes the field at `offset`.
    ///
    /// # Safety
    /// See [`read`](Self::read). In addition, nothing else may access the structure.
    pub unsafe fn write<T: Copy>(self, offset: usize, value: T) {
        // SAFETY: the caller guarantees the field and its type, and exclusive access.
        unsafe { self.at(offset).cast::<T>().write(value) }
    }

    /// Writes four fields, for example of a rectangle or a color. The offsets in `fields` are relative to `offset`.
    ///
    /// # Safety
    /// See [`write`](Self::write). The conditions apply to each field.
    pub unsafe fn write_four<T: Copy>(self, offset: usize, fields: [usize; 4], values: [T; 4]) {
        for (field, value) in fields.into_iter().zip(values) {
            // SAFETY: the caller guarantees these conditions.
            unsafe { self.write(offset + field, value) };
        }
    }
}
