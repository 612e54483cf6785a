// SPDX-License-Identifier: MIT OR Apache-2.0
//! Uploads of host memory to the GPU.
//!
//! In: bytes in host memory. Out: the device address of a copy, which is complete in the order of the stream.
//! The copy goes through pinned memory, since the driver copies pageable memory synchronously.

use crate::device::{DeviceBuffer, DriverError, PinnedBuffer, Stream};

/// Pinned memory and device memory of the same size, reused for later runs.
#[derive(Debug, Default)]
pub(super) struct Upload {
    buffers: Option<(PinnedBuffer, DeviceBuffer)>,
}

impl Upload {
    /// Starts a copy of `bytes` in the order of `stream`; returns the device address of the copy.
    pub fn upload(&mut self, stream: &Stream, bytes: &[u8]) -> Result<u64, DriverError> {
        let fits = |(pinned, _): &(PinnedBuffer, DeviceBuffer)| pinned.len() >= bytes.len();
        if !self.buffers.as_ref().is_some_and(fits) {
            self.buffers = None;
            let (device, len) = (stream.device(), bytes.len().next_multiple_of(4096));
            self.buffers = Some((PinnedBuffer::new(device, len)?, DeviceBuffer::new(device, len)?));
        }
        let (pinned, on_device) = self.buffers.as_mut().expect("allocated above");
        // The previous copy from this memory has completed: every run waits for its result, and after a
        // failed run the engine drops the uploads.
        pinned.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
        stream.upload(pinned, on_device, bytes.len())?;
        Ok(on_device.address())
    }

    /// The device address of the last copy; 0 before the first copy.
    pub fn address(&self) -> u64 {
        self.buffers.as_ref().map_or(0, |(_, on_device)| on_device.address())
    }
}
