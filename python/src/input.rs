// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrays that are passed in.
//!
//! In: an object of Python. Out: [`Input`]: where its elements are, and [`Kind`], by which results become objects of
//! this library. Nothing is copied here. Tried in this order: NumPy's own interface; the functions of the type's
//! library (`__dlpack_c_exchange_api__`, as PyTorch has them); `__cuda_array_interface__`; `__dlpack__`;
//! `__array_interface__`.

use std::ffi::{CStr, c_void};

use arrayvec::ArrayVec;
use nmsfilter_core::tensor::MAX_DIMENSIONS;
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::array::{byte_len, exceeds_memory, zeros};
use crate::dlpack::{self, ExchangeApi, Owner};
use crate::dtype::Dtype;
use crate::error::{Error, Result};
use crate::numpy;
use crate::stream::{LEGACY, current_stream};

/// The kind of arrays that results are.
#[derive(Clone)]
pub enum Kind<'py> {
    /// Arrays of NumPy.
    Numpy,
    /// Arrays of a library that has such a table.
    Exchange(&'static ExchangeApi),
    /// Arrays that this function, `from_dlpack`, returns.
    FromDlpack(Bound<'py, PyAny>),
    /// `nmsfilter.Array`.
    Own,
}

/// Where elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Host,
    Device {
        /// The number of the GPU, if the object has it.
        ordinal: Option<i32>,
        /// The stream that may still write the elements; `None` if no stream or only the caller's does.
        writer: Option<usize>,
    },
}

/// An array that is passed in.
pub struct Input<'py> {
    pub kind: Kind<'py>,
    pub place: Place,
    pub dtype: Dtype,
    pub shape: ArrayVec<usize, MAX_DIMENSIONS>,
    /// Strides in bytes.
    strides: ArrayVec<isize, MAX_DIMENSIONS>,
    data: *const u8,
    object: Bound<'py, PyAny>,
    /// Keeps the elements in memory, besides the object.
    owner: Option<Keep<'py>>,
}

enum Keep<'py> {
    Object(Bound<'py, PyAny>),
    #[expect(dead_code, reason = "dropped with the input")]
    Tensor(Owner),
}

/// Elements in host memory, without gaps, aligned for their type.
pub enum HostBytes<'a> {
    Borrowed(&'a [u8]),
    /// A copy, with its number of bytes.
    Copied(Vec<u64>, usize),
}

impl HostBytes<'_> {
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Copied(words, len) => &bytemuck::cast_slice(words)[..*len],
        }
    }

    /// Copies numbers; `None` if there is not enough memory.
    pub fn of<T: bytemuck::Pod>(numbers: impl ExactSizeIterator<Item = T>) -> Option<Self> {
        let len = numbers.len() * size_of::<T>();
        let mut words = zeros(len)?;
        let places: &mut [T] = bytemuck::cast_slice_mut(&mut words);
        for (place, number) in places.iter_mut().zip(numbers) {
            *place = number;
        }
        Some(Self::Copied(words, len))
    }
}

/// The parts of an array before they are checked.
struct Parts {
    data: *const u8,
    place: Place,
    dtype: Option<Dtype>,
    shape: ArrayVec<usize, MAX_DIMENSIONS>,
    strides: ArrayVec<isize, MAX_DIMENSIONS>,
}

