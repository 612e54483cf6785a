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
//!   `disable-output-host-copy` does so, and the metadata does not say whether it is set. nvinfer has no such
//!   option up to DeepStream 6.3 ([`HAS_CURRENT_HOST_COPY`]). From 6.4 on, the CPU engine copies from the
//!   device address, and reads the host address only if that is null.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

use arrayvec::ArrayVec;
use once_cell::unsync::OnceCell;

use super::model::{Letterbox, MAX_SIDE, ModelInfo};
use super::{InputError, MAX_TENSORS, TensorViews};
use crate::deepstream::layout::{DataType, Version};
use crate::deepstream::{
    self, BatchMeta, DeepStream, DeepStreamError, FrameMeta, LayerMeta, LockedBatch, Model,
    TensorMeta,
};
use crate::device::{Device, Ready, Stream};
use crate::tensor::{
    DeviceSlice, ElementType, Images, MAX_RANK, Mappable, Shape, Storage, TensorView,
};

/// The last version in which host addresses always have the tensors: later versions of nvinfer have, or may
/// have, the option `disable-output-host-copy`.
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

/// A frame with tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The index of the frame in the batch's list.
    pub index: usize,
    /// Width and height in the muxer's coordinates, as far as nvinfer reads them: even numbers.
    pub size: [u32; 2],
    /// The index of its first layer in the reader's memories.
    first: usize,
}

/// An output layer of the model.
#[derive(Debug, Default)]
struct Layer {
    name: String,
    element: ElementType,
    /// Without the batch.
    dims: ArrayVec<usize, MAX_RANK>,
    /// The bytes of a frame; 0 if the element type cannot be read.
    bytes: usize,
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
    /// What the tensors say of their model.
    model: Model,
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

    /// Reads the tensors of `buffer`; `None` if it has no metadata of DeepStream. `frame_size` is the size of frames of
    /// which the muxer does not say it. `search_elsewhere` is whether to search for tensors of objects and of
    /// regions of interest if no frame has tensors.
    ///
    /// # Errors
    /// If DeepStream's libraries cannot be used, its version is not known, the metadata is damaged, or
    /// frames have different layers.
    pub fn read<'a>(
        &'a mut self,
        buffer: &'a gst::BufferRef,
        frame_size: Option<[u32; 2]>,
        search_elsewhere: bool,
    ) -> Result<Option<Batch<'a>>, InputError> {
        if !deepstream::is_on(buffer) {
            return Ok(None);
        }
        self.opened()?;
        let Self { unique_id, deepstream, frames, layers, memories, .. } = self;
        let deepstream = deepstream.as_ref().expect("it was opened");
        let Some(meta) = deepstream.batch(buffer) else {
            return Ok(None);
        };
        let host_is_current = deepstream.version() <= HAS_CURRENT_HOST_COPY;
        let found = Found { unique_id: *unique_id, ..Found::default() };
        let collector = Collector { frames, layers, memories, host_is_current, frame_size, found };
        let found = collector.collect(&meta.lock(), search_elsewhere)?;
        Ok(Some(Batch { frames, layers, memories, meta, found }))
    }

    /// Adds to `copy` what DeepStream does not copy from `original`, the sizes of frames.
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
        if let (Some(original), Some(copy)) = (deepstream.batch(original), deepstream.batch(copy)) {
            copy.lock().copy_frame_sizes(&original.lock())?;
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
        self.deepstream.as_ref()?.batch(buffer)
    }
}

/// Reads the lists of a batch into a reader's memory.
struct Collector<'r> {
    frames: &'r mut Vec<Frame>,
    layers: &'r mut Vec<Layer>,
    memories: &'r mut Vec<LayerMemory>,
    host_is_current: bool,
    frame_size: Option<[u32; 2]>,
    found: Found,
}

