// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reader of DeepStream's tensors, which nvinfer attaches with `output-tensor-meta=1`.
//!
//! In: a buffer with a batch of frames. Out: a [`Batch`]: the frames that have tensors of one inference
//! element, and views of these tensors, one memory per frame ([`Storage::Images`]).
//!
//! # Which memory is read
//! nvinfer gives each layer a device address and a host address. It has waited for its work before it attaches
//! tensors, so the memory can be read immediately.
//!
//! - The CUDA engine reads the device address, in place. The host address is read where the device address is
//!   null, as nvinferserver leaves it.
//! - The CPU engine reads the host address if nothing can have left it without a copy of the tensor. nvinfer's option
//!   `disable-output-host-copy` does so, and the metadata does not contain it. nvinfer has no such
//!   option up to DeepStream 6.3 ([`HAS_CURRENT_HOST_COPY`]). From 6.4 on, the CPU engine copies from the
//!   device address, and reads the host address only if that is null.

mod collect;
mod layer;
mod memory;

use std::ops::Range;

use arrayvec::ArrayVec;

use super::model::{Letterbox, MAX_MODEL_SIDE, ModelInput, Rounding};
use super::source::ImageFrame;
use super::{InputError, MAX_TENSORS, TensorViews};
use crate::deepstream::layout::{StructureLayout, Version};
use crate::deepstream::structures::{Assumption, Structures};
use crate::deepstream::{self, BatchMeta, DeepStream, DeepStreamError, NetworkInfo};
use collect::Collector;
use layer::{Layer, LayerImages};
use memory::LayerMemory;

/// The last version in which host addresses always have the tensors: later versions of nvinfer have the option
/// `disable-output-host-copy`.
const HAS_CURRENT_HOST_COPY: Version = Version::new(6, 3);

/// Reads batches. It keeps what is the same for many buffers, and the memory for what is not.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// The number of the inference element whose tensors are read; 0 for the lowest of a batch.
    unique_id: u32,
    /// The version whose layout is used; `None` for the version that the libraries report.
    forced: Option<Version>,
    /// `None` before the first buffer with DeepStream's metadata.
    deepstream: Option<DeepStream>,
    frames: Vec<Frame>,
    layers: Vec<Layer>,
    /// The layers of each frame, one frame after the other.
    memories: Vec<LayerMemory>,
}

/// What the caps of a batch have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchCaps {
    /// Width and height of the frames of one source.
    pub size: Option<[u32; 2]>,
    /// Whether the frames are in NVMM memory.
    pub is_nvmm: bool,
}

/// A frame with tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The index of the frame in the batch's list.
    pub index: usize,
    /// Width and height of the frame that nvinfer scaled, as far as it reads them: even numbers.
    pub size: [u32; 2],
    /// The model description of its tensors.
    model: NetworkInfo,
    /// The index of its first layer in the reader's memories.
    first: usize,
}

impl Frame {
    /// The key of frames that one run can decode: their model, and its input, which is the frame if its size is unknown.
    fn run(&self) -> (NetworkInfo, Option<[u32; 2]>) {
        (self.model, (!has_size(self.model)).then_some(self.size))
    }
}

/// The tensors of a buffer.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    frames: &'a [Frame],
    layers: &'a [Layer],
    memories: &'a [LayerMemory],
    meta: BatchMeta<'a>,
    /// What else was found.
    pub found: Found,
}

/// What was found in a batch, besides the tensors themselves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    /// The number of frames in the batch, with and without tensors.
    pub all_frames: usize,
    /// The number of the inference element whose tensors were read.
    pub unique_id: u32,
    /// The number of another inference element, if its tensors were found, too.
    pub other_id: Option<u32>,
    /// Where tensors were found if no frame has any.
    pub elsewhere: Option<Elsewhere>,
    /// Layers that are not read: those after [`MAX_TENSORS`], and those with too many dimensions.
    pub unread: usize,
    /// The size of the caps, if it is used for a frame that has neither a surface nor a size in its metadata.
    pub size_of_caps: Option<[u32; 2]>,
}

