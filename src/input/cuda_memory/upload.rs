// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies tensors to device memory.
//!
//! In: a tensor in host memory. Out: a tensor with equal elements in device memory. The device memory of a copy is
//! used again after the last reference to the copy has been dropped.

use std::sync::{Arc, Mutex, PoisonError};

use super::wrap;
use crate::input::custom_meta::NewTensor;
use nmsfilter_core::device::{
    Device, DeviceBuffer, DeviceError, DriverError, PinnedBuffer, Stream,
};
use nmsfilter_core::tensor::TensorError;

/// The reason why a tensor cannot be copied to a GPU.
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

/// Copies tensors to a GPU. The device memory of copies that are no longer referenced is used again.
#[derive(Debug)]
pub struct Uploader {
    stream: Stream,
    pinned: PinnedBuffer,
    free_buffers: Arc<Mutex<Vec<DeviceBuffer>>>,
}

impl Uploader {
    /// Creates an uploader for the GPU with the number `ordinal`.
    ///
    /// # Errors
    /// If there is no such GPU, or if it cannot be used.
    pub fn new(ordinal: u32) -> Result<Self, DeviceError> {
        let device = Device::open(ordinal)?;
        let (stream, pinned) = (Stream::new(&device)?, PinnedBuffer::new(&device, 0)?);
        Ok(Self { stream, pinned, free_buffers: Arc::default() })
    }

    /// Copies `tensor` to device memory. The copy has completed when this function returns.
    ///
    /// # Errors
    /// If the tensor's memory is smaller than its shape requires or cannot be mapped, if device memory cannot be
    /// allocated, or if the copy fails.
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
                // All free buffers are too small, and probably will be for the next tensors.
                free_buffers().clear();
                DeviceBuffer::new(&device, bytes.len())?
            }
        };
        // The pinned memory may be written, because the previous copy from it has completed.
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

/// Creates a `GstMemory` from the first `len` bytes of a buffer. No pending work may write the buffer. The buffer
/// is passed to `release` when the last reference to the memory is dropped.
pub fn from_buffer(
    buffer: DeviceBuffer,
    len: usize,
    release: impl FnOnce(DeviceBuffer) + Send + Sync + 'static,
) -> gst::Memory {
    assert!(len <= buffer.len(), "the buffer has at least `len` bytes");
    let (device, address) = (buffer.device().clone(), buffer.address());
    // SAFETY: the closure owns the buffer, so it exists until `release` is called, and no other code writes to it.
    unsafe { wrap(&device, address, len, None, Box::new(move || release(buffer))) }
}
