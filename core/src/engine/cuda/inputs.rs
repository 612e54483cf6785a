// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tensors of a run, in the form that the kernels read.
//!
//! In: tensors in host or device memory. Out: device addresses that kernels can read in the order
//! of a stream. Tensors in host memory are uploaded; for tensors in device memory the stream waits
//! until they are ready. Images in separate allocations are read at a constant stride if their
//! addresses have one, or else through a table of their addresses.

use arrayvec::ArrayVec;

use super::interface::TensorSource;
use super::upload::{Cached, Upload, UploadStream};
use crate::decoder::{Layout, MAX_INPUTS};
use crate::device::{ForeignStream, Location, Ready, Stream};
use crate::engine::EngineError;
use crate::tensor::{DeviceSlice, Resident, TensorView};

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

impl InputMemory {
    /// The addresses of the tensors that `layout` reads. They are valid for kernels that are
    /// launched into the stream after this call.
    ///
    /// # Errors
    /// If a tensor's memory cannot be read, and [`EngineError::OtherDevice`] if it is on another GPU
    /// than the stream. After any error `self` is in an unknown state: drop it.
    pub fn provide(
        &mut self,
        on: UploadStream<'_>,
        tensors: &[TensorView<'_>],
        layout: &Layout,
    ) -> Result<Provided, EngineError> {
        let Self { uploads, tables, addresses } = self;
        addresses.clear();
        let mut provided = Provided::new();
        // A stream does not wait for itself. Tensors often share one producer; its stream is awaited only once.
        let mut awaited = Some(on.stream.as_foreign());
        for (index, upload) in layout.tensors().into_iter().zip(uploads) {
            let tensor = &tensors[index];
            let (address, image_stride, table) = if tensor.has_separate_images() {
                let count = layout.images;
                provide_images(tensor, count, on, upload, addresses, &mut awaited)?
            } else {
                let address = match tensor.resident()? {
                    Resident::Device(slice) => {
                        await_on_device(tensor, slice, on.stream, &mut awaited)?
                    }
                    Resident::Host(bytes) => upload.copy(on, bytes)?,
                };
                (address, None, None)
            };
            let TensorView { element, quantization, .. } = *tensor;
            let source = TensorSource { address, image_stride, table, element, quantization };
            provided.push((index, source));
        }
        if !addresses.is_empty() {
            let address = tables.provide(on, addresses.iter().copied())?;
            for offset in provided.iter_mut().filter_map(|(_, tensor)| tensor.table.as_mut()) {
                *offset += address;
            }
        }
        Ok(provided)
    }
}

/// The address of the first of `count` images in separate allocations, their stride, and their table if they have no
/// constant stride. A table is appended to `addresses`, and described by its byte offset there.
fn provide_images(
    tensor: &TensorView<'_>,
    count: usize,
    on: UploadStream<'_>,
    upload: &mut Upload,
    addresses: &mut Vec<u64>,
    awaited: &mut Option<ForeignStream>,
) -> Result<(u64, Option<u64>, Option<u64>), EngineError> {
    let image = |index| tensor.image(index).expect("the images are in separate allocations");
    let mut on_host = 0;
    for index in 0..count {
        if let Resident::Host(bytes) = image(index).resident()? {
            on_host += bytes.len();
        }
    }
    let mut copy = 0;
    if on_host > 0 {
        copy = upload.fill(on, on_host, |mut to| {
            for index in 0..count {
                if let Resident::Host(bytes) = image(index).resident()? {
                    let (part, rest) = to.split_at_mut(bytes.len());
                    part.copy_from_slice(bytes);
                    to = rest;
                }
            }
            Ok::<_, EngineError>(())
        })?;
    }
    let before = addresses.len();
    for index in 0..count {
        let image = image(index);
        addresses.push(match image.resident()? {
            Resident::Device(slice) => await_on_device(&image, slice, on.stream, awaited)?,
            Resident::Host(bytes) => {
                let first = copy;
                copy += bytes.len() as u64;
                first
            }
        });
    }
    // The stride is a multiple of the element size, since the addresses are. It may be more or less
    // than the size of an image, or 0.
    let all = &addresses[before..];
    let stride = all.get(1).map_or(0, |second| second.wrapping_sub(all[0]));
    if all.windows(2).all(|pair| pair[0] <= pair[1] && pair[1] - pair[0] == stride) {
        let first = all[0];
        addresses.truncate(before);
        return Ok((first, Some(stride), None));
    }
    Ok((0, Some(0), Some(size_of_val(&addresses[..before]) as u64)))
}

/// Makes `stream` wait until `tensor`, in the memory `slice`, may be read, unless it is by the stream
/// that was `awaited` last. Returns the address at which kernels read it.
fn await_on_device(
    tensor: &TensorView<'_>,
    slice: DeviceSlice,
    stream: &Stream,
    awaited: &mut Option<ForeignStream>,
) -> Result<u64, EngineError> {
    let (device, address) = (stream.device(), slice.address());
    if slice.is_empty() {
        // The tensor is empty, so nothing is read.
        return Ok(address);
    }
    let ordinal = device.ordinal();
    let location = if slice.ordinal == Some(ordinal) {
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
            return Err(EngineError::Address(format!(
                "tensor {tensor}: its memory at {address:#x} is on GPU {ordinal}, where the engine's context cannot \
                 access it; allocate it in the GPU's primary context (cuDevicePrimaryCtxRetain), or attach the tensor \
                 in host memory"
            )));
        }
        Location::Unknown => {
            return Err(EngineError::Address(format!(
                "tensor {tensor}: its memory gives the address {address:#x}, which is on no GPU"
            )));
        }
    };
    let is_awaited = match slice.ready() {
        Ready::AfterStream(producer) => awaited.replace(producer) == Some(producer),
        _ => false,
    };
    if is_awaited || stream.wait_for_producer(slice.ready(), address)? {
        Ok(readable)
    } else {
        Err(EngineError::UnknownProducer { tensor: tensor.to_string() })
    }
}
