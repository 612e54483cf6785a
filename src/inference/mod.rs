// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a detector with ONNX Runtime: from a video frame to its raw output tensors.
//!
//! In: a model file, and frames. Out: the model's outputs as tensors to attach, in the memory of the
//! processor that ran the model.
//!
//! ```text
//! frame ─► picture ───────► model ─► outputs ─► tensors on the frame's buffer
//!          scaled, RGB,              from a pool
//!          normalized                (host or device memory)
//!          \___ by the processor that runs the model ___/
//! ```
//!
//! [`library`] finds ONNX Runtime, [`provider`] opens sessions, [`model`] has a model's inputs and
//! outputs, [`picture`] makes its input, and [`outputs`] has the memory of its results. On a GPU everything
//! after the copy of the frame is submitted to one stream, and the calling thread does not wait: the memory
//! of the tensors has an event, for which readers wait.

pub(crate) mod debug_category;
pub mod error;
pub mod library;
pub mod model;
pub mod outputs;
pub mod picture;
pub mod provider;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::{NoSelectedOutputs, RunOptions, Session};
use ort::value::DynTensor;

use crate::device::{Device, OwnedEvent, Stream};
use crate::geometry::Letterbox;
use crate::input::custom_meta::NewTensor;
use crate::input::model::ModelInfo;
use debug_category::CAT;
use error::InferenceError;
use library::OnnxRuntime;
use model::{Model, ModelError, OutputSpec, Overrides};
use outputs::{FixedOutput, OutputSet};
use picture::{DeviceFrame, Formats, GpuResampler, Resampler, Rows, Scratch, Table};
use provider::{GpuStream, Provider};

/// What to run.
#[derive(Clone, Debug)]
pub struct InferenceOptions {
    /// ONNX Runtime's library, or a folder that has it; `None` to search.
    pub library: Option<PathBuf>,
    /// The model file.
    pub model: PathBuf,
    /// What the user sets of the model's input.
    pub overrides: Overrides,
    /// How frames are fitted into the model's input.
    pub letterbox: Letterbox,
    /// The names of classes; `None` to take those of the model.
    pub labels: Option<Vec<String>>,
    /// The number of the GPU.
    pub device: u32,
}

/// A model that runs.
pub struct Inference {
    // The session is dropped before the stream.
    session: Session,
    run_options: RunOptions<NoSelectedOutputs>,
    sets: Vec<OutputSet>,
    input: DynTensor,
    allocator: Allocator,
    gpu: Option<Gpu>,
    outputs: Vec<FixedOutput>,
    table: Table,
    letterbox: Letterbox,
    resamplers: Formats<Resamplers>,
    rows: Rows,
    /// The model description that is attached to the tensors.
    info: gst::Caps,
    /// The model's inputs and outputs.
    pub model: Model,
    /// What runs it.
    pub provider: Provider,
    /// The path of ONNX Runtime's library.
    pub library: PathBuf,
    /// The bytes that the last run uploaded.
    pub uploaded: u64,
}

/// What makes the model's input of frames of one format.
struct Resamplers {
    resampler: Resampler,
    scratch: Scratch,
    /// `None` if the model's input is in host memory.
    on_gpu: Option<GpuResampler>,
}

/// The parts of a model on a GPU.
struct Gpu {
    stream: Arc<GpuStream>,
    /// Whether the model's input is in device memory.
    takes_input: bool,
    /// Completes when a frame in device memory has been read.
    read: OwnedEvent,
}

impl Inference {
    /// Opens the model on `provider`, and runs it once.
    ///
    /// # Errors
    /// If the library, the provider, or the model cannot be used.
    pub fn open(options: &InferenceOptions, provider: Provider) -> Result<Self, InferenceError> {
        let library = OnnxRuntime::load(options.library.as_deref())?;
        let path = &options.model;
        check_file(path)?;
        let stream = match provider {
            Provider::Cpu => None,
            Provider::Cuda | Provider::TensorRt => {
                let device = Device::open(options.device).map_err(|problem| {
                    InferenceError::NoGpu { provider: provider.name(), problem }
                })?;
                let stream = Stream::new(&device)?;
                Some(Arc::new(GpuStream { device, stream }))
            }
        };
        let mut session = match &stream {
            None => provider::open_on_cpu(&library, path)?,
            Some(stream) => provider::open_on_gpu(&library, path, provider, stream)?,
        };
        let mut model = Model::new(&session, path, &options.overrides)?;
        if let Some(labels) = &options.labels {
            model.labels.clone_from(labels);
        }
        let failed = |error: ort::Error| InferenceError::Session(error.to_string());
        let mut run_options = RunOptions::new().map_err(failed)?;
        let allocator = match &stream {
            None => Allocator::default(),
            Some(stream) => {
                // The event of an output marks when it may be read.
                run_options.disable_device_sync().map_err(failed)?;
                let info = MemoryInfo::new(
                    AllocationDevice::CUDA,
                    stream.device.ordinal() as i32,
                    AllocatorType::Device,
                    MemoryType::Default,
                );
                info.and_then(|info| Allocator::new(&session, info)).map_err(failed)?
            }
        };
        let takes_input = stream.is_some() && !provider::reads_input_on_host(&session)?;
        let element = model.input.element.onnx();
        let host = Allocator::default();
        let input_allocator = if takes_input { &allocator } else { &host };
        let input =
            DynTensor::new(input_allocator, element, model.input.shape()).map_err(failed)?;
        let table = Table::new(&model.input);
        let gpu = match stream {
            None => None,
            Some(stream) => {
                let read = OwnedEvent::new(&stream.device)?;
                Some(Gpu { stream, takes_input, read })
            }
        };
        let outputs = fix_outputs(&mut session, &model, &input, provider)?;
        let info = ModelInfo {
            task: model.task.clone(),
            end2end: model.end2end,
            keypoints: model.keypoints,
            ..ModelInfo::default()
                .with_size(model.input.size)
                .with_letterbox(options.letterbox)
                .with_labels(model.labels.iter().cloned())
        };
        Ok(Self {
            session,
            run_options,
            sets: Vec::new(),
            input,
            allocator,
            gpu,
            outputs,
            table,
            letterbox: options.letterbox,
            resamplers: Formats::default(),
            rows: Rows::default(),
            info: info.to_caps()?,
            model,
            provider,
            library: library.path,
            uploaded: 0,
        })
    }

