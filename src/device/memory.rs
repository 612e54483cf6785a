use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use cudarc::driver::sys;
use sys::CUpointer_attribute_enum as Attribute;

use super::{Device, Driver, DriverError};

/// Memory of a GPU.
#[derive(Debug)]
pub struct DeviceBuffer {
    device: Arc<Device>,
    address: u64,
    len: usize,
}

impl DeviceBuffer {
    /// `len` bytes of anything, aligned to 256.
    ///
    /// # Errors
    /// Where there are not so many.
    pub fn new(device: &Arc<Device>, len: usize) -> Result<Self, DriverError> {
        let mut address = 0;
        // SAFETY: the address is that of a device address; `drop` frees what it gets. The driver
        // refuses to allocate nothing.
        unsafe { device.enter()?.cuMemAlloc_v2(&mut address, len.max(1)) }?;
        Ok(Self { device: device.clone(), address, len })
    }

    /// The device's address of the first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The GPU whose memory it is.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if let Ok(driver) = self.device.enter() {
            // SAFETY: it was allocated in this context and nobody else frees it; the driver waits
            // for work that uses it.
            let _ = unsafe { driver.cuMemFree_v2(self.address) };
        }
    }
}

/// Memory of the host that a GPU can reach.
#[derive(Debug)]
pub struct PinnedBuffer {
    device: Arc<Device>,
    host: NonNull<u8>,
    address: u64,
    len: usize,
}

// SAFETY: it is memory, owned; what is shared of it is up to who uses its address.
unsafe impl Send for PinnedBuffer {}

impl PinnedBuffer {
    /// `len` zeros, aligned to a page.
    ///
    /// # Errors
    /// Where there are not so many.
    pub fn new(device: &Arc<Device>, len: usize) -> Result<Self, DriverError> {
        let driver = device.enter()?;
        let mut host: *mut c_void = null_mut();
        // SAFETY: the address is that of an address; `drop` frees what it gets.
        unsafe { driver.cuMemHostAlloc(&mut host, len.max(1), sys::CU_MEMHOSTALLOC_DEVICEMAP) }?;
        let mut buffer = Self {
            device: device.clone(),
            host: NonNull::new(host.cast()).expect("the driver allocates somewhere"),
            address: 0,
            len,
        };
        // SAFETY: the memory was just allocated, `len` bytes of it.
        unsafe { buffer.host.as_ptr().write_bytes(0, len) };
        // SAFETY: it is mapped memory of this context.
        unsafe { driver.cuMemHostGetDevicePointer_v2(&mut buffer.address, host, 0) }?;
        Ok(buffer)
    }

    /// The device's address of the first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The host's address of the first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.host.as_ptr()
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        if let Ok(driver) = self.device.enter() {
            // SAFETY: it was allocated in this context and nobody else frees it; the driver waits
            // for work that uses it.
            let _ = unsafe { driver.cuMemFreeHost(self.host.as_ptr().cast()) };
        }
    }
}

/// The number of the GPU whose memory `address` is; `None` where it is no GPU's.
pub fn ordinal_of(driver: &Driver, address: u64) -> Option<u32> {
    let mut ordinal = -1i32;
    let to: *mut i32 = &mut ordinal;
    let attribute = Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
    // SAFETY: the attribute is a number; any address may be asked about.
    unsafe { driver.cuPointerGetAttribute(to.cast(), attribute, address) }.ok()?;
    u32::try_from(ordinal).ok()
}

/// Waits for all work in the context that owns `address`, or in the current one where the driver
/// does not know the owner.
///
/// # Errors
/// Where that work failed.
pub fn synchronize_owner(driver: &Driver, address: u64) -> Result<(), DriverError> {
    let mut context: sys::CUcontext = null_mut();
    let to: *mut sys::CUcontext = &mut context;
    let attribute = Attribute::CU_POINTER_ATTRIBUTE_CONTEXT;
    // SAFETY: the attribute is a context; any address may be asked about. What is pushed is popped.
    unsafe {
        let known = driver.cuPointerGetAttribute(to.cast(), attribute, address).is_ok();
        if !known || context.is_null() {
            return driver.cuCtxSynchronize();
        }
        driver.cuCtxPushCurrent_v2(context)?;
        let done = driver.cuCtxSynchronize();
        driver.cuCtxPopCurrent_v2(&mut null_mut())?;
        done
    }
}
