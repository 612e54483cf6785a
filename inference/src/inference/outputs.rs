// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of a model's outputs.
//!
//! In: an allocator, and the outputs of a model. Out: [`OutputSet`]s. Each has memory for the outputs of one run,
//! divided into slots: a slot has the tensors of one picture of the batch. A set is free when nothing else has a
//! reference to its tensors, and is then used again. So once there are enough sets, frames cause no allocation.

use std::ffi::c_int;
use std::sync::{Arc, Mutex};

use gst::glib;
use ort::memory::Allocator;
use ort::session::IoBinding;
use ort::value::DynTensor;

use super::error::InferenceError;
use super::model::{OutputSpec, onnx_type};
use super::trial;
use gstnmsfilter::elements::lock;
use gstnmsfilter::input::cuda_memory;
use gstnmsfilter::input::custom_meta::NewTensor;
use nmsfilter_core::device::{DeviceBuffer, OwnedEvent, Stream};

/// The number of rows for which there is memory if the number of an output's rows varies, unless a run has more. Most
/// models have at most 100 detections, so that the dimensions of their tensors do not change from frame to frame.
const USUAL_ROWS: usize = 128;

/// The greatest size in bytes of the memory for [`USUAL_ROWS`]. If rows are larger, as masks are, there are fewer.
const USUAL_BYTES: usize = 1 << 24;

/// The greatest number of rows of an output. A greater one is an error.
const MAX_ROWS: usize = 65_536;

/// Makes the outputs with a varying number of rows have at least `rows` rows, all an equal number. Returns whether
/// dimensions have changed.
///
/// # Errors
/// If there are more than `MAX_ROWS`.
pub fn reserve(outputs: &mut [OutputSpec], rows: usize) -> Result<bool, InferenceError> {
    let varying = || outputs.iter().filter_map(|output| Some((output, output.rows?)));
    let size = varying().map(|(output, axis)| output.row_bytes(axis)).max().unwrap_or(0);
    let present = varying().map(|(output, axis)| output.shape[axis]).max().unwrap_or(0);
    if rows > MAX_ROWS {
        let (output, _) = varying().next().expect("rows are of outputs");
        return Err(InferenceError::Settings(format!(
            "the model's output {} has {rows} rows; expected at most {MAX_ROWS}: export the model \
             with a higher score threshold or a limit of detections",
            output.name
        )));
    }
    let usual = (USUAL_BYTES / size.max(1)).clamp(1, USUAL_ROWS);
    let wanted = rows.next_power_of_two().max(usual).max(present);
    let mut is_changed = false;
    for output in outputs {
        if let Some(axis) = output.rows {
            is_changed |= output.shape[axis] != wanted;
            output.shape[axis] = wanted;
        }
    }
    Ok(is_changed)
}

impl OutputSpec {
    /// Allocates memory for the output, and fills it with zeros.
    ///
    /// # Errors
    /// If the memory cannot be allocated.
    pub fn allocate(&self, allocator: &Allocator) -> Result<DynTensor, InferenceError> {
        let element = onnx_type(self.element);
        Ok(DynTensor::new(allocator, element, self.shape.as_slice())?)
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
        Ok(binding.bind_output(&*self.name, value)?)
    }

    /// Returns the size of the output's memory in bytes.
    pub fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.element_size()
    }

    /// Returns the size of an element in bytes.
    pub fn element_size(&self) -> usize {
        self.element.size().expect("the type of an output can be read")
    }

    /// Returns the size in bytes of a row, if the rows are the dimension `axis`.
    fn row_bytes(&self, axis: usize) -> usize {
        self.shape[axis + 1..].iter().product::<usize>() * self.element_size()
    }

    /// Returns the number of rows of a run in which the output has these dimensions; 0 if its dimensions do not vary. Also
    /// returns whether it is the first run with another number.
    ///
    /// # Errors
    /// If a second dimension varies, or the dimension of the batch.
    pub fn rows_of(
        &mut self,
        shape: &[usize],
        batch: usize,
    ) -> Result<(usize, bool), InferenceError> {
        if self.mixes_images {
            // All rows can belong to one picture.
            return Ok((shape.iter().product::<usize>() / self.shape[2], false));
        }
        let is_other = |&axis: &usize| shape[axis] != self.shape[axis] && self.rows != Some(axis);
        let is_of_batch = |axis: usize| axis == 0 && batch > 1;
        let mut others = (0..self.shape.len()).filter(is_other);
        let (first, second) = match shape.len() == self.shape.len() {
            true => (others.next(), others.next()),
            false => return Err(self.varies()),
        };
        match (first, second, self.rows) {
            (None, ..) => Ok((self.rows.map_or(0, |axis| shape[axis]), false)),
            (Some(axis), None, None) if !is_of_batch(axis) => {
                self.rows = Some(axis);
                Ok((shape[axis], true))
            }
            _ => Err(self.varies()),
        }
    }

    /// Writes the elements of a run, in which the output had `rows` rows, to the output's memory. Further rows become
    /// zeros, or if they are indices of a picture, -1: of none.
    ///
    /// # Panics
    /// If the sizes of `from` and `to` are other ones.
    pub fn write(&self, from: &[u8], to: &mut [u8], rows: usize) {
        let Some(axis) = self.rows else {
            return to.copy_from_slice(from);
        };
        let row = self.row_bytes(axis);
        let are_indices = self.has_images && self.element.is_integer();
        let empty = if are_indices { 0xff } else { 0 };
        if self.mixes_images {
            to.fill(empty);
            let mut pictures: Vec<_> = to
                .chunks_exact_mut(self.shape[1] * row)
                .map(|of| of.chunks_exact_mut(row))
                .collect();
            let numbers = trial::numbers(self, from);
            for (from, numbers) in from.chunks_exact(row).zip(numbers.chunks_exact(self.shape[2])) {
                // A number of -1 marks a row without a detection.
                let picture = pictures.get_mut(numbers[0] as usize).filter(|_| numbers[0] >= 0.0);
                if let Some(to) = picture.and_then(Iterator::next) {
                    to.copy_from_slice(from);
                    // Each picture has a separate batch from here on.
                    to[..self.element_size()].fill(0);
                }
            }
            return;
        }
        for index in 0..self.shape[..axis].iter().product() {
            let to = &mut to[index * self.shape[axis] * row..][..self.shape[axis] * row];
            let (used, rest) = to.split_at_mut(rows * row);
            used.copy_from_slice(&from[index * rows * row..][..rows * row]);
            rest.fill(empty);
        }
    }
}