/// What has tensors, if not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elsewhere {
    Objects,
    Regions,
}

impl Reader {
    /// A reader of the tensors of the inference element with the number `unique_id`, or with 0 of the one with the
    /// lowest number in each batch. The layout is that of `forced`, or of the version that DeepStream's libraries report.
    pub fn new(unique_id: u32, forced: Option<Version>) -> Self {
        Self { unique_id, forced, ..Self::default() }
    }

    /// Reads the tensors of `buffer`, whose caps have `caps`; `None` if it has no metadata of DeepStream.
    /// `search_elsewhere` is whether to search for tensors of objects and of
    /// regions of interest if no frame has tensors.
    ///
    /// # Errors
    /// If DeepStream's libraries cannot be used, its version is not known, the metadata is damaged, or
    /// frames have different layers.
    pub fn read<'a>(
        &'a mut self,
        buffer: &'a gst::BufferRef,
        caps: BatchCaps,
        search_elsewhere: bool,
    ) -> Result<Option<Batch<'a>>, InputError> {
        if !deepstream::is_on(buffer) {
            return Ok(None);
        }
        self.opened()?;
        let Self { unique_id, deepstream, frames, layers, memories, .. } = self;
        let deepstream = deepstream.as_ref().expect("it was opened");
        let Some(meta) = deepstream.batch(buffer)? else {
            return Ok(None);
        };
        let host_is_current = meta.structures().version <= HAS_CURRENT_HOST_COPY;
        let found = Found { unique_id: *unique_id, ..Found::default() };
        // SAFETY: the buffer has NVMM memory.
        let surfaces = caps.is_nvmm.then(|| unsafe { meta.surfaces(buffer) }).flatten();
        let caps_size = caps.size;
        let collector =
            Collector { frames, layers, memories, host_is_current, surfaces, caps_size, found };
        let found = collector.collect(&meta.lock(), search_elsewhere)?;
        Ok(Some(Batch { frames, layers, memories, meta, found }))
    }

    /// Adds to `copy` what DeepStream does not copy from `original`: the sizes of frames, and model descriptions.
    ///
    /// # Errors
    /// If DeepStream's libraries cannot be used, or the metadata is damaged.
    pub fn complete_copy(
        &mut self,
        original: &gst::BufferRef,
        copy: &mut gst::BufferRef,
    ) -> Result<(), InputError> {
        if !deepstream::is_on(original) {
            return Ok(());
        }
        let deepstream = self.opened()?;
        if let (Some(original), Some(copy)) = (deepstream.batch(original)?, deepstream.batch(copy)?)
        {
            copy.lock().complete_copy(&original.lock())?;
        }
        Ok(())
    }

    /// DeepStream's functions, which are opened once.
    fn opened(&mut self) -> Result<&DeepStream, DeepStreamError> {
        let opened = match self.deepstream.take() {
            Some(opened) => opened,
            None => DeepStream::open(self.forced)?,
        };
        Ok(self.deepstream.insert(opened))
    }

    /// The metadata of `buffer`, to write to it.
    pub fn batch_meta<'a>(&'a self, buffer: &'a mut gst::BufferRef) -> Option<BatchMeta<'a>> {
        // There is no error: the structures are known since the buffer was read.
        self.deepstream.as_ref()?.batch(buffer).ok()?
    }
}

impl From<DeepStreamError> for InputError {
    fn from(error: DeepStreamError) -> Self {
        Self::DeepStream { problem: error.to_string() }
    }
}

