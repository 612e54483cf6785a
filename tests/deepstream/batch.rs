// SPDX-License-Identifier: MIT OR Apache-2.0
//! Batches of frames with the outputs of models, and the objects that are expected on the frames.
//!
//! In: a [`Scene`] with frames, models, and a random seed for each frame's tensors. Out: buffers
//! with the batch, from a [`Producer`] that works like nvinfer; and for each frame the expected
//! objects, computed by `Reference` and `Mapping`.

use std::ffi::CString;
use std::sync::Arc;

use fastrand::Rng;
use gstnmsfilter::deepstream::layout::Version;
use gstnmsfilter::output::Region;
use half::f16;
use nmsfilter_core::decoder::{self, Options};
use nmsfilter_core::device::{Device, DeviceBuffer, PinnedBuffer, Stream};
use nmsfilter_core::engine::{
    ClassThresholds, Detection, Engine, ImagePlace, Job, Params, Reference,
};
use nmsfilter_core::geometry::{FitRule, Letterbox, Mapping, Rounding};
use nmsfilter_core::tensor::TensorView;

use crate::libraries;
use crate::object::{Object, object};
use crate::standin::{Batch, Frame, Layer, Output, Pool, Surfaces, Tensors};
use crate::support::engines;

/// The layers of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Format {
    /// One layer, `[4+C,N]`.
    Yolov8,
    /// One layer, `[N,5+C]`.
    Yolov5,
    /// Two layers, `[N,4]` and `[N,C]`.
    Boxes,
}

impl Format {
    pub fn decoder(self) -> &'static str {
        match self {
            Self::Yolov8 => "yolov8",
            Self::Yolov5 => "yolov5",
            Self::Boxes => "boxes",
        }
    }
}

/// A model, and how nvinfer runs it.
#[derive(Clone, Copy, Debug)]
pub struct TestModel {
    pub unique_id: u32,
    pub format: Format,
    pub half: bool,
    /// Width and height of the model's input.
    pub input: [u32; 2],
    pub anchors: usize,
    pub classes: usize,
    /// Number of objects around which the boxes lie; `None` for one object per 12 anchors.
    pub objects: Option<usize>,
    pub letterbox: Letterbox,
}

impl Default for TestModel {
    fn default() -> Self {
        Self {
            unique_id: 1,
            format: Format::Yolov8,
            half: false,
            input: [640, 640],
            anchors: 300,
            classes: 3,
            objects: None,
            letterbox: Letterbox::None,
        }
    }
}

impl TestModel {
    /// Returns the letterbox that the element finds in the tensors of this version.
    pub fn known_letterbox(&self) -> Letterbox {
        let version = libraries::version();
        if version < Version::new(6, 1) || self.letterbox == Letterbox::None {
            Letterbox::None
        } else if version < Version::new(7, 1) {
            Letterbox::TopLeft
        } else {
            self.letterbox
        }
    }
}

/// A layer's elements.
#[derive(Clone, Debug)]
pub enum Elements {
    F32(Vec<f32>),
    F16(Vec<f16>),
}

impl Elements {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::F32(elements) => bytemuck::cast_slice(elements),
            Self::F16(elements) => bytemuck::cast_slice(elements),
        }
    }
}

/// A layer of one frame.
#[derive(Clone, Debug)]
pub struct HostLayer {
    pub name: &'static str,
    pub dims: Vec<usize>,
    pub elements: Elements,
}

