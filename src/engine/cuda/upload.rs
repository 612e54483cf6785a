//! Host memory on its way to the GPU.

use crate::device::{DeviceBuffer, DriverError, PinnedBuffer, Stream};

/// Pinned memory, and as much of the GPU's, kept from frame to frame.
#[derive(Debug, Default)]
pub(super) struct Upload {
    buffers: Option<(PinnedBuffer, DeviceBuffer)>,
}

impl Upload {
    /// Starts copying `bytes`; returns the device's address of the copy.
    pub fn upload(&mut self, stream: &Stream, bytes: &[u8]) -> Result<u64, DriverError> {
        let fits = |(pinned, _): &(PinnedBuffer, DeviceBuffer)| pinned.len() >= bytes.len();
        if !self.buffers.as_ref().is_some_and(fits) {
            self.buffers = None;
            let (device, len) = (stream.device(), bytes.len().next_multiple_of(4096));
            self.buffers = Some((PinnedBuffer::new(device, len)?, DeviceBuffer::new(device, len)?));
        }
        let (pinned, on_device) = self.buffers.as_ref().expect("just made, if they were not there");
        // SAFETY: there are as many bytes, and the last copy from here is done: every frame is
        // waited for.
        unsafe { pinned.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        stream.upload(pinned, on_device, bytes.len())?;
        Ok(on_device.address())
    }

    /// The device's address of the last copy; 0 before the first.
    pub fn address(&self) -> u64 {
        self.buffers.as_ref().map_or(0, |(_, on_device)| on_device.address())
    }
}
