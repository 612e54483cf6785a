// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensors of the caller.

use std::ffi::{c_char, c_void};

use arrayvec::ArrayVec;
use nmsfilter_core::cuda::{self, Event, ForeignStream};
use nmsfilter_core::nms::MAX_IMAGES;
use nmsfilter_core::tensor::{
    self, DeviceSlice, Images, MAX_DIMENSIONS, Quantization, Shape, Storage, TensorView,
};

use crate::border::{self, Failure, sized_struct};
use crate::enumeration::value_of;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub enum ElementType {
    /// IEEE 754 single precision.
    F32 = 0,
    /// IEEE 754 half precision.
    F16 = 1,
    /// Signed integers of 8 bits, as quantized models have them.
    I8 = 2,
    /// Unsigned integers of 8 bits, as quantized models have them.
    U8 = 3,
    /// Signed integers of 32 bits.
    I32 = 4,
    /// Signed integers of 64 bits.
    I64 = 5,
}

/// Where the elements of a tensor are.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub enum Memory {
    /// In host memory.
    Host = 0,
    /// In device memory of a GPU's primary context, which the CUDA runtime uses.
    Device = 1,
}

/// When device memory may be read: nmsfilter_run waits for that. nmsfilter_enqueue works in the order of its stream, which
/// waits for the events and for the other streams of tensors.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub enum Ready {
    /// At once: the work that writes the memory has completed, or is before in the stream of nmsfilter_enqueue.
    Now = 0,
    /// After the CUevent in `ready_after`.
    AfterEvent = 1,
    /// After the work that was submitted to the CUstream in `ready_after` before the call. NULL is the default stream.
    AfterStream = 2,
}

/// A tensor: one output of a model. Set all bytes to 0, then `size` and the needed fields.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Tensor {
    /// sizeof(NmsfilterTensor).
    pub size: usize,
    /// The tensor's id or the name of the model's output, by which a decoder is chosen unless one is set; UTF-8 or NULL.
    pub id: *const c_char,
    /// An NmsfilterElementType.
    pub element_type: u32,
    /// The number of dimensions, 0 to 8.
    pub dimensions: u32,
    /// The dimensions, slowest first. Elements are contiguous and row-major.
    pub shape: [u64; 8],
    /// An NmsfilterMemory.
    pub memory: u32,
    /// An NmsfilterReady, of device memory.
    pub ready: u32,
    /// The CUevent or CUstream of `ready`.
    pub ready_after: *mut c_void,
    /// The first element, or its device address. NULL with `images`.
    pub data: *const c_void,
    /// In place of `data`, where the images of a batch are in separate allocations: an array with the address of the first
    /// element of each image, one for each index of the shape's first dimension.
    pub images: *const *const c_void,
    /// The number of bytes at `data`, or at the address of each image: at least as many as the shape (of an image)
    /// requires.
    pub bytes: usize,
    /// The step of quantized elements of type i8 or u8, which stand for (element - zero_point) * scale; 0 if elements are
    /// not quantized.
    pub scale: f32,
    /// The element that stands for 0.
    pub zero_point: i32,
}

const _: () = assert!(MAX_DIMENSIONS == 8);

sized_struct!(Tensor, "NmsfilterTensor", zero_point: i32);

/// The greatest number of tensors of a call.
const MAX_TENSORS: usize = 16;

/// The tensors of a call.
pub struct Tensors<'a>(ArrayVec<Checked<'a>, MAX_TENSORS>);

/// A tensor whose fields were read.
struct Checked<'a> {
    id: &'a str,
    element: tensor::ElementType,
    shape: Shape,
    quantization: Option<Quantization>,
    memory: CallerMemory<'a>,
}

/// Where the elements begin.
#[derive(Debug)]
enum Addresses<'a> {
    OfAll(*const c_void),
    OfImages(&'a [*const c_void]),
}

/// Memory of the caller.
#[derive(Debug)]
struct CallerMemory<'a> {
    addresses: Addresses<'a>,
    bytes: usize,
    /// `None` for host memory.
    ready: Option<cuda::Ready>,
}

