// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tensors of a run, as the kernels read them.
//!
//! In: tensors in host or device memory. Out: device addresses that kernels can read in the order
//! of a stream. Tensors in host memory are uploaded; for tensors in device memory the stream waits
//! until they are ready.

use arrayvec::ArrayVec;

use super::upload::Upload;
use crate::decoder::Layout;
use crate::device::{Device, DriverError, Location, Stream};
use crate::engine::EngineError;
use crate::tensor::{DeviceSlice, Resident, TensorView};

/// The tensor of the boxes, followed by the tensor of the scores if that is another one. They stay
/// mapped until this is dropped.
pub(super) struct Inputs<'t, 'a>(ArrayVec<Input<'t, 'a>, 2>);

struct Input<'t, 'a> {
    tensor: &'t TensorView<'a>,
    resident: Resident<'a>,
    /// `None` for host memory and for an empty tensor.
    location: Option<Location>,
}

impl<'t, 'a> Inputs<'t, 'a> {
    /// Maps the tensors that `layout` reads and locates them as seen from `device`.
    pub fn new(
        tensors: &'t [TensorView<'a>],
        layout: &Layout,
        device: &Device,
    ) -> Result<Self, EngineError> {
        let mut inputs = ArrayVec::new();
        let [boxes, scores] = [layout.boxes.tensor, layout.scores.tensor];
        for index in [Some(boxes), Some(scores).filter(|&scores| scores != boxes)] {
            if let Some(tensor) = index.map(|index| &tensors[index]) {
                let resident = tensor.resident()?;
                inputs.push(Input { tensor, resident, location: None });
            }
        }
        let mut inputs = Self(inputs);
        inputs.locate(device)?;
        Ok(inputs)
    }

    /// Locates the tensors in device memory, as seen from `device`.
    pub fn locate(&mut self, device: &Device) -> Result<(), DriverError> {
        for input in &mut self.0 {
            if let Resident::Device(slice) = input.resident
                && !slice.is_empty()
            {
                input.location = Some(device.locate(slice.address())?);
            }
        }
        Ok(())
    }

    /// The number of the GPU of the first tensor that is on another GPU than the one it was located from.
    pub fn other_device(&self) -> Option<u32> {
        self.0.iter().find_map(|input| match input.location {
            Some(Location::OtherDevice(is)) => Some(is),
            _ => None,
        })
    }

    /// The device addresses of the tensors of boxes and scores, valid for kernels that are launched into
    /// `stream` after this call, and the number of bytes that are uploaded.
    pub fn provide(
        &self,
        stream: &Stream,
        uploads: &mut [Upload],
    ) -> Result<([u64; 2], u64), EngineError> {
        let (mut addresses, mut uploaded) = ([0; 2], 0);
        for ((address, input), upload) in addresses.iter_mut().zip(&self.0).zip(uploads) {
            *address = match input.resident {
                Resident::Device(slice) => input.await_on_device(slice, stream)?,
                Resident::Host(bytes) => {
                    uploaded += bytes.len() as u64;
                    upload.upload(stream, bytes)?
                }
            };
        }
        if self.0.len() == 1 {
            addresses[1] = addresses[0];
        }
        Ok((addresses, uploaded))
    }
}

impl Input<'_, '_> {
    /// Makes `stream` wait until the tensor may be read. Returns the address at which kernels read it.
    fn await_on_device(&self, slice: DeviceSlice, stream: &Stream) -> Result<u64, EngineError> {
        let device = stream.device();
        let (tensor, address) = (|| self.tensor.to_string(), slice.address());
        let readable = match self.location {
            // An empty tensor: nothing is read from the address.
            None => return Ok(address),
            Some(Location::Accessible(readable)) => readable,
            Some(Location::OtherDevice(is)) => {
                let expected = device.ordinal();
                return Err(EngineError::OtherDevice { tensor: tensor(), is, expected });
            }
            Some(Location::Inaccessible) => {
                let ordinal = device.ordinal();
                return Err(EngineError::Inaccessible { tensor: tensor(), address, ordinal });
            }
            Some(Location::Unknown) => {
                return Err(EngineError::NotOnDevice { tensor: tensor(), address });
            }
        };
        match stream.wait_for_producer(slice.ready(), address)? {
            true => Ok(readable),
            false => Err(EngineError::UnknownProducer { tensor: tensor() }),
        }
    }
}
