// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CUDA driver API: devices, contexts, memory, streams, events and kernels.
//!
//! In: the number of a GPU. Out: safe types that own the driver's handles, and errors that name the failed call.
//! The driver's library is loaded at run time; if it is missing, [`Device::open`] returns an error.

mod compressed;
mod copy;
mod driver;
#[cfg(feature = "fault-injection")]
pub mod fault;
#[cfg(test)]
#[path = "tests/kernel_headers.rs"]
pub(crate) mod kernel_headers;
mod memory;
mod module;
mod node_sequence;
mod ready;
mod stream;

use std::ffi::CStr;
use std::fmt;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cudarc::driver::sys;
use sys::{CUdevice_attribute_enum as Attribute, CUstreamCaptureMode as CaptureMode};

pub(crate) use compressed::compressed;
pub use compressed::{CompressedKernels, RESAMPLE};
pub use copy::DeviceRows;
pub use driver::{Driver, DriverError};
pub use memory::{DeviceBuffer, Location, PinnedBuffer};
pub use module::{Kernel, Module};
pub use node_sequence::{NodeSequence, Start};
pub use ready::{READY_EVENT, Ready};
pub use stream::{Event, ForeignStream, OwnedEvent, Stream};

/// The reason why a GPU cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The driver's library is not installed.
    #[error("there is no NVIDIA driver (libcuda cannot be loaded)")]
    NoDriver,
    /// There is a driver, but no GPU.
    #[error("the NVIDIA driver finds no GPU")]
    NoDevice,
    /// The driver or the GPU is too old, or there is no GPU with this number.
    #[error("{0}")]
    Unusable(String),
    /// A call of the driver failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

impl DeviceError {
    /// Returns whether this machine simply has no driver or no GPU.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::NoDriver | Self::NoDevice)
    }
}

/// A GPU with its primary context, which all users of the GPU in a process share.
pub struct Device {
    driver: &'static Driver,
    handle: sys::CUdevice,
    context: sys::CUcontext,
    ordinal: u32,
    name: String,
    /// The major and the minor number of the compute capability.
    pub(crate) capability: (i32, i32),
    pub(crate) multiprocessors: u32,
    is_integrated: bool,
}

// SAFETY: a context can be used on any thread that has made it current, and `enter` does this.
unsafe impl Send for Device {}
// SAFETY: the driver's functions are thread-safe, and `Device` has no mutable state.
unsafe impl Sync for Device {}

/// The open devices.
static OPEN: Mutex<Vec<Weak<Device>>> = Mutex::new(Vec::new());

impl Device {
    /// Opens the GPU with the number `ordinal` and retains its primary context, or returns the device if it is
    /// already open. The context is released when the last reference is dropped. If an error leaves the context
    /// unusable, the GPU can be opened again after all references have been dropped.
    ///
    /// # Errors
    /// If there is no driver or no such GPU, if the GPU is too old, or if the context cannot be retained.
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
        // SAFETY: `count` is valid for writes.
        unsafe { driver.cuDeviceGetCount(&mut count) }?;
        let number = i32::try_from(ordinal).ok().filter(|&ordinal| ordinal < count);
        let number = match number {
            Some(number) => number,
            None if count == 0 => return Err(DeviceError::NoDevice),
            None => {
                return Err(DeviceError::Unusable(format!(
                    "there is no GPU {ordinal}; the driver reports {count}, numbered from 0"
                )));
            }
        };