impl<'a> Batch<'a> {
    /// The frames with tensors. Those of one run follow each other.
    pub fn frames(&self) -> &'a [Frame] {
        self.frames
    }

    /// The ranges of [`frames`](Self::frames) that one run can decode.
    pub fn runs(&self) -> impl Iterator<Item = Range<usize>> + use<'a> {
        let mut first = 0;
        self.frames().chunk_by(|a, b| a.run() == b.run()).map(move |frames| {
            let range = first..first + frames.len();
            first = range.end;
            range
        })
    }

    /// The tensors of these frames.
    pub fn tensors(&self, frames: Range<usize>) -> BatchTensors<'a> {
        let (frames, memories) = (&self.frames[frames], self.memories);
        let of_layer = |(index, layer)| LayerImages { layer, index, frames, memories };
        BatchTensors { layers: self.layers.iter().enumerate().map(of_layer).collect() }
    }

    /// The number of layers that are read.
    pub fn layers(&self) -> usize {
        self.layers.len()
    }

    /// The frame with this index among those with tensors.
    pub fn frame(&self, index: usize) -> ImageFrame {
        let Frame { index, size, model, .. } = self.frames[index];
        ImageFrame { index, stream: None, size: Some(size), model: Self::model_input(model) }
    }

    /// The model's input, as far as tensors have it.
    fn model_input(model: NetworkInfo) -> ModelInput {
        let (fit, assumption) = letterbox(model);
        ModelInput {
            size: has_size(model).then_some(model.size),
            letterbox: Some(fit),
            rounding: Rounding::EvenSides,
            pixel_aspect_ratio: None,
            keypoints: None,
            letterbox_is_assumed: assumption.is_some(),
        }
    }

    /// What the tensors do not contain of the letterbox, and what is assumed instead; `None` if they contain all.
    pub fn letterbox_problem(&self) -> Option<&'static str> {
        self.frames.iter().find_map(|frame| letterbox(frame.model).1)
    }

    /// The version of DeepStream.
    pub fn version(&self) -> Version {
        self.meta.structures().version
    }

    /// Why the structures are an assumption, and which they are; `None` if they are known.
    pub fn assumption(&self) -> Option<(Assumption, &'static StructureLayout)> {
        let Structures { layout, assumption, .. } = *self.meta.structures();
        assumption.map(|assumption| (assumption, layout))
    }

    /// Whether a frame's tensors do not contain the size of the model's input.
    pub fn has_no_model_size(&self) -> bool {
        self.frames.iter().any(|frame| !has_size(frame.model))
    }
}

/// Whether the size of the model's input is one.
fn has_size(model: NetworkInfo) -> bool {
    model.size.iter().all(|side| (1..=MAX_MODEL_SIDE).contains(side))
}

/// How nvinfer fitted frames into the model's input, and what of it is an assumption.
fn letterbox(model: NetworkInfo) -> (Letterbox, Option<&'static str>) {
    // Without a size the rest is not to be trusted either.
    let model = if has_size(model) { model } else { NetworkInfo::default() };
    match (model.maintain_aspect_ratio, model.symmetric_padding) {
        (Some(false), _) => (Letterbox::None, None),
        (Some(true), Some(true)) => (Letterbox::Center, None),
        (Some(true), Some(false)) => (Letterbox::TopLeft, None),
        (Some(true), None) => (
            Letterbox::TopLeft,
            Some(
                "nvinfer kept the aspect ratio, but the tensors do not contain symmetric-padding; it is \
                 assumed not to be set: set letterbox=center if it is, else letterbox=top-left",
            ),
        ),
        (None, _) => (
            Letterbox::None,
            Some(
                "the tensors do not contain maintain-aspect-ratio; it is assumed not to be set: set \
                 letterbox=top-left if it is set in nvinfer's configuration, letterbox=center with \
                 symmetric-padding too, else letterbox=none",
            ),
        ),
    }
}

/// The tensors of some frames of a batch, one per layer.
pub(crate) struct BatchTensors<'a> {
    layers: ArrayVec<LayerImages<'a>, MAX_TENSORS>,
}

impl<'a> BatchTensors<'a> {
    /// Views of the tensors. The first dimension is the number of frames.
    pub fn views(&self) -> TensorViews<'_> {
        TensorViews(self.layers.iter().map(LayerImages::view).collect())
    }
}
