// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads DeepStream's tensors, which nvinfer attaches with `output-tensor-meta=1`.
//!
//! In: a buffer with a batch of frames. Out: a [`Batch`]: the images that have tensors of one inference element, and
//! views of these tensors. An image is a frame, or a region of interest or an object of a frame. Each image's part of a
//! tensor is in separate memory ([`Storage::Images`]).
//!
//! # Which tensors are read
//! `unique-id` selects the inference element. Its tensors on frames are read, or if no frame of the batch has any, its
//! tensors on regions of interest (`input-tensor-meta=1`), or on objects (`process-mode=2`). Without `unique-id`, the element with the lowest id on frames is read, and no
//! tensors of objects: the models of a pipeline that run on objects are mostly classifiers, whose outputs have no boxes,
//! and the objects of a frame decide which of these models have tensors on it.
//!
//! # Which memory is read
//! nvinfer provides a device address and a host address for each layer. It waits for its work before it attaches
//! tensors, so the memory can be read immediately.
//!
//! - The CUDA engine reads the device address, in place. If the device address is null, as with nvinferserver, it
//!   reads the host address.
//! - The CPU engine reads the host address if the tensor has certainly been copied there. With nvinfer's option
//!   `disable-output-host-copy` it has not been, and the metadata does not say so. nvinfer up to DeepStream 6.3
//!   does not have this option ([`HAS_CURRENT_HOST_COPY`]). From 6.4 on, the CPU engine copies the tensor from the
//!   device address, and reads the host address only if the device address is null.

mod collect;
mod crop;
mod layer;
mod memory;
mod region_fits;

use std::ops::Range;

use arrayvec::ArrayVec;

use super::model::{Letterbox, MAX_MODEL_SIDE, ModelInput, Rounding};
use super::source::ImageFrame;
use super::{InputError, MAX_TENSORS};
use crate::deepstream::layout::Version;
use crate::deepstream::{BatchMeta, DeepStream, FrameCaps, NetworkInfo, Surfaces};
use layer::Layer;
use memory::LayerMemory;
use nmsfilter_core::tensor::Storage;

/// The last version in which host addresses always have the tensors. nvinfer in later versions has the option
/// `disable-output-host-copy`.
const HAS_CURRENT_HOST_COPY: Version = Version::new(6, 3);

/// Reads batches. It keeps data that many buffers share, and memory that is used again for every buffer.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// The id of the inference element whose tensors are read; 0 for the lowest id on the frames of a batch.
    unique_id: u32,
    deepstream: DeepStream,
    images: Vec<BatchImage>,
    /// The memory of each image's layers, one image after the other.
    memories: Vec<LayerMemory>,
}

/// A frame, or an object of a frame, that has tensors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchImage {
    /// The frame, by its index in the batch's list. If the image is a whole frame, width and height are of the part that
    /// nvinfer read and scaled, and both are even. The parent of a region is the number of its object, in the order in
    /// which the objects were attached to the frame.
    pub frame: ImageFrame,
    /// The index of the image's first layer in the reader's memories.
    first: usize,
}

impl BatchImage {
    /// The key of images that one run can decode: their model, and its input, which is the frame if its size is unknown.
    fn run(&self) -> impl Ord + use<> {
        let ImageFrame { model, size, .. } = self.frame;
        let of_frame = model.size.is_none().then_some(size);
        (model.size, model.letterbox, model.letterbox_is_assumed, of_frame)
    }
}

impl From<NetworkInfo> for ModelInput {
    fn from(NetworkInfo { size, maintain_aspect_ratio, symmetric_padding }: NetworkInfo) -> Self {
        let is_valid = size.iter().all(|side| (1..=MAX_MODEL_SIDE).contains(side));
        // If the size is invalid, the other fields cannot be trusted, either.
        let maintain_aspect_ratio = maintain_aspect_ratio.filter(|_| is_valid);
        let (letterbox, letterbox_is_assumed) = match (maintain_aspect_ratio, symmetric_padding) {
            (Some(false), _) => (Letterbox::None, false),
            (Some(true), Some(true)) => (Letterbox::Center, false),
            (Some(true), Some(false)) => (Letterbox::TopLeft, false),
            // Neither is set if the tensors do not contain it.
            (Some(true), None) => (Letterbox::TopLeft, true),
            (None, _) => (Letterbox::None, true),
        };
        Self {
            size: is_valid.then_some(size),
            letterbox: Some(letterbox),
            rounding: Rounding::EvenSides,
            letterbox_is_assumed,
            ..Self::default()
        }
    }
}

/// The tensors of a buffer.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    /// The images with tensors. Images of one run follow each other, and in it the images of one frame.
    pub images: &'a mut Vec<BatchImage>,
    /// The layers that are read.
    pub layers: ArrayVec<Layer<'a>, MAX_TENSORS>,
    memories: &'a mut Vec<LayerMemory>,
    pub meta: BatchMeta<'a>,
    /// What has the sizes of frames beside their metadata.
    surfaces: Option<Surfaces<'a>>,
    caps_size: Option<[u32; 2]>,
    /// Other facts about the batch.
    pub found: Found,
}

