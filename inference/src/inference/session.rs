// SPDX-License-Identifier: MIT OR Apache-2.0
//! An ONNX Runtime session that runs batches of pictures.
//!
//! In: a model, a provider, and pictures in the memory of [`IoBuffers`]. Out: the outputs, in an [`OutputSet`].
//!
//! ```text
//!             buffers 0: input ─► model ─► outputs ─┐  copied
//! pictures ─►                                       ├────────► a set from the pool ─► tensors
//!             buffers 1: input ─► model ─► outputs ─┘
//! ```
//!
//! On a GPU there are two [`IoBuffers`], so that the pictures of the next run are made while the model runs. Their
//! addresses never change, so each can have a CUDA graph. Both graphs are captured when the session is opened, and
//! their results are compared with the results of a run without a graph. ONNX Runtime stores graphs per thread: all
//! methods must be called on the thread that opened the session. The calling thread does not wait for a run: the
//! memory of the tensors has an event, for which readers wait.
//!
//! On the CPU and with provider libraries there is a single [`IoBuffers`], in host memory, and ONNX Runtime writes the
//! outputs directly to the set.
//!
//! If the number of an output's rows varies, as behind an operator for suppression, ONNX Runtime allocates the outputs of
//! each run in host memory, and the session copies them to a set with room for more rows, which are zeros. So the
//! tensors have equal dimensions in nearly all frames.

use std::fs::File;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::{IoBinding, NoSelectedOutputs, RunOptions, Session, SessionInputValue};
use ort::value::DynTensor;

use super::CAT;
use super::InferenceOptions;
use super::error::InferenceError;
use super::library::OnnxRuntime;
use super::model::{ConstantInput, Model, OutputSpec, batch_dimension, constants, onnx_type};
use super::outputs::{self, OutputSet};
use super::plugin_provider::{self, PluginDevice};
use super::provider::{self, Provider};
use super::trial::{self, GRAPH_ID, Sample, is_of_shape, run_error};
use nmsfilter_core::device::{Device, DeviceRows, Event, OwnedEvent, Stream};

/// The properties of an open model.
#[derive(Clone)]
pub struct OpenModel {
    /// The model's inputs and outputs.
    pub model: Model,
    /// The provider that runs the model.
    pub provider: Provider,
    /// The device of a provider library on which the model runs.
    pub provider_device: Option<PluginDevice>,
    /// The path of ONNX Runtime's library.
    pub library: PathBuf,
    /// True if each run is the launch of a CUDA graph.
    pub has_graph: bool,
    /// The GPU whose memory contains the model's input; `None` if the input is in host memory.
    pub input_device: Option<Arc<Device>>,
}

/// A model that is ready to run, on the thread that opened it.
pub struct ModelSession {
    // The session is dropped before the stream.
    pub(super) session: Session,
    buffers: Vec<IoBuffers>,
    constants: Vec<ConstantInput>,
    /// True if an output has other dimensions in each run, so that no memory is bound to it.
    varies: bool,
    /// The number of changes of the outputs' dimensions.
    changes: usize,
    /// The model description as caps.
    description: gst::Caps,
    stream: Option<Arc<Stream>>,
    /// The properties of the model.
    pub model: OpenModel,
}

/// The memory that the model reads and writes. Its addresses never change.
pub struct IoBuffers {
    /// The pictures.
    input: DynTensor,
    on_gpu: Option<GpuBuffers>,
}

/// The parts of [`IoBuffers`] that only exist on a GPU.
struct GpuBuffers {
    binding: IoBinding,
    outputs: Vec<DynTensor>,
    /// Selects the CUDA graph of these buffers, if there is one.
    run_options: RunOptions<NoSelectedOutputs>,
    began: OwnedEvent,
    ended: OwnedEvent,
}

/// The memory for the pictures of a run.
#[derive(Clone, Copy, Default)]
pub struct InputMemory {
    /// The address of the first picture.
    pub address: u64,
    /// On a GPU, the event that completes when the memory may be written. It exists as long as the session.
    pub free: Option<Event>,
}