    /// Sets the format and size of the following frames. Does not allocate if frames of the same have been set before.
    ///
    /// # Errors
    /// If frames of this format cannot be converted, or the GPU fails.
    pub fn set_frame(&mut self, frame: &gst_video::VideoInfo) -> Result<(), InferenceError> {
        let Self { resamplers, model, letterbox, gpu, table, .. } = self;
        resamplers.select(frame, || {
            let input = &model.input;
            let resampler = Resampler::new(frame, input, *letterbox)?;
            let on_gpu = match gpu {
                None => None,
                Some(gpu) => {
                    // Work that reads the memory of earlier ones.
                    gpu.stream.stream.synchronize()?;
                    let on_gpu = || GpuResampler::new(&gpu.stream, &resampler, input, table);
                    gpu.takes_input.then(on_gpu).transpose()?
                }
            };
            Ok(Resamplers { resampler, scratch: Scratch::default(), on_gpu })
        })
    }

    /// The number of runs whose outputs have memory.
    pub fn sets(&self) -> usize {
        self.sets.len()
    }

    /// Runs the model on `frame`. The tensors are those of its outputs; on a GPU the run may still be in
    /// progress.
    ///
    /// # Errors
    /// If the frame cannot be scaled, or the model fails.
    ///
    /// # Panics
    /// If [`set_frame`](Self::set_frame) was not called before.
    pub fn run(&mut self, frame: &gst::BufferRef) -> Result<&[NewTensor], InferenceError> {
        let index = self.free_set()?;
        let on_device = self.make_input(frame, index)?;
        let result = self.run_model(index);
        if let (Some(on_device), Some(gpu)) = (on_device, &self.gpu) {
            // Its memory may be written again as soon as the buffer has left the element.
            gpu.read.synchronize()?;
            drop(on_device);
        }
        result?;
        Ok(&self.sets[index].tensors)
    }

    /// Makes the model's input of `frame` for a run that writes set `index`. On a GPU the work is submitted,
    /// and a frame in device memory is returned: it must exist until the event `read` has completed.
    fn make_input<'f>(
        &mut self,
        frame: &'f gst::BufferRef,
        index: usize,
    ) -> Result<Option<DeviceFrame<'f>>, InferenceError> {
        let current = self.resamplers.current().expect("the format of frames is set");
        let Resamplers { resampler, scratch, on_gpu } = current;
        let set = &mut self.sets[index];
        let input = self.input.data_ptr_mut();
        let gpu = self.gpu.as_ref();
        let Some((gpu, on_gpu)) = gpu.zip(on_gpu.as_ref()) else {
            let len = self.model.input.bytes();
            // SAFETY: the input is a tensor of this size in host memory, which no run reads now.
            let tensor = unsafe { std::slice::from_raw_parts_mut(input.cast::<u8>(), len) };
            let to = (&self.model.input, &self.table);
            resampler.samples(frame, scratch, |planes| {
                picture::resample(resampler, planes, to, &mut self.rows, tensor);
            })?;
            return Ok(None);
        };
        let input = input as u64;
        if let Some(on_device) = DeviceFrame::new(frame, resampler, &gpu.stream.stream)? {
            self.uploaded = 0;
            // SAFETY: the input is a tensor of the picture's size in the memory of this GPU, and runs read it in
            // the order of the stream. The caller keeps the frame until `read` has completed.
            unsafe { on_gpu.resample_on_device(&on_device, input, &gpu.read) }?;
            return Ok(Some(on_device));
        }
        if let Some(ready) = &set.ready {
            // The last run of the set reads its frame until then.
            ready.synchronize()?;
        }
        let staging = &mut set.staging;
        // SAFETY: as above. The last run of the set has completed, and the planes are those of the resampler.
        self.uploaded = resampler.samples(frame, scratch, |planes| unsafe {
            on_gpu.resample(planes, staging, input)
        })??;
        Ok(None)
    }

    /// Runs the model on its input; the outputs are written to set `index`. On a GPU the work is submitted.
    fn run_model(&mut self, index: usize) -> Result<(), InferenceError> {
        let set = &self.sets[index];
        let result = self.session.run_binding_with_options(&set.binding, &self.run_options);
        result.map(drop).map_err(|error| run_error(self.provider, &self.outputs, &error))?;
        if let (Some(gpu), Some(ready)) = (&self.gpu, &set.ready) {
            gpu.stream.stream.record(ready)?;
        }
        Ok(())
    }

    /// The index of a set to which nothing else has a reference.
    fn free_set(&mut self) -> Result<usize, InferenceError> {
        if let Some(index) = self.sets.iter_mut().position(OutputSet::renew) {
            return Ok(index);
        }
        let input = (&*self.model.input.name, &self.input);
        let stream = self.gpu.as_ref().map(|gpu| &gpu.stream);
        let set = OutputSet::new(
            &self.session,
            &self.allocator,
            input,
            &self.outputs,
            &self.info,
            stream,
        )?;
        self.sets.push(set);
        Ok(self.sets.len() - 1)
    }
}

