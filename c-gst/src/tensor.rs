// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensors attached to buffers.

use std::ffi::{c_char, c_void};

use gstnmsfilter::cuda::{
    Device, DeviceError, DriverError, Event, ForeignStream, OwnedEvent, Ready,
};
use gstnmsfilter::input::custom_meta::{self, NewTensor};
use gstnmsfilter::input::region::{FrameRegion, TensorRegion};
use gstnmsfilter::input::{InputError, cuda_memory};
use gstnmsfilter::tensor::{
    self, DeviceSlice, MAX_DIMENSIONS, Quantization, Shape, Storage, TensorError, TensorView,
};

use crate::Status;
use crate::border::{self, Failure, check_pointer, sized_struct};
use crate::gstreamer::{init, writable_buffer};
use crate::status::run;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub enum ElementType {
    /// IEEE 754 single precision.
    F32 = 0,
    /// IEEE 754 half precision.
    F16 = 1,
    /// Signed integers of 8 bits, as quantized models have them.
    I8 = 2,
    /// Unsigned integers of 8 bits, as quantized models have them.
    U8 = 3,
    /// Signed integers of 32 bits.
    I32 = 4,
    /// Signed integers of 64 bits.
    I64 = 5,
}

/// Where the elements of a tensor are, and who owns them.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub enum Memory {
    /// In host memory, which is copied: it can be freed or written after the call.
    Copied = 0,
    /// In host memory, which is not copied: it must exist and not be written until `release` is called.
    Host = 1,
    /// In device memory, which is not copied: it must exist, and not be written after `cuda_event`, until `release` is
    /// called.
    Device = 2,
}

/// A tensor to attach: one output of a model. Set all bytes to 0, then `size` and the needed fields.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Tensor {
    /// sizeof(NmsfilterGstTensor).
    pub size: usize,
    /// The tensor's id or the name of the model's output, by which the element chooses a decoder; UTF-8. It is copied.
    pub id: *const c_char,
    /// An NmsfilterGstElementType.
    pub element_type: u32,
    /// The number of dimensions, 0 to 8.
    pub dimensions: u32,
    /// The dimensions, slowest first. Elements are contiguous and row-major.
    pub shape: [u64; 8],
    /// An NmsfilterGstMemory.
    pub memory: u32,
    /// The number of the GPU (cuDeviceGet) with NMSFILTER_GST_MEMORY_DEVICE. Its primary context owns the memory, as with
    /// the CUDA runtime.
    pub cuda_device: u32,
    /// The first element, or its device address with NMSFILTER_GST_MEMORY_DEVICE.
    pub data: *const c_void,
    /// The number of bytes at `data`, at least as many as the shape requires.
    pub bytes: usize,
    /// Called once, from any thread, when nothing reads the memory any more; NULL if it exists until the process ends. It
    /// is not called if the function fails: the memory is then still the caller's. It is not called for
    /// NMSFILTER_GST_MEMORY_COPIED.
    pub release: Option<unsafe extern "C" fn(user_data: *mut c_void)>,
    /// The argument of `release`.
    pub user_data: *mut c_void,
    /// A CUevent that was recorded after the work that writes the device memory, which must exist until `release` is called;
    /// NULL if that work has completed, or with `cuda_stream`.
    pub cuda_event: *mut c_void,
    /// In place of `cuda_event`, a CUstream: the memory is read after the work that was submitted to it before the call.
    /// For a default stream CU_STREAM_LEGACY or CU_STREAM_PER_THREAD, since NULL is no stream.
    pub cuda_stream: *mut c_void,
    /// The step of quantized elements of type i8 or u8, which stand for (element - zero_point) * scale; 0 if elements are
    /// not quantized.
    pub scale: f32,
    /// The element that stands for 0.
    pub zero_point: i32,
    /// The model description, from nmsfilter_gst_model_caps, or NULL. A reference is added. One tensor of a
    /// buffer is enough.
    pub model: *mut gst::ffi::GstCaps,
    /// The name of the element or program that attaches the tensor, by which nmsfilter selects one of several
    /// models (its property `tensors-from`); UTF-8, or NULL. It is copied.
    pub source: *const c_char,
    /// Left, top, width and height of the part of the frame on which the model ran, in pixels of the frame; a width of 0
    /// for the whole frame. The tensors of a part are attached one after the other. Either all tensors of a source have
    /// a region, or none.
    pub region: [u32; 4],
    /// 1 if `parent` is set, which needs a region; else 0.
    pub has_parent: u32,
    /// The id of the region of interest with the pixels of `region`; detections in it get it as parent_id.
    pub parent: i32,
}

