// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tensors of a run, in the form that the kernels read.
//!
//! In: tensors in host or device memory. Out: device addresses that kernels can read in the order
//! of a stream. Tensors in host memory are uploaded; for tensors in device memory the stream waits
//! until they are ready. Images in separate allocations are read at a constant stride if their
//! addresses have one, or else through a table of their addresses.

use arrayvec::ArrayVec;

use super::interface::{ImageAddresses, TensorSource};
use super::upload::{Cached, Upload, UploadStream};
use crate::decoder::{Layout, MAX_INPUTS};
use crate::device::{Location, Ready, Stream};
use crate::engine::EngineError;
use crate::tensor::{DeviceSlice, Resident, TensorError, TensorView};

/// The tensors that a layout reads. They stay mapped until this value is dropped.
pub(super) struct Inputs<'t, 'a>(ArrayVec<MappedTensor<'t, 'a>, MAX_INPUTS>);

struct MappedTensor<'t, 'a> {
    /// The index of the tensor.
    index: usize,
    tensor: &'t TensorView<'a>,
    memory: Memory<'a>,
}

/// The memory of a tensor.
enum Memory<'a> {
    /// One allocation for all images.
    Whole(Resident<'a>),
    /// A separate allocation for each image.
    Separate(SeparateAllocations),
}

/// The allocations of `count` images.
struct SeparateAllocations {
    count: usize,
    /// The number of images in host memory.
    on_host: usize,
    /// The bytes of an image in host memory.
    len: usize,
    /// Set if all images are in device memory, with addresses at a constant stride.
    in_stride: Option<InStride>,
    /// True if images in device memory may be read without waiting.
    is_ready: bool,
}

/// Images whose addresses are `stride` bytes apart. The stride is a multiple of the element size,
/// since the addresses are. It may be more or less than the size of an image, or 0.
struct InStride {
    first: DeviceSlice,
    last: DeviceSlice,
    stride: u64,
}

/// Memory on the GPU for data that is not on the GPU yet.
#[derive(Debug, Default)]
pub(super) struct InputMemory {
    /// The tensors, in the order of [`Layout::tensors`].
    uploads: [Upload; MAX_INPUTS],
    /// The tables of all tensors, one after the other.
    tables: Cached<u64>,
    /// The tables of this run.
    addresses: Vec<u64>,
}

/// The tensors that the layout reads, each with its index.
pub(super) type Provided = ArrayVec<(usize, TensorSource), MAX_INPUTS>;

impl<'t, 'a> Inputs<'t, 'a> {
    /// Maps the tensors that `layout` reads.
    pub fn new(tensors: &'t [TensorView<'a>], layout: &Layout) -> Result<Self, TensorError> {
        let mut inputs = ArrayVec::new();
        for index in layout.tensors() {
            let tensor = &tensors[index];
            let memory = if tensor.has_separate_images() {
                Memory::Separate(SeparateAllocations::new(tensor, layout.images)?)
            } else {
                Memory::Whole(tensor.resident()?)
            };
            inputs.push(MappedTensor { index, tensor, memory });
        }
        Ok(Self(inputs))
    }

    /// The addresses of the tensors. They are valid for kernels that are launched into the stream
    /// after this call.
    ///
    /// # Errors
    /// [`EngineError::OtherDevice`] if a tensor is on another GPU than the stream. After any error `memory` is
    /// in an unknown state: drop it.
    pub fn provide(
        &self,
        uploads_on: UploadStream<'_>,
        memory: &mut InputMemory,
    ) -> Result<Provided, EngineError> {
        let stream = uploads_on.stream;
        let InputMemory { uploads, tables, addresses } = memory;
        addresses.clear();
        let mut provided = Provided::new();
        // A stream does not wait for itself. Tensors often share one producer; its stream is awaited only once.
        let mut awaited = Some(stream.as_foreign());
        for (input, upload) in self.0.iter().zip(uploads) {
            let (address, images) = match &input.memory {
                Memory::Whole(Resident::Device(slice)) => {
                    let slice = match slice.ready() {
                        Ready::AfterStream(producer) if awaited == Some(producer) => {
                            slice.awaited()
                        }
                        Ready::AfterStream(producer) => {
                            awaited = Some(producer);
                            *slice
                        }
                        _ => *slice,
                    };
                    let address = await_on_device(input.tensor, slice, stream)?;
                    (address, ImageAddresses::AsInLayout)
                }
                Memory::Whole(Resident::Host(bytes)) => {
                    let address = upload.copy(uploads_on, bytes)?;
                    (address, ImageAddresses::AsInLayout)
                }
                Memory::Separate(separate) => {
                    separate.provide(input.tensor, uploads_on, upload, addresses)?
                }
            };
            let TensorView { element, quantization, .. } = *input.tensor;
            let source = TensorSource { address, images, element, quantization };
            provided.push((input.index, source));
        }
        if !addresses.is_empty() {
            let address = tables.provide(uploads_on, addresses.iter().copied())?;
            for (_, tensor) in &mut provided {
                if let ImageAddresses::Table(offset) = &mut tensor.images {
                    *offset += address;
                }
            }
        }
        Ok(provided)
    }
}

