// SPDX-License-Identifier: MIT OR Apache-2.0
//! The structures of DLPack 1.3, through which Python's array libraries exchange arrays without a copy, and the table
//! of functions that a type can have ([`ExchangeApi`]).

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// The version of the structures.
pub const VERSION: Version = Version { major: 1, minor: 3 };

pub const CAPSULE: &CStr = c"dltensor";
pub const VERSIONED_CAPSULE: &CStr = c"dltensor_versioned";

/// Kinds of devices.
pub const CPU: i32 = 1;
pub const CUDA: i32 = 2;
pub const CUDA_HOST: i32 = 3;
pub const CUDA_MANAGED: i32 = 13;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Device {
    pub kind: i32,
    pub ordinal: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct DataType {
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Tensor {
    pub data: *mut c_void,
    pub device: Device,
    pub ndim: i32,
    pub dtype: DataType,
    pub shape: *mut i64,
    /// Strides in elements; before version 1.2 null for contiguous tensors.
    pub strides: *mut i64,
    pub byte_offset: u64,
}

#[repr(C)]
pub struct Managed {
    pub tensor: Tensor,
    pub context: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

#[repr(C)]
pub struct ManagedVersioned {
    pub version: Version,
    pub context: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    pub flags: u64,
    pub tensor: Tensor,
}

type SetError = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char);

#[repr(C)]
struct ExchangeHeader {
    version: Version,
    previous: *const ExchangeHeader,
}

/// The functions by which a type's library exchanges its arrays, without calls of Python functions.
#[repr(C)]
pub struct ExchangeApi {
    header: ExchangeHeader,
    allocate: unsafe extern "C" fn(
        *const Tensor,
        *mut *mut ManagedVersioned,
        *mut c_void,
        SetError,
    ) -> c_int,
    from_object: unsafe extern "C" fn(*mut c_void, *mut *mut ManagedVersioned) -> c_int,
    to_object: unsafe extern "C" fn(*mut ManagedVersioned, *mut *mut c_void) -> c_int,
    view: Option<unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int>,
    stream: unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int,
}

// SAFETY: the table is constant, and its functions are called by threads that are attached to Python.
unsafe impl Sync for ExchangeApi {}
// SAFETY: as above.
unsafe impl Send for ExchangeApi {}

/// The types that have a table. A type in the list is never freed, so that no other type has its address.
static TYPES: Mutex<Vec<(usize, &'static ExchangeApi)>> = Mutex::new(Vec::new());

/// The greatest number of types that are remembered. Others are asked each time.
const MAX_TYPES: usize = 64;

impl ExchangeApi {
    /// The table of the type of `object`, if it has one.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<&'static Self>> {
        let class = object.get_type();
        let address = class.as_ptr().addr();
        let known = |types: &[(usize, &'static Self)]| {
            types.iter().find_map(|&(known, table)| (known == address).then_some(table))
        };
        if let Some(table) = known(&TYPES.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(Some(table));
        }
        let Some(table) = Self::of_type(&class)? else { return Ok(None) };
        let mut types = TYPES.lock().unwrap_or_else(PoisonError::into_inner);
        if types.len() < MAX_TYPES && known(&types).is_none() {
            std::mem::forget(class.unbind());
            types.push((address, table));
        }
        Ok(Some(table))
    }

    fn of_type(class: &Bound<'_, PyType>) -> PyResult<Option<&'static Self>> {
        let Ok(capsule) = class.getattr("__dlpack_c_exchange_api__") else { return Ok(None) };
        // SAFETY: `capsule` is an object, and the name is a constant string.
        let pointer =
            unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), c"dlpack_exchange_api".as_ptr()) };
        if pointer.is_null() {
            return Err(PyErr::fetch(class.py()));
        }
        let mut header: *const ExchangeHeader = pointer.cast_const().cast();
        // SAFETY: DLPack defines that a capsule of this name has such a header, which may link to one of an older
        // table, and that the tables exist until the process ends.
        unsafe {
            while !header.is_null() && (*header).version.major != VERSION.major {
                header = (*header).previous;
            }
            Ok(header.cast::<Self>().as_ref())
        }
    }

    /// The tensor of `object`, whose type has this table. It is valid while the object is neither freed nor resized.
    pub fn tensor<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<(Tensor, Option<Owner>)> {
        if let Some(view) = self.view {
            let mut tensor = std::mem::MaybeUninit::uninit();
            // SAFETY: the table is of the object's type. On success, the function has written all members.
            unsafe {
                if view(object.as_ptr().cast(), tensor.as_mut_ptr()) == 0 {
                    return Ok((tensor.assume_init(), None));
                }
            }
            return Err(PyErr::fetch(object.py()));
        }
        let mut managed = std::ptr::null_mut();
        // SAFETY: as above.
        match unsafe { (self.from_object)(object.as_ptr().cast(), &raw mut managed) } {
            // SAFETY: on success it is a tensor, which the caller owns now.
            0 => Ok(unsafe { ((*managed).tensor, Some(Owner(managed))) }),
            _ => Err(PyErr::fetch(object.py())),
        }
    }

    /// Returns the library's object for a tensor, which it then owns.
    ///
    /// # Safety
    /// `managed` must be a valid tensor that nothing else owns.
    pub unsafe fn object<'py>(
        &self,
        py: Python<'py>,
        managed: *mut ManagedVersioned,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut object = std::ptr::null_mut();
        // SAFETY: the caller guarantees that `managed` is a tensor, whose ownership passes to the function.
        // On success it has written a new reference.
        unsafe {
            match (self.to_object)(managed, &raw mut object) {
                0 => Bound::from_owned_ptr_or_err(py, object.cast()),
                _ => Err(PyErr::fetch(py)),
            }
        }
    }

    /// The library's current stream on a GPU, a `CUstream`.
    pub fn current_stream(&self, py: Python<'_>, ordinal: i32) -> PyResult<usize> {
        let mut stream = std::ptr::null_mut();
        // SAFETY: `stream` is valid for writes.
        match unsafe { (self.stream)(CUDA, ordinal, &raw mut stream) } {
            0 => Ok(stream.addr()),
            _ => Err(PyErr::fetch(py)),
        }
    }

    /// Allocates a tensor in the library's memory, with the element type, shape and device of `prototype`.
    pub fn allocate(&self, py: Python<'_>, prototype: &Tensor) -> PyResult<Owner> {
        unsafe extern "C" fn set_error(_: *mut c_void, _: *const c_char, message: *const c_char) {
            // SAFETY: the functions of this table are called with the interpreter attached, and the message is a
            // string.
            unsafe { ffi::PyErr_SetString(ffi::PyExc_RuntimeError, message) };
        }
        let mut managed = std::ptr::null_mut();
        let context = std::ptr::null_mut();
        // SAFETY: the prototype's shape has its number of dimensions; `managed` is valid for writes.
        match unsafe { (self.allocate)(prototype, &raw mut managed, context, set_error) } {
            0 if !managed.is_null() => Ok(Owner(managed)),
            _ => Err(PyErr::fetch(py)),
        }
    }
}

/// A tensor that is deleted when dropped.
#[derive(Debug)]
pub struct Owner(*mut ManagedVersioned);

// SAFETY: DLPack defines that deleters may be called by any thread.
unsafe impl Send for Owner {}
// SAFETY: a shared reference gives the address only.
unsafe impl Sync for Owner {}

impl Owner {
    pub fn tensor(&self) -> &Tensor {
        // SAFETY: it exists until `drop`.
        unsafe { &(*self.0).tensor }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: the tensor is owned, and deleted once.
        unsafe {
            if let Some(deleter) = (*self.0).deleter {
                deleter(self.0);
            }
        }
    }
}