impl<'py> Input<'py> {
    /// Reads the array of `object`, an argument of this name. `stream` is the stream on which the caller wants the work, if
    /// it is known.
    pub fn new(object: &Bound<'py, PyAny>, name: &str, stream: Option<usize>) -> Result<Self> {
        if let Some(view) = numpy::view(object) {
            let parts = Parts {
                data: view.data,
                place: Place::Host,
                dtype: view.dtype,
                shape: dimensions(view.shape.iter().map(|&side| side as usize), name)?,
                strides: dimensions(view.strides.iter().copied(), name)?,
            };
            return Self::of_parts(object, name, parts, Kind::Numpy, None);
        }
        if let Some(table) = ExchangeApi::of(object)? {
            let resolved = resolved(object, name)?;
            let object = resolved.as_ref().unwrap_or(object);
            let (tensor, owner) =
                table.tensor(object).map_err(|error| without_elements(object, name, &error))?;
            let owner = owner.map(Keep::Tensor);
            let parts = Parts::of_dlpack(&tensor, name)?;
            return Self::of_parts(object, name, parts, Kind::Exchange(table), owner);
        }
        if let Some(interface) = optional(object, "__cuda_array_interface__")? {
            let parts = Parts::of_interface(&interface, name, true)?;
            let kind = Kind::of_namespace(object);
            return Self::of_parts(object, name, parts, kind, Some(Keep::Object(interface)));
        }
        if object.hasattr("__dlpack__")? {
            let resolved = resolved(object, name)?;
            let object = resolved.as_ref().unwrap_or(object);
            let (capsule, parts) = from_dlpack(object, name, stream)?;
            let kind = Kind::of_namespace(object);
            return Self::of_parts(object, name, parts, kind, Some(Keep::Object(capsule)));
        }
        if let Some(interface) = optional(object, "__array_interface__")? {
            let parts = Parts::of_interface(&interface, name, false)?;
            let kind = Kind::of_namespace(object);
            return Self::of_parts(object, name, parts, kind, Some(Keep::Object(interface)));
        }
        Err(Error::Type(format!(
            "{name}: expected an array (of NumPy, PyTorch, CuPy, JAX, or any object with __dlpack__, \
             __cuda_array_interface__ or __array_interface__), got {}; \
             numpy.asarray({name}, dtype=numpy.float32) makes one of numbers",
            type_name(object)
        )))
    }

    /// Reads `object` like [`new`](Self::new). Elements with gaps are copied by their library, in the order of its current
    /// stream.
    pub fn contiguous_on_device(
        object: &Bound<'py, PyAny>,
        name: &str,
        stream: Option<usize>,
    ) -> Result<Self> {
        let input = Self::new(object, name, stream)?;
        if !input.is_on_device() || input.is_contiguous() {
            return Ok(input);
        }
        let copy = match object.getattr_opt("contiguous")? {
            Some(contiguous) => contiguous.call0()?,
            None => {
                let copied = object
                    .call_method0("__array_namespace__")
                    .and_then(|namespace| namespace.call_method1("ascontiguousarray", (object,)));
                copied.map_err(|_| {
                    Error::Input(format!(
                        "{name}: expected elements without gaps, got a view with strides; copy it \
                         (ascontiguousarray)"
                    ))
                })?
            }
        };
        Self::new(&copy, name, stream)
    }

    fn of_parts(
        object: &Bound<'py, PyAny>,
        name: &str,
        parts: Parts,
        kind: Kind<'py>,
        owner: Option<Keep<'py>>,
    ) -> Result<Self> {
        let Parts { data, place, dtype, shape, strides } = parts;
        let dtype = dtype.ok_or_else(|| {
            let got = object.getattr("dtype").and_then(|dtype| Ok(dtype.str()?.to_string()));
            Error::Type(format!(
                "{name}: expected numbers of a type such as float32 in native byte order, got {}; \
                 convert them",
                got.unwrap_or_else(|_| "another type".to_owned())
            ))
        })?;
        let Some(len) = byte_len(&shape, dtype) else {
            let text = format!("{name}: expected a shape that fits memory, got {:?}", &shape[..]);
            return Err(Error::Input(text));
        };
        if len > 0 && data.is_null() {
            let error = PyValueError::new_err("the address of its elements is 0");
            return Err(without_elements(object, name, &error));
        }
        Ok(Self { kind, place, dtype, shape, strides, data, object: object.clone(), owner })
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// The bytes of all elements.
    pub fn byte_len(&self) -> usize {
        self.len() * self.dtype.size()
    }

    pub fn is_on_device(&self) -> bool {
        self.place != Place::Host
    }

    /// The address of the first element.
    pub fn address(&self) -> u64 {
        self.data.addr() as u64
    }

    /// Returns the objects that keep the elements in memory.
    pub fn into_objects(self) -> Vec<Py<PyAny>> {
        // An object without a separate view is read in place.
        let keep = match self.owner {
            Some(Keep::Object(object)) => Some(object.unbind()),
            Some(Keep::Tensor(_)) | None => None,
        };
        keep.into_iter().chain([self.object.unbind()]).collect()
    }

    /// Returns true if the elements are without gaps, the last dimension first.
    pub fn is_contiguous(&self) -> bool {
        let mut expected = self.dtype.size() as isize;
        let dimensions = self.shape.iter().zip(&self.strides).rev();
        self.len() == 0
            || dimensions.fold(true, |so_far, (&side, &stride)| {
                let is_expected = side == 1 || stride == expected;
                expected *= side as isize;
                so_far && is_expected
            })
    }

    /// The elements in host memory, without gaps and aligned for their type: copied unless they are so.
    ///
    /// # Errors
    /// If there is no memory for a copy.
    ///
    /// # Panics
    /// If they are in device memory.
    pub fn host_bytes(&self) -> Result<HostBytes<'_>> {
        assert_eq!(self.place, Place::Host, "device memory is not read here");
        let len = self.byte_len();
        if len == 0 {
            return Ok(HostBytes::Borrowed(&[]));
        }
        if self.is_contiguous() && self.data.addr().is_multiple_of(self.dtype.size()) {
            // SAFETY: the object's library guarantees that its elements are there, and the object is held.
            return Ok(HostBytes::Borrowed(unsafe { std::slice::from_raw_parts(self.data, len) }));
        }
        let mut words = zeros(len).ok_or_else(|| exceeds_memory(&self.shape, self.dtype))?;
        let bytes = &mut bytemuck::cast_slice_mut(&mut words)[..len];
        self.copy_elements(
            &self.shape,
            &self.strides,
            self.data,
            &mut bytes.chunks_exact_mut(self.dtype.size()),
        );
        Ok(HostBytes::Copied(words, len))
    }

