//! What arrives on a buffer, and where it lies.
//!
//! An inference element hangs a model's raw output on each video buffer. One reader per kind of
//! metadata turns that into [`Tensor`]s: [`attached`] for the plugin's own metadata (any
//! GStreamer) and, with the cargo feature `v1_26`, `analytics` for `GstTensorMeta`. A reader
//! borrows from the buffer; looking at a tensor's id and shape touches none of its memory. Memory
//! is mapped by [`Tensor::map`], or for a GPU by [`Tensor::map_on_device`], which check it against the
//! claimed shape first.

#[cfg(feature = "v1_26")]
pub mod analytics;
pub mod attached;
mod element;
mod mapped;
pub mod memory;

use std::fmt;

use arrayvec::ArrayVec;

pub use element::{Element, ElementType};
pub use mapped::{Elements, Mapped, MappedTensor};
use memory::MappedOnDevice;

/// The most dimensions a tensor can have.
pub const MAX_RANK: usize = 8;

/// The most tensors read from one buffer; further ones are left unread and counted.
pub const MAX_TENSORS: usize = 16;

/// The tensors of one buffer, in the order in which they were attached.
#[derive(Clone, Debug, Default)]
pub struct Tensors<'a> {
    read: ArrayVec<Tensor<'a>, MAX_TENSORS>,
    unread: usize,
}

impl<'a> Tensors<'a> {
    /// How many tensors the buffer has beyond those read: more than [`MAX_TENSORS`], or with more
    /// than [`MAX_RANK`] dimensions.
    pub fn unread(&self) -> usize {
        self.unread
    }

    /// Whether further tensors are only counted.
    fn is_full(&self) -> bool {
        self.read.is_full()
    }

    /// Adds a tensor, or counts it where there is no room.
    fn push(&mut self, tensor: Tensor<'a>) {
        match self.read.try_push(tensor) {
            Ok(()) => {}
            Err(_) => self.leave_out(),
        }
    }

    /// Counts a tensor that is not read.
    fn leave_out(&mut self) {
        self.unread += 1;
    }
}

impl<'a> std::ops::Deref for Tensors<'a> {
    type Target = [Tensor<'a>];

    fn deref(&self) -> &[Tensor<'a>] {
        &self.read
    }
}

impl<'t, 'a> IntoIterator for &'t Tensors<'a> {
    type Item = &'t Tensor<'a>;
    type IntoIter = std::slice::Iter<'t, Tensor<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.read.iter()
    }
}

/// A tensor's dimensions, slowest first (row-major, contiguous).
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Shape(ArrayVec<usize, MAX_RANK>);

impl Shape {
    /// The shape with these dimensions, or `None` where there are more than [`MAX_RANK`].
    pub fn new(dims: &[usize]) -> Option<Self> {
        ArrayVec::try_from(dims).ok().map(Self)
    }

    /// The number of elements, or `None` where it overflows.
    pub fn elements(&self) -> Option<usize> {
        self.0.iter().try_fold(1usize, |n, &d| n.checked_mul(d))
    }
}

impl std::ops::Deref for Shape {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Written as `1x84x8400`; a scalar as `scalar`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("scalar");
        }
        for (i, dim) in self.0.iter().enumerate() {
            write!(f, "{}{dim}", if i == 0 { "" } else { "x" })?;
        }
        Ok(())
    }
}

/// Where a tensor's elements lie.
#[derive(Clone, Copy, Debug)]
pub enum Storage<'a> {
    /// In a buffer, which may have to be mapped, and may be a GPU's memory.
    Buffer(&'a gst::BufferRef),
    /// In plain host memory.
    Host(&'a [u8]),
    /// Nowhere: the metadata carries no memory.
    Missing,
}

/// One output of a model: its name, element type and shape, and where its elements lie.
#[derive(Clone, Debug)]
pub struct Tensor<'a> {
    /// The name under which the producer knows this output.
    pub id: &'a str,
    /// What each element is.
    pub element: ElementType,
    /// The claimed dimensions; nothing says that the memory is that large.
    pub shape: Shape,
    /// Where the elements lie.
    pub storage: Storage<'a>,
}

impl<'a> Tensor<'a> {
    /// A tensor over elements in host memory.
    ///
    /// # Panics
    /// Where `shape` has more than [`MAX_RANK`] dimensions.
    pub fn from_slice<T: Element>(id: &'a str, shape: &[usize], elements: &'a [T]) -> Self {
        Self {
            id,
            element: T::TYPE,
            shape: Shape::new(shape).expect("a shape has at most 8 dimensions"),
            storage: Storage::Host(bytemuck::cast_slice(elements)),
        }
    }

    /// The bytes that shape and element type call for, once it is sure that the memory holds
    /// them.
    ///
    /// # Errors
    /// Where the shape overflows, the element type is neither f16 nor f32, or the memory is
    /// missing or shorter than the shape claims.
    pub fn checked_len(&self) -> Result<usize, TensorError> {
        let tensor = || self.to_string();
        let size =
            self.element.size().ok_or_else(|| TensorError::ElementType { tensor: tensor() })?;
        let needed = self
            .shape
            .elements()
            .and_then(|n| n.checked_mul(size))
            .ok_or_else(|| TensorError::TooLarge { tensor: tensor() })?;
        let held = match self.storage {
            Storage::Buffer(buffer) => buffer.size(),
            Storage::Host(bytes) => bytes.len(),
            Storage::Missing => return Err(TensorError::Missing { tensor: tensor() }),
        };
        if held < needed {
            return Err(TensorError::TooShort { tensor: tensor(), needed, held });
        }
        Ok(needed)
    }

