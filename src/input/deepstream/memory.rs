// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of one layer in one image.
//!
//! In: a host address and a device address. Out: the address that an engine reads. If the host address may not have
//! the tensor, the device memory is copied.

use std::cell::RefCell;

use once_cell::unsync::OnceCell;

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
    copy: OnceCell<Vec<u8>>,
    spare: RefCell<Spare>,
}

/// Parts of an earlier copy that are used again.
#[derive(Debug, Default)]
struct Spare {
    bytes: Vec<u8>,
    stream: Option<Stream>,
}

impl LayerMemory {
    pub fn set(&mut self, addresses: Addresses) {
        if let Some(copy) = self.copy.take() {
            self.spare.get_mut().bytes = copy;
        }
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

    /// Copies the device memory to host memory.
    fn download(&self) -> Result<Vec<u8>, String> {
        let Addresses { device, bytes, gpu, .. } = self.addresses;
        let mut spare = self.spare.borrow_mut();
        let stream = spare.stream.take().filter(|stream| stream.device().ordinal() == gpu);
        let stream = match stream {
            Some(stream) => stream,
            None => Device::open(gpu)
                .map_err(|error| error.to_string())
                .and_then(|gpu| Stream::new(&gpu).map_err(|error| error.to_string()))?,
        };
        let mut copy = std::mem::take(&mut spare.bytes);
        copy.resize(bytes, 0);
        // SAFETY: according to the metadata, the elements of the layer are at the device address.
        unsafe { stream.download(device, &mut copy) }.map_err(|error| error.to_string())?;
        spare.stream = Some(stream);
        Ok(copy)
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
        match self.addresses {
            Addresses { host, host_is_current: true, .. } if host != 0 => Ok(self.host()),
            _ => self.copy.get_or_try_init(|| self.download()).map(Vec::as_slice),
        }
    }

    fn map_device(&self) -> Result<Option<DeviceSlice>, String> {
        let Addresses { device, bytes, .. } = self.addresses;
        // SAFETY: according to the metadata, the elements of the layer are at the device address. nvinfer has
        // waited for its work, and the elements are not written as long as the buffer has the metadata.
        Ok((device != 0).then(|| unsafe { DeviceSlice::new(device, bytes, Ready::Now) }))
    }
}
