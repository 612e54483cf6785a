//! An NVIDIA GPU: the driver, a context, memory.
//!
//! Nothing here is linked to: where there is no driver, [`Device::open`] says so.

mod driver;
#[cfg(feature = "fault-injection")]
pub mod fault;
mod memory;
mod ready;
mod stream;

use std::ffi::CStr;
use std::fmt;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cudarc::driver::sys;
use sys::CUdevice_attribute_enum as Attribute;

pub use driver::{Driver, DriverError, EdgeData};
pub use memory::{DeviceBuffer, Location, PinnedBuffer};
pub use ready::{READY_EVENT, Ready};
pub use stream::{Event, ForeignStream, Stream};

/// Why a GPU cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// The driver's library is not installed.
    #[error("there is no NVIDIA driver (libcuda cannot be loaded)")]
    NoDriver,
    /// The driver's library lacks a function.
    #[error("the NVIDIA driver has no {symbol}; install one for CUDA 11.4 or later")]
    OldDriver {
        /// The function.
        symbol: &'static str,
    },
    /// There is a driver and no GPU.
    #[error("the NVIDIA driver finds no GPU")]
    NoDevice,
    /// There is no GPU of this number.
    #[error("there is no GPU {ordinal}; the driver counts {count}, from 0 on")]
    NoSuchDevice {
        /// The number asked for.
        ordinal: u32,
        /// How many there are.
        count: i32,
    },
    /// The GPU is older than the kernels know.
    #[error("GPU {name} has compute capability {major}.{minor}; 6.0 or later is needed")]
    OldDevice {
        /// Its name.
        name: String,
        /// Its compute capability before the dot.
        major: i32,
        /// Its compute capability behind the dot.
        minor: i32,
    },
    /// A call failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

impl DeviceError {
    /// Whether it only says that this machine has no GPU to use.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::NoDriver | Self::NoDevice)
    }
}

/// A GPU with its primary context, which everyone in the process who uses it shares.
pub struct Device {
    driver: &'static Driver,
    handle: sys::CUdevice,
    context: sys::CUcontext,
    ordinal: u32,
    name: String,
    capability: (i32, i32),
    multiprocessors: u32,
}

// SAFETY: a context may be used from any thread that has made it current.
unsafe impl Send for Device {}
// SAFETY: as above; the driver's calls are safe from several threads at once.
unsafe impl Sync for Device {}

/// The devices in use.
static OPEN: Mutex<Vec<Weak<Device>>> = Mutex::new(Vec::new());

impl Device {
    /// GPU number `ordinal`: the one in use, or its primary context retained. The context is
    /// released when the last user lets go, so that a GPU whose context an error has spoilt can be
    /// opened afresh.
    ///
    /// # Errors
    /// Where there is no driver or no such GPU, or it cannot be used.
    pub fn open(ordinal: u32) -> Result<Arc<Self>, DeviceError> {
        let driver = Driver::get()?;
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|device| device.strong_count() > 0);
        let known = open.iter().filter_map(Weak::upgrade).find(|device| device.ordinal == ordinal);
        if let Some(device) = known {
            return Ok(device);
        }
        let device = Arc::new(Self::retain(driver, ordinal)?);
        open.push(Arc::downgrade(&device));
        Ok(device)
    }

    fn retain(driver: &'static Driver, ordinal: u32) -> Result<Self, DeviceError> {
        let mut count = 0;
        // SAFETY: the address is that of a number.
        unsafe { driver.cuDeviceGetCount(&mut count) }?;
        let number = i32::try_from(ordinal).ok().filter(|&ordinal| ordinal < count);
        let number = match number {
            Some(number) => number,
            None if count == 0 => return Err(DeviceError::NoDevice),
            None => return Err(DeviceError::NoSuchDevice { ordinal, count }),
        };

        let mut handle = 0;
        let mut name = [0u8; 128];
        // SAFETY: the addresses are those of a handle and of as many bytes as stated.
        unsafe {
            driver.cuDeviceGet(&mut handle, number)?;
            driver.cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as i32 - 1, handle)?;
        }
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        let attribute = |attribute| {
            let mut value = 0;
            // SAFETY: the address is that of a number.
            unsafe { driver.cuDeviceGetAttribute(&mut value, attribute, handle) }?;
            Ok::<_, DriverError>(value)
        };
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        if (major, minor) < (6, 0) {
            return Err(DeviceError::OldDevice { name, major, minor });
        }
        let multiprocessors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;

        let mut context = null_mut();
        // SAFETY: the address is that of a handle; `drop` releases what is retained.
        unsafe { driver.cuDevicePrimaryCtxRetain(&mut context, handle) }?;
        Ok(Self {
            driver,
            handle,
            context,
            ordinal,
            name,
            capability: (major, minor),
            multiprocessors: multiprocessors.max(1) as u32,
        })
    }

    /// Its number.
    pub fn ordinal(&self) -> u32 {
        self.ordinal
    }

    /// Its compute capability.
    pub fn capability(&self) -> (i32, i32) {
        self.capability
    }

    /// How many multiprocessors it has.
    pub fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// The driver, with this device's context current on this thread for as long as the guard
    /// lives; whatever was current before is so again afterwards.
    ///
    /// # Errors
    /// Where the context cannot be made current.
    pub fn enter(&self) -> Result<ContextGuard<'_>, DriverError> {
        // SAFETY: the context is retained; the guard pops it.
        unsafe { self.driver.cuCtxPushCurrent_v2(self.context) }?;
        Ok(ContextGuard { device: self, thread: std::marker::PhantomData })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: it was retained once. An error has nobody to hear it, and spoils nothing.
        let _ = unsafe { self.driver.cuDevicePrimaryCtxRelease_v2(self.handle) };
    }
}

/// Written as `GPU 0 (NVIDIA H200, compute capability 9.0)`.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.capability;
        write!(f, "GPU {} ({}, compute capability {major}.{minor})", self.ordinal, self.name)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A device's context, current on this thread.
pub struct ContextGuard<'a> {
    device: &'a Device,
    /// A context is current on one thread.
    thread: std::marker::PhantomData<*const ()>,
}

impl std::ops::Deref for ContextGuard<'_> {
    type Target = Driver;

    fn deref(&self) -> &Driver {
        self.device.driver
    }
}

impl Drop for ContextGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: it pops what `enter` pushed.
        let _ = unsafe { self.device.driver.cuCtxPopCurrent_v2(&mut null_mut()) };
    }
}
