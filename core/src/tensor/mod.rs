// SPDX-License-Identifier: MIT OR Apache-2.0
//! Views of tensors, without GStreamer.
//!
//! In: the id, element type and shape of a model's output, as claimed by its producer, and the memory that
//! holds it. Out: elements in host memory ([`TensorView::elements`]) or an address in device memory
//! ([`TensorView::device`]), both only after the claimed shape was checked against the size of the
//! memory. Reading the id and the shape does not access the memory: a [`Mappable`] is mapped when an
//! engine needs it. The images of a batch can be in separate allocations ([`Images`]); they are read one by
//! one ([`TensorView::image`]).

mod element;
mod error;
mod shape;
mod storage;

use std::fmt;

pub(crate) use element::with_elements;
pub use element::{Element, ElementType, Elements, Quantization};
pub use error::{TensorError, TensorProblem};
pub use shape::{MAX_DIMENSIONS, Shape};
pub use storage::{DeviceSlice, Images, Mappable, Storage};

/// One output of a model: its id, element type and shape, and the memory that holds its elements,
/// row-major and contiguous.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TensorView<'a> {
    /// The producer's name for this output, by which a decoder is chosen.
    pub id: &'a str,
    /// The type of each element.
    pub element: ElementType,
    /// The numbers that elements of type i8 and u8 stand for; `None` if the elements are the numbers.
    pub quantization: Option<Quantization>,
    /// The claimed dimensions. The memory can be smaller; every access checks that.
    pub shape: Shape,
    /// The memory.
    pub storage: Storage<'a>,
    /// The index of the image, and the number of images, if this is one image of a tensor whose images are
    /// in separate allocations.
    image: Option<[usize; 2]>,
}

/// A tensor's elements in the memory that they are in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Resident<'a> {
    /// In host memory: as many bytes as the shape requires.
    Host(&'a [u8]),
    /// In device memory.
    Device(DeviceSlice),
}

impl<'a> TensorView<'a> {
    /// A tensor of this id, element type and shape in `storage`. Nothing is checked yet.
    pub fn new(id: &'a str, element: ElementType, shape: Shape, storage: Storage<'a>) -> Self {
        Self { id, element, quantization: None, shape, storage, image: None }
    }

    /// A tensor over elements in host memory.
    ///
    /// # Panics
    /// If `shape` has more than [`MAX_DIMENSIONS`] dimensions.
    pub fn from_slice<T: Element>(id: &'a str, shape: &[usize], elements: &'a [T]) -> Self {
        let shape = Shape::new(shape).expect("a shape has at most 8 dimensions");
        Self::new(id, T::TYPE, shape, Storage::Host(bytemuck::cast_slice(elements)))
    }

    /// The id, the type and meaning of elements, and the shape: all that the choice of a decoder depends on.
    pub fn signature(&self) -> (&str, ElementType, Option<Quantization>, &Shape) {
        (self.id, self.element, self.quantization, &self.shape)
    }

    /// The tensor with quantized elements. It has no effect on elements other than i8 and u8.
    #[must_use]
    pub fn with_quantization(self, quantization: Option<Quantization>) -> Self {
        let is_quantized = matches!(self.element, ElementType::I8 | ElementType::U8);
        Self { quantization: quantization.filter(|_| is_quantized), ..self }
    }

    /// The number of bytes that the shape and the element type require, if the memory has at least as many.
    ///
    /// If images are in separate allocations, every allocation is checked.
    ///
    /// # Errors
    /// If the shape overflows, the element type cannot be read, or the memory is missing or
    /// smaller than the shape claims; if the first dimension is not the number of images.
    pub fn checked_len(&self) -> Result<usize, TensorError> {
        let size = self.element.size().ok_or_else(|| self.error(TensorProblem::ElementType))?;
        let needed = self.shape.elements().and_then(|elements| elements.checked_mul(size));
        let needed = needed.ok_or_else(|| self.error(TensorProblem::TooLarge))?;
        if let Storage::Images(images) = self.storage {
            let held = images.count();
            if self.shape.first() != Some(&held) {
                return Err(self.error(TensorProblem::ImageCount { held }));
            }
            for index in 0..held {
                self.image(index)
                    .ok_or_else(|| self.error(TensorProblem::SeparateImages))?
                    .checked_len()?;
            }
            return Ok(needed);
        }
        let held = self.storage.size().ok_or_else(|| self.error(TensorProblem::Missing))?;
        self.check_len(needed, held)?;
        Ok(needed)
    }

    /// Returns true if the images are in separate allocations.
    pub fn has_separate_images(&self) -> bool {
        matches!(self.storage, Storage::Images(_))
    }

    /// Image `index` as a tensor whose first dimension is 1, if the images are in separate allocations;
    /// `None` if they are in one memory.
    ///
    /// # Panics
    /// Can panic if there is no such image.
    pub fn image(&self, index: usize) -> Option<Self> {
        let Storage::Images(images) = self.storage else { return None };
        // An image has one memory: images of an image are an error of every access.
        self.image.is_none().then(|| Self {
            id: self.id,
            element: self.element,
            quantization: self.quantization,
            shape: self.shape.of_image(),
            storage: images.storage(index),
            image: Some([index, images.count()]),
        })
    }