/// Returns the outputs of `model` for a random frame: clusters of boxes, some of them in the border
/// of a letterbox or outside of the model's input.
pub fn outputs(model: &TestModel, seed: u64) -> Vec<HostLayer> {
    let mut rng = Rng::with_seed(seed);
    let [width, height] = model.input.map(|side| side as f32);
    let objects: Vec<[f32; 4]> = (0..model.objects.unwrap_or(1 + model.anchors / 12))
        .map(|_| {
            let side = 8.0 + rng.f32() * 0.2 * width;
            [rng.f32() * width, rng.f32() * height, side, side * (0.5 + rng.f32())]
        })
        .collect();
    let (n, c) = (model.anchors, model.classes);
    let (mut boxes, mut scores) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let [x, y, w, h] = *rng.choice(&objects).unwrap();
        let mut jitter = |value: f32, size: f32| value + (rng.f32() - 0.5) * 0.3 * size;
        let box_ = [jitter(x, w), jitter(y, h), jitter(w, w), jitter(h, h)];
        boxes.push(box_);
        let class = rng.usize(0..c);
        let score = rng.f32();
        scores
            .push((0..c).map(|i| if i == class { score } else { 0.1 * score }).collect::<Vec<_>>());
    }
    let layers = match model.format {
        Format::Yolov8 => {
            let column = |i: usize| -> Vec<f32> {
                match i {
                    0..4 => boxes.iter().map(|anchor| anchor[i]).collect(),
                    _ => scores.iter().map(|anchor| anchor[i - 4]).collect(),
                }
            };
            vec![("output0", vec![4 + c, n], (0..4 + c).flat_map(column).collect::<Vec<f32>>())]
        }
        Format::Yolov5 => {
            let row = |i: usize| boxes[i].into_iter().chain([0.9]).chain(scores[i].iter().copied());
            vec![("output", vec![n, 5 + c], (0..n).flat_map(row).collect())]
        }
        Format::Boxes => {
            // Corners of the boxes.
            let corners = boxes
                .iter()
                .flat_map(|&[x, y, w, h]| [x - w / 2.0, y - h / 2.0, x + w / 2.0, y + h / 2.0]);
            vec![("scores", vec![n, c], scores.concat()), ("boxes", vec![n, 4], corners.collect())]
        }
    };
    let elements = |all: Vec<f32>| {
        if model.half {
            Elements::F16(all.into_iter().map(f16::from_f32).collect())
        } else {
            Elements::F32(all)
        }
    };
    layers
        .into_iter()
        .map(|(name, dims, all)| HostLayer { name, dims, elements: elements(all) })
        .collect()
}

/// The memory that contains the tensors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Memory {
    /// Host pointers. Device pointers are null, as with nvinferserver.
    Host,
    /// Device pointers. Host pointers are null.
    Device,
    /// Host and device pointers to equal tensors.
    Both,
    /// Device pointers, and host pointers to other tensors, as with `disable-output-host-copy`.
    Stale,
    /// Host pointers, and device pointers that are not memory of the process.
    InvalidDevice,
}

impl Memory {
    /// The memory for the backend under test. On a GPU, the host pointers are stale.
    pub fn usual() -> Self {
        if engines::on_gpu() { Self::Stale } else { Self::Host }
    }

    fn is_on_device(self) -> bool {
        matches!(self, Self::Device | Self::Both | Self::Stale)
    }
}

/// The places that contain the size of a frame, which the scene has in [`Frame::pipeline`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizes {
    /// The frame's metadata, as the old nvstreammux writes it. The buffer has no surfaces.
    Metadata,
    /// The surface at the index `batch_id`, as behind the new nvstreammux. The metadata has no
    /// size.
    Surfaces,
    /// The surface at the index `batch_id`, while the metadata contains this outdated size. The old
    /// nvstreammux and an element that scales its buffers leave such frames.
    SurfacesBeside([u32; 2]),
}

/// A frame, and for each model the seed of its tensors, or `None` if the frame has no tensors.
#[derive(Clone, Debug)]
pub struct FrameSpec {
    pub meta: Frame,
    pub seeds: Vec<Option<u64>>,
}

/// The description of a batch.
#[derive(Clone, Debug)]
pub struct Scene {
    pub frames: Vec<FrameSpec>,
    pub models: Vec<TestModel>,
    pub sizes: Sizes,
    pub memory: Memory,
    /// The GPU whose memory contains the tensors.
    pub gpu: u32,
    /// If true, frames are in memory in random order and with gaps between them.
    pub scattered: bool,
    /// The value of the property `score-threshold`.
    pub score_threshold: f32,
}

