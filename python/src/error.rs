// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors, as Python's exceptions.
//!
//! `nmsfilter.InputError` is both a `ValueError` and a `RuntimeError`: torchvision raises the latter for wrong shapes,
//! and other Python code expects the former.

use nmsfilter_core::cuda::{DeviceError, DriverError};
use nmsfilter_core::nms::{FitError, NmsError, ParamError};
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::words;

/// The reason why a call has no result.
#[derive(Debug)]
pub enum Error {
    /// An argument has a wrong value or shape: `InputError`.
    Input(String),
    /// An argument has a wrong type: `TypeError`.
    Type(String),
    /// Memory cannot be allocated: `MemoryError`.
    Memory(String),
    /// The GPU cannot be used, or failed: `RuntimeError`.
    Device(String),
    /// An exception of Python code that was called.
    Python(PyErr),
}

pub type Result<T> = std::result::Result<T, Error>;

impl From<PyErr> for Error {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<NmsError> for Error {
    fn from(error: NmsError) -> Self {
        match &error {
            NmsError::Engine(engine) if engine.is_device_error() => Self::Device(error.to_string()),
            _ => Self::Input(words::of_error(&error)),
        }
    }
}

/// Issues a `MisreadWarning`, which filters can turn into an exception.
///
/// # Errors
/// The exception.
pub fn warn_misread(py: Python<'_>, text: &str) -> Result<()> {
    py.import("nmsfilter._errors")?.call_method1("warn_misread", (text,))?;
    Ok(())
}

impl From<ParamError> for Error {
    fn from(error: ParamError) -> Self {
        Self::Input(words::of_param(&error))
    }
}

impl From<FitError> for Error {
    fn from(error: FitError) -> Self {
        match error {
            FitError::Param(error) => error.into(),
            error => Self::Input(words::in_python(&error)),
        }
    }
}

impl From<DeviceError> for Error {
    fn from(error: DeviceError) -> Self {
        Self::Device(error.to_string())
    }
}

impl From<DriverError> for Error {
    fn from(error: DriverError) -> Self {
        Self::Device(error.to_string())
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match error {
            Error::Input(message) => Python::attach(|py| match input_error(py) {
                Ok(class) => PyErr::from_type(class.clone(), message),
                Err(error) => error,
            }),
            Error::Type(message) => PyTypeError::new_err(message),
            Error::Memory(message) => PyMemoryError::new_err(message),
            Error::Device(message) => PyRuntimeError::new_err(message),
            Error::Python(error) => error,
        }
    }
}

fn input_error(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "nmsfilter._errors", "InputError")
}
