// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of NumPy's C interface that reads and makes arrays, which NumPy 1 and 2 share. It takes a tenth of the time
//! of reading attributes. The module never imports NumPy: before the program does, no object is one of its arrays.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::dtype::{Dtype, native_order};

/// The table of NumPy's functions, of which these indices are used.
static TABLE: AtomicPtr<*mut c_void> = AtomicPtr::new(std::ptr::null_mut());

const ARRAY_TYPE: usize = 2;
const ARRAY_NEW: usize = 93;

type ArrayNew = unsafe extern "C" fn(
    *mut ffi::PyTypeObject,
    c_int,
    *const isize,
    c_int,
    *const isize,
    *mut c_void,
    c_int,
    c_int,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// The first members of an array.
#[repr(C)]
struct ArrayObject {
    base: ffi::PyObject,
    data: *mut u8,
    dimensions: c_int,
    shape: *const isize,
    /// Strides in bytes.
    strides: *const isize,
    owner: *mut ffi::PyObject,
    descriptor: *const Descriptor,
}

/// The first members of an element type.
#[repr(C)]
struct Descriptor {
    base: ffi::PyObject,
    scalar: *mut ffi::PyTypeObject,
    kind: c_char,
    character: c_char,
    order: c_char,
    flags: c_char,
    number: c_int,
}

/// An array's memory.
pub struct View<'a> {
    pub data: *mut u8,
    pub shape: &'a [isize],
    /// Strides in bytes.
    pub strides: &'a [isize],
    /// `None` for types that are not among [`Dtype`]'s.
    pub dtype: Option<Dtype>,
}

/// The table, if NumPy has been imported.
fn table(py: Python<'_>) -> Option<*mut *mut c_void> {
    let table = TABLE.load(Ordering::Acquire);
    if !table.is_null() {
        return Some(table);
    }
    let modules = py.import("sys").and_then(|sys| sys.getattr("modules")).ok()?;
    modules.get_item("numpy").ok()?;
    let core = py
        .import("numpy._core._multiarray_umath")
        .or_else(|_| py.import("numpy.core._multiarray_umath"))
        .ok()?;
    let capsule = core.getattr("_ARRAY_API").ok()?;
    // SAFETY: NumPy's capsule has no name, and the table, which exists until the process ends.
    let table = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), std::ptr::null()) };
    if table.is_null() {
        drop(PyErr::take(py));
        return None;
    }
    TABLE.store(table.cast(), Ordering::Release);
    Some(table.cast())
}

/// The memory of `object`, if it is an array of NumPy.
pub fn view<'a>(object: &'a Bound<'_, PyAny>) -> Option<View<'a>> {
    let table = table(object.py())?;
    // SAFETY: the table has the type at this index, and an object of it begins with these members. The shape and the
    // strides have as many numbers as the array has dimensions.
    unsafe {
        let class = (*table.add(ARRAY_TYPE)).cast();
        if ffi::PyObject_TypeCheck(object.as_ptr(), class) == 0 {
            return None;
        }
        let array = &*object.as_ptr().cast::<ArrayObject>();
        let slice = |first: *const isize| match array.dimensions {
            0 => &[][..],
            dimensions => std::slice::from_raw_parts(first, dimensions as usize),
        };
        Some(View {
            data: array.data,
            shape: slice(array.shape),
            strides: slice(array.strides),
            dtype: dtype(&*array.descriptor),
        })
    }
}

fn dtype(descriptor: &Descriptor) -> Option<Dtype> {
    let order = descriptor.order as u8;
    let is_native = matches!(order, b'=' | b'|') || native_order().as_bytes() == [order];
    is_native.then_some(())?;
    Some(match descriptor.number {
        0 => Dtype::Bool,
        1 => Dtype::I8,
        2 => Dtype::U8,
        3 => Dtype::I16,
        4 => Dtype::U16,
        5 => Dtype::I32,
        6 => Dtype::U32,
        // `long` and `long long`, both of 64 bits on Linux.
        7 | 9 => Dtype::I64,
        8 | 10 => Dtype::U64,
        11 => Dtype::F32,
        12 => Dtype::F64,
        23 => Dtype::F16,
        _ => return None,
    })
}

/// The number of an element type.
fn number(dtype: Dtype) -> Option<c_int> {
    Some(match dtype {
        Dtype::F32 => 11,
        Dtype::I32 => 5,
        Dtype::I64 => 7,
        Dtype::U8 => 2,
        _ => return None,
    })
}

/// A new array of this type and shape, and the address of its elements, which are not initialized. `None` if NumPy has
/// not been imported.
pub fn new<'py>(
    py: Python<'py>,
    dtype: Dtype,
    shape: &[isize],
) -> Option<PyResult<(Bound<'py, PyAny>, *mut u8)>> {
    let (table, number) = (table(py)?, number(dtype)?);
    let null = std::ptr::null_mut::<c_void>();
    // SAFETY: the table has the type and the function at these indices. The shape has as many numbers as are named.
    let array = unsafe {
        let class = (*table.add(ARRAY_TYPE)).cast();
        let new = std::mem::transmute::<*mut c_void, ArrayNew>(*table.add(ARRAY_NEW));
        let (dimensions, shape) = (shape.len() as c_int, shape.as_ptr());
        let array = new(class, dimensions, shape, number, null.cast(), null, 0, 0, null.cast());
        Bound::from_owned_ptr_or_err(py, array)
    };
    Some(array.map(|array| {
        // SAFETY: the object was made as an array.
        let data = unsafe { (*array.as_ptr().cast::<ArrayObject>()).data };
        (array, data)
    }))
}

/// Returns true if NumPy has been imported.
pub fn is_imported(py: Python<'_>) -> bool {
    table(py).is_some()
}