impl Drop for Inference {
    fn drop(&mut self) {
        // Work that reads or writes the memory of the session.
        if let Some(gpu) = &self.gpu
            && let Err(error) = gpu.stream.stream.synchronize()
        {
            gst::info!(CAT, "while closing the model: {error}");
        }
    }
}

/// # Errors
/// If `path` is not a regular file that may be read; ONNX Runtime's own messages do not say that.
fn check_file(path: &Path) -> Result<(), InferenceError> {
    let problem = match path.metadata() {
        Ok(metadata) if metadata.is_file() => match File::open(path) {
            Ok(_) => return Ok(()),
            Err(error) => error.to_string(),
        },
        Ok(metadata) if metadata.is_dir() => "it is a folder".to_owned(),
        Ok(_) => "it is not a regular file".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(InferenceError::Model { path: path.to_owned(), problem })
}

/// The dimensions of the outputs, by a run with any input: models often have them in part only.
fn fix_outputs(
    session: &mut Session,
    model: &Model,
    input: &DynTensor,
    provider: Provider,
) -> Result<Vec<FixedOutput>, InferenceError> {
    let failed = |error: ort::Error| InferenceError::Session(error.to_string());
    let mut binding = session.create_binding().map_err(failed)?;
    binding.bind_input(&*model.input.name, input).map_err(failed)?;
    let host =
        MemoryInfo::new(AllocationDevice::CPU, 0, AllocatorType::Device, MemoryType::CPUOutput)
            .map_err(failed)?;
    for output in &model.outputs {
        binding.bind_output_to_device(&*output.name, &host).map_err(failed)?;
    }
    let values = session.run_binding(&binding).map_err(|error| run_error(provider, &[], &error))?;
    let of_run = |output: &OutputSpec| {
        let shape = values[&*output.name].shape();
        let sides: Vec<usize> =
            shape.iter().map(|&side| usize::try_from(side).unwrap_or(0)).collect();
        // The first dimension of one picture is 1.
        let is_same =
            |(index, (&dim, &side)): (usize, (&i64, &usize))| dim >= 0 || (index == 0 && side == 1);
        let is_certain = output.dims.iter().zip(&sides).enumerate().all(is_same);
        if !sides.contains(&0) && (is_certain || !output.is_optional()) {
            return Ok(Some(FixedOutput { output: output.clone(), shape: sides }));
        }
        if !output.is_optional() {
            return Err(varying(output));
        }
        let (name, dims) = (&output.name, model::dims_text(&output.dims));
        gst::info!(
            CAT,
            "output {name} is not attached: its dimensions {dims} depend on the picture"
        );
        Ok(None)
    };
    let outputs = model.outputs.iter().filter_map(|output| of_run(output).transpose());
    let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
    match (&outputs[..], &model.outputs[..]) {
        ([], [first, ..]) => Err(varying(first)),
        _ => Ok(outputs),
    }
}

fn varying(output: &OutputSpec) -> InferenceError {
    let dims = model::dims_text(&output.dims);
    ModelError::VaryingOutput { name: output.name.clone(), dims }.into()
}

/// A failed run. ONNX Runtime refuses memory of other dimensions than an output has.
fn run_error(provider: Provider, outputs: &[FixedOutput], error: &ort::Error) -> InferenceError {
    let problem = error.to_string();
    let dynamic = outputs.iter().find(|fixed| fixed.output.dims.iter().any(|&side| side < 0));
    match dynamic {
        Some(fixed) if problem.to_lowercase().contains("shape") => varying(&fixed.output),
        _ => InferenceError::Run { provider: provider.name(), problem },
    }
}
