// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies to memory that other code has allocated, in the order of its stream.

use std::ptr::{null, null_mut};
use std::sync::Arc;

use cudarc::driver::sys;

use super::{Device, DeviceError, DriverError, Location, Stream};

/// Rows of bytes in device memory.
#[derive(Clone, Copy, Debug)]
pub struct DeviceRows {
    /// The device address of the first row.
    pub address: u64,
    /// The bytes from a row to the next.
    pub pitch: usize,
}

impl Device {
    /// The GPU that the memory at `address` is on; the first GPU if the driver does not know the address.
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
    /// Copies the first `width` bytes of `rows` rows, asynchronously, in stream order.
    ///
    /// # Errors
    /// If the call fails, for example because a pitch is less than `width`.
    ///
    /// # Safety
    /// The memory must be valid for reads, and that of `to` for writes, until the copy has completed.
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
        // SAFETY: the caller guarantees the memory; the structure is read during the call.
        unsafe { driver.cuMemcpy2DAsync_v2(&raw const copy, self.handle()) }
    }

    /// Sets `len` bytes at the device address `to` to zero, asynchronously, in stream order.
    ///
    /// # Errors
    /// If the call fails.
    ///
    /// # Safety
    /// `to` must be valid for writes of `len` bytes until that has completed.
    pub unsafe fn write_zeros(&self, to: u64, len: usize) -> Result<(), DriverError> {
        let driver = self.device().enter()?;
        // SAFETY: the caller guarantees the memory.
        unsafe { driver.cuMemsetD8Async(to, 0, len, self.handle()) }
    }

    /// Copies `bytes` to the device address `to`, in stream order. They may be changed once the call has returned.
    ///
    /// # Errors
    /// If the call fails.
    ///
    /// # Safety
    /// `bytes` must not be pinned memory. `to` must be valid for writes of as many bytes until the copy has completed.
    pub unsafe fn write(&self, bytes: &[u8], to: u64) -> Result<(), DriverError> {
        let driver = self.device().enter()?;
        // SAFETY: the caller guarantees the destination. The driver has read pageable memory when it returns.
        unsafe {
            driver.cuMemcpyHtoDAsync_v2(to, bytes.as_ptr().cast(), bytes.len(), self.handle())
        }
    }
}
