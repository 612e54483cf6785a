// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device memory and pinned host memory.
//!
//! In: a size. Out: buffers with their device addresses, which are freed when dropped. [`Device::locate`] finds the
//! GPU whose memory contains an address.

use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use cudarc::driver::sys;
use sys::CUpointer_attribute_enum as Attribute;

use super::{Device, DriverError};

/// A block of device memory.
#[derive(Debug)]
pub struct DeviceBuffer {
    device: Arc<Device>,
    address: u64,
    len: usize,
}

#[allow(clippy::len_without_is_empty, reason = "its length is only compared with others")]
impl DeviceBuffer {
    /// Allocates `len` uninitialized bytes, with an alignment of at least 256 bytes.
    ///
    /// # Errors
    /// If the driver cannot allocate the memory.
    pub fn new(device: &Arc<Device>, len: usize) -> Result<Self, DriverError> {
        let mut address = 0;
        // SAFETY: `address` is valid for writes, and `drop` frees the allocation. (Allocating 0 bytes would be an
        // error.)
        unsafe { device.enter()?.cuMemAlloc_v2(&mut address, len.max(1)) }?;
        Ok(Self { device: device.clone(), address, len })
    }

    /// Returns the device address of the first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the GPU that has the memory.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if let Ok(driver) = self.device.enter() {
            // SAFETY: `cuMemAlloc_v2` returned the address in this context, and it is freed once. `cuMemFree` waits
            // for work that uses the memory.
            let _ = unsafe { driver.cuMemFree_v2(self.address) };
        }
    }
}

/// Pinned (page-locked) host memory that is mapped into the address space of the GPU.
#[derive(Debug)]
pub struct PinnedBuffer {
    device: Arc<Device>,
    host: NonNull<u8>,
    address: u64,
    len: usize,
    /// True if other code owns the memory and will free it.
    is_foreign: bool,
}

// SAFETY: the allocation is owned, or exists as `register` requires, and is not bound to a thread. Accesses through its
// addresses are unsafe, and the code that makes them synchronizes them.
unsafe impl Send for PinnedBuffer {}
// SAFETY: a shared reference only gives access to the addresses.
unsafe impl Sync for PinnedBuffer {}

#[allow(clippy::len_without_is_empty, reason = "its length is only compared with others")]
impl PinnedBuffer {
    /// Allocates `len` bytes, which are zero, with the alignment of a page.
    ///
    /// # Errors
    /// If the driver cannot allocate or map the memory.
    pub fn new(device: &Arc<Device>, len: usize) -> Result<Self, DriverError> {
        let driver = device.enter()?;
        let mut host: *mut c_void = null_mut();
        // SAFETY: `host` is valid for writes, and `drop` frees the allocation.
        unsafe { driver.cuMemHostAlloc(&mut host, len.max(1), sys::CU_MEMHOSTALLOC_DEVICEMAP) }?;
        let host = NonNull::new(host.cast()).expect("the address of an allocation is not null");
        let buffer =
            Self { device: device.clone(), host, address: 0, len, is_foreign: false }.mapped()?;
        // SAFETY: the allocation has at least `len` bytes, and no other code uses it yet.
        unsafe { host.write_bytes(0, len) };
        Ok(buffer)
    }

    /// Pins memory of other code, until the result is dropped.
    ///
    /// # Errors
    /// If the driver cannot pin or map the memory, for example because a part of it is pinned already.
    ///
    /// # Safety
    /// The memory must exist until the result is dropped. The result must not be borrowed mutably while other code
    /// accesses the memory.
    pub unsafe fn register(device: &Arc<Device>, memory: &[u8]) -> Result<Self, DriverError> {
        let host = NonNull::from(memory).cast::<u8>();
        let flags = sys::CU_MEMHOSTREGISTER_DEVICEMAP;
        let driver = device.enter()?;
        // SAFETY: the memory exists until `drop`, which ends the registration.
        unsafe { driver.cuMemHostRegister_v2(host.as_ptr().cast(), memory.len(), flags) }?;
        Self { device: device.clone(), host, address: 0, len: memory.len(), is_foreign: true }
            .mapped()
    }