impl Collector<'_> {
    fn collect(
        mut self,
        batch: &LockedBatch<'_>,
        search_elsewhere: bool,
    ) -> Result<Found, InputError> {
        self.frames.clear();
        if self.found.unique_id == 0 {
            self.found.unique_id = lowest_unique_id(batch)?.unwrap_or(0);
        }
        for (index, frame) in batch.frames()?.enumerate() {
            let frame = frame?;
            self.found.all_frames += 1;
            let mut selected = None;
            for tensor in batch.tensors(frame) {
                let tensor = tensor?;
                match batch.unique_id(tensor) {
                    id if id == self.found.unique_id => {
                        selected.get_or_insert(tensor);
                    }
                    other => self.found.other_id = Some(other),
                }
            }
            if let Some(tensor) = selected {
                let size = batch.frame_size(frame).or(self.frame_size);
                let size = size.ok_or_else(|| InputError::DeepStream {
                    problem: "neither the frames nor the caps have a size".to_owned(),
                })?;
                self.add_frame(batch, Frame { index, size: size.map(even), first: 0 }, tensor)?;
            }
        }
        if self.frames.is_empty() && search_elsewhere {
            self.found.elsewhere = elsewhere(batch)?;
        }
        // Frames of the same size follow each other, in the order of the batch.
        self.frames.sort_unstable_by_key(|frame| (frame.size, frame.index));
        Ok(self.found)
    }

    /// Adds a frame and its layers. The layers of the first frame are those of the batch.
    fn add_frame(
        &mut self,
        batch: &LockedBatch<'_>,
        frame: Frame,
        tensor: TensorMeta<'_>,
    ) -> Result<(), InputError> {
        let is_first = self.frames.is_empty();
        if is_first {
            self.found.model = batch.model(tensor);
        }
        let gpu = batch.gpu(tensor);
        let first = self.frames.len() * self.layers.len();
        let mut count = 0;
        for meta in batch.layers(tensor)? {
            let Some(layer) = Layer::shape_of(&meta)?.filter(|_| count < MAX_TENSORS) else {
                self.found.unread += usize::from(is_first);
                continue;
            };
            if is_first {
                if self.layers.len() == count {
                    self.layers.push(Layer::default());
                }
                self.layers[count].set(&meta, layer)?;
            } else if self.layers.get(count).is_none_or(|known| !known.is(&meta, &layer)) {
                return Err(different_layers(frame.index));
            }
            if self.memories.len() == first + count {
                self.memories.push(LayerMemory::default());
            }
            let bytes = self.layers[count].bytes;
            let LayerMeta { host, device, .. } = meta;
            let host_is_current = self.host_is_current;
            self.memories[first + count].set(Addresses {
                host,
                device,
                bytes,
                gpu,
                host_is_current,
            });
            count += 1;
        }
        if is_first {
            self.layers.truncate(count);
        } else if count != self.layers.len() {
            return Err(different_layers(frame.index));
        }
        self.frames.push(Frame { first, ..frame });
        Ok(())
    }
}

/// The lowest number of an inference element whose tensors a frame has. The order of a frame's metadata
/// says nothing: DeepStream puts new metadata first, and a copy of a buffer has it in reverse order.
fn lowest_unique_id(batch: &LockedBatch<'_>) -> Result<Option<u32>, DeepStreamError> {
    let mut lowest = None;
    for frame in batch.frames()? {
        for tensor in batch.tensors(frame?) {
            let id = batch.unique_id(tensor?);
            lowest = Some(lowest.map_or(id, |lowest: u32| lowest.min(id)));
        }
    }
    Ok(lowest)
}

/// Where tensors are in a batch of which no frame has any.
fn elsewhere(batch: &LockedBatch<'_>) -> Result<Option<Elsewhere>, DeepStreamError> {
    if batch.has_batch_tensors() {
        return Ok(Some(Elsewhere::Regions));
    }
    for frame in batch.frames()? {
        let frame = frame?;
        if batch.has_object_tensors(frame) {
            return Ok(Some(Elsewhere::Objects));
        }
        if batch.has_region(frame) {
            return Ok(Some(Elsewhere::Regions));
        }
    }
    Ok(None)
}

fn different_layers(frame: usize) -> InputError {
    InputError::DeepStream {
        problem: format!(
            "frame {frame} of the batch has other layers than the frames before it; expected the same \
             outputs of one model for each frame"
        ),
    }
}

/// `side` without the last row or column of an odd number: nvinfer does not read it.
fn even(side: u32) -> u32 {
    (side & !1).max(1)
}

impl From<DeepStreamError> for InputError {
    fn from(error: DeepStreamError) -> Self {
        Self::DeepStream { problem: error.to_string() }
    }
}

/// The element type and the dimensions of a layer.
type LayerShape = (ElementType, ArrayVec<usize, MAX_RANK>);

impl Layer {
    /// The element type and the dimensions of a layer, without the batch; `None` if it has too many.
    ///
    /// Leading dimensions of 1 beyond two dimensions are removed: a model whose batch dimension is fixed may have
    /// it here, too.
    fn shape_of(meta: &LayerMeta<'_>) -> Result<Option<LayerShape>, InputError> {
        let Ok((dims, elements)) = meta.dims() else {
            return Ok(None);
        };
        if dims.iter().try_fold(1usize, |n, &dim| n.checked_mul(dim)) != Some(elements) {
            let name = meta.name().map(|name| name.to_string_lossy()).unwrap_or_default();
            let problem = format!(
                "layer {name} has the dimensions {dims:?} and {elements} elements; expected their product"
            );
            return Err(InputError::DeepStream { problem });
        }
        let ones = dims.iter().take_while(|&&dim| dim == 1).count();
        let dims = &dims[ones.min(dims.len().saturating_sub(2))..];
        let element = match meta.data_type() {
            DataType::F32 => ElementType::F32,
            DataType::F16 => ElementType::F16,
            DataType::Other(name) => ElementType::Other(name),
        };
        // The batch becomes the first dimension.
        Ok((dims.len() < MAX_RANK).then(|| (element, dims.iter().copied().collect())))
    }