        let mut handle = 0;
        let mut name = [0u8; 128];
        // SAFETY: `handle` is valid for writes, and `name` for writes of the length that is passed.
        unsafe {
            driver.cuDeviceGet(&mut handle, number)?;
            driver.cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as i32 - 1, handle)?;
        }
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        let attribute = |attribute| {
            let mut value = 0;
            // SAFETY: `value` is valid for writes, and `handle` is a device of the driver.
            unsafe { driver.cuDeviceGetAttribute(&mut value, attribute, handle) }?;
            Ok::<_, DriverError>(value)
        };
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        if (major, minor) < (6, 0) {
            return Err(DeviceError::Unusable(format!(
                "GPU {name} has compute capability {major}.{minor}; 6.0 or later is needed"
            )));
        }
        let multiprocessors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let is_integrated = attribute(Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED)? != 0;

        let mut context = null_mut();
        // SAFETY: `context` is valid for writes, and `handle` is a device of the driver. `drop` releases the
        // context.
        unsafe { driver.cuDevicePrimaryCtxRetain(&mut context, handle) }?;
        Ok(Self {
            driver,
            handle,
            context,
            ordinal,
            name,
            capability: (major, minor),
            multiprocessors: multiprocessors.max(1) as u32,
            is_integrated,
        })
    }

    /// Returns the number of the GPU, starting at 0.
    pub fn ordinal(&self) -> u32 {
        self.ordinal
    }

    /// Returns whether the GPU shares the host's memory, as on Jetson.
    pub fn is_integrated(&self) -> bool {
        self.is_integrated
    }

    /// Makes this device's context current on the calling thread, and returns a guard that gives access to the
    /// driver. When the guard is dropped, the previous context becomes current again.
    ///
    /// Meanwhile, the thread's capture mode is relaxed. The reason: while another thread captures a stream in
    /// global mode, as ONNX Runtime does, the driver refuses calls that allocate, free or wait on threads with any
    /// other mode, and the capture fails.
    ///
    /// # Errors
    /// If the context cannot be made current.
    #[doc(hidden)]
    pub fn enter(&self) -> Result<ContextGuard<'_>, DriverError> {
        // SAFETY: the context is valid, because `self` retains it. The guard pops it.
        unsafe { self.driver.cuCtxPushCurrent_v2(self.context) }?;
        let mode = exchange_capture_mode(self.driver, CaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED);
        Ok(ContextGuard { device: self, mode, thread: std::marker::PhantomData })
    }

    /// Makes the calling thread's capture mode relaxed, as [`enter`](Self::enter) does, from now on: for libraries that call
    /// the driver by themselves.
    pub fn relax_capture_mode(&self) {
        exchange_capture_mode(self.driver, CaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED);
    }

    /// Calls `capture` in a thread with a relaxed mode, in global mode: calls that a graph cannot have are then errors,
    /// which a library relies on.
    pub fn in_global_capture_mode<R>(&self, capture: impl FnOnce() -> R) -> R {
        exchange_capture_mode(self.driver, CaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL);
        let result = capture();
        self.relax_capture_mode();
        result
    }
}

/// Sets the calling thread's capture mode and returns the previous mode; `None` if the driver does not support
/// this.
fn exchange_capture_mode(driver: &Driver, mut mode: CaptureMode) -> Option<CaptureMode> {
    // SAFETY: `mode` is valid for reads and writes.
    let result = unsafe { driver.cuThreadExchangeStreamCaptureMode(&mut mode) };
    result.is_some_and(|result| result.is_ok()).then_some(mode)
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: the context was retained once for `self`. `drop` cannot return an error; if there is one, the
        // context stays retained.
        let _ = unsafe { self.driver.cuDevicePrimaryCtxRelease_v2(self.handle) };
    }
}

/// The format is `GPU 0 (NVIDIA H200, compute capability 9.0)`.
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

/// Gives access to the driver while a device's context is current on this thread.
pub struct ContextGuard<'a> {
    device: &'a Device,
    /// The thread's previous capture mode; `None` if the driver does not support capture modes.
    mode: Option<CaptureMode>,
    /// Makes the guard neither `Send` nor `Sync`, because a context is current on one thread.
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
        if let Some(mode) = self.mode {
            exchange_capture_mode(self, mode);
        }
        // SAFETY: `enter` pushed the context on this thread, and the guard cannot be sent to another thread.
        let _ = unsafe { self.device.driver.cuCtxPopCurrent_v2(&mut null_mut()) };
    }
}