const _: () = assert!(MAX_DIMENSIONS == 8);

sized_struct!(Tensor, "NmsfilterGstTensor", source: *const c_char);

/// Attaches a tensor to a buffer, after the tensors that are attached already. The element nmsfilter reads it.
///
/// The buffer must be writable (gst_buffer_make_writable). The structure is read during the call only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_gst_attach_tensor(
    buffer: *mut gst::ffi::GstBuffer,
    tensor: *const Tensor,
) -> Status {
    run(|| {
        init()?;
        // SAFETY: the caller guarantees it.
        let (buffer, tensor) =
            unsafe { (writable_buffer(buffer)?, border::read(tensor, "tensor")?) };
        // SAFETY: as above.
        unsafe { attach(buffer, &tensor) }
    })
}

/// # Safety
/// The pointers in `tensor` are as the header requires.
unsafe fn attach(buffer: &mut gst::BufferRef, tensor: &Tensor) -> Result<(), Failure> {
    // SAFETY: the caller guarantees that texts end with a zero byte.
    let (id, source) = unsafe {
        (border::text(tensor.id, "tensor: id")?, border::text(tensor.source, "tensor: source")?)
    };
    let id = id.ok_or_else(|| Failure::argument("tensor: id: expected text, got NULL"))?;
    let element = element_type(tensor.element_type)?;
    let memory = memory(tensor.memory)?;
    let shape = shape(tensor)?;
    let quantization = quantization(tensor)?;
    let region = region(tensor)?;
    if tensor.bytes != 0 {
        check_pointer(tensor.data, "tensor: data")?;
    }
    let view =
        |storage| TensorView::new(id, element, Shape::new(&shape).expect("at most 8"), storage);
    // Checked before anything of the caller's is wrapped: from then on `release` would be called.
    let data = match memory {
        Memory::Copied | Memory::Host => {
            // SAFETY: the caller guarantees that there are as many bytes.
            let bytes =
                unsafe { border::slice(tensor.data.cast::<u8>(), tensor.bytes, "tensor: data") }?;
            match memory {
                Memory::Copied => view(Storage::Host(bytes)).checked_len().map(drop)?,
                _ => view(Storage::Host(bytes)).elements().map(drop)?,
            }
            match memory {
                Memory::Copied => copied(bytes)?,
                // SAFETY: the caller guarantees that the memory exists until it is released.
                _ => unsafe { wrapped(tensor) },
            }
        }
        Memory::Device => {
            // SAFETY: only its size and alignment are checked.
            let slice =
                unsafe { DeviceSlice::new(tensor.data.addr() as u64, tensor.bytes, Ready::Now) };
            view(Storage::Device(slice)).device()?;
            // SAFETY: the caller guarantees that the memory exists until it is released, and so do its stream and event.
            unsafe { on_device(tensor) }?
        }
    };
    let mut new = NewTensor::new(id, element, &shape, data)?;
    if let Some(quantization) = quantization {
        new = new.with_quantization(quantization);
    }
    if !tensor.model.is_null() {
        // SAFETY: the caller guarantees that these are caps.
        new = new.with_model(unsafe { gst::Caps::from_glib_none(tensor.model) });
    }
    custom_meta::attach_of(buffer, &new, source, region.as_ref()).map_err(|error| match error {
        InputError::Tensor(error) => error.into(),
        error => Failure::new(Status::Gstreamer, error),
    })
}

