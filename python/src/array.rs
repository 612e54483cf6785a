// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrays that are returned.
//!
//! In: elements, and the [`Kind`] of the arrays that were passed in. Out: an array of that library. [`Array`] is
//! the object that libraries import from; it is returned itself if the inputs' library has no import function.

use std::ffi::CStr;
use std::sync::Arc;

use bytemuck::Pod;
use nmsfilter_core::cuda::DeviceBuffer;
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::device;
use crate::dlpack::{self, Managed, ManagedVersioned, Owner, Tensor};
use crate::dtype::{Dtype, native_order};
use crate::error::{Error, Result};
use crate::input::Kind;
use crate::numpy;

/// The memory of arrays.
#[derive(Debug)]
pub enum Memory {
    /// Host memory, aligned for every element type.
    Host(Vec<u64>),
    /// Device memory that is allocated here.
    Device(DeviceBuffer),
    /// Device memory that a library has allocated.
    Library(Owner),
}

impl Memory {
    /// The address of the first byte.
    pub fn address(&self) -> usize {
        match self {
            Self::Host(words) => words.as_ptr().addr(),
            Self::Device(buffer) => buffer.address() as usize,
            Self::Library(owner) => {
                let tensor = owner.tensor();
                tensor.data.addr() + tensor.byte_offset as usize
            }
        }
    }
}

/// Elements in a memory that arrays share.
#[derive(Clone, Debug)]
pub struct Elements {
    pub memory: Arc<Memory>,
    /// The offset of the first element in bytes.
    pub offset: usize,
    pub dtype: Dtype,
    pub shape: Vec<i64>,
    /// Strides in elements.
    pub strides: Vec<i64>,
    /// The stream that writes the elements, of device memory.
    pub stream: usize,
}

/// The number of bytes of an array; `None` if it does not fit into the address space.
pub fn byte_len(shape: &[usize], dtype: Dtype) -> Option<usize> {
    let len = shape.iter().try_fold(dtype.size(), |len, &side| len.checked_mul(side))?;
    isize::try_from(len).is_ok().then_some(len)
}

/// Allocates `len` bytes of zeros; `None` if there is not enough memory.
pub fn zeros(len: usize) -> Option<Vec<u64>> {
    let (mut words, count) = (Vec::new(), len.div_ceil(size_of::<u64>()));
    words.try_reserve_exact(count).ok()?;
    words.resize(count, 0);
    Some(words)
}

pub fn exceeds_memory(shape: &[usize], dtype: Dtype) -> Error {
    Error::Memory(format!("an array of {dtype} with the shape {shape:?} exceeds memory"))
}

/// Strides of elements without gaps.
pub fn contiguous(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for index in (1..shape.len()).rev() {
        strides[index - 1] = strides[index] * shape[index].max(1);
    }
    strides
}

impl Elements {
    fn device(&self) -> dlpack::Device {
        match &*self.memory {
            Memory::Host(_) => dlpack::Device { kind: dlpack::CPU, ordinal: 0 },
            Memory::Device(buffer) => {
                let ordinal = buffer.device().ordinal() as i32;
                dlpack::Device { kind: dlpack::CUDA, ordinal }
            }
            Memory::Library(owner) => owner.tensor().device,
        }
    }

    /// The address of the first element.
    pub fn address(&self) -> usize {
        self.offset + self.memory.address()
    }
}

impl<'py> Kind<'py> {
    /// A new array in host memory; `fill` writes its elements, which are zero before.
    pub fn host<T: Pod>(
        &self,
        py: Python<'py>,
        dtype: Dtype,
        shape: &[usize],
        fill: impl FnOnce(&mut [T]),
    ) -> Result<Bound<'py, PyAny>> {
        debug_assert_eq!(size_of::<T>(), dtype.size());
        let too_large = || exceeds_memory(shape, dtype);
        let len = byte_len(shape, dtype).ok_or_else(too_large)?;
        let count = len / dtype.size();
        if let Self::Numpy = self {
            let sides: arrayvec::ArrayVec<isize, 8> =
                shape.iter().map(|&side| side as isize).collect();
            if let Some(array) = numpy::new(py, dtype, &sides) {
                let (array, data) = array?;
                let data = data.cast::<T>();
                // SAFETY: the array has been made with this number of elements of this size, for which its memory is
                // aligned; nothing else refers to it yet.
                unsafe {
                    data.write_bytes(0, count);
                    fill(std::slice::from_raw_parts_mut(data, count));
                }
                return Ok(array);
            }
        }
        let mut words = zeros(len).ok_or_else(too_large)?;
        fill(&mut bytemuck::cast_slice_mut(&mut words)[..count]);
        let shape: Vec<i64> = shape.iter().map(|&side| side as i64).collect();
        let strides = contiguous(&shape);
        let memory = Arc::new(Memory::Host(words));
        self.array(py, Elements { memory, offset: 0, dtype, shape, strides, stream: 0 })
    }

    /// The library's array of these elements.
    pub fn array(&self, py: Python<'py>, elements: Elements) -> Result<Bound<'py, PyAny>> {
        Ok(match self {
            // SAFETY: the tensor is valid, and is passed on at once.
            Self::Exchange(table) => unsafe { table.object(py, exported(elements))? },
            Self::FromDlpack(from_dlpack) => from_dlpack.call1((Array { elements },))?,
            Self::Numpy | Self::Own => Bound::new(py, Array { elements })?.into_any(),
        })
    }
}

