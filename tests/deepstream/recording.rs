// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded outputs for nvinfer: the files that it reads, and a pipeline of cameras, nvstreammux
//! and nvinfer.

use std::ffi::c_void;
use std::fmt::Write as _;

use gst::prelude::*;

use crate::batch::{Elements, HostLayer, TestModel, outputs};
use crate::kit::Kit;
use crate::standin::{Batch, Surfaces};
use crate::support::pipeline::{self, intercept, parse};
use crate::support::scratch::Scratch;

/// The way in which nvinfer handles the outputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Network {
    /// nvinfer attaches them (`network-type=100`).
    Attached,
    /// nvinfer copies them to the host, and does nothing else.
    Dropped,
    /// nvinfer parses them and suppresses boxes itself (`network-type=0`, `cluster-mode=2`).
    Parsed,
    /// nvinfer attaches them without a copy on the host. It runs as a detector whose parsing
    /// function finds no objects (docs/jetson.md).
    OnDevice,
}

impl Network {
    /// Returns the lines for the configuration file.
    fn properties(self, threshold: f32, libraries: &str) -> String {
        match self {
            Self::Attached => "network-type=100\noutput-tensor-meta=1\n".to_owned(),
            Self::Dropped => "network-type=100\n".to_owned(),
            Self::OnDevice => format!(
                "network-type=0\noutput-tensor-meta=1\ncluster-mode=4\nnum-detected-classes=1\n\
                 custom-lib-path={libraries}/libno_objects.so\nparse-bbox-func-name=NvDsInferParseNoObjects\n\
                 disable-output-host-copy=1\n"
            ),
            Self::Parsed => format!(
                "network-type=0\ncluster-mode=2\nnum-detected-classes=80\ncrop-objects-to-roi-boundary=1\n\
                 custom-lib-path={libraries}/libyolov8.so\nparse-bbox-func-name=NvDsInferParseYolov8\n\
                 [class-attrs-all]\npre-cluster-threshold={threshold}\nnms-iou-threshold=0.45\ntopk=1000\n"
            ),
        }
    }
}

/// Outputs of a model for several frames, stored as files in a folder.
pub struct Recording {
    folder: Scratch,
    pub model: TestModel,
    /// True if nvinfer runs the model on objects.
    on_objects: bool,
}

impl Recording {
    /// Stores the outputs of `count` random frames.
    pub fn new(model: TestModel, count: usize) -> Self {
        Self::from_outputs(model, (0..count as u64).map(|seed| outputs(&model, seed)).collect())
    }

    pub fn from_outputs(model: TestModel, frames: Vec<Vec<HostLayer>>) -> Self {
        let folder = Scratch::new();
        let [width, height] = model.input;
        let mut tensors = format!("input images 3 {height} {width}\n");
        for (index, layer) in frames[0].iter().enumerate() {
            let all: Vec<u8> =
                frames.iter().flat_map(|frame| frame[index].elements.bytes()).copied().collect();
            let file = format!("output{index}.bin");
            std::fs::write(folder.join(&file), all).unwrap();
            let kind = if matches!(layer.elements, Elements::F16(_)) { "f16" } else { "f32" };
            write!(tensors, "output {} {kind}", layer.name).unwrap();
            for dim in &layer.dims {
                write!(tensors, " {dim}").unwrap();
            }
            writeln!(tensors, " {file}").unwrap();
        }
        std::fs::write(folder.join("recorded.txt"), tensors).unwrap();
        Self { folder, model, on_objects: false }
    }

    /// Sets that nvinfer runs the model on objects (`process-mode=2`).
    pub fn on_objects(self) -> Self {
        Self { on_objects: true, ..self }
    }

