//! Where the elements that make tensors put them.

use gst::glib;

use crate::input::cuda_memory::{UploadError, Uploader};
use crate::input::custom_meta::NewTensor;
use crate::type_names::format;

/// Where tensors lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstNmsFilterTensorMemory", allow_name_conflict)]
pub enum TensorMemory {
    /// In the host's memory.
    #[default]
    #[enum_value(name = "System: the host's memory", nick = "system")]
    System = 0,
    /// In a GPU's memory.
    #[enum_value(name = "CUDA: the memory of the first NVIDIA GPU", nick = "cuda")]
    Cuda = 1,
}

/// Puts tensors there.
#[derive(Debug, Default)]
pub(super) struct TensorTransfer {
    /// Made for the first tensor that needs it.
    uploader: Option<Uploader>,
}

impl TensorTransfer {
    /// `tensor`, in `memory`.
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