/// A tensor that is passed on, with the elements to which it refers.
struct Exported<T> {
    tensor: T,
    elements: Elements,
}

/// A tensor that another library owns from now on.
fn exported(elements: Elements) -> *mut ManagedVersioned {
    unsafe extern "C" fn delete(managed: *mut ManagedVersioned) {
        // SAFETY: the context is what `exported` has set, and a tensor is deleted once.
        unsafe { drop(Box::from_raw((*managed).context.cast::<Exported<ManagedVersioned>>())) };
    }
    let tensor = tensor(&elements);
    let (version, context) = (dlpack::VERSION, std::ptr::null_mut());
    let tensor = ManagedVersioned { version, context, deleter: Some(delete), flags: 0, tensor };
    let exported = Box::into_raw(Box::new(Exported { tensor, elements }));
    // SAFETY: the box was made above. The shape and the strides do not move when it does.
    unsafe {
        (*exported).tensor.context = exported.cast();
        let elements = &mut (*exported).elements;
        (*exported).tensor.tensor.shape = elements.shape.as_mut_ptr();
        (*exported).tensor.tensor.strides = elements.strides.as_mut_ptr();
        &raw mut (*exported).tensor
    }
}

/// Returns the tensor for libraries from before DLPack 1.0.
fn exported_unversioned(elements: Elements) -> *mut Managed {
    unsafe extern "C" fn delete(managed: *mut Managed) {
        // SAFETY: the context is what `exported_unversioned` has set, and a tensor is deleted once.
        unsafe { drop(Box::from_raw((*managed).context.cast::<Exported<Managed>>())) };
    }
    let tensor = tensor(&elements);
    let tensor = Managed { tensor, context: std::ptr::null_mut(), deleter: Some(delete) };
    let exported = Box::into_raw(Box::new(Exported { tensor, elements }));
    // SAFETY: as in `exported`.
    unsafe {
        (*exported).tensor.context = exported.cast();
        let elements = &mut (*exported).elements;
        (*exported).tensor.tensor.shape = elements.shape.as_mut_ptr();
        (*exported).tensor.tensor.strides = elements.strides.as_mut_ptr();
        &raw mut (*exported).tensor
    }
}

/// The tensor of these elements, without shape and strides.
fn tensor(elements: &Elements) -> Tensor {
    let is_empty = elements.shape.contains(&0);
    Tensor {
        data: if is_empty {
            std::ptr::null_mut()
        } else {
            std::ptr::with_exposed_provenance_mut(elements.address())
        },
        device: elements.device(),
        ndim: elements.shape.len() as i32,
        dtype: elements.dtype.dlpack(),
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    }
}

/// Frees the tensor of a capsule that nobody has taken it from.
unsafe extern "C" fn delete_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with the capsule. Those who take the tensor rename it.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, dlpack::VERSIONED_CAPSULE.as_ptr()) != 0 {
            let managed = ffi::PyCapsule_GetPointer(capsule, dlpack::VERSIONED_CAPSULE.as_ptr());
            let managed = managed.cast::<ManagedVersioned>();
            (*managed).deleter.expect("it was set")(managed);
        } else if ffi::PyCapsule_IsValid(capsule, dlpack::CAPSULE.as_ptr()) != 0 {
            let managed = ffi::PyCapsule_GetPointer(capsule, dlpack::CAPSULE.as_ptr());
            let managed = managed.cast::<Managed>();
            (*managed).deleter.expect("it was set")(managed);
        }
    }
}

/// An array that other libraries import: `numpy.asarray(array)`, `torch.from_dlpack(array)`. It is returned where the
/// library of the arrays that were passed in has no function for that.
#[pyclass(frozen, module = "nmsfilter")]
pub struct Array {
    pub elements: Elements,
}

