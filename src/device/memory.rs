use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use cudarc::driver::sys;
use sys::CUpointer_attribute_enum as Attribute;

use super::{Device, DriverError};

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

/// Where the memory at an address is, as a context of one GPU sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// Kernels of the context access it at this address.
    Accessible(u64),
    /// On this GPU, in memory that the context cannot access, as memory of another context may be.
    Inaccessible,
    /// On the GPU of this number, which is another.
    OtherDevice(u32),
    /// The driver knows of no memory there.
    Unknown,
}

impl Device {
    /// Where the memory at `address` is, as this device's context sees it: one call of the driver.
    ///
    /// # Errors
    /// Where the driver cannot be called; an address of which it knows nothing is no error.
    pub fn locate(&self, address: u64) -> Result<Location, DriverError> {
        let (mut memory_type, mut ordinal, mut pointer) = (0u32, 0i32, 0u64);
        let attributes = [
            Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
            Attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        ];
        let values: [*mut c_void; 3] =
            [(&raw mut memory_type).cast(), (&raw mut ordinal).cast(), (&raw mut pointer).cast()];
        // SAFETY: as many attributes as values, each of its attribute's type; any address may be
        // asked about.
        let known = unsafe {
            self.enter()?.cuPointerGetAttributes(3, attributes.as_ptr(), values.as_ptr(), address)
        };
        match known {
            Err(error) if !error.is_invalid_value() => return Err(error),
            // What an address has not got is zero, and every known address has a memory type.
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

    /// Waits for all work in the context that owns the memory at `address`; false, without waiting,
    /// where the driver names none, as for stream-ordered allocations.
    ///
    /// # Errors
    /// Where that work failed.
    pub fn wait_for_owner(&self, address: u64) -> Result<bool, DriverError> {
        let driver = self.enter()?;
        let mut context: sys::CUcontext = null_mut();
        let value = (&raw mut context).cast();
        let attribute = Attribute::CU_POINTER_ATTRIBUTE_CONTEXT;
        // SAFETY: the attribute is a context; any address may be asked about. What is pushed is
        // popped.
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
