// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of tensors that `crowdtestsrc` and `tensorreplay` attach.
//!
//! In: a tensor in host memory. Out: this tensor in host or device memory.

use gst::glib;

use gstnmsfilter::format_type_name as format;
use gstnmsfilter::input::cuda_memory::{UploadError, Uploader};
use gstnmsfilter::input::custom_meta::NewTensor;

/// The kind of memory in which tensors are attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstNmsFilterTensorMemory", allow_name_conflict)]
pub enum TensorMemory {
    /// Host memory.
    #[default]
    #[enum_value(name = "System: host memory", nick = "system")]
    System = 0,
    /// Device memory of the first NVIDIA GPU.
    #[enum_value(name = "CUDA: the memory of the first NVIDIA GPU", nick = "cuda")]
    Cuda = 1,
}

/// Copies tensors to device memory if needed.
#[derive(Debug, Default)]
pub(super) struct TensorTransfer {
    /// Created for the first tensor in device memory.
    uploader: Option<Uploader>,
}

impl TensorTransfer {
    /// Returns `tensor` in `memory`. For [`TensorMemory::System`], it is unchanged.
    ///
    /// # Errors
    /// Returns an error if the GPU cannot be used.
    pub fn transfer(
        &mut self,
        tensor: NewTensor,
        memory: TensorMemory,
    ) -> Result<NewTensor, UploadError> {
        if memory == TensorMemory::System {
            return Ok(tensor);
        }
        let uploader = match &mut self.uploader {
            Some(uploader) => uploader,
            none => none.insert(Uploader::new(0)?),
        };
        uploader.upload(&tensor)
    }
}