impl CallerMemory<'_> {
    /// The memory at an address of the caller.
    fn at(&self, address: *const c_void) -> Storage<'_> {
        match self.ready {
            // SAFETY: the header requires that there are as many bytes, which are not written while they are read.
            Some(ready) => Storage::Device(unsafe {
                DeviceSlice::new(address.addr() as u64, self.bytes, ready)
            }),
            None if self.bytes == 0 => Storage::Host(&[]),
            // SAFETY: as above; the address is not NULL, which was checked.
            None => Storage::Host(unsafe {
                std::slice::from_raw_parts(address.cast::<u8>(), self.bytes)
            }),
        }
    }

    fn storage(&self) -> Storage<'_> {
        match self.addresses {
            Addresses::OfAll(address) => self.at(address),
            Addresses::OfImages(_) => Storage::Images(self),
        }
    }
}

impl Images for CallerMemory<'_> {
    fn count(&self) -> usize {
        match self.addresses {
            Addresses::OfAll(_) => 1,
            Addresses::OfImages(images) => images.len(),
        }
    }

    fn storage(&self, index: usize) -> Storage<'_> {
        match self.addresses {
            Addresses::OfAll(address) => self.at(address),
            Addresses::OfImages(images) => self.at(images[index]),
        }
    }
}

impl<'a> Tensors<'a> {
    /// The tensors of an array of structures, which all have the size of the first.
    ///
    /// # Errors
    /// If there are more than 16, or a field has no valid value.
    ///
    /// # Safety
    /// The pointer is NULL or valid for that many structures, whose pointers are as the header requires during `'a`.
    pub unsafe fn read(from: *const Tensor, count: usize) -> Result<Self, Failure> {
        if count > MAX_TENSORS {
            let text = format!("tensors: expected at most {MAX_TENSORS}, got {count}");
            return Err(Failure::argument(text));
        }
        let mut tensors = ArrayVec::new();
        if count > 0 {
            // SAFETY: the caller guarantees it.
            let stride = unsafe { border::size_at(from, "tensors") }?;
            for index in 0..count {
                // SAFETY: there are `count` structures of this size.
                let tensor = unsafe {
                    border::read_bytes::<Tensor>(
                        from.byte_add(index * stride).cast(),
                        stride,
                        "tensors",
                    )
                }?;
                let name = format_args!("tensors[{index}]").to_string();
                // SAFETY: the caller guarantees it.
                tensors.push(unsafe { check(&tensor, &name, "") }?);
            }
        }
        Ok(Self(tensors))
    }