impl Scene {
    /// `count` frames of 1280x720 with the tensors of one model.
    pub fn new(count: usize, seed: u64) -> Self {
        let frame = |index: usize| FrameSpec {
            meta: Frame {
                batch_id: index as u32,
                source_id: 100 + index as u32,
                pad_index: index as u32,
                frame_num: 7,
                pts: 40_000_000,
                unix_time: 1_771_853_462_174_494_742,
                pipeline: [1280, 720],
                source: [1920, 1080],
            },
            seeds: vec![Some(seed * 1000 + index as u64)],
        };
        Self {
            frames: (0..count).map(frame).collect(),
            models: vec![TestModel::default()],
            sizes: Sizes::Metadata,
            memory: Memory::usual(),
            gpu: 0,
            scattered: false,
            score_threshold: 0.25,
        }
    }

    pub fn with_sizes(mut self, sizes: Sizes) -> Self {
        self.sizes = sizes;
        self
    }

    /// Returns the surfaces of a buffer, if it has any. Surfaces without a frame in the batch get a
    /// size that no frame has.
    pub fn surfaces(&self) -> Option<Surfaces> {
        let size = |batch_id: u32| {
            let frame = self.frames.iter().find(|frame| frame.meta.batch_id == batch_id);
            frame.map_or([7, 5], |frame| frame.meta.pipeline)
        };
        let count = self.frames.iter().map(|frame| frame.meta.batch_id + 1).max().unwrap_or(0);
        let sizes = (0..count).map(size).collect();
        (self.sizes != Sizes::Metadata).then(|| Surfaces { sizes, ..Surfaces::default() })
    }

    /// Returns what the muxer writes into the metadata of `frame`.
    fn meta(&self, frame: &FrameSpec) -> Frame {
        let pipeline = match self.sizes {
            Sizes::Metadata => frame.meta.pipeline,
            Sizes::Surfaces => [0; 2],
            Sizes::SurfacesBeside(size) => size,
        };
        Frame { pipeline, ..frame.meta }
    }

    pub fn with_model(mut self, model: TestModel) -> Self {
        self.models = vec![model];
        self
    }

    /// Returns the survivors of frame `index` from model number `model`, in pixels of the model's
    /// input, and the mapping to a frame that was fitted by `letterbox`.
    pub fn survivors(
        &self,
        index: usize,
        model: usize,
        letterbox: Letterbox,
    ) -> (Vec<Detection>, Mapping) {
        let (frame, model_) = (&self.frames[index], &self.models[model]);
        // nvinfer reads an even number of rows and columns.
        let size = frame.meta.pipeline.map(|side| side & !1);
        let rule = FitRule::from(letterbox).with_rounding(Rounding::EvenSides);
        let mapping = Mapping::new(size, model_.input, rule).unwrap();
        let Some(seed) = frame.seeds[model] else { return (Vec::new(), mapping) };
        let layers = outputs(model_, seed);
        let views: Vec<TensorView<'_>> = layers
            .iter()
            .map(|layer| match &layer.elements {
                Elements::F32(all) => TensorView::from_slice(layer.name, &layer.dims, all),
                Elements::F16(all) => TensorView::from_slice(layer.name, &layer.dims, all),
            })
            .collect();
        let decoder = decoder::by_name(model_.format.decoder());
        let choice = decoder::choose(&views, decoder, Options::default()).unwrap();
        let params = Params {
            thresholds: ClassThresholds::uniform(self.score_threshold),
            max_detections: 1000,
            ..Params::default()
        };
        let mut reference = Reference::default();
        let outcome = reference
            .run(Job::new(&views, &choice.layout, &params, &[ImagePlace::in_frame(&mapping, 0)]))
            .unwrap();
        (outcome.group(0).survivors.to_vec(), mapping)
    }

