// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scalings of a frame's regions in the memory of a GPU.
//!
//! In: the scalings. Out: the address of the positions that the kernels of `kernels/resample.cu` read, one region after
//! the other. The memory grows with the number of regions.

use std::ops::Range;
use std::sync::Arc;

use super::frame_format::CHANNELS;
use super::resample_params::OUTSIDE;
use super::scaling::Scaling;
use crate::inference::model::InputSpec;
use nmsfilter_core::device::{DeviceBuffer, DriverError, OwnedEvent, PinnedBuffer, Stream};

/// Scalings to one model's input in the memory of a GPU.
pub struct GpuScalings {
    stream: Arc<Stream>,
    /// The width and height of the model's input.
    size: [usize; 2],
    /// The memory, and the number of scalings for which it has room.
    memory: Option<(PinnedBuffer, DeviceBuffer, usize)>,
    /// Completes when the last copy to the memory and the last kernel that reads it have ended.
    used: OwnedEvent,
}

impl GpuScalings {
    /// Creates memory without scalings, for the model's input `input`.
    ///
    /// # Errors
    /// If an event cannot be created.
    pub fn new(stream: &Arc<Stream>, input: &InputSpec) -> Result<Self, DriverError> {
        Ok(Self {
            stream: stream.clone(),
            size: input.size.map(|side| side as usize),
            memory: None,
            used: OwnedEvent::with_blocking_wait(stream.device())?,
        })
    }

    /// Copies the scalings with the numbers `changed` to the memory, asynchronously, in stream order; all scalings if the
    /// memory had no room for them. Waits for the kernels that read the memory.
    ///
    /// # Errors
    /// If memory cannot be allocated, or the copy cannot be submitted.
    ///
    /// # Panics
    /// If a scaling is for a model's input of another size.
    pub fn replace(
        &mut self,
        scalings: &[Scaling],
        changed: Range<usize>,
    ) -> Result<(), DriverError> {
        self.used.synchronize()?;
        let (words, [width, _]) = (self.words(), self.size);
        let has_room = |&(.., room): &(_, _, usize)| room >= scalings.len();
        let (changed, memory) = match self.memory.take().filter(has_room) {
            Some(memory) => (changed, memory),
            None => {
                let room = scalings.len().next_power_of_two();
                let (device, bytes) = (self.stream.device(), room * words * size_of::<u32>());
                let host = PinnedBuffer::new(device, bytes)?;
                (0..scalings.len(), (host, DeviceBuffer::new(device, bytes)?, room))
            }
        };
        let (host, device, _) = self.memory.insert(memory);
        let end = changed.end;
        let regions = bytemuck::cast_slice_mut(host.as_mut_slice()).chunks_exact_mut(words);
        for (scaling, region) in scalings.iter().zip(regions).take(end).skip(changed.start) {
            region.fill(OUTSIDE);
            let [left, top] = scaling.fit.offset.map(|side| side as usize);
            let components = region.chunks_exact_mut(words / CHANNELS);
            for (to, from) in components.zip(&scaling.positions) {
                let (columns, rows) = to.split_at_mut(width);
                columns[left..left + from.columns.len()].copy_from_slice(&from.columns);
                rows[top..top + from.rows.len()].copy_from_slice(&from.rows);
            }
        }
        self.stream.upload(host, device, end * words * size_of::<u32>())?;
        self.record_use()
    }

    /// Returns the device address of the scalings from number `first` on, for kernels after which
    /// [`record_use`](Self::record_use) is called.
    ///
    /// # Panics
    /// If there are no scalings.
    pub fn address(&self, first: usize) -> u64 {
        let (_, device, _) = self.memory.as_ref().expect("there are scalings");
        device.address() + (first * self.words() * size_of::<u32>()) as u64
    }

    /// Makes [`replace`](Self::replace) wait for the work that has been submitted so far.
    ///
    /// # Errors
    /// If the call fails.
    pub fn record_use(&self) -> Result<(), DriverError> {
        self.stream.record(&self.used)
    }

    /// Returns the number of positions of a scaling.
    fn words(&self) -> usize {
        CHANNELS * (self.size[0] + self.size[1])
    }
}