impl ModelSession {
    /// Opens the model on `provider`, and runs it once.
    ///
    /// # Errors
    /// If the library, the provider, or the model cannot be used.
    pub fn open(
        options: &InferenceOptions,
        provider: Provider,
        has_graph: bool,
    ) -> Result<Self, InferenceError> {
        let library = OnnxRuntime::load(options.library.as_deref())?;
        let path = &options.model;
        check_file(path)?;
        let stream = match provider {
            Provider::Cpu | Provider::Plugin => None,
            Provider::Cuda | Provider::TensorRt => {
                let device = Device::open(options.device).map_err(|problem| {
                    let text =
                        format!("provider={} needs an NVIDIA GPU: {problem}", provider.name());
                    match problem.is_absence() {
                        true => InferenceError::Library(text),
                        false => InferenceError::Installation(text),
                    }
                })?;
                // While ONNX Runtime allocates memory in this thread, another model's thread may be capturing its
                // graph.
                device.relax_capture_mode();
                Some(Arc::new(Stream::new(&device)?))
            }
        };
        let changed = with_batch(path, options.batch)?;
        let changed = changed.as_deref();
        let for_batch = |error: InferenceError| match (changed, options.batch) {
            (Some(_), Some(batch)) => InferenceError::Settings(format!(
                "batch-size={batch}: the model has a batch of 1, and cannot run with another: \
                 {error}; leave batch-size at 0, or export the model with a dynamic batch"
            )),
            _ => error,
        };
        let mut provider_device = None;
        let opened = match (&stream, provider) {
            (Some(stream), _) => {
                provider::open_on_gpu(&library, options, changed, provider, stream, has_graph)
            }
            (None, Provider::Plugin) => {
                plugin_provider::open(&library, options, changed).map(|(session, device)| {
                    provider_device = Some(device);
                    session
                })
            }
            (None, _) => provider::open_on_cpu(&library, options, changed),
        };
        let session = opened.map_err(for_batch)?;
        let mut model = Model::new(&session, path, options.batch, &options.overrides)?;
        if changed.is_some() {
            // The number of a picture may be a constant of the file.
            model.outputs.iter_mut().for_each(|output| output.has_images = false);
        }
        let on_device = |stream: &Arc<Stream>| {
            let (kind, ordinal) = (AllocationDevice::CUDA, stream.device().ordinal() as i32);
            let info = MemoryInfo::new(kind, ordinal, AllocatorType::Device, MemoryType::Default)?;
            Allocator::new(&session, info)
        };
        let allocator = stream.as_ref().map(on_device).transpose()?.unwrap_or_default();
        let reads_host = provider::reads_input_on_host(&session, &model.input.name)?;
        let input_device =
            stream.as_ref().filter(|_| !reads_host).map(|stream| stream.device().clone());
        let host = Allocator::default();
        let of_input = if input_device.is_some() { &allocator } else { &host };
        let (element, shape) = (onnx_type(model.input.element), model.input.shape());
        let new_input = || DynTensor::new(of_input, element, &*shape);
        let input = new_input()?;
        let inputs = &options.overrides.inputs;
        let constants = constants::describe(session.inputs(), inputs, &model.input)?;
        let library = library.path;
        let mut opened = Self {
            session,
            buffers: Vec::new(),
            constants,
            varies: false,
            changes: 0,
            description: gst::Caps::new_empty(),
            stream,
            model: OpenModel { model, provider, provider_device, library, has_graph, input_device },
        };
        opened.try_outputs(&input).map_err(for_batch)?;
        let outputs = &mut opened.model.model.outputs;
        outputs::reserve(outputs, 0)?;
        opened.varies = outputs.iter().any(|output| output.rows.is_some());
        if opened.varies && has_graph {
            let problem = "the number of an output's rows depends on the picture".to_owned();
            return Err(InferenceError::Session(problem));
        }
        if opened.model.model.input.batch > 1 {
            opened.check_batch()?;
        }
        let sample = has_graph.then(|| opened.sample(|place| (place, trial::NOISE))).transpose()?;
        opened.buffers.push(IoBuffers { input, on_gpu: None });
        if let Some(stream) = opened.stream.clone() {
            opened.buffers.push(IoBuffers { input: new_input()?, on_gpu: None });
            let bound = if opened.varies { &[] } else { &*opened.model.model.outputs };
            for index in 0..opened.buffers.len() {
                let binding = opened.binding(&opened.buffers[index].input)?;
                let graph = has_graph.then_some(index);
                let on_gpu = GpuBuffers::new(binding, &stream, &allocator, bound, graph)?;
                opened.buffers[index].on_gpu = Some(on_gpu);
            }
        }
        let Model { outputs, info, signature, .. } = &mut opened.model.model;
        // Boxes and scores both have the dimensions [batch, boxes, ...].
        info.queries = outputs
            .first()
            .and_then(|output| output.shape.get(1))
            .filter(|_| signature.is_some_and(|it| it.facts.selects_pairs))
            .and_then(|&boxes| NonZeroU32::new(boxes.try_into().ok()?));
        opened.description = info.to_caps()?;
        if let Some(sample) = sample {
            opened.capture_graphs(&sample)?;
        }
        Ok(opened)
    }

