// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the tensors of a video buffer.
//!
//! In: a `GstBuffer` with tensor metadata. Out: [`Tensors`], which borrow from the buffer and provide
//! [`TensorView`]s for decoders and engines. There is one reader per kind of metadata: [`custom_meta`] for the
//! plugin's own metadata (GStreamer 1.20), `tensor_meta` for `GstTensorMeta` (1.26), and `deepstream` for
//! batches of NVIDIA DeepStream. [`cuda_memory`] reads and creates `GstMemory` in device memory, and [`model`]
//! reads the model description of tensors. `selection` reads the tensors of one inference element if there are
//! several, [`region`] reads the part of the frame that tensors belong to, and `source` turns the result into images
//! with their places. `analytics_batch` has the frames of several streams on one buffer (1.28), `tensor_caps`
//! the tensors that caps announce (1.28), and `inference_mark` says whether a model ran on a frame (1.20).

pub mod analytics_batch;
mod buffer_memory;
pub mod cuda_memory;
pub mod custom_meta;
pub(crate) mod deepstream;
mod error;
mod host_copy;
pub mod inference_mark;
pub mod model;
pub mod region;
pub(crate) mod selection;
pub(crate) mod source;
pub(crate) mod tensor_caps;
pub(crate) mod tensor_meta;

use std::fmt;

use arrayvec::ArrayVec;

use buffer_memory::BufferMemory;
pub use error::InputError;
use nmsfilter_core::tensor::{ElementType, Quantization, Shape, Storage, TensorView};

/// The maximum number of tensors that are read from a buffer. Further tensors are only counted.
pub const MAX_TENSORS: usize = 16;

/// The tensors of one buffer, in the order in which they were attached. Memory that a view has mapped stays mapped
/// until this value is dropped.
#[derive(Debug, Default)]
pub struct Tensors<'a> {
    read: ArrayVec<AttachedTensor<'a>, MAX_TENSORS>,
    unread: usize,
}

/// A tensor as its metadata describes it.
#[derive(Debug)]
pub(crate) struct AttachedTensor<'a> {
    pub id: &'a str,
    pub element: ElementType,
    pub shape: Shape,
    /// `None` if the metadata has no memory.
    memory: Option<BufferMemory<'a>>,
    /// The model description, which [`ModelInfo::from_caps`](model::ModelInfo::from_caps) reads.
    model: Option<&'a gst::Caps>,
    /// `None` if the metadata has no scale.
    quantization: Option<Quantization>,
}

impl<'a> AttachedTensor<'a> {
    pub fn new(
        id: &'a str,
        element: ElementType,
        shape: Shape,
        buffer: Option<&'a gst::BufferRef>,
    ) -> Self {
        let memory = buffer.map(BufferMemory::new);
        Self { id, element, shape, memory, model: None, quantization: None }
    }
}

/// Lists the tensors with their ids, types and shapes.
impl fmt::Display for Tensors<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, tensor) in self.views().iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{tensor}")?;
        }
        Ok(())
    }
}

impl AttachedTensor<'_> {
    pub fn view(&self) -> TensorView<'_> {
        let storage = match &self.memory {
            Some(memory) => Storage::Mappable(memory),
            None => Storage::Missing,
        };
        TensorView::new(self.id, self.element, self.shape.clone(), storage)
            .with_quantization(self.quantization)
    }
}

/// Views of the tensors of one run.
pub type TensorViews<'t> = ArrayVec<TensorView<'t>, MAX_TENSORS>;

impl<'a> Tensors<'a> {
    /// Reads the tensors of `buffer` from every kind of metadata.
    ///
    /// # Errors
    /// If the plugin's own metadata is malformed.
    pub fn of(buffer: &'a gst::BufferRef) -> Result<Self, InputError> {
        let mut tensors = Self::default();
        tensor_meta::read(buffer, &mut tensors);
        custom_meta::read(buffer, &mut tensors)?;
        Ok(tensors)
    }

    /// Returns views of the tensors. No memory is mapped yet.
    pub fn views(&self) -> TensorViews<'_> {
        self.read.iter().map(AttachedTensor::view).collect()
    }

    /// A view of the tensor with this index.
    pub(crate) fn view(&self, index: usize) -> TensorView<'_> {
        self.read[index].view()
    }

    /// Returns the caps with the model description, from the first tensor that has any.
    /// [`ModelInfo::from_caps`](model::ModelInfo::from_caps) reads them.
    pub fn model(&self) -> Option<&'a gst::Caps> {
        self.read.iter().find_map(|tensor| tensor.model)
    }

    /// Returns the number of tensors that were read.
    pub fn len(&self) -> usize {
        self.read.len()
    }

    /// Returns whether no tensor was read.
    pub fn is_empty(&self) -> bool {
        self.read.is_empty()
    }

    /// The number of tensors that were not read: tensors after [`MAX_TENSORS`], and tensors of more than
    /// [`MAX_DIMENSIONS`](nmsfilter_core::tensor::MAX_DIMENSIONS) dimensions.
    pub fn unread(&self) -> usize {
        self.unread
    }

    /// Adds a tensor, or counts it if there is no room.
    fn push(&mut self, tensor: AttachedTensor<'a>) {
        if self.read.try_push(tensor).is_err() {
            self.unread += 1;
        }
    }
}

/// Removes all tensors from `buffer`, in every kind of metadata.
pub(crate) fn remove(buffer: &mut gst::BufferRef) {
    tensor_meta::remove_if(buffer, |_| true);
    custom_meta::remove(buffer);
}

/// Creates the value from tensors that are not attached to a buffer.
impl<'a> FromIterator<&'a custom_meta::NewTensor> for Tensors<'a> {
    fn from_iter<I: IntoIterator<Item = &'a custom_meta::NewTensor>>(tensors: I) -> Self {
        let mut read = Self::default();
        tensors.into_iter().for_each(|tensor| read.push(tensor.as_attached()));
        read
    }
}