    /// The elements, in host memory.
    ///
    /// # Errors
    /// The errors of [`checked_len`](Self::checked_len), and if the memory is misaligned, cannot be mapped, or is
    /// device memory that has no copy on the host, or if the images are in separate allocations.
    pub fn elements(&self) -> Result<Elements<'a>, TensorError> {
        let bytes = self.host_bytes(self.checked_len()?)?;
        // Length, alignment and type were checked.
        Ok(Elements::new(self.element, bytes))
    }

    /// Returns true if the elements, or the elements of an image, are in device memory.
    pub fn is_on_device(&self) -> bool {
        self.storage.any(&|memory| match memory {
            Storage::Device(_) => true,
            Storage::Mappable(memory) => memory.is_on_device(),
            _ => false,
        })
    }

    /// Returns true if the elements, or the elements of an image, have no copy in host memory.
    pub(crate) fn is_only_on_device(&self) -> bool {
        self.storage.any(&|memory| matches!(memory, Storage::Device(_)))
    }

    /// The elements in device memory; `None` if they are in host memory.
    ///
    /// # Errors
    /// The errors of [`checked_len`](Self::checked_len), and if the memory is misaligned or has no device address, or
    /// if the images are in separate allocations.
    pub fn device(&self) -> Result<Option<DeviceSlice>, TensorError> {
        self.device_slice(self.checked_len()?)
    }

    /// The elements, in device memory or in host memory.
    ///
    /// # Errors
    /// The errors of [`elements`](Self::elements) and [`device`](Self::device).
    pub(crate) fn resident(&self) -> Result<Resident<'a>, TensorError> {
        let needed = self.checked_len()?;
        Ok(match self.device_slice(needed)? {
            Some(slice) => Resident::Device(slice),
            None => Resident::Host(self.host_bytes(needed)?),
        })
    }

    /// The first `needed` bytes, in host memory.
    ///
    /// # Errors
    /// The errors of [`elements`](Self::elements).
    pub fn host_bytes(&self, needed: usize) -> Result<&'a [u8], TensorError> {
        let bytes = match self.storage {
            Storage::Images(_) => return Err(self.error(TensorProblem::SeparateImages)),
            // An empty buffer has no memory to map.
            _ if needed == 0 => &[],
            Storage::Host(bytes) => bytes,
            Storage::Mappable(memory) => {
                memory.map_host().map_err(|cause| self.error(TensorProblem::Map { cause }))?
            }
            Storage::Device(_) => return Err(self.error(TensorProblem::NotOnHost)),
            Storage::Missing => return Err(self.error(TensorProblem::Missing)),
        };
        // The mapped size can differ from the size that was known before.
        self.check_len(needed, bytes.len())?;
        if needed > 0 {
            self.check_alignment(bytes.as_ptr().addr() as u64)?;
        }
        Ok(&bytes[..needed])
    }

    fn device_slice(&self, needed: usize) -> Result<Option<DeviceSlice>, TensorError> {
        let slice = match self.storage {
            Storage::Device(slice) => Some(slice),
            Storage::Mappable(memory) => {
                memory.map_device().map_err(|cause| self.error(TensorProblem::Map { cause }))?
            }
            Storage::Images(_) => return Err(self.error(TensorProblem::SeparateImages)),
            Storage::Host(_) | Storage::Missing => None,
        };
        if let Some(slice) = slice {
            self.check_len(needed, slice.len())?;
            self.check_alignment(slice.address())?;
        }
        Ok(slice)
    }

    fn error(&self, problem: TensorProblem) -> TensorError {
        TensorError::new(self, problem)
    }

    fn check_len(&self, needed: usize, held: usize) -> Result<(), TensorError> {
        if held < needed {
            Err(self.error(TensorProblem::TooShort { needed, held }))
        } else {
            Ok(())
        }
    }

    fn check_alignment(&self, address: u64) -> Result<(), TensorError> {
        let align = self.element.size().unwrap_or(1);
        if address.is_multiple_of(align as u64) {
            Ok(())
        } else {
            Err(self.error(TensorProblem::Misaligned { align }))
        }
    }
}

/// Written as `yolo-v8-out (f32 1x84x8400)`; one image as `yolo-v8-out (f32 1x84x8400), image 3 of 0 to 15`.
impl fmt::Display for TensorView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Producers choose ids, which can be long.
        write!(f, "{:.80} ({} {})", self.id, self.element, self.shape)?;
        if let Some([index, images]) = self.image {
            write!(f, ", image {index} of 0 to {}", images.saturating_sub(1))?;
        }
        Ok(())
    }
}

/// A tensor's elements in host memory, of one image after the other.
#[derive(Debug)]
pub(crate) struct HostImages<'t, 'a> {
    tensor: &'t TensorView<'a>,
    /// The elements of all images, if they are in one memory.
    whole: Option<Elements<'a>>,
}

impl<'t, 'a> HostImages<'t, 'a> {
    /// # Errors
    /// The errors of [`TensorView::elements`].
    pub fn new(tensor: &'t TensorView<'a>) -> Result<Self, TensorError> {
        if tensor.has_separate_images() {
            tensor.checked_len()?;
            return Ok(Self { tensor, whole: None });
        }
        Ok(Self { tensor, whole: Some(tensor.elements()?) })
    }

    /// The number of an element of the memory that [`holding`](Self::holding) returns, by its index.
    ///
    /// # Errors
    /// The errors of [`TensorView::elements`].
    pub fn numbers(&self, index: usize) -> Result<impl Fn(usize) -> f32 + use<'a>, TensorError> {
        let (elements, quantization) = (self.holding(index)?, self.tensor.quantization);
        Ok(move |at| {
            let element = elements.to_f32(at);
            quantization.map_or(element, |it| it.number(element))
        })
    }

    /// The memory that has the elements of image `index`: of all images, or of this one alone.
    ///
    /// # Errors
    /// The errors of [`TensorView::elements`].
    pub fn holding(&self, index: usize) -> Result<Elements<'a>, TensorError> {
        match self.whole {
            Some(elements) => Ok(elements),
            None => {
                let image = self.tensor.image(index);
                image.ok_or_else(|| self.tensor.error(TensorProblem::SeparateImages))?.elements()
            }
        }
    }
}
