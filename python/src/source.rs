// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrays that are passed in, as the engines read them.
//!
//! In: [`Input`]s. Out: [`Source`]s, which other threads of Python do not affect, so that engines run while this thread
//! is detached.

use half::{bf16, f16};
use nmsfilter_core::cuda::Ready;
use nmsfilter_core::tensor::{DeviceSlice, ElementType, Quantization, Shape, Storage, TensorView};

use crate::array::exceeds_memory;
use crate::device::foreign;
use crate::dtype::Dtype;
use crate::error::{Error, Result};
use crate::input::{HostBytes, Input, Place};

/// A tensor for an engine.
pub struct Source<'a> {
    element: ElementType,
    shape: &'a [usize],
    memory: Memory<'a>,
    pub quantization: Option<Quantization>,
}

enum Memory<'a> {
    Host(HostBytes<'a>),
    /// `ordinal`: the GPU, if it is known. `after`: the stream whose work is to be awaited.
    Device {
        address: u64,
        len: usize,
        ordinal: Option<i32>,
        after: Option<usize>,
    },
}

/// The order in which device memory is read.
#[derive(Clone, Copy)]
pub enum Order {
    /// In a stream of the engine's, once the work that has been submitted to this stream of the caller's has completed.
    After(usize),
    /// In this stream of the caller's.
    In(usize),
}

impl<'a> Source<'a> {
    /// Floating-point numbers. float64 and bfloat16 in host memory are converted to float32.
    pub fn of_floats(input: &'a Input<'_>, name: &str, order: Order) -> Result<Self> {
        if let Dtype::F32 | Dtype::F16 = input.dtype {
            return Self::unchanged(input, order);
        }
        let numbers = match (input.place, input.dtype) {
            (Place::Host, Dtype::F64) => convert(input, |number: f64| number as f32)?,
            (Place::Host, Dtype::Bf16) => convert(input, bf16::to_f32)?,
            (_, dtype) => {
                let place = if input.is_on_device() { " in device memory" } else { "" };
                return Err(Error::Type(format!(
                    "{name}: expected float32 or float16{place}, got {dtype}; convert it, to float32 by \
                     {name}.float() in PyTorch, {name}.astype('float32') in NumPy and CuPy"
                )));
            }
        };
        Ok(Self {
            element: ElementType::F32,
            memory: Memory::Host(numbers),
            ..Self::unchanged(input, order)?
        })
    }

    /// Whole numbers. In host memory, other types than int32 and int64 are converted to int64.
    pub fn of_integers(input: &'a Input<'_>, name: &str, order: Order) -> Result<Self> {
        if let Dtype::I32 | Dtype::I64 = input.dtype {
            return Self::unchanged(input, order);
        }
        if input.is_on_device() {
            return Err(Error::Type(format!(
                "{name}: expected int64 or int32 in device memory, got {}; convert it, by {name}.long() in \
                 PyTorch, {name}.astype('int64') in CuPy",
                input.dtype
            )));
        }
        let numbers = match input.dtype {
            Dtype::I8 => convert(input, |number: i8| i64::from(number))?,
            Dtype::I16 => convert(input, |number: i16| i64::from(number))?,
            Dtype::U8 | Dtype::Bool => convert(input, |number: u8| i64::from(number))?,
            Dtype::U16 => convert(input, |number: u16| i64::from(number))?,
            Dtype::U32 => convert(input, |number: u32| i64::from(number))?,
            // Groups are compared for equality only.
            Dtype::U64 => convert(input, |number: u64| number as i64)?,
            Dtype::F16 => whole(input, name, |number: f16| number.to_f64())?,
            Dtype::Bf16 => whole(input, name, |number: bf16| number.to_f64())?,
            Dtype::F32 => whole(input, name, |number: f32| f64::from(number))?,
            Dtype::F64 => whole(input, name, |number: f64| number)?,
            Dtype::I32 | Dtype::I64 => unreachable!("returned above"),
        };
        Ok(Self {
            element: ElementType::I64,
            memory: Memory::Host(numbers),
            ..Self::unchanged(input, order)?
        })
    }

    /// A tensor of a model's output: of a type that engines read, or float64 and bfloat16 in host memory.
    pub fn of_tensor(input: &'a Input<'_>, name: &str, order: Order) -> Result<Self> {
        match input.dtype.element() {
            Some(_) => Self::unchanged(input, order),
            None => Self::of_floats(input, name, order).map_err(|error| match error {
                Error::Type(_) => Error::Type(format!(
                    "{name}: expected float32, float16, int8, uint8, int32 or int64, got {}; convert it",
                    input.dtype
                )),
                other => other,
            }),
        }
    }

    /// The elements as they are. The element type is set by the caller if engines do not read the input's.
    fn unchanged(input: &'a Input<'_>, order: Order) -> Result<Self> {
        let memory = match input.place {
            Place::Host if input.dtype.element().is_none() => {
                Memory::Host(HostBytes::Borrowed(&[]))
            }
            Place::Host => Memory::Host(input.host_bytes()?),
            Place::Device { writer, ordinal } => {
                let after = match (order, writer) {
                    (Order::After(stream), writer) => Some(writer.unwrap_or(stream)),
                    (Order::In(stream), writer) => writer.filter(|&writer| writer != stream),
                };
                Memory::Device { address: input.address(), len: input.byte_len(), ordinal, after }
            }
        };
        let element = input.dtype.element().unwrap_or(ElementType::F32);
        Ok(Self { element, shape: &input.shape, memory, quantization: None })
    }

    /// The view of the tensor with this id.
    pub fn view<'s>(&'s self, id: &'s str) -> TensorView<'s> {
        let shape = Shape::new(self.shape).expect("an input has no more dimensions");
        let storage = match &self.memory {
            Memory::Host(bytes) => Storage::Host(bytes.as_slice()),
            &Memory::Device { address, len, ordinal, after } => {
                let ready = after.map_or(Ready::Now, |stream| Ready::AfterStream(foreign(stream)));
                // SAFETY: the caller holds the array during the call. Work that writes it is awaited. DLPack defines
                // that an array with this number can be read by the GPU.
                Storage::Device(unsafe {
                    let slice = DeviceSlice::new(address, len, ready);
                    ordinal.map_or(slice, |ordinal| slice.on(ordinal as u32))
                })
            }
        };
        TensorView::new(id, self.element, shape, storage).with_quantization(self.quantization)
    }
}

/// The elements of an array in host memory, each converted by `to`.
pub fn convert<T: bytemuck::Pod, U: bytemuck::Pod>(
    input: &Input<'_>,
    mut to: impl FnMut(T) -> U,
) -> Result<HostBytes<'static>> {
    let bytes = input.host_bytes()?;
    let numbers: &[T] = match bytes.as_slice() {
        // An empty slice has no alignment.
        [] => &[],
        bytes => bytemuck::cast_slice(bytes),
    };
    let converted = HostBytes::of(numbers.iter().map(|&number| to(number)));
    converted.ok_or_else(|| exceeds_memory(&input.shape, input.dtype))
}

/// Floating-point numbers as int64, if they are whole.
fn whole<T: bytemuck::Pod>(
    input: &Input<'_>,
    name: &str,
    number: impl Fn(T) -> f64,
) -> Result<HostBytes<'static>> {
    let mut other = None;
    let numbers = convert(input, |element: T| {
        let number = number(element);
        if number.fract() != 0.0 || number.abs() > 2f64.powi(53) {
            other = Some(number);
        }
        number as i64
    })?;
    match other {
        None => Ok(numbers),
        Some(number) => Err(Error::Input(format!("{name}: expected whole numbers, got {number}"))),
    }
}