    /// The tensors at these pointers; those that are `None` are left out. The names are those for messages, and of the
    /// tensors without an id.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    ///
    /// # Safety
    /// The requirements of [`read`](Self::read), for each tensor.
    pub unsafe fn read_named<const COUNT: usize>(
        from: [(Option<*const Tensor>, &'static str); COUNT],
    ) -> Result<Self, Failure> {
        let mut tensors = ArrayVec::new();
        for (pointer, name) in from {
            if let Some(pointer) = pointer {
                // SAFETY: the caller guarantees it.
                tensors.push(unsafe { check(&border::read(pointer, name)?, name, name) }?);
            }
        }
        Ok(Self(tensors))
    }

    pub fn views(&self) -> ArrayVec<TensorView<'_>, MAX_TENSORS> {
        let view = |tensor| {
            let Checked { id, element, shape, quantization, memory }: &Checked<'a> = tensor;
            TensorView::new(id, *element, shape.clone(), memory.storage())
                .with_quantization(*quantization)
        };
        self.0.iter().map(view).collect()
    }
}

/// # Safety
/// The pointers of the tensor are as the header requires during `'a`.
unsafe fn check<'a>(
    tensor: &Tensor,
    name: &str,
    default_id: &'static str,
) -> Result<Checked<'a>, Failure> {
    let error = |field: &str, expected: &str, got: &dyn std::fmt::Display| {
        Failure::argument(format!("{name}: {field}: expected {expected}, got {got}"))
    };
    // SAFETY: the caller guarantees it.
    let id = unsafe { border::text(tensor.id, &format!("{name}: id")) }?.unwrap_or(default_id);
    let field = format_args!("{name}: element_type");
    let element = value_of!(field, tensor.element_type, ElementType => tensor::ElementType, [F32, F16, I8, U8, I32, I64])?;
    let dimensions = tensor.shape.get(..tensor.dimensions as usize);
    let dimensions = dimensions.ok_or_else(|| error("dimensions", "0 to 8", &tensor.dimensions))?;
    let mut shape = ArrayVec::<usize, MAX_DIMENSIONS>::new();
    for &side in dimensions {
        shape.push(usize::try_from(side).map_err(|_| error("shape", "a size in memory", &side))?);
    }
    let quantization = match (tensor.scale, tensor.zero_point) {
        (0.0, 0) => None,
        (scale, zero_point) => Some(Quantization::new(scale, zero_point).ok_or_else(|| {
            let limit = Quantization::MAX_ZERO_POINT;
            error(
                "scale and zero_point",
                &format!("a scale above 0 and a zero point from -{limit} to {limit}"),
                &format_args!("{scale} and {zero_point}"),
            )
        })?),
    };
    // SAFETY: as above.
    let memory = unsafe { memory(tensor, &shape, &error) }?;
    let shape = Shape::new(&shape).expect("at most 8 dimensions");
    Ok(Checked { id, element, shape, quantization, memory })
}

/// # Safety
/// The pointers of the tensor are as the header requires during `'a`.
unsafe fn memory<'a>(
    tensor: &Tensor,
    shape: &[usize],
    error: &dyn Fn(&str, &str, &dyn std::fmt::Display) -> Failure,
) -> Result<CallerMemory<'a>, Failure> {
    let is_on_device = match tensor.memory {
        it if it == Memory::Host as u32 => false,
        it if it == Memory::Device as u32 => true,
        other => return Err(error("memory", "an NmsfilterMemory", &other)),
    };
    // SAFETY: the header requires that the event or the stream exists.
    let ready = unsafe {
        match tensor.ready {
            it if it == Ready::Now as u32 => cuda::Ready::Now,
            it if it == Ready::AfterEvent as u32 => {
                if tensor.ready_after.is_null() {
                    return Err(error("ready_after", "a CUevent", &"NULL"));
                } else {
                    cuda::Ready::After(Event::from_raw(tensor.ready_after))
                }
            }
            it if it == Ready::AfterStream as u32 => {
                cuda::Ready::AfterStream(ForeignStream::from_raw(tensor.ready_after))
            }
            other => return Err(error("ready", "an NmsfilterReady", &other)),
        }
    };
    let memory = |addresses| CallerMemory {
        addresses,
        bytes: tensor.bytes,
        ready: is_on_device.then_some(ready),
    };
    if isize::try_from(tensor.bytes).is_err() {
        return Err(error("bytes", "a size in memory", &tensor.bytes));
    }
    if tensor.images.is_null() {
        if tensor.data.is_null() && tensor.bytes != 0 {
            return Err(error("data", "a pointer", &"NULL"));
        }
        return Ok(memory(Addresses::OfAll(tensor.data)));
    }
    if !tensor.data.is_null() {
        return Err(error("images", "NULL, because data is set", &"a pointer"));
    }
    let count = shape.first().copied().unwrap_or_default();
    if count > MAX_IMAGES {
        let expected = format!("a first dimension of at most {MAX_IMAGES} images");
        return Err(error("shape", &expected, &count));
    }
    // SAFETY: the header requires that there is an address for each image.
    let images = unsafe { border::slice(tensor.images, count, "tensor: images") }?;
    if tensor.bytes != 0
        && let Some(image) = images.iter().position(|image| image.is_null())
    {
        return Err(error(&format!("images[{image}]"), "a pointer", &"NULL"));
    }
    Ok(memory(Addresses::OfImages(images)))
}