    /// Returns the objects that are expected for these survivors.
    pub fn expected(&self, index: usize, model: usize, letterbox: Letterbox) -> Vec<Object> {
        let (survivors, mapping) = self.survivors(index, model, letterbox);
        let object = |region: Region| {
            let [left, top] = [region.x1, region.y1];
            let rect = [left, top, region.x2 - left, region.y2 - top];
            let (id, class) = (self.models[model].unique_id, region.class as i32);
            object(id, class, region.confidence, rect, &format!("class-{class}"))
        };
        survivors.iter().filter_map(|survivor| Region::of(survivor, &mapping)).map(object).collect()
    }
}

/// Attaches batches to buffers, as nvstreammux and one nvinfer per model do.
pub struct Producer {
    scene: Scene,
    /// One item per model.
    outputs: Vec<ModelOutputs>,
}

/// The outputs of a model for all frames, and a pool of memory for them.
struct ModelOutputs {
    model: TestModel,
    pool: Arc<Pool>,
    memory: Memory,
    gpu: u32,
    /// Layers of each frame that has tensors.
    frames: Vec<Vec<HostLayer>>,
    /// Offset in the memory, by layer and frame.
    offsets: Vec<Vec<usize>>,
    /// Content of the memory.
    content: Vec<u8>,
    /// Other content, for stale host memory.
    stale: Vec<u8>,
    on_device: Option<OnDevice>,
}

struct OnDevice {
    stream: Stream,
    pinned: PinnedBuffer,
    /// Device memory for each batch of outputs in the pool.
    buffers: Vec<DeviceBuffer>,
}

impl Producer {
    /// Makes a producer with pools of `pool` batches of outputs; nvinfer has 6.
    pub fn new(scene: &Scene, pool: u32) -> Self {
        let outputs = |index| ModelOutputs::new(scene, index, pool);
        Self { scene: scene.clone(), outputs: (0..scene.models.len()).map(outputs).collect() }
    }

    /// Returns the pool of the model with this index.
    pub fn pool(&self, model: usize) -> Arc<Pool> {
        self.outputs[model].pool.clone()
    }

    /// Attaches a batch to `buffer`. Waits until each model's pool has a batch of outputs.
    pub fn attach(&self, buffer: &mut gst::BufferRef) {
        let taken: Vec<Output> = self.outputs.iter().map(ModelOutputs::acquire).collect();
        if let Some(surfaces) = self.scene.surfaces() {
            surfaces.replace_memory(buffer);
        }
        let batch = Batch::attach(buffer, self.scene.frames.len() as u32);
        let mut next = vec![0; self.outputs.len()];
        for frame in &self.scene.frames {
            let meta = batch.add_frame(&self.scene.meta(frame));
            meta.add_other_user_meta();
            for (index, outputs) in self.outputs.iter().enumerate() {
                if frame.seeds[index].is_some() {
                    meta.attach(&outputs.tensors(next[index], &taken[index]), Some(&taken[index]));
                    next[index] += 1;
                }
            }
        }
    }
}

impl ModelOutputs {
    fn new(scene: &Scene, index: usize, pool: u32) -> Self {
        let (model, memory) = (scene.models[index], scene.memory);
        let seeds: Vec<u64> = scene.frames.iter().filter_map(|frame| frame.seeds[index]).collect();
        let frames: Vec<_> = seeds.iter().map(|&seed| outputs(&model, seed)).collect();
        let layers = frames.first().map_or(0, Vec::len);
        let mut end = 0;
        let mut rng = Rng::with_seed(5);
        // A layer's frames are contiguous.
        let offsets = (0..layers)
            .map(|layer| {
                let mut order: Vec<usize> = (0..frames.len()).collect();
                if scene.scattered {
                    rng.shuffle(&mut order);
                }
                let mut offsets = vec![0; frames.len()];
                for frame in order {
                    if scene.scattered {
                        end += 4 * rng.usize(0..50);
                    }
                    offsets[frame] = end;
                    end += frames[frame][layer].elements.bytes().len();
                }
                end = end.next_multiple_of(256);
                offsets
            })
            .collect();
        let mut outputs = Self {
            model,
            pool: Pool::new(pool, end),
            memory,
            gpu: scene.gpu,
            frames,
            offsets,
            content: Vec::new(),
            stale: Vec::new(),
            on_device: None,
        };
        outputs.content = outputs.written(end, &outputs.frames);
        outputs.on_device =
            memory.is_on_device().then(|| OnDevice::new(scene.gpu, pool, &outputs.content));
        let other: Vec<_> =
            seeds.iter().map(|&seed| self::outputs(&model, seed ^ 0xabcd_ef00)).collect();
        outputs.stale = outputs.written(end, &other);
        outputs
    }