    /// Makes the elements readable by the CPU.
    ///
    /// # Errors
    /// As [`checked_len`](Self::checked_len), and where the memory is misaligned or cannot be
    /// mapped.
    pub fn map(&self) -> Result<MappedTensor<'a>, TensorError> {
        MappedTensor::new(self, self.checked_len()?)
    }

    /// Whether the elements lie in a GPU's memory.
    pub fn is_on_device(&self) -> bool {
        match self.storage {
            Storage::Buffer(buffer) => memory::is_on_device(buffer),
            Storage::Host(_) | Storage::Missing => false,
        }
    }

    /// The elements' address on a GPU; `None` where they are not on one.
    ///
    /// # Errors
    /// As [`checked_len`](Self::checked_len), and where the memory is misaligned or gives no
    /// address.
    pub fn map_on_device(&self) -> Result<Option<MappedOnDevice<'a>>, TensorError> {
        self.map_on_device_len(self.checked_len()?)
    }

    /// Makes the elements readable where they are.
    ///
    /// # Errors
    /// As [`map`](Self::map) and [`map_on_device`](Self::map_on_device).
    pub fn map_in_place(&self) -> Result<Mapped<'a>, TensorError> {
        let needed = self.checked_len()?;
        Ok(match self.map_on_device_len(needed)? {
            Some(on_device) => Mapped::OnDevice(on_device),
            None => Mapped::OnHost(MappedTensor::new(self, needed)?),
        })
    }

    /// The same as [`map_on_device`](Self::map_on_device), where `needed` is the
    /// [`checked_len`](Self::checked_len).
    fn map_on_device_len(&self, needed: usize) -> Result<Option<MappedOnDevice<'a>>, TensorError> {
        let Storage::Buffer(buffer) = self.storage else {
            return Ok(None);
        };
        let Some(mapped) = MappedOnDevice::new(self, buffer)? else {
            return Ok(None);
        };
        let tensor = || self.to_string();
        if mapped.len() < needed {
            return Err(TensorError::TooShort { tensor: tensor(), needed, held: mapped.len() });
        }
        let align = self.element.size().expect("checked_len refuses other types");
        if !mapped.address().is_multiple_of(align as u64) {
            return Err(TensorError::Misaligned { tensor: tensor(), align });
        }
        Ok(Some(mapped))
    }
}

/// Written as `yolo-v8-out (f32 1x84x8400)`.
impl fmt::Display for Tensor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} {})", self.id, self.element, self.shape)
    }
}

/// Why a tensor cannot be attached or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// The memory is smaller than the shape says.
    #[error(
        "tensor {tensor}: its shape needs {needed} bytes, but its memory holds {held}; \
         correct the shape or the memory"
    )]
    TooShort {
        /// The tensor, as displayed.
        tensor: String,
        /// Bytes that shape and element type call for.
        needed: usize,
        /// Bytes there are.
        held: usize,
    },
    /// The shape's element count does not fit the machine's word.
    #[error("tensor {tensor}: its dimensions multiply to more elements than memory can hold")]
    TooLarge {
        /// The tensor, as displayed.
        tensor: String,
    },
    /// More dimensions than [`MAX_RANK`].
    #[error("tensor {id}: expected at most {MAX_RANK} dimensions, got {rank}")]
    Rank {
        /// The tensor's id.
        id: String,
        /// Its number of dimensions.
        rank: usize,
    },
    /// Neither f16 nor f32.
    #[error("tensor {tensor}: expected elements of type f16 or f32; dequantize it upstream")]
    ElementType {
        /// The tensor, as displayed.
        tensor: String,
    },
    /// The metadata carries no memory.
    #[error("tensor {tensor}: its metadata carries no memory; attach the elements with it")]
    Missing {
        /// The tensor, as displayed.
        tensor: String,
    },
    /// The memory does not start at a multiple of the element size.
    #[error(
        "tensor {tensor}: its memory starts at an address that is no multiple of {align} bytes; \
         copy the elements to memory that is aligned for their type"
    )]
    Misaligned {
        /// The tensor, as displayed.
        tensor: String,
        /// The alignment wanted.
        align: usize,
    },
    /// GStreamer could not map the memory.
    #[error("tensor {tensor}: its memory cannot be mapped for reading: {cause}")]
    Map {
        /// The tensor, as displayed.
        tensor: String,
        /// What GStreamer said.
        cause: String,
    },
    /// The plugin's own metadata lacks a field or has one of another type.
    #[error("metadata {name}: {problem}", name = attached::META_NAME)]
    Malformed {
        /// What is wrong with it.
        problem: String,
    },
}

/// Reads every tensor on `buffer`, whatever metadata carries it.
///
/// # Errors
/// Where the plugin's own metadata is malformed.
pub fn read(buffer: &gst::BufferRef) -> Result<Tensors<'_>, TensorError> {
    let mut tensors = Tensors::default();
    #[cfg(feature = "v1_26")]
    analytics::read(buffer, &mut tensors);
    attached::read(buffer, &mut tensors)?;
    Ok(tensors)
}

/// Removes every tensor from `buffer`, whatever metadata carries it.
pub fn remove(buffer: &mut gst::BufferRef) {
    #[cfg(feature = "v1_26")]
    analytics::remove(buffer);
    attached::remove(buffer);
}