/// The greatest number that the metadata can express.
const MAX_SIDE: u32 = i32::MAX as u32;

/// The part of the frame on which the model ran; `None` for the whole frame.
fn region(tensor: &Tensor) -> Result<Option<TensorRegion>, Failure> {
    let [left, top, width, height] = tensor.region;
    let is_region = width > 0 && height > 0 && tensor.region.iter().all(|&side| side <= MAX_SIDE);
    match (tensor.region, tensor.has_parent) {
        ([0, 0, 0, 0], 0) => Ok(None),
        ([0, 0, 0, 0], _) => {
            Err(Failure::argument("tensor: parent: expected a region with it, got none"))
        }
        (_, has_parent) if is_region => {
            let pixels = FrameRegion { left, top, width, height };
            let parent = (has_parent != 0).then_some(tensor.parent);
            Ok(Some(TensorRegion { pixels, parent }))
        }
        _ => Err(Failure::argument(format!(
            "tensor: region: expected left, top, width and height with a width and a height of 1 or more, got {left}, \
             {top}, {width} and {height}"
        ))),
    }
}

fn element_type(number: u32) -> Result<tensor::ElementType, Failure> {
    const TYPES: [(ElementType, tensor::ElementType); 6] = [
        (ElementType::F32, tensor::ElementType::F32),
        (ElementType::F16, tensor::ElementType::F16),
        (ElementType::I8, tensor::ElementType::I8),
        (ElementType::U8, tensor::ElementType::U8),
        (ElementType::I32, tensor::ElementType::I32),
        (ElementType::I64, tensor::ElementType::I64),
    ];
    let found = TYPES.into_iter().find(|(ours, _)| *ours as u32 == number);
    found.map(|(_, element)| element).ok_or_else(|| {
        Failure::argument(format!(
            "tensor: element_type: expected an NmsfilterGstElementType, got {number}"
        ))
    })
}

fn memory(number: u32) -> Result<Memory, Failure> {
    let all = [Memory::Copied, Memory::Host, Memory::Device];
    all.into_iter().find(|memory| *memory as u32 == number).ok_or_else(|| {
        Failure::argument(format!("tensor: memory: expected an NmsfilterGstMemory, got {number}"))
    })
}

fn shape(tensor: &Tensor) -> Result<Vec<usize>, Failure> {
    let count = tensor.dimensions as usize;
    let dimensions = tensor.shape.get(..count).ok_or_else(|| {
        Failure::argument(format!(
            "tensor: dimensions: expected at most {MAX_DIMENSIONS}, got {count}"
        ))
    })?;
    let side = |&side: &u64| {
        usize::try_from(side).map_err(|_| {
            Failure::argument(format!("tensor: shape: expected a size in memory, got {side}"))
        })
    };
    dimensions.iter().map(side).collect()
}

fn quantization(tensor: &Tensor) -> Result<Option<Quantization>, Failure> {
    if tensor.scale == 0.0 {
        return match tensor.zero_point {
            0 => Ok(None),
            _ => Err(Failure::argument("tensor: zero_point: expected a scale with it, got 0")),
        };
    }
    Quantization::new(tensor.scale, tensor.zero_point).map(Some).ok_or_else(|| {
        Failure::argument(format!(
            "tensor: expected a scale above 0 and a zero point from -{max} to {max}, got {} and {}",
            tensor.scale,
            tensor.zero_point,
            max = Quantization::MAX_ZERO_POINT
        ))
    })
}