    /// Writes the configuration of nvinfer, and returns the path of the file.
    pub fn configuration(
        &self,
        network: Network,
        threshold: f32,
        batch: usize,
        kit: &Kit,
    ) -> String {
        use nmsfilter_core::geometry::Letterbox;
        let [width, height] = self.model.input;
        let libraries = kit.libraries();
        let text = format!(
            "[property]\ngie-unique-id={}\nprocess-mode={}\nonnx-file=recorded.txt\nbatch-size={batch}\n\
             infer-dims=3;{height};{width}\nmodel-color-format=0\nnet-scale-factor=0.00392156862745098\n\
             maintain-aspect-ratio={}\nsymmetric-padding={}\n{}",
            self.model.unique_id,
            if self.on_objects { 2 } else { 1 },
            i32::from(self.model.letterbox != Letterbox::None),
            i32::from(self.model.letterbox == Letterbox::Center),
            network.properties(threshold, libraries.to_str().unwrap()),
        );
        let path = self.folder.join(format!("{network:?}-{batch}.txt"));
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// Loads the kit's plugins.
pub fn load_plugins(kit: &Kit) {
    pipeline::init();
    let plugins = ["nvdsgst_multistream", "nvdsgst_infer", "nvdsgst_msgconv"];
    // These plugins need a GPU: without one, they do not load or find no device.
    let for_gpus = ["gstnvvideoconvert", "gstnvvideo4linux2"];
    let for_gpus = if kit.is_on_host() { &[][..] } else { &for_gpus };
    for plugin in plugins.iter().chain(for_gpus) {
        gst::Plugin::load_file(kit.plugin(plugin)).unwrap();
    }
}

/// Cameras. Each has one of these sizes, and sends `buffers` buffers.
pub struct Cameras<'a> {
    pub sizes: &'a [[u32; 2]],
    pub buffers: usize,
    /// If true, each camera repeats a single picture, which costs almost nothing.
    pub still: bool,
}

impl Cameras<'_> {
    /// Returns a pipeline of the cameras, nvstreammux `mux`, and the elements `behind`.
    ///
    /// The muxer is followed by a queue: each camera's thread pushes events through the muxer, and
    /// NVIDIA's elements can deadlock if these threads wait for one another there.
    ///
    /// With a GPU the cameras are videotestsrc and nvvideoconvert, otherwise surfaces without pixels.
    pub fn pipeline(&self, kit: &Kit, behind: &str) -> gst::Pipeline {
        load_plugins(kit);
        let mut description = format!(
            "nvstreammux name=mux batch-size={} ! queue max-size-buffers=2 ! {behind}",
            self.sizes.len()
        );
        for (index, [width, height]) in self.sizes.iter().enumerate() {
            let buffers = self.buffers;
            let size = format!("width={width},height={height},framerate=30/1");
            let nvmm = format!("video/x-raw(memory:NVMM),format=NV12,{size}");
            description += &match (kit.is_on_host(), self.still) {
                (true, _) => format!(
                    " fakesrc name=in{index} num-buffers={buffers} sizetype=empty format=time ! {nvmm} ! mux.sink_{index}"
                ),
                (false, false) => format!(
                    " videotestsrc num-buffers={buffers} ! video/x-raw,format=NV12,{size} ! nvvideoconvert ! {nvmm}
                        ! mux.sink_{index}"
                ),
                (false, true) => format!(
                    " videotestsrc num-buffers=1 ! video/x-raw,format=NV12,{size} ! nvvideoconvert ! {nvmm}
                        ! imagefreeze num-buffers={buffers} ! queue max-size-buffers=4 ! mux.sink_{index}"
                ),
            };
        }
        let pipeline = parse(&description);
        if kit.is_on_host() {
            for (index, &size) in self.sizes.iter().enumerate() {
                let surfaces = Surfaces { sizes: vec![size], ..Surfaces::default() };
                intercept(&pipeline, &format!("in{index}"), move |buffer| {
                    surfaces.replace_memory(buffer);
                    set_device_memory(buffer);
                });
            }
            if pipeline.by_name("nvinfer").is_some() {
                intercept(&pipeline, "nvinfer", remove_device_addresses);
            }
        }
        pipeline
    }
}

/// Marks the surface as device memory, because nvinfer refuses surfaces in system memory.
fn set_device_memory(buffer: &gst::BufferRef) {
    /// Offset of `memType` in `NvBufSurface`, and the value of `NVBUF_MEM_CUDA_DEVICE`.
    const TYPE: usize = 16;
    const CUDA_DEVICE: u32 = 2;
    let memory = buffer.peek_memory(0).map_readable().unwrap();
    assert!(memory.len() >= TYPE + 4);
    // SAFETY: the memory is a structure that was allocated for this buffer, and no other thread has
    // it yet.
    unsafe { memory.as_ptr().add(TYPE).cast::<u32>().cast_mut().write(CUDA_DEVICE) };
}

/// Sets all device addresses of tensors to null, as nvinferserver does. On the host there is no
/// driver that could read them.
fn remove_device_addresses(buffer: &mut gst::BufferRef) {
    /// Offsets in structures of 9.1: `frame_user_meta_list` of `NvDsFrameMeta`; `obj_user_meta_list`
    /// of `NvDsObjectMeta`; `meta_type` and `user_meta_data` of `NvDsUserMeta`; the number of layers
    /// and the array of addresses of `NvDsInferTensorMeta`.
    const OF_FRAME: usize = 120;
    const OF_OBJECT: usize = 480;
    const TYPE: usize = 8;
    const DATA: usize = 40;
    const LAYERS: usize = 4;
    const DEVICE: usize = 24;
    const TENSOR_OUTPUT_META: i32 = 12;
    /// Reads the field at `offset`.
    ///
    /// # Safety
    ///
    /// The structure has a `T` at `offset`.
    unsafe fn field<T: Copy>(structure: *mut c_void, offset: usize) -> T {
        // SAFETY: required of the caller.
        unsafe { structure.byte_add(offset).cast::<T>().read() }
    }
    let Some(batch) = Batch::find(buffer) else { return };
    let mut owners = Vec::new();
    for frame in batch.frames() {
        owners.push((frame.as_ptr(), OF_FRAME));
        owners.extend(frame.object_metas().iter().map(|object| (object.as_ptr(), OF_OBJECT)));
    }
    for (owner, user_metas) in owners {
        // SAFETY: the structures are laid out as in 9.1, and only this thread has the buffer.
        unsafe {
            // A GList begins with its data, followed by the next element.
            let mut node: *mut c_void = field(owner, user_metas);
            while !node.is_null() {
                let meta: *mut c_void = field(node, 0);
                if field::<i32>(meta, TYPE) == TENSOR_OUTPUT_META {
                    let tensors: *mut c_void = field(meta, DATA);
                    let addresses: *mut u64 = field(tensors, DEVICE);
                    addresses.write_bytes(0, field::<u32>(tensors, LAYERS) as usize);
                }
                node = field(node, size_of::<usize>());
            }
        }
    }
}
