// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrays whose memory C code reads after the call, for `nmsfilter.gst`.
//!
//! In: an array. Out: its memory as numbers, with a C function that releases it. Also the memory that C code describes by
//! addresses, copied.

use std::ffi::c_void;

use nmsfilter_core::cuda::{Device, OwnedEvent};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::device::foreign;
use crate::error::{Error, Result};
use crate::input::{Input, Place};
use crate::stream::from_argument;

/// The objects that keep an array in memory.
struct Held {
    _objects: Vec<Py<PyAny>>,
    /// The event that was recorded after the work that writes the array.
    event: Option<OwnedEvent>,
}

/// Releases an array. Any thread may call it, also without Python; once Python is finalized, the memory stays.
unsafe extern "C" fn release(held: *mut c_void) {
    // SAFETY: C code passes what `hold` has returned, once.
    let held = unsafe { Box::from_raw(held.cast::<Held>()) };
    let mut held = Some(held);
    if Python::try_attach(|_| drop(held.take())).is_none() {
        std::mem::forget(held);
    }
}

/// Keeps an array in memory until `release` is called: (address, bytes, dtype, shape, GPU or -1, CUDA event or 0, address
/// of `release`, its argument).
#[pyfunction]
#[pyo3(signature = (array, name, stream=None))]
pub fn hold<'py>(
    py: Python<'py>,
    array: &Bound<'py, PyAny>,
    name: &str,
    stream: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyTuple>> {
    Ok(held(py, array, name, stream)?)
}

fn held<'py>(
    py: Python<'py>,
    array: &Bound<'py, PyAny>,
    name: &str,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyTuple>> {
    let given = from_argument(stream)?;
    let input = Input::contiguous_on_device(array, name, given)?;
    if input.dtype.element().is_none() {
        return Err(Error::Type(format!(
            "{name}: expected float32, float16, int8, uint8, int32 or int64, got {}; the memory is read \
             as it is: convert the array, to float32 by {name}.astype(\"float32\")",
            input.dtype
        )));
    }
    if !input.is_contiguous() {
        return Err(Error::Input(format!(
            "{name}: expected elements without gaps, got a view with strides; the memory is read as it \
             is: copy it, by numpy.ascontiguousarray"
        )));
    }
    let (address, bytes, dtype) = (input.address(), input.byte_len(), input.dtype.name());
    let shape = PyTuple::new(py, &input.shape)?;
    let (ordinal, event) = match input.place {
        Place::Host => (-1, None),
        Place::Device { ordinal, writer } => {
            let device = match ordinal {
                Some(ordinal) => Device::open(ordinal as u32)?,
                None => Device::holding(address)?,
            };
            let event = OwnedEvent::new(&device)?;
            let stream = input.stream(given)?;
            event.record_after(foreign(writer.unwrap_or(stream)))?;
            (device.ordinal() as i32, Some(event))
        }
    };
    let held = Box::new(Held { _objects: input.into_objects(), event });
    // SAFETY: the event exists until the array is released.
    let event = held.event.as_ref().map_or(0, |event| unsafe { event.event() }.as_raw().addr());
    let release = release as unsafe extern "C" fn(*mut c_void) as usize;
    let argument = Box::into_raw(held).expose_provenance();
    let numbers = (address, bytes, dtype, shape, ordinal, event, release, argument);
    Ok(numbers.into_pyobject(py)?)
}

/// Releases an array that C code did not take.
#[pyfunction]
pub fn release_held(argument: usize) {
    // SAFETY: the number is what `hold` has returned.
    unsafe { release(std::ptr::with_exposed_provenance_mut(argument)) }
}

/// The bytes at these addresses, one after the other.
///
/// C code returned the addresses; the memory must exist during the call.
#[pyfunction]
pub fn gather<'py>(
    py: Python<'py>,
    addresses: Vec<usize>,
    lengths: Vec<usize>,
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, lengths.iter().sum(), |mut to| {
        for (&address, &len) in addresses.iter().zip(&lengths) {
            let (bytes, rest) = to.split_at_mut(len);
            let from: *const u8 = std::ptr::with_exposed_provenance(address);
            if len > 0 {
                // SAFETY: the caller guarantees the memory.
                unsafe { from.copy_to_nonoverlapping(bytes.as_mut_ptr(), len) };
            }
            to = rest;
        }
        Ok(())
    })
}