/// A buffer with a copy of the bytes, in memory of GStreamer, which is aligned for every type.
fn copied(bytes: &[u8]) -> Result<gst::Buffer, Failure> {
    if bytes.is_empty() {
        return Ok(gst::Buffer::new());
    }
    let no_memory = |_| {
        let text = format!("{} bytes of memory cannot be allocated", bytes.len());
        Failure::new(Status::Tensor, text)
    };
    let mut buffer = gst::Buffer::with_size(bytes.len()).map_err(no_memory)?;
    let copied = buffer.get_mut().expect("the only reference").copy_from_slice(0, bytes);
    debug_assert_eq!(copied, Ok(()));
    Ok(buffer)
}

/// A buffer with the caller's host memory.
///
/// # Safety
/// There are `bytes` bytes at `data`, until `release` is called.
unsafe fn wrapped(tensor: &Tensor) -> gst::Buffer {
    let Tensor { data, bytes, release, user_data, .. } = *tensor;
    if bytes == 0 {
        if let Some(release) = release {
            // SAFETY: the caller's function, which it allows to be called.
            unsafe { release(user_data) };
        }
        return gst::Buffer::new();
    }
    // SAFETY: the memory is valid until it is released. It is read-only.
    unsafe {
        gst::Buffer::from_glib_full(gst::ffi::gst_buffer_new_wrapped_full(
            gst::ffi::GST_MEMORY_FLAG_READONLY,
            data.cast_mut(),
            bytes,
            0,
            bytes,
            user_data,
            release,
        ))
    }
}

/// The function `release` and its argument.
struct Owner {
    release: Option<unsafe extern "C" fn(*mut c_void)>,
    user_data: *mut c_void,
}

// SAFETY: the header requires that `release` can be called from any thread.
unsafe impl Send for Owner {}
// SAFETY: as above; nothing of it is read through a shared reference.
unsafe impl Sync for Owner {}

impl Owner {
    fn release(self) {
        if let Some(release) = self.release {
            // SAFETY: the caller's function, with the caller's pointer, called once.
            unsafe { release(self.user_data) };
        }
    }
}

/// A buffer with the caller's device memory.
///
/// # Safety
/// There are `bytes` bytes at the device address `data`, and there is the event, until `release` is called; there is the
/// stream during the call.
unsafe fn on_device(tensor: &Tensor) -> Result<gst::Buffer, Failure> {
    let device = Device::open(tensor.cuda_device)?;
    let Tensor { data, bytes, cuda_event, cuda_stream, .. } = *tensor;
    let recorded = match (cuda_event.is_null(), cuda_stream.is_null()) {
        (false, false) => {
            return Err(Failure::argument(
                "tensor: expected cuda_event or cuda_stream, got both; set one of them",
            ));
        }
        (_, true) => None,
        (true, false) => {
            let event = OwnedEvent::new(&device)?;
            // SAFETY: the caller guarantees that the stream exists.
            event.record_after(unsafe { ForeignStream::from_raw(cuda_stream) })?;
            Some(event)
        }
    };
    // SAFETY: the caller's event exists until `release` is called; the one that is recorded here is owned by the function
    // that releases the memory.
    let ready = unsafe {
        match &recorded {
            Some(event) => Some(event.event()),
            None => (!cuda_event.is_null()).then(|| Event::from_raw(cuda_event)),
        }
    };
    let owner = Owner { release: tensor.release, user_data: tensor.user_data };
    let release = Box::new(move || {
        owner.release();
        drop(recorded);
    });
    // SAFETY: the caller guarantees that the memory is valid until it is released.
    let memory = unsafe { cuda_memory::wrap(&device, data.addr() as u64, bytes, ready, release) };
    let mut buffer = gst::Buffer::new();
    buffer.get_mut().expect("the only reference").append_memory(memory);
    Ok(buffer)
}

impl From<TensorError> for Failure {
    fn from(error: TensorError) -> Self {
        Self::new(Status::Tensor, error)
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        Self::new(Status::Device, error)
    }
}

impl From<DriverError> for Failure {
    fn from(error: DriverError) -> Self {
        Self::new(Status::Device, error)
    }
}
