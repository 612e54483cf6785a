// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory that holds a tensor's elements.

use std::fmt;

use crate::device::Ready;

/// The memory of a tensor.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Storage<'a> {
    /// Host memory.
    Host(&'a [u8]),
    /// Device memory.
    Device(DeviceSlice),
    /// Memory that is mapped when an engine needs it.
    Mappable(&'a dyn Mappable),
    /// No memory: the producer attached none.
    Missing,
}

impl Storage<'_> {
    /// The number of bytes, as far as is known without mapping; `None` without memory.
    pub(super) fn size(&self) -> Option<usize> {
        match self {
            Self::Host(bytes) => Some(bytes.len()),
            Self::Device(slice) => Some(slice.len()),
            Self::Mappable(memory) => Some(memory.size()),
            Self::Missing => None,
        }
    }
}

/// Memory that is mapped on first use and stays mapped until the implementor is dropped.
pub trait Mappable: fmt::Debug {
    /// The number of bytes, without mapping.
    fn size(&self) -> usize;

    /// Whether it is device memory.
    fn is_on_device(&self) -> bool;

    /// The bytes in host memory; device memory is copied.
    ///
    /// # Errors
    /// If the memory cannot be mapped; the cause, for a message.
    fn map_host(&self) -> Result<&[u8], String>;

    /// The device memory; `None` if it is host memory.
    ///
    /// # Errors
    /// If the memory cannot be mapped; the cause, for a message.
    fn map_device(&self) -> Result<Option<DeviceSlice>, String>;
}

/// Bytes in device memory, and the work that must have completed before they may be read.
#[derive(Clone, Copy, Debug)]
pub struct DeviceSlice {
    address: u64,
    len: usize,
    ready: Ready,
}

impl DeviceSlice {
    /// `len` bytes at the device address `address`.
    ///
    /// # Safety
    /// The bytes must exist for as long as this value or a copy of it is used, and must not be written
    /// once `ready` has completed.
    pub unsafe fn new(address: u64, len: usize, ready: Ready) -> Self {
        Self { address, len, ready }
    }

    /// The device address of the first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The work that must have completed before the bytes may be read.
    pub fn ready(&self) -> Ready {
        self.ready
    }
}
