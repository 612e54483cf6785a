// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of a model's outputs.
//!
//! In: an allocator, and the outputs of a model. Out: [`OutputSet`]s. Each has memory for the outputs of one run,
//! divided into slots: a slot has the tensors of one picture of the batch. A set is free when nothing else has a
//! reference to its tensors, and is then used again. So once there are enough sets, frames cause no allocation.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};

use gst::glib;
use ort::memory::Allocator;
use ort::session::IoBinding;
use ort::value::DynTensor;

use super::error::InferenceError;
use super::model::OutputSpec;
use super::provider::GpuStream;
use gstnmsfilter::input::cuda_memory;
use gstnmsfilter::input::custom_meta::NewTensor;
use nmsfilter_core::device::{DeviceBuffer, OwnedEvent};

/// An output whose dimensions are equal in every run.
pub struct FixedOutput {
    /// The model's description of the output.
    pub output: OutputSpec,
    /// The dimensions of the output. The first one is the number of pictures per batch, unless this number is 1.
    pub shape: Vec<usize>,
}

impl FixedOutput {
    /// Allocates memory for the output, and fills it with zeros.
    ///
    /// # Errors
    /// If the memory cannot be allocated.
    pub fn allocate(&self, allocator: &Allocator) -> Result<DynTensor, InferenceError> {
        DynTensor::new(allocator, self.output.onnx(), self.shape.as_slice())
            .map_err(InferenceError::session)
    }

    /// Makes ONNX Runtime write the output to `value`.
    ///
    /// # Errors
    /// If ONNX Runtime rejects `value`.
    pub fn bind(
        &self,
        binding: &mut IoBinding,
        value: &mut DynTensor,
    ) -> Result<(), InferenceError> {
        binding.bind_output(&*self.output.name, value).map_err(InferenceError::session)
    }

    /// Returns the output's size in bytes.
    pub fn bytes(&self) -> usize {
        let size = self.output.element.size().expect("the type of an output can be read");
        self.shape.iter().product::<usize>() * size
    }
}

/// The tensors of one picture. The lock is held while they are attached to a frame.
pub type Slot = Mutex<Vec<NewTensor>>;

/// The memory of one output in a set.
#[derive(Clone)]
pub enum OutputMemory {
    /// Host memory from ONNX Runtime's allocator. ONNX Runtime writes the output to it directly.
    Host(Arc<DynTensor>),
    /// Device memory that does not come from ONNX Runtime's allocator. The allocator could hand out memory that it
    /// has taken back, but to which a captured CUDA graph still writes.
    Device(Arc<DeviceBuffer>),
}

impl OutputMemory {
    /// Returns the address of the first byte.
    pub fn address(&self) -> u64 {
        match self {
            Self::Host(value) => value.data_ptr() as u64,
            Self::Device(buffer) => buffer.address(),
        }
    }
}

/// Memory for the outputs of one run.
pub struct OutputSet {
    /// The memory of each output.
    pub memory: Vec<OutputMemory>,
    /// In host memory: makes a session write its outputs directly to the memory.
    pub binding: Option<IoBinding>,
    /// For each picture of the batch, the outputs as tensors to attach.
    pub slots: Arc<[Slot]>,
    /// On a GPU: the event that completes when the last run has written the set.
    pub ready: Option<Arc<OwnedEvent>>,
}

impl OutputSet {
    /// Allocates memory for the `outputs` of `batch` pictures, and binds it.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn new(
        mut binding: Option<IoBinding>,
        batch: usize,
        outputs: &[FixedOutput],
        model: &gst::Caps,
        gpu: Option<&Arc<GpuStream>>,
    ) -> Result<Self, InferenceError> {
        let ready = gpu.map(|gpu| OwnedEvent::new(&gpu.device)).transpose()?.map(Arc::new);
        let mut slots: Vec<Vec<NewTensor>> = (0..batch).map(|_| Vec::new()).collect();
        let mut memory = Vec::new();
        for fixed in outputs {
            let output_memory = match gpu {
                Some(gpu) => {
                    OutputMemory::Device(Arc::new(DeviceBuffer::new(&gpu.device, fixed.bytes())?))
                }
                None => {
                    let mut value = fixed.allocate(&Allocator::default())?;
                    if let Some(binding) = &mut binding {
                        fixed.bind(binding, &mut value)?;
                    }
                    OutputMemory::Host(Arc::new(value))
                }
            };
            let len = fixed.bytes() / batch;
            let mut shape = fixed.shape.clone();
            if batch > 1 {
                shape[0] = 1;
            }
            for (index, slot) in slots.iter_mut().enumerate() {
                let elements = Elements { memory: output_memory.clone(), offset: index * len, len };
                let elements = match (gpu, &ready) {
                    (Some(gpu), Some(ready)) => elements.on_device(gpu, ready),
                    _ => gst::Memory::from_slice(elements),
                };
                let mut data = gst::Buffer::new();
                data.get_mut().expect("the buffer is new").append_memory(elements);
                let output = &fixed.output;
                let tensor = NewTensor::new(&output.id, output.element, &shape, data)?;
                slot.push(tensor.with_model(model.clone()));
            }
            memory.push(output_memory);
        }
        let slots = slots.into_iter().map(Mutex::new).collect();
        Ok(Self { memory, binding, slots, ready })
    }

    /// Returns whether nothing else has a reference to the tensors, so that they may be overwritten. If so, the
    /// copy in host memory that a reader's mapping may have made is discarded.
    pub fn renew(&self) -> bool {
        let renew = |tensor: &mut NewTensor| {
            let Some(data) = tensor.data.get_mut() else {
                return false;
            };
            if cuda_memory::is_on_device(data) {
                cuda_memory::renew(data)
            } else {
                is_sole_owner(data)
            }
        };
        self.slots
            .iter()
            .all(|slot| slot.lock().unwrap_or_else(PoisonError::into_inner).iter_mut().all(renew))
    }
}

/// Returns whether the buffer has the only reference to its memory.
fn is_sole_owner(buffer: &mut gst::BufferRef) -> bool {
    let memory = buffer.peek_memory(0).as_ptr().cast_mut();
    // SAFETY: the buffer has a reference to the memory. The reference count is read atomically, as GStreamer itself
    // reads it.
    let references = unsafe {
        glib::ffi::g_atomic_int_get((&raw const (*memory).mini_object.refcount).cast::<c_int>())
    };
    references == 1
}

/// One picture's part of an output.
struct Elements {
    memory: OutputMemory,
    /// The offset of the first byte.
    offset: usize,
    len: usize,
}

impl Elements {
    fn on_device(self, gpu: &Arc<GpuStream>, ready: &Arc<OwnedEvent>) -> gst::Memory {
        let (address, len) = (self.memory.address() + self.offset as u64, self.len);
        // SAFETY: the memory owns a reference to the event.
        let event = unsafe { ready.event() };
        let keep = (self, ready.clone(), gpu.clone());
        // SAFETY: `keep` owns the memory and the event until the `GstMemory` is freed. Only a run writes the bytes,
        // only into a set for which `renew` returned true, and the event is recorded after each run.
        unsafe {
            cuda_memory::wrap(&gpu.device, address, len, Some(event), Box::new(move || drop(keep)))
        }
    }
}

/// The elements in host memory.
impl AsRef<[u8]> for Elements {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the allocation has `offset + len` initialized bytes (`DynTensor::new` sets them to zero). They
        // are only written while nothing else has a reference to the `GstMemory` (see `renew`).
        unsafe {
            let first = (self.memory.address() as *const u8).add(self.offset);
            std::slice::from_raw_parts(first, self.len)
        }
    }
}