impl Array {
    fn interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Elements { dtype, shape, strides, .. } = &self.elements;
        let kind = dtype.typestr().expect("no result is of another type");
        let size = dtype.size() as i64;
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", format!("{}{kind}", native_order()))?;
        interface.set_item("shape", PyTuple::new(py, shape)?)?;
        interface
            .set_item("strides", PyTuple::new(py, strides.iter().map(|stride| stride * size))?)?;
        interface.set_item("data", (self.elements.address(), false))?;
        Ok(interface)
    }

    /// The first `count` rows of an image in this array of images.
    pub fn rows(&self, image: usize, count: usize) -> Self {
        let mut elements = self.elements.clone();
        let stride = elements.strides.remove(0) as usize;
        elements.shape.remove(0);
        elements.shape[0] = count as i64;
        elements.offset += image * stride * elements.dtype.size();
        Self { elements }
    }

    fn is_on_host(&self) -> bool {
        matches!(*self.elements.memory, Memory::Host(_))
    }
}

/// The bytes, the element type and the shape of an array that is pickled.
type Packed<'py> = (Bound<'py, PyBytes>, &'static str, Vec<i64>);

#[pymethods]
impl Array {
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.elements.shape)
    }

    #[getter]
    fn dtype(&self) -> &'static str {
        self.elements.dtype.name()
    }

    #[getter]
    fn ndim(&self) -> usize {
        self.elements.shape.len()
    }

    fn __len__(&self) -> PyResult<usize> {
        let first = self.elements.shape.first();
        first
            .map(|&side| side as usize)
            .ok_or_else(|| PyTypeError::new_err("an array without dimensions has no length"))
    }

    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if self.is_on_host() {
            self.interface(py)
        } else {
            Err(PyAttributeError::new_err(
                "the array is in device memory; it has __cuda_array_interface__ and __dlpack__",
            ))
        }
    }

    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if self.is_on_host() {
            return Err(PyAttributeError::new_err(
                "the array is in host memory; it has __array_interface__ and __dlpack__",
            ));
        }
        let interface = self.interface(py)?;
        interface.set_item("stream", self.elements.stream)?;
        Ok(interface)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Packed<'py>)> {
        let Elements { dtype, shape, memory, offset, .. } = &slf.get().elements;
        let Memory::Host(words) = &**memory else {
            let text = "the array is in device memory; copy it to the host to pickle it";
            return Err(PyTypeError::new_err(text));
        };
        // In host memory, elements are without gaps.
        let len = shape.iter().product::<i64>() as usize * dtype.size();
        let bytes = PyBytes::new(slf.py(), &bytemuck::cast_slice(words)[*offset..][..len]);
        Ok((slf.get_type().getattr("_restored")?, (bytes, dtype.name(), shape.clone())))
    }

    #[staticmethod]
    fn _restored(bytes: &[u8], dtype: &str, shape: Vec<i64>) -> PyResult<Self> {
        let dtype = Dtype::ALL.into_iter().find(|known| known.name() == dtype);
        let dtype = dtype.ok_or_else(|| PyTypeError::new_err("an unknown element type"))?;
        let mut words = vec![0; bytes.len().div_ceil(size_of::<u64>())];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        let (memory, strides) = (Arc::new(Memory::Host(words)), contiguous(&shape));
        Ok(Self { elements: Elements { memory, offset: 0, dtype, shape, strides, stream: 0 } })
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        let device = self.elements.device();
        (device.kind, device.ordinal)
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if dl_device.is_some_and(|device| device != self.__dlpack_device__()) || copy == Some(true)
        {
            return Err(PyBufferError::new_err(
                "the array is exported without a copy only; import it, then copy it",
            ));
        }
        if let Memory::Device(buffer) = &*self.elements.memory {
            device::await_writer(buffer.device(), self.elements.stream, stream.as_ref())?;
        }
        let (pointer, name): (_, &CStr) = match max_version {
            Some((major, _)) if major >= dlpack::VERSION.major => {
                (exported(self.elements.clone()).cast(), dlpack::VERSIONED_CAPSULE)
            }
            _ => (exported_unversioned(self.elements.clone()).cast(), dlpack::CAPSULE),
        };
        // SAFETY: the pointer is not null, and is what the destructor expects of a capsule of this name.
        unsafe {
            let capsule = ffi::PyCapsule_New(pointer, name.as_ptr(), Some(delete_capsule));
            Bound::from_owned_ptr_or_err(py, capsule)
        }
    }

    fn __repr__(&self) -> String {
        let place = if self.is_on_host() { "host" } else { "device" };
        format!(
            "<nmsfilter.Array {:?} {} in {place} memory>",
            self.elements.shape, self.elements.dtype
        )
    }
}
