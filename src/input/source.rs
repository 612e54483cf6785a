// SPDX-License-Identifier: MIT OR Apache-2.0
//! The images of a buffer.
//!
//! In: the tensors that the readers found on a buffer. Out: [`Images`], a list with the frame of each image, and views
//! of the tensors of any range of images that an engine can decode in one run.
//!
//! A buffer that is a frame is a list of one image, or of the regions of the frame that have tensors. A batch of
//! GStreamer's analytics library is a list of frames whose tensors are attached to each of them. A batch of DeepStream has
//! one list of layers, with the memory of each frame or object.

use std::ops::Range;

use arrayvec::ArrayVec;

use super::deepstream::Batch;
use super::model::ModelInput;
use super::region::TensorRegion;
use super::{MAX_TENSORS, TensorViews, Tensors};
use nmsfilter_core::tensor::{self, Shape, Storage, TensorView};

/// A frame, or a region of a frame, and the tensors that are attached for it.
#[derive(Debug, Default)]
pub(crate) struct FrameTensors<'a> {
    pub frame: ImageFrame,
    pub tensors: Tensors<'a>,
}

/// The frame of an image.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ImageFrame {
    /// The index of the frame in the buffer.
    pub index: usize,
    /// The number of the frame's stream in a batch of GStreamer's analytics library.
    pub stream: Option<u32>,
    /// Width and height of the frame in pixels.
    pub size: [u32; 2],
    /// The part of the frame that is the image; `None` for the whole frame.
    pub region: Option<TensorRegion>,
    /// The model's input, from the tensors' model description.
    pub model: ModelInput,
}

/// The images of a buffer, or some of them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Images<'i, 'a> {
    /// Frames, or the regions of one frame, with equally many tensors of equal ids, element types and shapes.
    Frames(&'i [FrameTensors<'a>]),
    /// A batch of DeepStream, of which at least one frame or object has tensors.
    Batch(&'i Batch<'a>),
}

/// The tensors of the images of a run.
#[expect(clippy::large_enum_variant, reason = "a box would be an allocation per buffer")]
pub(crate) enum ImageTensors<'i, 'a> {
    /// Tensors as they are attached to one frame.
    Attached(&'i Tensors<'a>),
    /// Tensors whose first dimension is the number of images.
    OfImages(ArrayVec<TensorOfImages<'i, 'a>, MAX_TENSORS>),
}

/// A tensor of several images, each of which is in separate memory.
#[derive(Debug)]
pub(crate) struct TensorOfImages<'i, 'a> {
    images: Images<'i, 'a>,
    run: Range<usize>,
    /// The index of the tensor in its frame, or of the layer.
    index: usize,
}

impl ImageFrame {
    /// Width and height of the image's part of the frame in pixels.
    pub fn image_size(&self) -> [u32; 2] {
        self.region.map_or(self.size, |region| region.pixels.size())
    }
}

impl FrameTensors<'_> {
    /// Returns true if the tensors of both frames have equal ids, element types and shapes.
    pub fn are_like(&self, other: &FrameTensors<'_>) -> bool {
        let (views, others) = (self.tensors.views(), other.tensors.views());
        views.iter().map(TensorView::signature).eq(others.iter().map(TensorView::signature))
    }
}

impl<'i, 'a> Images<'i, 'a> {
    /// The number of frames of the batch of DeepStream, with and without tensors; `None` without a batch.
    pub fn batch(self) -> Option<usize> {
        match self {
            Self::Frames(_) => None,
            Self::Batch(batch) => Some(batch.found.all_frames),
        }
    }

    /// The images that can be decoded in one run, as ranges: all images of a range have one model.
    pub fn runs(self) -> impl Iterator<Item = Range<usize>> + use<'i, 'a> {
        let (frames, batch) = match self {
            Self::Frames(frames) => (Some(0..frames.len()), None),
            Self::Batch(batch) => (None, Some(batch)),
        };
        frames.into_iter().chain(batch.into_iter().flat_map(|batch| batch.runs()))
    }

    /// The frame of the image with this index.
    pub fn frame(self, index: usize) -> ImageFrame {
        match self {
            Self::Frames(frames) => frames[index].frame,
            Self::Batch(batch) => batch.images[index].frame,
        }
    }

    /// Returns true if the images are regions of frames. The boxes of a frame's regions are compared.
    pub fn are_regions(self) -> bool {
        match self {
            Self::Frames(frames) => {
                frames.first().is_some_and(|image| image.frame.region.is_some())
            }
            Self::Batch(batch) => batch.are_regions(),
        }
    }

    /// The number of frames that these images are of.
    pub fn count_frames(self, images: Range<usize>) -> usize {
        let is_first = |&image: &usize| {
            image == images.start || self.frame(image - 1).index != self.frame(image).index
        };
        images.clone().filter(is_first).count()
    }

    /// Returns true if frames of a run are decoded together whose tensors are attached to each of them. Their reading is that
    /// of one of them.
    pub fn are_separate(self, run: &Range<usize>) -> bool {
        matches!(self, Self::Frames(_)) && run.len() > 1
    }

    /// The tensors of these images.
    pub fn tensors(self, run: Range<usize>) -> ImageTensors<'i, 'a> {
        let count = match self {
            Self::Frames(frames) => match &frames[run.clone()] {
                [frame] => return ImageTensors::Attached(&frame.tensors),
                frames => frames.first().map_or(0, |frame| frame.tensors.len()),
            },
            Self::Batch(batch) => batch.layers.len(),
        };
        let tensor = |index| TensorOfImages { images: self, run: run.clone(), index };
        ImageTensors::OfImages((0..count).map(tensor).collect())
    }
}

impl ImageTensors<'_, '_> {
    /// Views of the tensors.
    pub fn views(&self) -> TensorViews<'_> {
        match self {
            Self::Attached(tensors) => tensors.views(),
            Self::OfImages(tensors) => tensors.iter().map(TensorOfImages::view).collect(),
        }
    }
}

impl TensorOfImages<'_, '_> {
    fn view(&self) -> TensorView<'_> {
        let (count, storage) = (self.run.len(), Storage::Images(self));
        match self.images {
            Images::Frames(frames) => {
                let first = frames[self.run.start].tensors.view(self.index);
                let elements = first.shape.elements().unwrap_or(usize::MAX);
                let shape = Shape::new(&[count, elements]).expect("these are two");
                TensorView::new(first.id, first.element, shape, storage)
                    .with_quantization(first.quantization)
            }
            Images::Batch(batch) => batch.layers[self.index].view(count, storage),
        }
    }
}

impl tensor::Images for TensorOfImages<'_, '_> {
    fn count(&self) -> usize {
        self.run.len()
    }

    fn storage(&self, index: usize) -> Storage<'_> {
        let image = self.run.start + index;
        match self.images {
            Images::Frames(frames) => frames[image].tensors.view(self.index).storage,
            Images::Batch(batch) => batch.storage(image, self.index),
        }
    }
}