    /// Copies the elements of these dimensions, the first of which is at `data`.
    fn copy_elements<'b>(
        &self,
        shape: &[usize],
        strides: &[isize],
        data: *const u8,
        to: &mut impl Iterator<Item = &'b mut [u8]>,
    ) {
        let (Some((&side, shape)), Some((&stride, strides))) =
            (shape.split_first(), strides.split_first())
        else {
            let to = to.next().expect("there is a place for each element");
            // SAFETY: as in `host_bytes`; the offset is an element's.
            unsafe { data.copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) };
            return;
        };
        for index in 0..side as isize {
            self.copy_elements(shape, strides, data.wrapping_offset(index * stride), to);
        }
    }

    /// The stream on which work with this array of a GPU is done: the given one, or the current one of its library.
    pub fn stream(&self, given: Option<usize>) -> Result<usize> {
        let object = &self.object;
        let Place::Device { ordinal, writer } = self.place else { return Ok(LEGACY) };
        match (given, &self.kind) {
            (Some(stream), _) => Ok(stream),
            (None, Kind::Exchange(table)) => {
                let stream = table.current_stream(object.py(), ordinal.unwrap_or(0))?;
                Ok(crate::stream::normalized(stream))
            }
            (None, _) => Ok(current_stream(object)?.or(writer).unwrap_or(LEGACY)),
        }
    }
}

impl<'py> Kind<'py> {
    /// The table of functions, if the library has one.
    pub fn table(&self) -> Option<&'static ExchangeApi> {
        match self {
            Self::Exchange(table) => Some(table),
            _ => None,
        }
    }

    /// Finds `from_dlpack` for an object that has no table of functions.
    fn of_namespace(object: &Bound<'py, PyAny>) -> Self {
        let of_protocol =
            || object.call_method0("__array_namespace__").ok()?.getattr("from_dlpack").ok();
        let of_module = || {
            let module = object.get_type().module().ok()?;
            let root = module.to_str().ok()?.split('.').next()?.to_owned();
            let modules = object.py().import("sys").ok()?.getattr("modules").ok()?;
            modules.get_item(root).ok()?.getattr("from_dlpack").ok()
        };
        of_protocol().or_else(of_module).map_or(Self::Own, Self::FromDlpack)
    }
}

/// The attribute, or `None` if it is missing.
fn optional<'py>(object: &Bound<'py, PyAny>, name: &str) -> Result<Option<Bound<'py, PyAny>>> {
    Ok(object.getattr_opt(name)?)
}

/// A tensor with the values of one of PyTorch's that has the negative bit: its memory has the opposite numbers. `None` for
/// others.
fn resolved<'py>(object: &Bound<'py, PyAny>, name: &str) -> Result<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    let is_negative = match object.call_method0(intern!(py, "is_neg")) {
        Ok(answer) => answer.is_truthy(),
        Err(error) if error.is_instance_of::<PyAttributeError>(py) => Ok(false),
        Err(error) => Err(error),
    };
    match is_negative {
        Ok(true) => Ok(Some(object.call_method0("resolve_neg")?)),
        Ok(false) => Ok(None),
        Err(error) => Err(without_elements(object, name, &error)),
    }
}