    /// Returns a binding with these pictures, and the other inputs.
    ///
    /// # Errors
    /// If ONNX Runtime rejects one.
    pub(super) fn binding(&self, pictures: &DynTensor) -> Result<IoBinding, InferenceError> {
        let mut binding = self.session.create_binding()?;
        binding.bind_input(&*self.model.model.input.name, pictures)?;
        for (name, tensor) in &self.constants {
            binding.bind_input(name, tensor)?;
        }
        Ok(binding)
    }

    /// Captures the graphs, and checks that they give the results of a run without a graph.
    ///
    /// # Errors
    /// If ONNX Runtime cannot capture the model, or if the results differ.
    fn capture_graphs(&mut self, sample: &Sample) -> Result<(), InferenceError> {
        let stream = self.stream.clone().expect("it is on the GPU");
        let count = self.buffers.len();
        let provider = self.model.provider;
        let failed = |error: ort::Error| run_error(provider, error);
        let capture = || (0..count).try_for_each(|index| self.run_on_gpu(index).map_err(failed));
        stream.device().in_global_capture_mode(capture)?;
        for index in 0..count {
            self.write_input(index, &stream, sample)?;
            self.run_on_gpu(index).map_err(failed)?;
            let on_gpu = self.buffers[index].on_gpu.as_ref().expect("it is on the GPU");
            for (number, (output, value)) in
                self.model.model.outputs.iter().zip(&on_gpu.outputs).enumerate()
            {
                let mut bytes = vec![0; output.bytes()];
                // SAFETY: the output has this many bytes, in the memory of the GPU.
                unsafe { stream.download(value.data_ptr() as u64, &mut bytes) }?;
                if !sample.is_output(number, output, &bytes) {
                    let name = &output.name;
                    let problem = format!("the output {name} is different with a CUDA graph");
                    return Err(InferenceError::Session(problem));
                }
            }
        }
        Ok(())
    }

    /// Writes the sample's pictures to the buffers with this index.
    fn write_input(
        &mut self,
        index: usize,
        stream: &Stream,
        sample: &Sample,
    ) -> Result<(), InferenceError> {
        let spec = &self.model.model.input;
        let len = spec.bytes() * spec.batch;
        // SAFETY: the sample has this many bytes, in host memory.
        let pictures =
            unsafe { std::slice::from_raw_parts(sample.input.data_ptr().cast::<u8>(), len) };
        let to = self.buffers[index].input.data_ptr_mut();
        match &self.model.input_device {
            // SAFETY: the input has this many bytes, in the memory of the GPU, and lives as long as the stream.
            Some(_) => unsafe { stream.write(pictures, to as u64) }?,
            // SAFETY: the input has this many bytes, in host memory that no run is reading.
            None => unsafe { to.cast::<u8>().copy_from(pictures.as_ptr(), len) },
        }
        Ok(())
    }

    /// Returns the number of runs whose pictures can be in memory at one time.
    pub fn buffer_count(&self) -> usize {
        self.buffers.len()
    }

    /// Returns the memory for the pictures of the next run on the buffers with this index.
    pub fn input(&mut self, index: usize) -> InputMemory {
        let buffers = &mut self.buffers[index];
        // SAFETY: the buffers exist as long as the session.
        let free = buffers.on_gpu.as_ref().map(|on_gpu| unsafe { on_gpu.ended.event() });
        InputMemory { address: buffers.input.data_ptr_mut() as u64, free }
    }