    /// Sets the device address.
    fn mapped(mut self) -> Result<Self, DriverError> {
        let (driver, host) = (self.device.enter()?, self.host.as_ptr().cast());
        // SAFETY: `self.address` is valid for writes, and `host` was pinned as mapped memory in this context.
        unsafe { driver.cuMemHostGetDevicePointer_v2(&mut self.address, host, 0) }?;
        drop(driver);
        Ok(self)
    }

    /// Returns the GPU that can access the memory.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Returns the device address of the first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the host address of the first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.host.as_ptr()
    }

    /// Returns the bytes. Kernels only write them if an unsafe call has passed their device address to a kernel.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the allocation has at least `len` bytes, which `new` has initialized, and the host borrows it
        // exclusively. Copies in streams only read it. Code that lets a kernel write it is unsafe, and must ensure
        // that it is not borrowed meanwhile.
        unsafe { std::slice::from_raw_parts_mut(self.host.as_ptr(), self.len) }
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }
}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        if let Ok(driver) = self.device.enter() {
            let host = self.host.as_ptr().cast();
            // SAFETY: `cuMemHostAlloc` returned the address in this context, or `cuMemHostRegister` was given it, and it is
            // released once. Both functions wait for work that uses the memory.
            let _ = unsafe {
                if self.is_foreign {
                    driver.cuMemHostUnregister(host)
                } else {
                    driver.cuMemFreeHost(host)
                }
            };
        }
    }
}

/// The location of memory, as seen from the context of one GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// Kernels of the context can access it at this device address.
    Accessible(u64),
    /// The memory is on this GPU, but the context cannot access it, for example because it belongs to another
    /// context.
    Inaccessible,
    /// The memory is on the GPU with this number, which is another one.
    OtherDevice(u32),
    /// The driver knows no memory at this address.
    Unknown,
}

impl Device {
    /// Returns the location of the memory at `address`, as seen from this device's context. Calls the driver once.
    ///
    /// # Errors
    /// If the call fails. An unknown address is not an error.
    pub fn locate(&self, address: u64) -> Result<Location, DriverError> {
        let (mut memory_type, mut ordinal, mut pointer) = (0u32, 0i32, 0u64);
        let attributes = [
            Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
            Attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        ];
        let values: [*mut c_void; 3] =
            [(&raw mut memory_type).cast(), (&raw mut ordinal).cast(), (&raw mut pointer).cast()];
        // SAFETY: there are 3 attributes and 3 values, and each value is valid for writes of its attribute's type.
        // Any address may be passed.
        let known = unsafe {
            self.enter()?.cuPointerGetAttributes(3, attributes.as_ptr(), values.as_ptr(), address)
        };
        match known {
            Err(error) if !error.is(sys::CUresult::CUDA_ERROR_INVALID_VALUE) => return Err(error),
            // The driver sets attributes that do not apply to an address to zero, and every known address has a
            // memory type.
            Err(_) => return Ok(Location::Unknown),
            Ok(()) if memory_type == 0 => return Ok(Location::Unknown),
            Ok(()) => {}
        }
        let is_of_device = memory_type == sys::CUmemorytype::CU_MEMORYTYPE_DEVICE as u32;
        Ok(match u32::try_from(ordinal) {
            Ok(is) if is_of_device && is != self.ordinal() => Location::OtherDevice(is),
            _ if pointer == 0 => Location::Inaccessible,
            _ => Location::Accessible(pointer),
        })
    }

    /// Waits for all work in the context that owns the memory at `address`. Returns false without waiting if the
    /// driver knows no context for the memory, for example for stream-ordered allocations.
    ///
    /// # Errors
    /// If this work failed.
    pub(crate) fn wait_for_owner(&self, address: u64) -> Result<bool, DriverError> {
        let driver = self.enter()?;
        let mut context: sys::CUcontext = null_mut();
        let value = (&raw mut context).cast();
        let attribute = Attribute::CU_POINTER_ATTRIBUTE_CONTEXT;
        // SAFETY: `value` is valid for writes of a context, which is the attribute's type, and any address may be
        // passed. The context exists, because it owns memory that the caller uses. It is popped after it was
        // pushed.
        unsafe {
            let known = driver.cuPointerGetAttribute(value, attribute, address).is_ok();
            if !known || context.is_null() {
                return Ok(false);
            }
            driver.cuCtxPushCurrent_v2(context)?;
            let done = driver.cuCtxSynchronize();
            driver.cuCtxPopCurrent_v2(&mut null_mut())?;
            done.map(|()| true)
        }
    }
}
