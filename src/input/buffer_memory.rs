// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of a `GstBuffer` as the memory of a tensor.
//!
//! In: a borrowed buffer. Out: its bytes in host memory, or its device address. The buffer is mapped when an engine
//! needs it.

use once_cell::unsync::OnceCell;

use super::cuda_memory::{self, DeviceMapping};
use nmsfilter_core::tensor::{DeviceSlice, Mappable};

/// A buffer that contains a tensor's elements. It is mapped to the host and to the device on first use of each;
/// both mappings end when this value is dropped.
#[derive(Debug)]
pub(crate) struct BufferMemory<'a> {
    buffer: &'a gst::BufferRef,
    host: OnceCell<gst::BufferMap<'a, gst::buffer::Readable>>,
    /// `None` if the buffer is not in device memory.
    device: OnceCell<Option<DeviceMapping<'a>>>,
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
        let map = || self.buffer.map_readable().map_err(|cause| cause.to_string());
        self.host.get_or_try_init(map).map(|map| map.as_slice())
    }

    fn map_device(&self) -> Result<Option<DeviceSlice>, String> {
        let mapping = self.device.get_or_try_init(|| DeviceMapping::new(self.buffer))?;
        Ok(mapping.as_ref().map(DeviceMapping::slice))
    }
}