    /// Allocates an output set.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new_set(&self) -> Result<OutputSet, InferenceError> {
        let stream = self.stream.as_ref().filter(|_| !self.varies);
        let binding = match stream {
            None if self.binds_memory() => Some(self.binding(&self.buffers[0].input)?),
            _ => None,
        };
        let Model { input, outputs, .. } = &self.model.model;
        OutputSet::new(binding, input.batch, outputs, &self.description, stream, self.changes)
    }

    /// Runs the model on the pictures in the buffers with this index, and writes the outputs to `set`. On a GPU,
    /// the work is only submitted; it begins after the pictures' events, `written`, have completed. Returns the
    /// time that an earlier run took on the GPU, if it is known.
    ///
    /// # Errors
    /// If the model or the GPU fails.
    pub fn run(
        &mut self,
        index: usize,
        set: &mut OutputSet,
        written: &[Event],
    ) -> Result<Option<Duration>, InferenceError> {
        let stream = self.stream.clone();
        let mut time = None;
        if let Some((stream, on_gpu)) = stream.as_ref().zip(self.buffers[index].on_gpu.as_ref()) {
            for &event in written {
                stream.wait_for(event)?;
            }
            time = on_gpu.ended.since(&on_gpu.began)?;
            stream.record(&on_gpu.began)?;
        }
        if self.binds_memory() {
            let result = match &set.binding {
                Some(binding) => self.session.run_binding(binding).map(drop),
                None => self.run_on_gpu(index),
            };
            match (result, &stream) {
                (Ok(()), Some(stream)) => self.copy_on_gpu(index, set, stream)?,
                (Ok(()), None) => {}
                (Err(error), _) if is_of_shape(&error) && !self.model.has_graph => self.unbind(),
                (Err(error), _) => return Err(run_error(self.model.provider, error)),
            }
        }
        if !self.binds_memory() {
            self.run_unbound(index, set)?;
        }
        if let Some((stream, on_gpu)) = stream.as_ref().zip(self.buffers[index].on_gpu.as_ref()) {
            stream.record(&on_gpu.ended)?;
            if let Some(ready) = &set.ready {
                stream.record(ready)?;
            }
        }
        Ok(time)
    }

    /// Copies the outputs of a run to `set`.
    fn copy_on_gpu(
        &self,
        index: usize,
        set: &OutputSet,
        stream: &Stream,
    ) -> Result<(), InferenceError> {
        let on_gpu = self.buffers[index].on_gpu.as_ref().expect("it is on the GPU");
        for ((output, from), to) in
            self.model.model.outputs.iter().zip(&on_gpu.outputs).zip(&set.memory)
        {
            let rows = |address: u64| DeviceRows { address, pitch: output.bytes() };
            let (from, to) = (rows(from.data_ptr() as u64), rows(to.address));
            // SAFETY: both have this size, in the memory of the GPU. Readers of the set wait for `ready`, and the
            // next run on these buffers comes later in the stream.
            unsafe { stream.copy_rows(from, to, output.bytes(), 1) }?;
        }
        Ok(())
    }

    /// Binds no memory to outputs from now on.
    fn unbind(&mut self) {
        self.varies = true;
        // Sets on a GPU have memory there.
        self.changes += 1;
    }

    /// Returns true if the input and the outputs are bound once. OpenVINO's library, which claims to read host memory,
    /// copied the input when it was bound, and gave the results of the first picture for all pictures.
    fn binds_memory(&self) -> bool {
        self.model.provider != Provider::Plugin && !self.varies
    }

    /// Runs the model without binding memory to it. ONNX Runtime then passes the input anew for each run, and allocates
    /// the outputs in host memory.
    fn run_unbound(&mut self, index: usize, set: &mut OutputSet) -> Result<(), InferenceError> {
        let provider = self.model.provider;
        let Model { input, outputs, .. } = &mut self.model.model;
        let pictures = SessionInputValue::from(&self.buffers[index].input);
        let mut inputs = vec![(&*input.name, pictures)];
        let constants = self.constants.iter();
        inputs.extend(constants.map(|(name, tensor)| (&**name, SessionInputValue::from(tensor))));
        let values = self.session.run(inputs).map_err(|error| run_error(provider, error))?;
        let batch = input.batch;
        let (mut rows, mut is_other) = (0, false);
        for output in &mut *outputs {
            let value = &values[&*output.name];
            if value.dtype().tensor_type() != Some(onnx_type(output.element)) {
                let problem = format!("output {} is {}", output.name, value.dtype());
                return Err(run_error(provider, problem));
            }
            let (found, is_new) = output.rows_of(&trial::lengths(value.shape()), batch)?;
            rows = rows.max(found);
            is_other |= is_new;
        }
        is_other |= outputs::reserve(outputs, rows)?;
        self.changes += usize::from(is_other);
        if set.changes != self.changes {
            let description = &self.description;
            set.replace(OutputSet::new(None, batch, outputs, description, None, self.changes)?);
        }
        for (output, to) in self.model.model.outputs.iter().zip(&set.memory) {
            let value = &values[&*output.name];
            let rows = output.rows.map_or(0, |axis| value.shape()[axis] as usize);
            // SAFETY: the set has this many bytes for the output, in host memory, and nobody reads them: either `renew`
            // made sure, or the set is new.
            let to =
                unsafe { std::slice::from_raw_parts_mut(to.address as *mut u8, output.bytes()) };
            output.write(trial::bytes(output, value), to, rows);
        }
        Ok(())
    }

    fn run_on_gpu(&mut self, index: usize) -> Result<(), ort::Error> {
        let on_gpu = self.buffers[index].on_gpu.as_ref().expect("it is on the GPU");
        let result = self.session.run_binding_with_options(&on_gpu.binding, &on_gpu.run_options);
        result.map(drop)
    }
}

