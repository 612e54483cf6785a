// SPDX-License-Identifier: MIT OR Apache-2.0
//! A structure of DeepStream in memory.
//!
//! In: an address, and fields in [`layout`](super::layout). Out: the values of fields. Who makes a [`Record`] ensures that
//! the structure is of its kind, and a [`Field`] is of one kind and has one type, so that reading is safe.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::NonNull;

use gst::glib::ffi::GList;

/// A field of the type `T` of structures of the kind `S`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field<S, T> {
    /// The offset in bytes.
    pub offset: usize,
    kind: PhantomData<fn(S) -> T>,
}

/// The value of a field that is a list of structures of the kind `E`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct List<E> {
    pub(super) first: *const GList,
    kind: PhantomData<fn() -> E>,
}

/// A structure of the kind `S`.
#[derive(Clone, Copy, Debug)]
pub struct Record<'l, S> {
    address: NonNull<c_void>,
    kind: PhantomData<&'l S>,
}

impl<S, T> Field<S, T> {
    /// The field at this offset.
    pub const fn new(offset: usize) -> Self {
        Self { offset, kind: PhantomData }
    }
}

impl<'l, S: Copy> Record<'l, S> {
    /// # Safety
    /// There must be a structure of the kind `S` at this address, which exists, and is changed only through DeepStream or
    /// [`write`](Self::write), during `'l`. Fields that only some versions have are read if the structure has them.
    pub(super) unsafe fn new(address: NonNull<c_void>) -> Self {
        Self { address, kind: PhantomData }
    }

    /// Returns the address of the structure.
    pub fn as_ptr(self) -> *mut c_void {
        self.address.as_ptr()
    }

    /// Returns the address of a field.
    pub(super) fn at<T>(self, field: Field<S, T>) -> *mut T {
        self.as_ptr().wrapping_byte_add(field.offset).cast()
    }

    /// Returns the structure that is a field.
    pub(super) fn part<P: Copy>(self, field: Field<S, P>) -> Record<'l, P> {
        // SAFETY: a structure contains its fields, and its address is not null.
        unsafe { Record::new(NonNull::new_unchecked(self.at(field).cast())) }
    }

    /// Reads a field.
    pub fn read<T: Copy>(self, field: Field<S, T>) -> T {
        // SAFETY: the structure has the field; DeepStream aligns fields.
        unsafe { self.at(field).read() }
    }

    /// Writes a field.
    ///
    /// # Safety
    /// Nothing else may access the structure.
    pub(super) unsafe fn write<T: Copy>(self, field: Field<S, T>, value: T) {
        // SAFETY: as for reading, and the caller guarantees exclusive access.
        unsafe { self.at(field).write(value) }
    }
}
