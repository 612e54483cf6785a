// SPDX-License-Identifier: MIT OR Apache-2.0
//! A buffer as images with their places.
//!
//! In: what the readers found on a buffer. Out: [`Images`] in groups, each of which an engine decodes in one run: views
//! of the group's tensors, the frame of each image, and what determines the place of the images in their frames.

use super::deepstream::{self, Batch, BatchTensors};
use super::model::ModelInput;
use super::selection::SetReader;
use super::{TensorViews, Tensors};

/// The readers of a stream, which keep what is the same for many buffers.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// Of batches of DeepStream.
    pub batches: deepstream::Reader,
    /// Of other tensors.
    pub tensor_sets: SetReader,
}

/// The images of a buffer.
#[derive(Clone, Copy)]
pub(crate) enum Images<'i, 'a> {
    /// The buffer is a frame, and its tensors are those of one image.
    Frame {
        tensors: &'i Tensors<'a>,
        /// Width and height in the caps; `None` before caps.
        size: Option<[u32; 2]>,
        /// The model's input, from the tensors' model description.
        model: ModelInput,
    },
    /// The buffer has a batch of DeepStream, of which at least one frame has tensors.
    Batch(&'i Batch<'a>),
}

/// Images that are decoded in one run: all have the same place in their frames.
pub(crate) struct ImageGroup<'i, 'a> {
    tensors: GroupTensors<'i, 'a>,
    /// Width and height of the frames; `None` before caps.
    pub size: Option<[u32; 2]>,
    /// The model's input.
    pub model: ModelInput,
}

#[expect(clippy::large_enum_variant, reason = "a box would be an allocation per buffer")]
enum GroupTensors<'i, 'a> {
    Frame(&'i Tensors<'a>),
    Batch(BatchTensors<'i>),
}

impl<'i, 'a> Images<'i, 'a> {
    /// The number of frames of the batch of DeepStream, with and without tensors; `None` without a batch.
    pub fn batch(self) -> Option<usize> {
        match self {
            Self::Frame { .. } => None,
            Self::Batch(batch) => Some(batch.found.all_frames),
        }
    }

    /// The images in groups.
    pub fn groups(self) -> impl Iterator<Item = ImageGroup<'i, 'a>> {
        let (frame, batch) = match self {
            Self::Frame { tensors, size, model } => {
                (Some(ImageGroup { tensors: GroupTensors::Frame(tensors), size, model }), None)
            }
            Self::Batch(batch) => (None, Some(batch)),
        };
        let batch = batch.into_iter().flat_map(|batch| {
            batch.groups().map(move |group| {
                let first = &batch.frames()[group.start];
                ImageGroup {
                    size: Some(first.size),
                    model: batch.model_input(first),
                    tensors: GroupTensors::Batch(batch.tensors(group)),
                }
            })
        });
        frame.into_iter().chain(batch)
    }
}

impl ImageGroup<'_, '_> {
    /// Views of the tensors. In a batch, their first dimension is the number of images.
    pub fn views(&self) -> TensorViews<'_> {
        match &self.tensors {
            GroupTensors::Frame(tensors) => tensors.views(),
            GroupTensors::Batch(tensors) => tensors.views(),
        }
    }

    /// For each image, the index of its frame in the buffer.
    pub fn frames(&self) -> impl Iterator<Item = usize> {
        let (frame, batch) = match &self.tensors {
            GroupTensors::Frame(_) => (Some(0), &[][..]),
            GroupTensors::Batch(tensors) => (None, tensors.frames()),
        };
        frame.into_iter().chain(batch.iter().map(|frame| frame.index))
    }
}