/// Facts about a batch, in addition to its tensors.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    /// The number of frames in the batch, with and without tensors.
    pub all_frames: usize,
    /// The id of the inference element whose tensors were read.
    pub unique_id: u32,
    /// The id of another inference element, if the batch has tensors of it, too.
    pub other_id: Option<u32>,
    /// The place of the tensors that were read.
    pub place: TensorPlace,
    /// Other tensors, if none are read.
    pub elsewhere: Option<Elsewhere>,
    /// An object with tensors whose picture cannot have been inside its frame.
    pub outside: Option<OutsideObject>,
    /// The number of layers that are not read: the layers after [`MAX_TENSORS`], and layers with too many
    /// dimensions.
    pub unread: usize,
    /// The size in the caps, if it is used for a frame that has neither a surface nor a size in its metadata.
    pub size_of_caps: Option<[u32; 2]>,
}

/// The owner of tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TensorPlace {
    #[default]
    Frames,
    /// Regions of interest of nvdspreprocess.
    Regions,
    Objects,
}

/// Tensors that are not on frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elsewhere {
    /// Tensors on objects, of the inference element with this id.
    Objects(u32),
    /// Tensors on regions of interest, of the inference element with this id.
    Regions(u32),
    /// Tensors on regions of interest whose structures are not known.
    UnknownRegions,
}

/// An object with tensors that are not read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OutsideObject {
    /// Left, top, width and height.
    pub rect: [f32; 4],
    /// Width and height of the frame.
    pub frame: [u32; 2],
}

impl Reader {
    /// Creates a reader for the tensors of the inference element with the id `unique_id`. If this is 0, the element
    /// with the lowest id on the frames of each batch is read. DeepStream's structures have the layout of the version `forced`,
    /// or of the version that DeepStream's libraries report.
    pub fn new(unique_id: u32, forced: Option<Version>) -> Self {
        Self { unique_id, deepstream: DeepStream::new(forced), ..Self::default() }
    }

    /// Reads the tensors of `buffer`. Returns `None` if it has no DeepStream metadata. If no frame has tensors,
    /// `search_elsewhere` says whether to search for tensors of objects and of regions of interest.
    ///
    /// # Errors
    /// If DeepStream's libraries cannot be used, if the structures of its version are unknown, if the metadata is
    /// damaged, or if frames have different layers.
    pub fn read<'a>(
        &'a mut self,
        buffer: &'a gst::BufferRef,
        caps: Option<FrameCaps>,
        search_elsewhere: bool,
    ) -> Result<Option<Batch<'a>>, InputError> {
        let Self { unique_id, deepstream, images, memories } = self;
        let Some(meta) = deepstream.batch(buffer)? else {
            return Ok(None);
        };
        let found = Found { unique_id: *unique_id, ..Found::default() };
        // SAFETY: the caps are the buffer's.
        let surfaces = unsafe { meta.surfaces(buffer, caps) };
        let (caps_size, layers) = (caps.map(|caps| caps.size), ArrayVec::new());
        let mut batch = Batch { images, layers, memories, meta, surfaces, caps_size, found };
        batch.collect(&meta.lock(), search_elsewhere)?;
        Ok(Some(batch))
    }

    /// Adds data to `copy` that DeepStream does not copy from `original`: the sizes of frames, and model
    /// descriptions.
    ///
    /// # Errors
    /// If DeepStream's libraries cannot be used, or if the metadata is damaged.
    pub fn complete_copy(
        &self,
        original: &gst::BufferRef,
        copy: &mut gst::BufferRef,
    ) -> Result<(), InputError> {
        if let Some(original) = self.deepstream.batch(original)?
            && let Some(copy) = self.deepstream.batch(copy)?
        {
            copy.lock().complete_copy(&original.lock())?;
        }
        Ok(())
    }

    /// Returns the metadata of `buffer`, which has been read before. Who changes it must have borrowed the buffer exclusively.
    pub fn batch_meta<'a>(&'a self, buffer: &'a gst::BufferRef) -> Option<BatchMeta<'a>> {
        // There cannot be an error, because the structures have been known since the buffer was read.
        self.deepstream.batch(buffer).ok()?
    }
}

impl<'a> Batch<'a> {
    /// Returns true if the images are objects or regions of interest.
    pub fn are_regions(&self) -> bool {
        self.images.first().is_some_and(|image| image.frame.region.is_some())
    }

    /// The ranges of [`images`](Self::images) that one run can decode.
    pub fn runs(&self) -> impl Iterator<Item = Range<usize>> {
        let mut first = 0;
        self.images.chunk_by(|a, b| a.run() == b.run()).map(move |images| {
            let range = first..first + images.len();
            first = range.end;
            range
        })
    }

    /// The memory of a layer of an image.
    pub fn storage(&self, image: usize, layer: usize) -> Storage<'_> {
        self.memories[self.images[image].first + layer].storage()
    }

    /// The letterbox that is assumed, because tensors do not contain all of it; `None` if they do.
    pub fn assumed_letterbox(&self) -> Option<Letterbox> {
        let assumed = self.images.iter().find(|image| image.frame.model.letterbox_is_assumed);
        assumed.and_then(|image| image.frame.model.letterbox)
    }

    /// Returns whether the tensors of some image do not contain the size of the model's input.
    pub fn has_no_model_size(&self) -> bool {
        self.images.iter().any(|image| image.frame.model.size.is_none())
    }
}