impl GpuBuffers {
    /// Allocates memory for `outputs`, and binds it beside the inputs.
    fn new(
        mut binding: IoBinding,
        stream: &Stream,
        allocator: &Allocator,
        outputs: &[OutputSpec],
        graph: Option<usize>,
    ) -> Result<Self, InferenceError> {
        let mut values = Vec::new();
        for output in outputs {
            let mut value = output.allocate(allocator)?;
            output.bind(&mut binding, &mut value)?;
            values.push(value);
        }
        let mut run_options = RunOptions::new()?;
        // There is no need to wait for the device after a run: an event marks when the outputs may be read.
        run_options.disable_device_sync()?;
        if let Some(graph) = graph {
            run_options.set(GRAPH_ID, graph.to_string())?;
        }
        let [began, ended] =
            [OwnedEvent::with_time(stream.device())?, OwnedEvent::with_time(stream.device())?];
        Ok(Self { binding, outputs: values, run_options, began, ended })
    }
}

impl Drop for ModelSession {
    fn drop(&mut self) {
        // Wait for work that reads or writes the session's memory.
        if let Some(stream) = &self.stream
            && let Err(error) = stream.synchronize()
        {
            gst::info!(CAT, "while closing the model: {error}");
        }
    }
}

/// Returns the bytes of the model at `path` with another batch size, if it has to change and can.
fn with_batch(path: &Path, batch: Option<usize>) -> Result<Option<Vec<u8>>, InferenceError> {
    let Some(batch @ 2..) = batch else {
        return Ok(None);
    };
    let bytes = std::fs::read(path).map_err(|error| InferenceError::no_model(path, error))?;
    Ok(batch_dimension::with_batch(&bytes, batch))
}

/// Checks that `path` is a regular file that may be read. ONNX Runtime's own messages do not say this.
///
/// # Errors
/// If it is not.
fn check_file(path: &Path) -> Result<(), InferenceError> {
    let checked = path.metadata().and_then(|metadata| match metadata.file_type() {
        kind if kind.is_file() => File::open(path).map(drop),
        kind if kind.is_dir() => Err(io::Error::other("it is a folder")),
        _ => Err(io::Error::other("it is not a regular file")),
    });
    checked.map_err(|problem| InferenceError::no_model(path, problem))
}