/// The error of an array whose library gives no memory.
fn without_elements(object: &Bound<'_, PyAny>, name: &str, error: &PyErr) -> Error {
    let is =
        |attribute: &str| object.getattr(attribute).is_ok_and(|it| it.is_truthy().unwrap_or(false));
    let layout = object.getattr("layout").map(|layout| layout.to_string());
    let (got, instead) = if is("is_meta") {
        ("a tensor of the device meta".to_owned(), "pass one of another device".to_owned())
    } else if is("is_quantized") {
        ("a quantized tensor".to_owned(), format!("pass {name}.dequantize()"))
    } else if is("is_nested") {
        ("a nested tensor".to_owned(), format!("pass each of {name}.unbind()"))
    } else if let Some(layout) = layout.ok().filter(|layout| layout != "torch.strided") {
        (format!("a tensor of the layout {layout}"), format!("pass {name}.to_dense()"))
    } else {
        let text = error.value(object.py()).to_string();
        (
            format!("{} ({})", type_name(object), text.lines().next().unwrap_or_default()),
            "call this outside of torch.vmap, torch.func and other transforms, whose tensors have none; \
             import nmsfilter.torch for torch.export and torch.compile"
                .to_owned(),
        )
    };
    Error::Input(format!("{name}: expected an array with elements in memory, got {got}; {instead}"))
}

pub fn type_name(object: &Bound<'_, PyAny>) -> String {
    object
        .get_type()
        .fully_qualified_name()
        .map_or_else(|_| "an object".to_owned(), |name| name.to_string())
}

fn dimensions<T>(
    numbers: impl ExactSizeIterator<Item = T>,
    name: &str,
) -> Result<ArrayVec<T, MAX_DIMENSIONS>> {
    let count = numbers.len();
    if count > MAX_DIMENSIONS {
        return Err(Error::Input(format!(
            "{name}: expected at most {MAX_DIMENSIONS} dimensions, got {count}"
        )));
    }
    Ok(numbers.collect())
}

/// Strides of elements without gaps, in bytes.
fn contiguous_strides(shape: &[usize], size: usize) -> ArrayVec<isize, MAX_DIMENSIONS> {
    let mut strides: ArrayVec<isize, MAX_DIMENSIONS> = shape.iter().map(|_| 0).collect();
    let mut stride = size as isize;
    for (to, &side) in strides.iter_mut().zip(shape).rev() {
        *to = stride;
        stride = stride.saturating_mul(side as isize);
    }
    strides
}

impl Parts {
    fn of_dlpack(tensor: &dlpack::Tensor, name: &str) -> Result<Self> {
        let device = tensor.device;
        let place = match device.kind {
            dlpack::CPU | dlpack::CUDA_HOST => Place::Host,
            dlpack::CUDA | dlpack::CUDA_MANAGED => {
                Place::Device { ordinal: Some(device.ordinal), writer: None }
            }
            other => {
                return Err(Error::Input(format!(
                    "{name}: expected an array in host memory or in that of a CUDA device, got one on \
                     a device of DLPack's kind {other}; copy it to the host"
                )));
            }
        };
        let dtype = Dtype::from_dlpack(tensor.dtype);
        let size = dtype.map_or(1, Dtype::size);
        let numbers = |first: *const i64| match tensor.ndim {
            0 => &[][..],
            // SAFETY: DLPack defines that there are as many numbers as dimensions.
            count => unsafe { std::slice::from_raw_parts(first, count as usize) },
        };
        let shape = dimensions(numbers(tensor.shape).iter().map(|&side| side as usize), name)?;
        let strides = if tensor.strides.is_null() {
            contiguous_strides(&shape, size)
        } else {
            let in_bytes = |&stride: &i64| stride as isize * size as isize;
            dimensions(numbers(tensor.strides).iter().map(in_bytes), name)?
        };
        let data = tensor.data.cast_const().cast::<u8>().wrapping_add(tensor.byte_offset as usize);
        Ok(Self { data, place, dtype, shape, strides })
    }

