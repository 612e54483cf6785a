// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies to memory that other code has allocated, in stream order.

use std::ptr::{null, null_mut};
use std::sync::Arc;

use cudarc::driver::sys;

use super::{Device, DeviceError, DriverError, Location, Stream};

/// Rows of bytes in device memory.
#[derive(Clone, Copy, Debug)]
pub struct DeviceRows {
    /// The device address of the first row.
    pub address: u64,
    /// The distance between two rows, in bytes.
    pub pitch: usize,
}

impl Device {
    /// Opens the GPU whose memory contains `address`, or the first GPU if the driver does not know the address.
    ///
    /// # Errors
    /// If a GPU cannot be used.
    pub fn holding(address: u64) -> Result<Arc<Self>, DeviceError> {
        let first = Self::open(0)?;
        match first.locate(address)? {
            Location::OtherDevice(is) => Self::open(is),
            Location::Accessible(_) | Location::Inaccessible | Location::Unknown => Ok(first),
        }
    }
}

impl Stream {
    /// Copies the first `width` bytes of each of `rows` rows, asynchronously, in stream order.
    ///
    /// # Errors
    /// If the call fails, for example because a pitch is less than `width`.
    ///
    /// # Safety
    /// Until the copy has completed, the memory of `from` must be valid for reads, and the memory of `to` for
    /// writes.
    pub unsafe fn copy_rows(
        &self,
        from: DeviceRows,
        to: DeviceRows,
        width: usize,
        rows: usize,
    ) -> Result<(), DriverError> {
        if width == 0 || rows == 0 {
            return Ok(());
        }
        let device = sys::CUmemorytype::CU_MEMORYTYPE_DEVICE;
        let copy = sys::CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: device,
            srcHost: null(),
            srcDevice: from.address,
            srcArray: null_mut(),
            srcPitch: from.pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: device,
            dstHost: null_mut(),
            dstDevice: to.address,
            dstArray: null_mut(),
            dstPitch: to.pitch,
            WidthInBytes: width,
            Height: rows,
        };
        let driver = self.device().enter()?;
        // SAFETY: the caller guarantees the memory. The driver reads the structure during the call.
        unsafe { driver.cuMemcpy2DAsync_v2(&raw const copy, self.handle) }
    }

    /// Sets `len` bytes at the device address `to` to zero, asynchronously, in stream order.
    ///
    /// # Errors
    /// If the call fails.
    ///
    /// # Safety
    /// `to` must be valid for writes of `len` bytes until this work has completed.
    pub unsafe fn write_zeros(&self, to: u64, len: usize) -> Result<(), DriverError> {
        let driver = self.device().enter()?;
        // SAFETY: the caller guarantees the memory.
        unsafe { driver.cuMemsetD8Async(to, 0, len, self.handle) }
    }

    /// Copies `bytes` to the device address `to`, in stream order. `bytes` may be changed as soon as this function
    /// has returned.
    ///
    /// # Errors
    /// If the call fails.
    ///
    /// # Safety
    /// `bytes` must not be in pinned memory. `to` must be valid for writes of `bytes.len()` bytes until the copy
    /// has completed.
    pub unsafe fn write(&self, bytes: &[u8], to: u64) -> Result<(), DriverError> {
        let driver = self.device().enter()?;
        // SAFETY: the caller guarantees the destination. When the call returns, the driver has read all bytes,
        // because they are in pageable memory.
        unsafe { driver.cuMemcpyHtoDAsync_v2(to, bytes.as_ptr().cast(), bytes.len(), self.handle) }
    }
}