    fn set(&mut self, meta: &LayerMeta<'_>, (element, dims): LayerShape) -> Result<(), InputError> {
        let name = meta.name().map(|name| name.to_str()).transpose();
        let name = name.map_err(|_| InputError::DeepStream {
            problem: "the name of a layer is not UTF-8".to_owned(),
        })?;
        let name = name.unwrap_or_default();
        if self.name != name {
            self.name = name.to_owned();
        }
        self.bytes = dims.iter().product::<usize>() * element.size().unwrap_or(0);
        (self.element, self.dims) = (element, dims);
        Ok(())
    }

    fn is(&self, meta: &LayerMeta<'_>, (element, dims): &LayerShape) -> bool {
        let name = meta.name().map_or(&[][..], |name| name.to_bytes());
        self.name.as_bytes() == name && (self.element, &self.dims) == (*element, dims)
    }
}

impl<'a> Batch<'a> {
    /// The frames with tensors. Those of one size follow each other.
    pub fn frames(&self) -> &'a [Frame] {
        self.frames
    }

    /// The ranges of [`frames`](Self::frames) that have the same size.
    pub fn groups(&self) -> impl Iterator<Item = Range<usize>> + use<'a> {
        let mut first = 0;
        self.frames().chunk_by(|a, b| a.size == b.size).map(move |group| {
            let range = first..first + group.len();
            first = range.end;
            range
        })
    }

    /// The tensors of these frames.
    pub fn tensors(&self, frames: Range<usize>) -> BatchTensors<'a> {
        let (frames, memories) = (&self.frames[frames], self.memories);
        let of_layer = |(index, layer)| LayerImages { layer, index, frames, memories };
        BatchTensors(self.layers.iter().enumerate().map(of_layer).collect())
    }

    /// The number of layers that are read.
    pub fn layers(&self) -> usize {
        self.layers.len()
    }

    /// The model's input, as the tensors say.
    pub fn model(&self) -> ModelInfo {
        let is_size = !self.found.model.size.iter().any(|side| !(1..=MAX_SIDE).contains(side));
        ModelInfo {
            size: is_size.then_some(self.found.model.size),
            letterbox: Some(letterbox(self.found.model).0),
            labels: Vec::new(),
        }
    }

    /// What the tensors do not say of the letterbox, and what is assumed instead; `None` if they say all.
    pub fn letterbox_problem(&self) -> Option<&'static str> {
        letterbox(self.found.model).1
    }

    /// The version of DeepStream whose layout is used.
    pub fn version(&self) -> Version {
        self.meta.version()
    }
}

/// How nvinfer fitted frames into the model's input, and what of it is an assumption.
fn letterbox(model: Model) -> (Letterbox, Option<&'static str>) {
    match (model.maintain_aspect_ratio, model.symmetric_padding) {
        (Some(false), _) => (Letterbox::None, None),
        (Some(true), Some(true)) => (Letterbox::Center, None),
        (Some(true), Some(false)) => (Letterbox::TopLeft, None),
        (Some(true), None) => (
            Letterbox::TopLeft,
            Some(
                "nvinfer kept the aspect ratio, but this version's tensors do not say whether with \
                 symmetric-padding; it is assumed not to be set: set letterbox=center if it is, else \
                 letterbox=top-left",
            ),
        ),
        (None, _) => (
            Letterbox::None,
            Some(
                "this version's tensors do not say whether nvinfer kept the aspect ratio; it is assumed not to: \
                 set letterbox=top-left if maintain-aspect-ratio is set in nvinfer's configuration, \
                 letterbox=center with symmetric-padding too, else letterbox=none",
            ),
        ),
    }
}

/// The tensors of some frames of a batch, one per layer.
pub(crate) struct BatchTensors<'a>(ArrayVec<LayerImages<'a>, MAX_TENSORS>);

impl BatchTensors<'_> {
    /// Views of the tensors. The first dimension is the number of frames.
    pub fn views(&self) -> TensorViews<'_> {
        TensorViews(self.0.iter().map(LayerImages::view).collect())
    }
}

/// A layer of some frames.
struct LayerImages<'a> {
    layer: &'a Layer,
    index: usize,
    frames: &'a [Frame],
    memories: &'a [LayerMemory],
}