/// The tensors of one picture. The lock is held while they are attached to a frame.
pub type Slot = Mutex<Vec<NewTensor>>;

/// The memory of one output in a set, or of one picture's part of it.
///
/// On the host it comes from ONNX Runtime's allocator, and ONNX Runtime writes the output to it directly. On a GPU it does
/// not: the allocator could hand out memory that it has taken back, but to which a captured CUDA graph still writes.
pub struct OutputMemory {
    /// The address of the first byte.
    pub address: u64,
    len: usize,
    _owner: Arc<dyn Send + Sync>,
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
    /// The number of changes of the outputs' dimensions before the memory was allocated.
    pub changes: usize,
}

impl OutputSet {
    /// Allocates memory for the `outputs` of `batch` pictures, and binds it.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn new(
        mut binding: Option<IoBinding>,
        batch: usize,
        outputs: &[OutputSpec],
        model: &gst::Caps,
        stream: Option<&Arc<Stream>>,
        changes: usize,
    ) -> Result<Self, InferenceError> {
        let ready =
            stream.map(|stream| OwnedEvent::new(stream.device())).transpose()?.map(Arc::new);
        let mut slots: Vec<Vec<NewTensor>> = (0..batch).map(|_| Vec::new()).collect();
        let mut memory = Vec::new();
        for output in outputs {
            let (address, owner): (u64, Arc<dyn Send + Sync>) = match stream {
                Some(stream) => {
                    let buffer = DeviceBuffer::new(stream.device(), output.bytes())?;
                    (buffer.address(), Arc::new(buffer))
                }
                None => {
                    let mut value = output.allocate(&Allocator::default())?;
                    if let Some(binding) = &mut binding {
                        output.bind(binding, &mut value)?;
                    }
                    (value.data_ptr() as u64, Arc::new(value))
                }
            };
            let len = output.bytes() / batch;
            let mut shape = output.shape.clone();
            if batch > 1 {
                shape[0] = 1;
            }
            for (index, slot) in slots.iter_mut().enumerate() {
                let address = address + (index * len) as u64;
                let elements = OutputMemory { address, len, _owner: owner.clone() };
                let elements = match (stream, &ready) {
                    (Some(stream), Some(ready)) => elements.on_device(stream, ready),
                    _ => gst::Memory::from_slice(elements),
                };
                let mut data = gst::Buffer::new();
                data.get_mut().expect("the buffer is new").append_memory(elements);
                let tensor = NewTensor::new(&output.id, output.element, &shape, data)?;
                slot.push(tensor.with_model(model.clone()));
            }
            memory.push(OutputMemory { address, len: output.bytes(), _owner: owner });
        }
        let slots = slots.into_iter().map(Mutex::new).collect();
        Ok(Self { memory, binding, slots, ready, changes })
    }

    /// Replaces the memory by another set's. The elements' references to the slots remain valid.
    pub fn replace(&mut self, other: Self) {
        for (slot, from) in self.slots.iter().zip(&*other.slots) {
            lock(slot).clone_from(&lock(from));
        }
        let slots = self.slots.clone();
        *self = Self { slots, ..other };
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
        self.slots.iter().all(|slot| lock(slot).iter_mut().all(renew))
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

impl OutputMemory {
    fn on_device(self, stream: &Arc<Stream>, ready: &Arc<OwnedEvent>) -> gst::Memory {
        let (address, len) = (self.address, self.len);
        // SAFETY: the memory owns a reference to the event.
        let event = unsafe { ready.event() };
        let keep = (self, ready.clone(), stream.clone());
        // SAFETY: `keep` owns the memory and the event until the `GstMemory` is freed. Only a run writes the bytes,
        // only into a set for which `renew` returned true, and the event is recorded after each run.
        unsafe {
            cuda_memory::wrap(
                stream.device(),
                address,
                len,
                Some(event),
                Box::new(move || drop(keep)),
            )
        }
    }
}

/// The elements in host memory.
impl AsRef<[u8]> for OutputMemory {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: there are `len` initialized bytes (`DynTensor::new` sets them to zero). They
        // are only written while nothing else has a reference to the `GstMemory` (see `renew`).
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.len) }
    }
}
