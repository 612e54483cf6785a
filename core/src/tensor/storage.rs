// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory that holds a tensor's elements.

use std::fmt;

use crate::device::Ready;

/// The memory of a tensor.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Storage<'a> {
    /// Host memory.
    Host(&'a [u8]),
    /// Device memory.
    Device(DeviceSlice),
    /// Memory that is mapped when an engine needs it.
    Mappable(&'a dyn Mappable),
    /// A memory for each image of a batch.
    Images(&'a dyn Images),
    /// No memory: the producer attached none.
    Missing,
}

impl Storage<'_> {
    /// The number of bytes of one memory, as far as is known without mapping; `None` without memory.
    pub(super) fn size(&self) -> Option<usize> {
        match self {
            Self::Host(bytes) => Some(bytes.len()),
            Self::Device(slice) => Some(slice.len()),
            Self::Mappable(memory) => Some(memory.size()),
            Self::Images(_) | Self::Missing => None,
        }
    }

    /// Returns true if `test` does for the memory, or for the memory of an image.
    pub(super) fn any(&self, test: &dyn Fn(&Storage<'_>) -> bool) -> bool {
        match self {
            // Not recursive: images of images are an error of every access.
            Self::Images(images) => (0..images.count()).any(|index| test(&images.storage(index))),
            memory => test(memory),
        }
    }
}

/// Memory that is mapped on first use and stays mapped until the implementor is dropped.
pub trait Mappable: fmt::Debug {
    /// The number of bytes, without mapping.
    fn size(&self) -> usize;

    /// Returns true if it is device memory.
    fn is_on_device(&self) -> bool;

    /// The bytes in host memory; device memory is copied.
    ///
    /// # Errors
    /// If the memory cannot be mapped; the cause, for a message.
    fn map_host(&self) -> Result<&[u8], String>;

    /// The device memory; `None` if it is host memory.
    ///
    /// # Errors
    /// If the memory cannot be mapped; the cause, for a message.
    fn map_device(&self) -> Result<Option<DeviceSlice>, String>;
}

/// The allocations of a batch whose images are in separate allocations, in the order of the images. The tensor's
/// first dimension is the number of images.
///
/// ```
/// use nmsfilter_core::nms::{Backend, Nms};
/// use nmsfilter_core::tensor::{ElementType, Shape, Storage, TensorView};
///
/// // Two images of two windows each: x, y, side and score.
/// let first = [100.0, 50.0, 80.0, 0.9, 104.0, 54.0, 80.0, 0.6f32];
/// let second = [10.0, 20.0, 60.0, 0.8, 300.0, 60.0, 90.0, 0.7f32];
/// let images = [&first, &second].map(|image| Storage::Host(bytemuck::cast_slice(image))).to_vec();
///
/// let shape = Shape::new(&[2, 2, 4]).unwrap();
/// let tensors = [TensorView::new("windows", ElementType::F32, shape, Storage::Images(&images))];
/// let mut nms = Nms::new(Backend::Cpu, None)?;
/// nms.options.batch = true;
/// let outcome = nms.run(&tensors)?;
/// let survivors: Vec<usize> = outcome.groups().map(|image| image.survivors.len()).collect();
/// assert_eq!(survivors, [1, 2]);
/// # Ok::<(), nmsfilter_core::nms::NmsError>(())
/// ```
pub trait Images: fmt::Debug {
    /// The number of images.
    fn count(&self) -> usize;

    /// The memory of image `index`, equal at each call. It is not [`Storage::Images`] itself.
    ///
    /// # Panics
    /// Implementations may panic if `index` is not less than [`count`](Self::count).
    fn storage(&self, index: usize) -> Storage<'_>;
}

impl Images for &[Storage<'_>] {
    fn count(&self) -> usize {
        self.len()
    }

    fn storage(&self, index: usize) -> Storage<'_> {
        self[index]
    }
}

impl Images for Vec<Storage<'_>> {
    fn count(&self) -> usize {
        self.len()
    }

    fn storage(&self, index: usize) -> Storage<'_> {
        self[index]
    }
}

/// Bytes in device memory, and the work that must have completed before they may be read.
#[derive(Clone, Copy, Debug)]
pub struct DeviceSlice {
    address: u64,
    len: usize,
    ready: Ready,
    /// The GPU whose kernels can access the bytes, if the caller has stated it.
    pub(crate) ordinal: Option<u32>,
}

impl DeviceSlice {
    /// `len` bytes at the device address `address`.
    ///
    /// # Safety
    /// The bytes must exist for as long as this value or a copy of it is used, and must not be written
    /// once `ready` has completed.
    pub unsafe fn new(address: u64, len: usize, ready: Ready) -> Self {
        Self { address, len, ready, ordinal: None }
    }

    /// Returns the bytes as accessible on GPU number `ordinal`, so that an engine on this GPU does not ask the driver.
    ///
    /// # Safety
    /// In the primary context of the GPU, kernels must be able to read the bytes at their address.
    pub unsafe fn on(self, ordinal: u32) -> Self {
        Self { ordinal: Some(ordinal), ..self }
    }

    /// The device address of the first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The work that must have completed before the bytes may be read.
    pub fn ready(&self) -> Ready {
        self.ready
    }
}