impl LayerImages<'_> {
    fn view(&self) -> TensorView<'_> {
        let mut dims = ArrayVec::<usize, MAX_RANK>::new();
        dims.push(self.frames.len());
        dims.extend(self.layer.dims.iter().copied());
        let shape = Shape::new(&dims).expect("a layer has less than MAX_RANK dimensions");
        TensorView::new(&self.layer.name, self.layer.element, shape, Storage::Images(self))
    }
}

impl Images for LayerImages<'_> {
    fn count(&self) -> usize {
        self.frames.len()
    }

    fn storage(&self, index: usize) -> Storage<'_> {
        self.memories[self.frames[index].first + self.index].storage()
    }
}

impl fmt::Debug for LayerImages<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the layer {} of {} frames of DeepStream", self.layer.name, self.frames.len())
    }
}

/// Where the elements of a layer of one frame are.
#[derive(Clone, Copy, Debug, Default)]
struct Addresses {
    /// Or 0.
    host: u64,
    /// Or 0.
    device: u64,
    bytes: usize,
    gpu: u32,
    /// Whether the host memory has the tensor even if the device memory has it, too.
    host_is_current: bool,
}

/// The memory of a layer of one frame.
#[derive(Debug, Default)]
struct LayerMemory {
    addresses: Addresses,
    /// A copy of the device memory, made when it is mapped to the host.
    copy: OnceCell<Vec<u8>>,
    spare: RefCell<Spare>,
}

/// What remains of a copy for the next one.
#[derive(Debug, Default)]
struct Spare {
    bytes: Vec<u8>,
    stream: Option<Stream>,
}

impl LayerMemory {
    fn set(&mut self, addresses: Addresses) {
        if let Some(copy) = self.copy.take() {
            self.spare.get_mut().bytes = copy;
        }
        self.addresses = addresses;
    }

    fn storage(&self) -> Storage<'_> {
        match self.addresses {
            Addresses { device: 0, host: 0, .. } => Storage::Missing,
            Addresses { device: 0, .. } => Storage::Host(self.host()),
            _ => Storage::Mappable(self),
        }
    }

    /// The bytes at the host address, which is not null.
    fn host(&self) -> &[u8] {
        let Addresses { host, bytes, .. } = self.addresses;
        // SAFETY: the metadata says that the host address has the elements of the layer. They are not
        // written as long as the buffer has the metadata, which a `Batch` borrows.
        unsafe {
            std::slice::from_raw_parts(std::ptr::with_exposed_provenance(host as usize), bytes)
        }
    }

    /// Copies the device memory to host memory.
    fn download(&self) -> Result<Vec<u8>, String> {
        let Addresses { device, bytes, gpu, .. } = self.addresses;
        let mut spare = self.spare.borrow_mut();
        let stream = spare.stream.take().filter(|stream| stream.device().ordinal() == gpu);
        let stream = match stream {
            Some(stream) => stream,
            None => Device::open(gpu)
                .map_err(|error| error.to_string())
                .and_then(|gpu| Stream::new(&gpu).map_err(|error| error.to_string()))?,
        };
        let mut copy = std::mem::take(&mut spare.bytes);
        copy.resize(bytes, 0);
        // SAFETY: the metadata says that the device address has the elements of the layer.
        unsafe { stream.download(device, &mut copy) }.map_err(|error| error.to_string())?;
        spare.stream = Some(stream);
        Ok(copy)
    }
}

impl Mappable for LayerMemory {
    fn size(&self) -> usize {
        self.addresses.bytes
    }

    fn is_on_device(&self) -> bool {
        self.addresses.device != 0
    }

    fn map_host(&self) -> Result<&[u8], String> {
        match self.addresses {
            Addresses { host, host_is_current: true, .. } if host != 0 => Ok(self.host()),
            _ => self.copy.get_or_try_init(|| self.download()).map(Vec::as_slice),
        }
    }

    fn map_device(&self) -> Result<Option<DeviceSlice>, String> {
        let Addresses { device, bytes, .. } = self.addresses;
        // SAFETY: the metadata says that the device address has the elements of the layer. nvinfer has
        // waited for its work. The elements are not written as long as the buffer has the metadata.
        Ok((device != 0).then(|| unsafe { DeviceSlice::new(device, bytes, Ready::Now) }))
    }
}

/// The tensors of `frame` from the inference element with this number.
pub(crate) fn tensor_of<'l>(
    batch: &'l LockedBatch<'_>,
    frame: FrameMeta<'l>,
    unique_id: u32,
) -> Option<TensorMeta<'l>> {
    batch.tensors(frame).flatten().find(|&tensor| batch.unique_id(tensor) == unique_id)
}
