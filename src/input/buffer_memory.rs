// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of a `GstBuffer` as the memory of a tensor.
//!
//! In: a borrowed buffer. Out: its bytes in host memory, or its device address. The buffer is mapped when an engine
//! needs it.

use std::cell::OnceCell;
use std::fmt;

use super::cuda_memory::{self, DeviceMapping};
use nmsfilter_core::tensor::{DeviceSlice, Mappable};

/// A buffer that contains a tensor's elements. It is mapped to the host and to the device on first use of each;
/// both mappings end when this value is dropped.
pub(crate) struct BufferMemory<'a> {
    buffer: &'a gst::BufferRef,
    host: OnceCell<gst::BufferMap<'a, gst::buffer::Readable>>,
    device: OnceCell<DeviceMapping<'a>>,
}

impl<'a> BufferMemory<'a> {
    pub fn new(buffer: &'a gst::BufferRef) -> Self {
        Self { buffer, host: OnceCell::new(), device: OnceCell::new() }
    }
}

impl Mappable for BufferMemory<'_> {
    fn size(&self) -> usize {
        self.buffer.size()
    }

    fn is_on_device(&self) -> bool {
        cuda_memory::is_on_device(self.buffer)
    }

    fn map_host(&self) -> Result<&[u8], String> {
        if self.host.get().is_none() {
            let map = self.buffer.map_readable().map_err(|cause| cause.to_string())?;
            // The cell was empty, so `set` succeeds.
            let _ = self.host.set(map);
        }
        Ok(self.host.get().map_or(&[], |map| map.as_slice()))
    }

    fn map_device(&self) -> Result<Option<DeviceSlice>, String> {
        if self.device.get().is_none() {
            let Some(mapping) = DeviceMapping::new(self.buffer)? else {
                return Ok(None);
            };
            // The cell was empty, so `set` succeeds.
            let _ = self.device.set(mapping);
        }
        Ok(self.device.get().map(DeviceMapping::slice))
    }
}

impl fmt::Debug for BufferMemory<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_on_device() { "device" } else { "host" };
        write!(f, "a buffer of {} bytes in {kind} memory", self.size())
    }
}
