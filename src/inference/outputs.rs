// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of a model's outputs.
//!
//! In: a session, its input and its outputs. Out: [`OutputSet`]s, each with memory for the outputs of one
//! run, bound to the session once. A set is free again when nothing else has a reference to its tensors, so
//! nothing is allocated for a frame once there are enough sets.

use std::ffi::c_int;
use std::sync::Arc;

use gst::glib;
use ort::memory::Allocator;
use ort::session::{IoBinding, NoSelectedOutputs, RunOptions, Session};
use ort::value::DynTensor;

use super::error::InferenceError;
use super::model::OutputSpec;
use super::picture::Staging;
use super::provider::GpuStream;
use crate::device::OwnedEvent;
use crate::input::cuda_memory;
use crate::input::custom_meta::NewTensor;

/// An output with the dimensions that it has in every run.
pub struct FixedOutput {
    /// As the model describes it.
    pub output: OutputSpec,
    /// Its dimensions.
    pub shape: Vec<usize>,
}

/// Memory for the outputs of one run.
pub struct OutputSet {
    /// Binds the model's input, and its outputs to the memory of `tensors`.
    pub binding: IoBinding,
    /// The options of runs that write the set. With CUDA graphs, they name the graph that writes to this memory.
    pub run_options: RunOptions<NoSelectedOutputs>,
    /// The outputs as tensors to attach.
    pub tensors: Vec<NewTensor>,
    /// The frame of the run that writes the set, if that is on a GPU.
    pub staging: Staging,
    /// Completes with the last run that writes the set, if that is on a GPU.
    pub ready: Option<Arc<OwnedEvent>>,
}

impl OutputSet {
    /// Allocates the memory of `outputs` and binds it, and `input`.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn new(
        session: &Session,
        allocator: &Allocator,
        run_options: RunOptions<NoSelectedOutputs>,
        (input_name, input): (&str, &DynTensor),
        outputs: &[FixedOutput],
        model: &gst::Caps,
        gpu: Option<&Arc<GpuStream>>,
    ) -> Result<Self, InferenceError> {
        let failed = |error: ort::Error| InferenceError::Session(error.to_string());
        let ready = gpu.map(|gpu| OwnedEvent::new(&gpu.device)).transpose()?.map(Arc::new);
        let mut binding = session.create_binding().map_err(failed)?;
        binding.bind_input(input_name, input).map_err(failed)?;
        let mut tensors = Vec::new();
        for FixedOutput { output, shape } in outputs {
            let mut value =
                DynTensor::new(allocator, output.onnx(), shape.as_slice()).map_err(failed)?;
            binding.bind_output(&*output.name, &mut value).map_err(failed)?;
            let elements: usize = shape.iter().product();
            let len = elements * output.element.size().expect("the type of an output can be read");
            let memory = Elements { value, len };
            let memory = match (gpu, &ready) {
                (Some(gpu), Some(ready)) => memory.on_device(gpu, ready),
                _ => gst::Memory::from_slice(memory),
            };
            let mut data = gst::Buffer::new();
            data.get_mut().expect("the buffer is new").append_memory(memory);
            let tensor = NewTensor::new(&output.id, output.element, shape, data)?;
            tensors.push(tensor.with_model(model.clone()));
        }
        Ok(Self { binding, run_options, tensors, staging: Staging::default(), ready })
    }

    /// Whether nothing else has a reference to the tensors, so that they may be written again. What readers
    /// have of the memory is discarded.
    pub fn renew(&mut self) -> bool {
        self.tensors.iter_mut().all(|tensor| {
            let Some(data) = tensor.data.get_mut() else {
                return false;
            };
            if cuda_memory::is_on_device(data) {
                cuda_memory::renew(data)
            } else {
                is_sole_owner(data)
            }
        })
    }
}

/// Whether the buffer has the only reference to its memory.
fn is_sole_owner(buffer: &mut gst::BufferRef) -> bool {
    let memory = buffer.peek_memory(0).as_ptr().cast_mut();
    // SAFETY: the buffer has a reference to the memory; the count is read atomically, as GStreamer does.
    let references = unsafe {
        glib::ffi::g_atomic_int_get((&raw const (*memory).mini_object.refcount).cast::<c_int>())
    };
    references == 1
}

/// The elements of an output, in the memory of ONNX Runtime's allocator.
struct Elements {
    value: DynTensor,
    len: usize,
}

impl Elements {
    fn on_device(self, gpu: &Arc<GpuStream>, ready: &Arc<OwnedEvent>) -> gst::Memory {
        let (address, len) = (self.value.data_ptr() as u64, self.len);
        // SAFETY: the memory owns a reference to the event.
        let event = unsafe { ready.event() };
        let keep = (self, ready.clone(), gpu.clone());
        // SAFETY: `keep` owns the memory and the event until the `GstMemory` is freed. The bytes are written
        // only by runs of a set for which `renew` returned true, and the event is recorded after each.
        unsafe {
            cuda_memory::wrap(&gpu.device, address, len, Some(event), Box::new(move || drop(keep)))
        }
    }
}

/// The elements in host memory.
impl AsRef<[u8]> for Elements {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the allocation has `len` initialized bytes (`DynTensor::new` sets them to zero). They are
        // written only while nothing else has a reference to the `GstMemory` (`renew`).
        unsafe { std::slice::from_raw_parts(self.value.data_ptr().cast(), self.len) }
    }
}