impl SeparateAllocations {
    /// Maps the images of `tensor`.
    fn new(tensor: &TensorView<'_>, count: usize) -> Result<Self, TensorError> {
        let mut separate = Self { count, on_host: 0, len: 0, in_stride: None, is_ready: true };
        let (mut in_stride, mut is_constant): (Option<InStride>, _) = (None, true);
        for (index, image) in images(tensor, count).enumerate() {
            let slice = match image.resident()? {
                Resident::Device(slice) => slice,
                Resident::Host(bytes) => {
                    separate.on_host += 1;
                    separate.len = bytes.len();
                    continue;
                }
            };
            separate.is_ready &= matches!(slice.ready(), Ready::Now);
            let so_far = in_stride.get_or_insert(InStride { first: slice, last: slice, stride: 0 });
            // If images are in descending order, the distance wraps.
            let distance = slice.address().wrapping_sub(so_far.last.address());
            if index == 1 {
                so_far.stride = distance;
            }
            is_constant &= index == 0 || distance == so_far.stride;
            so_far.last = slice;
        }
        separate.in_stride = in_stride.filter(|found| {
            is_constant && separate.on_host == 0 && found.first.address() <= found.last.address()
        });
        Ok(separate)
    }

    /// The address of the first image, and how to find the others. A table is appended to
    /// `addresses`, and described by its byte offset there.
    fn provide(
        &self,
        tensor: &TensorView<'_>,
        uploads_on: UploadStream<'_>,
        upload: &mut Upload,
        addresses: &mut Vec<u64>,
    ) -> Result<(u64, ImageAddresses), EngineError> {
        let stream = uploads_on.stream;
        if let Some(in_stride) = &self.in_stride
            && let Some(address) = self.await_in_stride(in_stride, tensor, stream)?
        {
            return Ok((address, ImageAddresses::Stride(in_stride.stride)));
        }
        let mut copy = 0;
        if self.on_host > 0 {
            copy = upload.fill(uploads_on, self.on_host * self.len, |mut to| {
                for image in images(tensor, self.count) {
                    if let Resident::Host(bytes) = image.resident()? {
                        let (part, rest) = to.split_at_mut(bytes.len());
                        part.copy_from_slice(bytes);
                        to = rest;
                    }
                }
                Ok::<_, EngineError>(())
            })?;
        }
        if self.on_host == self.count {
            return Ok((copy, ImageAddresses::Stride(self.len as u64)));
        }
        let offset = size_of_val(addresses.as_slice()) as u64;
        let mut copies = 0..self.on_host;
        for image in images(tensor, self.count) {
            addresses.push(match image.resident()? {
                Resident::Device(slice) => await_on_device(&image, slice, stream)?,
                Resident::Host(_) => {
                    let index = copies.next().expect("an image has the same memory at each call");
                    copy + (index * self.len) as u64
                }
            });
        }
        Ok((0, ImageAddresses::Table(offset)))
    }

    /// Makes `stream` wait until the images may be read. Returns the address at which kernels read
    /// the first image, or `None` if the last image would be read at another distance from it.
    fn await_in_stride(
        &self,
        InStride { first, last, .. }: &InStride,
        tensor: &TensorView<'_>,
        stream: &Stream,
    ) -> Result<Option<u64>, EngineError> {
        let address = await_on_device(&image(tensor, 0), *first, stream)?;
        if self.count > 1 {
            let end = await_on_device(&image(tensor, self.count - 1), *last, stream)?;
            if end.wrapping_sub(address) != last.address() - first.address() {
                return Ok(None);
            }
        }
        if !self.is_ready {
            for image in images(tensor, self.count).take(self.count - 1).skip(1) {
                if let Resident::Device(slice) = image.resident()? {
                    await_producer(&image, slice, stream)?;
                }
            }
        }
        Ok(Some(address))
    }
}

/// The images of a tensor with separate allocations for its images. The caller has checked this.
fn images<'a>(tensor: &TensorView<'a>, count: usize) -> impl Iterator<Item = TensorView<'a>> {
    (0..count).map(|index| image(tensor, index))
}

fn image<'a>(tensor: &TensorView<'a>, index: usize) -> TensorView<'a> {
    tensor.image(index).expect("the images are in separate allocations")
}

/// Makes `stream` wait until `tensor`, in the memory `slice`, may be read. Returns the address at
/// which kernels read it.
fn await_on_device(
    tensor: &TensorView<'_>,
    slice: DeviceSlice,
    stream: &Stream,
) -> Result<u64, EngineError> {
    let (device, address) = (stream.device(), slice.address());
    if slice.is_empty() {
        // The tensor is empty, so nothing is read.
        return Ok(address);
    }
    let ordinal = device.ordinal();
    let location = if slice.ordinal() == Some(ordinal) {
        Location::Accessible(address)
    } else {
        device.locate(address)?
    };
    let readable = match location {
        Location::Accessible(readable) => readable,
        Location::OtherDevice(is) => {
            let tensor = tensor.to_string();
            return Err(EngineError::OtherDevice { tensor, is, expected: ordinal });
        }
        Location::Inaccessible => {
            return Err(EngineError::Inaccessible { tensor: tensor.to_string(), address, ordinal });
        }
        Location::Unknown => {
            return Err(EngineError::NotOnDevice { tensor: tensor.to_string(), address });
        }
    };
    await_producer(tensor, slice, stream)?;
    Ok(readable)
}

fn await_producer(
    tensor: &TensorView<'_>,
    slice: DeviceSlice,
    stream: &Stream,
) -> Result<(), EngineError> {
    if stream.wait_for_producer(slice.ready(), slice.address())? {
        Ok(())
    } else {
        Err(EngineError::UnknownProducer { tensor: tensor.to_string() })
    }
}