    /// The parts of a dictionary of the array interface, or of the one for CUDA.
    fn of_interface(interface: &Bound<'_, PyAny>, name: &str, is_cuda: bool) -> Result<Self> {
        let which = if is_cuda { "__cuda_array_interface__" } else { "__array_interface__" };
        let incomplete = |what: &str| {
            Error::Type(format!(
                "{name}: its {which} has no {what}; the object's library must set it"
            ))
        };
        let item = |key: &str| -> Result<Option<Bound<'_, PyAny>>> {
            let value = interface.call_method1("get", (key,))?;
            Ok((!value.is_none()).then_some(value))
        };
        let typestr = item("typestr")?.ok_or_else(|| incomplete("typestr"))?;
        let typestr: String = typestr.extract().map_err(|_| incomplete("typestr of text"))?;
        let dtype = Dtype::from_typestr(&typestr);
        let shape = item("shape")?.ok_or_else(|| incomplete("shape"))?;
        let shape: Vec<usize> =
            shape.extract().map_err(|_| incomplete("shape of numbers from 0 on"))?;
        let shape = dimensions(shape.into_iter(), name)?;
        let strides = match item("strides")? {
            Some(strides) => {
                let strides: Vec<isize> =
                    strides.extract().map_err(|_| incomplete("strides of numbers"))?;
                dimensions(strides.into_iter(), name)?
            }
            None => contiguous_strides(&shape, dtype.map_or(1, Dtype::size)),
        };
        if strides.len() != shape.len() {
            return Err(incomplete("strides for each dimension"));
        }
        let data = item("data")?.ok_or_else(|| incomplete("data"))?;
        let data: (usize, bool) = data.extract().map_err(|_| incomplete("data with an address"))?;
        let writer = match item("stream")? {
            Some(stream) => Some(crate::stream::normalized(stream.extract()?)),
            None => None,
        };
        let place = if is_cuda { Place::Device { ordinal: None, writer } } else { Place::Host };
        Ok(Self { data: std::ptr::without_provenance(data.0), place, dtype, shape, strides })
    }
}

/// The capsule of an object with `__dlpack__`, which deletes its tensor when it is freed, and the tensor's parts.
fn from_dlpack<'py>(
    object: &Bound<'py, PyAny>,
    name: &str,
    stream: Option<usize>,
) -> Result<(Bound<'py, PyAny>, Parts)> {
    let py = object.py();
    let device = object.call_method0("__dlpack_device__").and_then(|device| device.extract());
    let (kind, _): (i32, i32) = device.map_err(|error| without_elements(object, name, &error))?;
    let arguments = PyDict::new(py);
    if matches!(kind, dlpack::CUDA | dlpack::CUDA_MANAGED) {
        let stream = match stream {
            Some(stream) => stream,
            None => current_stream(object)?.unwrap_or(LEGACY),
        };
        arguments.set_item("stream", stream)?;
    }
    let versioned = arguments.copy()?;
    versioned.set_item("max_version", (dlpack::VERSION.major, dlpack::VERSION.minor))?;
    let call = |arguments: &Bound<'py, PyDict>| {
        object.call_method("__dlpack__", PyTuple::empty(py), Some(arguments))
    };
    let capsule = match call(&versioned) {
        // Libraries from before DLPack 1.0.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => call(&arguments),
        result => result,
    };
    let capsule = capsule.map_err(|error| without_elements(object, name, &error))?;
    let pointer = |name: &CStr| -> Option<*const c_void> {
        // SAFETY: `capsule` is an object, and the name is a string.
        unsafe {
            (ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) != 0)
                .then(|| ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()).cast_const())
        }
    };
    // SAFETY: DLPack defines what capsules of these names point to.
    let tensor = unsafe {
        if let Some(managed) = pointer(dlpack::VERSIONED_CAPSULE) {
            let managed = managed.cast::<dlpack::ManagedVersioned>();
            let version = (*managed).version;
            if version.major != dlpack::VERSION.major {
                return Err(Error::Type(format!(
                    "{name}: expected DLPack {}, got {}; another version of its library may have it",
                    dlpack::VERSION.major,
                    version.major
                )));
            }
            (*managed).tensor
        } else if let Some(managed) = pointer(dlpack::CAPSULE) {
            (*managed.cast::<dlpack::Managed>()).tensor
        } else {
            return Err(Error::Type(format!(
                "{name}: its __dlpack__ returned no capsule of DLPack"
            )));
        }
    };
    let parts = Parts::of_dlpack(&tensor, name)?;
    Ok((capsule, parts))
}
