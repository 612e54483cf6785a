// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of one layer in one image.
//!
//! In: a host address and a device address. Out: the address that an engine reads. If the host address may not have
//! the tensor, the device memory is copied.

use crate::input::host_copy::HostCopy;
use nmsfilter_core::device::{Device, Ready, Stream};
use nmsfilter_core::tensor::{DeviceSlice, Mappable, Storage};

/// The addresses of a layer's elements in one image.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Addresses {
    /// The host address, or 0.
    pub host: u64,
    /// The device address, or 0.
    pub device: u64,
    pub bytes: usize,
    pub gpu: u32,
    /// True if the host memory is up to date even if there is device memory, too.
    pub host_is_current: bool,
}

/// The memory of one layer in one image.
#[derive(Debug, Default)]
pub(super) struct LayerMemory {
    addresses: Addresses,
    /// A copy of the device memory, made when it is mapped to the host.
    copy: HostCopy,
}

impl LayerMemory {
    pub fn set(&mut self, addresses: Addresses) {
        self.copy.discard();
        self.addresses = addresses;
    }

    pub fn storage(&self) -> Storage<'_> {
        match self.addresses {
            Addresses { device: 0, host: 0, .. } => Storage::Missing,
            Addresses { device: 0, .. } => Storage::Host(self.host()),
            _ => Storage::Mappable(self),
        }
    }

    /// Returns the bytes at the host address, which must not be null.
    fn host(&self) -> &[u8] {
        let Addresses { host, bytes, .. } = self.addresses;
        // SAFETY: according to the metadata, the elements of the layer are at the host address. They are not
        // written as long as the buffer has the metadata, which a `Batch` borrows.
        unsafe {
            std::slice::from_raw_parts(std::ptr::with_exposed_provenance(host as usize), bytes)
        }
    }
}

impl Mappable for LayerMemory {
    fn size(&self) -> usize {
        self.addresses.bytes
    }

    fn is_on_device(&self) -> bool {
        self.addresses.device != 0
    }

    fn map_host(&self) -> Result<&[u8], String> {
        let Addresses { host, device, bytes, gpu, host_is_current } = self.addresses;
        if host_is_current && host != 0 {
            return Ok(self.host());
        }
        let open = || Ok(Stream::new(&Device::open(gpu)?)?);
        // SAFETY: according to the metadata, the elements of the layer are at the device address.
        let copy = unsafe { self.copy.get((device, bytes), gpu, None, open) };
        copy.map_err(|error| error.to_string())
    }

    fn map_device(&self) -> Result<Option<DeviceSlice>, String> {
        let Addresses { device, bytes, .. } = self.addresses;
        // SAFETY: according to the metadata, the elements of the layer are at the device address. nvinfer has
        // waited for its work, and the elements are not written as long as the buffer has the metadata.
        Ok((device != 0).then(|| unsafe { DeviceSlice::new(device, bytes, Ready::Now) }))
    }
}
