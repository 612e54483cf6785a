// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies of tensors in device memory.
//!
//! In: a tensor in host memory. Out: a tensor with the same elements in device memory. Device
//! memory is reused when the last reference to an earlier copy is dropped.

use std::sync::{Arc, Mutex, PoisonError};

use super::wrap;
use crate::input::custom_meta::NewTensor;
use nmsfilter_core::device::{
    Device, DeviceBuffer, DeviceError, DriverError, PinnedBuffer, Stream,
};
use nmsfilter_core::tensor::TensorError;

/// Why a tensor cannot be copied to a GPU.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UploadError {
    /// The GPU cannot be used.
    #[error("memory=cuda: {0}")]
    Device(#[from] DeviceError),
    /// The tensor's memory cannot be read.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

impl From<DriverError> for UploadError {
    fn from(error: DriverError) -> Self {
        Self::Device(error.into())
    }
}

/// Copies tensors to a GPU. It reuses the device memory of copies to which there are no references any more.
#[derive(Debug)]
pub struct Uploader {
    stream: Stream,
    pinned: PinnedBuffer,
    free_buffers: Arc<Mutex<Vec<DeviceBuffer>>>,
}

impl Uploader {
    /// An uploader for GPU number `ordinal`.
    ///
    /// # Errors
    /// If there is no such GPU, or it cannot be used.
    pub fn new(ordinal: u32) -> Result<Self, DeviceError> {
        let device = Device::open(ordinal)?;
        let (stream, pinned) = (Stream::new(&device)?, PinnedBuffer::new(&device, 0)?);
        Ok(Self { stream, pinned, free_buffers: Arc::default() })
    }

    /// A copy of `tensor` in device memory. The copy has completed when this returns.
    ///
    /// # Errors
    /// If the tensor's memory is smaller than its shape requires or cannot be mapped, if device
    /// memory cannot be allocated, or if the copy fails.
    pub fn upload(&mut self, tensor: &NewTensor) -> Result<NewTensor, UploadError> {
        let attached = tensor.as_attached();
        let view = attached.view();
        let bytes = view.host_bytes(view.checked_len()?)?;
        let device = self.stream.device().clone();
        if self.pinned.len() < bytes.len() {
            self.pinned = PinnedBuffer::new(&device, bytes.len())?;
        }
        let free_buffers = || self.free_buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |buffer: &DeviceBuffer| buffer.len() >= bytes.len();
        let reused = {
            let mut free_buffers = free_buffers();
            let found = free_buffers.iter().position(fits);
            found.map(|index| free_buffers.swap_remove(index))
        };
        let buffer = match reused {
            Some(buffer) => buffer,
            None => {
                // All free buffers are too small for this size.
                free_buffers().clear();
                DeviceBuffer::new(&device, bytes.len())?
            }
        };
        // The previous copy from this memory has completed.
        self.pinned.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
        if !bytes.is_empty() {
            self.stream.upload(&self.pinned, &buffer, bytes.len())?;
            self.stream.synchronize()?;
        }

        let free_buffers = Arc::downgrade(&self.free_buffers);
        let memory = from_buffer(buffer, bytes.len(), move |buffer| {
            if let Some(free_buffers) = free_buffers.upgrade() {
                free_buffers.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
            }
        });
        let mut data = gst::Buffer::new();
        data.make_mut().append_memory(memory);
        Ok(NewTensor { data, ..tensor.clone() })
    }
}

/// Creates a `GstMemory` of the first `len` bytes of a buffer that no pending work writes. The
/// buffer is passed to `release` when the last reference to the memory is dropped.
pub fn from_buffer(
    buffer: DeviceBuffer,
    len: usize,
    release: impl FnOnce(DeviceBuffer) + Send + Sync + 'static,
) -> gst::Memory {
    assert!(len <= buffer.len(), "the buffer has at least `len` bytes");
    let (device, address) = (buffer.device().clone(), buffer.address());
    // SAFETY: the closure owns the buffer, so it exists until `release` is called and no other code
    // writes to it.
    unsafe { wrap(&device, address, len, None, Box::new(move || release(buffer))) }
}
