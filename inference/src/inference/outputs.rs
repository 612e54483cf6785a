// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of a model's outputs.
//!
//! In: an allocator and the outputs of a model. Out: [`OutputSet`]s, each with memory for the outputs of one
//! run, in slots: the tensors of one picture of the batch. A set is free again when nothing else has a reference to
//! its tensors, so nothing is allocated for a frame once there are enough sets.

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

/// An output with the dimensions that it has in every run.
pub struct FixedOutput {
    /// As the model describes it.
    pub output: OutputSpec,
    /// Its dimensions; the first is the number of pictures of a batch, if that is not 1.
    pub shape: Vec<usize>,
}

impl FixedOutput {
    /// Allocates memory for the output, which is set to zero.
    ///
    /// # Errors
    /// If it cannot be allocated.
    pub fn allocate(&self, allocator: &Allocator) -> Result<DynTensor, InferenceError> {
        DynTensor::new(allocator, self.output.onnx(), self.shape.as_slice())
            .map_err(InferenceError::session)
    }

    /// Binds `value` as the memory of the output.
    ///
    /// # Errors
    /// If ONNX Runtime refuses it.
    pub fn bind(
        &self,
        binding: &mut IoBinding,
        value: &mut DynTensor,
    ) -> Result<(), InferenceError> {
        binding.bind_output(&*self.output.name, value).map_err(InferenceError::session)
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        let size = self.output.element.size().expect("the type of an output can be read");
        self.shape.iter().product::<usize>() * size
    }
}

/// The tensors of one picture. The lock is held while they are attached.
pub type Slot = Mutex<Vec<NewTensor>>;

/// The memory of an output in a set.
#[derive(Clone)]
pub enum OutputMemory {
    /// That of ONNX Runtime's allocator, which it binds.
    Host(Arc<DynTensor>),
    /// Not that of ONNX Runtime's allocator: CUDA graphs write to memory which that has given and taken back before.
    Device(Arc<DeviceBuffer>),
}

impl OutputMemory {
    /// The address of the first byte.
    pub fn address(&self) -> u64 {
        match self {
            Self::Host(value) => value.data_ptr() as u64,
            Self::Device(buffer) => buffer.address(),
        }
    }
}

/// Memory for the outputs of one run.
pub struct OutputSet {
    /// That of each output.
    pub memory: Vec<OutputMemory>,
    /// Binds the memory to a session that writes it directly, on the CPU.
    pub binding: Option<IoBinding>,
    /// For each picture of the batch, the outputs as tensors to attach.
    pub slots: Arc<[Slot]>,
    /// Completes with the last run that writes the set, if that is on a GPU.
    pub ready: Option<Arc<OwnedEvent>>,
}

impl OutputSet {
    /// Allocates the memory of `outputs` for `batch` pictures, and binds it.
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
            let of_output = match gpu {
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
                let elements = Elements { memory: of_output.clone(), offset: index * len, len };
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
            memory.push(of_output);
        }
        let slots = slots.into_iter().map(Mutex::new).collect();
        Ok(Self { memory, binding, slots, ready })
    }

    /// Whether nothing else has a reference to the tensors, so that they may be written again. What readers
    /// have of the memory is discarded.
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

/// Whether the buffer has the only reference to its memory.
fn is_sole_owner(buffer: &mut gst::BufferRef) -> bool {
    let memory = buffer.peek_memory(0).as_ptr().cast_mut();
    // SAFETY: the buffer has a reference to the memory; the count is read atomically, as GStreamer does.
    let references = unsafe {
        glib::ffi::g_atomic_int_get((&raw const (*memory).mini_object.refcount).cast::<c_int>())
    };
    references == 1
}

/// The elements of an output for one picture.
struct Elements {
    memory: OutputMemory,
    /// The byte of the first one.
    offset: usize,
    len: usize,
}

impl Elements {
    fn on_device(self, gpu: &Arc<GpuStream>, ready: &Arc<OwnedEvent>) -> gst::Memory {
        let (address, len) = (self.memory.address() + self.offset as u64, self.len);
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
        // SAFETY: the allocation has `offset + len` initialized bytes (`DynTensor::new` sets them to zero). They are
        // written only while nothing else has a reference to the `GstMemory` (`renew`).
        unsafe {
            let first = (self.memory.address() as *const u8).add(self.offset);
            std::slice::from_raw_parts(first, self.len)
        }
    }
}