    fn written(&self, bytes: usize, frames: &[Vec<HostLayer>]) -> Vec<u8> {
        let mut content = vec![0; bytes];
        for (layer, offsets) in self.offsets.iter().enumerate() {
            for (frame, &offset) in frames.iter().zip(offsets) {
                let elements = frame[layer].elements.bytes();
                content[offset..offset + elements.len()].copy_from_slice(elements);
            }
        }
        content
    }

    /// Waits for a batch of outputs and writes the tensors to it.
    fn acquire(&self) -> Output {
        let output = self.pool.acquire();
        let host = match self.memory {
            Memory::Stale => &self.stale,
            _ => &self.content,
        };
        // SAFETY: the memory is as long as `host`, and nothing reads it before the tensors are
        // attached.
        unsafe { output.memory().copy_from_nonoverlapping(host.as_ptr(), host.len()) };
        if let Some(on_device) = &self.on_device {
            on_device.upload(output.index());
        }
        output
    }

    /// Returns the tensors of the frame with this index among the frames that have tensors.
    fn tensors(&self, frame: usize, output: &Output) -> Tensors {
        let host = output.memory() as u64;
        let device = match (&self.on_device, self.memory) {
            (Some(on_device), _) => on_device.buffers[output.index()].address(),
            (None, Memory::InvalidDevice) => 0x7f00_0000_0000,
            (None, _) => 0,
        };
        let address = |base: u64, offset: usize| if base == 0 { 0 } else { base + offset as u64 };
        let layers = self.frames[frame].iter().zip(&self.offsets).map(|(layer, offsets)| Layer {
            name: Some(CString::new(layer.name).unwrap()),
            data_type: i32::from(self.model.half),
            dims: layer.dims.iter().map(|&dim| dim as u32).collect(),
            counts: None,
            host: address(if self.memory == Memory::Device { 0 } else { host }, offsets[frame]),
            device: address(device, offsets[frame]),
        });
        let gpu = self.gpu as i32;
        Tensors { gpu, layers: layers.collect(), ..tensors_of(&self.model) }
    }
}

/// Returns the metadata of a model's tensors, without layers.
pub fn tensors_of(model: &TestModel) -> Tensors {
    Tensors {
        unique_id: model.unique_id,
        size: model.input,
        maintain_aspect_ratio: model.letterbox != Letterbox::None,
        symmetric_padding: model.letterbox == Letterbox::Center,
        ..Tensors::default()
    }
}

impl OnDevice {
    fn new(gpu: u32, pool: u32, content: &[u8]) -> Self {
        let device = Device::open(gpu).expect("tensors in device memory need a GPU");
        let new = |_| DeviceBuffer::new(&device, content.len()).unwrap();
        let mut pinned = PinnedBuffer::new(&device, content.len()).unwrap();
        pinned.as_mut_slice().copy_from_slice(content);
        let buffers = (0..pool).map(new).collect();
        Self { stream: Stream::new(&device).unwrap(), pinned, buffers }
    }

    /// Copies the tensors to the device memory with this index, and waits for the copy.
    fn upload(&self, index: usize) {
        self.stream.upload(&self.pinned, &self.buffers[index], self.pinned.len()).unwrap();
        self.stream.synchronize().unwrap();
    }
}
