use half::f16;

use super::memory::MappedOnDevice;
use super::{ElementType, Storage, Tensor, TensorError};

/// A tensor's elements, readable by the CPU for as long as this lives.
#[derive(Debug)]
pub struct MappedTensor<'a> {
    bytes: Bytes<'a>,
    element: ElementType,
    /// Bytes that the shape calls for; the memory may hold more.
    len: usize,
}

#[derive(Debug)]
enum Bytes<'a> {
    Mapped(gst::BufferMap<'a, gst::buffer::Readable>),
    Host(&'a [u8]),
}

impl Bytes<'_> {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map.as_slice(),
            Self::Host(bytes) => bytes,
        }
    }
}

/// A tensor's elements, readable where they are.
#[derive(Debug)]
pub enum Mapped<'a> {
    /// By the CPU.
    OnHost(MappedTensor<'a>),
    /// On a GPU.
    OnDevice(MappedOnDevice<'a>),
}

/// Elements by type.
#[derive(Clone, Copy, Debug)]
pub enum Elements<'a> {
    /// Single precision.
    F32(&'a [f32]),
    /// Half precision.
    F16(&'a [f16]),
}

impl<'a> MappedTensor<'a> {
    /// Maps `tensor`, whose [`checked_len`](Tensor::checked_len) is `len`, and checks what reading
    /// it relies on.
    pub(super) fn new(tensor: &Tensor<'a>, len: usize) -> Result<Self, TensorError> {
        let bytes = match tensor.storage {
            // An empty buffer has no memory to map.
            _ if len == 0 => Bytes::Host(&[]),
            Storage::Buffer(buffer) => Bytes::Mapped(buffer.map_readable().map_err(|cause| {
                TensorError::Map { tensor: tensor.to_string(), cause: cause.to_string() }
            })?),
            Storage::Host(bytes) => Bytes::Host(bytes),
            Storage::Missing => unreachable!("checked_len refuses it"),
        };
        // What was mapped is what counts, whatever the buffer said of itself.
        let mapped = bytes.as_slice();
        if mapped.len() < len {
            return Err(TensorError::TooShort {
                tensor: tensor.to_string(),
                needed: len,
                held: mapped.len(),
            });
        }
        let align = tensor.element.size().expect("checked_len refuses other types");
        if len > 0 && mapped.as_ptr().align_offset(align) != 0 {
            return Err(TensorError::Misaligned { tensor: tensor.to_string(), align });
        }
        Ok(Self { bytes, element: tensor.element, len })
    }

    /// The elements' bytes, exactly as many as the shape says.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes.as_slice()[..self.len]
    }

    /// The elements, exactly as many as the shape says.
    pub fn elements(&self) -> Elements<'_> {
        let bytes = self.bytes();
        // Length, alignment and type were checked in `new`.
        match (self.element, bytes.is_empty()) {
            (ElementType::F16, true) => Elements::F16(&[]),
            (ElementType::F16, false) => Elements::F16(bytemuck::cast_slice(bytes)),
            (_, true) => Elements::F32(&[]),
            (_, false) => Elements::F32(bytemuck::cast_slice(bytes)),
        }
    }
}
