use std::ptr::null_mut;
use std::sync::Arc;

use cudarc::driver::sys;

use super::{Device, DeviceBuffer, DriverError, PinnedBuffer};

/// Work for a GPU, done in the order in which it is given.
#[derive(Debug)]
pub struct Stream {
    device: Arc<Device>,
    handle: sys::CUstream,
}

// SAFETY: a stream may be used from any thread in whose context it is.
unsafe impl Send for Stream {}

impl Stream {
    /// One that waits for no other.
    ///
    /// # Errors
    /// Where there can be no more.
    pub fn new(device: &Arc<Device>) -> Result<Self, DriverError> {
        let mut handle = null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the address is that of a handle; `drop` destroys it.
        unsafe { device.enter()?.cuStreamCreate(&mut handle, flags) }?;
        Ok(Self { device: device.clone(), handle })
    }

    /// One that waits for no other and has the highest priority that the GPU offers: its kernels
    /// start before pending blocks of streams with a lower one. Those that run already go on.
    ///
    /// # Errors
    /// Where there can be no more.
    pub fn with_highest_priority(device: &Arc<Device>) -> Result<Self, DriverError> {
        let driver = device.enter()?;
        let (mut least, mut greatest, mut handle) = (0, 0, null_mut());
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the addresses are those of numbers and of a handle; `drop` destroys it.
        unsafe {
            driver.cuCtxGetStreamPriorityRange(&mut least, &mut greatest)?;
            driver.cuStreamCreateWithPriority(&mut handle, flags, greatest)?;
        }
        drop(driver);
        Ok(Self { device: device.clone(), handle })
    }

    /// The GPU that does the work.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The driver's handle.
    pub fn handle(&self) -> sys::CUstream {
        self.handle
    }

    /// Sets all of `buffer` to zero, in time.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn zero(&self, buffer: &DeviceBuffer) -> Result<(), DriverError> {
        let driver = self.device.enter()?;
        // SAFETY: the buffer has as many bytes.
        unsafe { driver.cuMemsetD8Async(buffer.address(), 0, buffer.len(), self.handle) }
    }

    /// Copies the first `len` bytes of `from` to `to`, in time.
    ///
    /// # Errors
    /// Where the driver refuses.
    ///
    /// # Panics
    /// Where either is shorter.
    pub fn upload(
        &self,
        from: &PinnedBuffer,
        to: &DeviceBuffer,
        len: usize,
    ) -> Result<(), DriverError> {
        assert!(len <= from.len() && len <= to.len(), "a copy stays within its buffers");
        let (driver, from) = (self.device.enter()?, from.as_ptr().cast_const().cast());
        // SAFETY: both have as many bytes, and the driver waits for the copy before it frees
        // either.
        unsafe { driver.cuMemcpyHtoDAsync_v2(to.address(), from, len, self.handle) }
    }

    /// Copies as many bytes as `to` has from the device's `address`, and waits until it is done.
    ///
    /// # Errors
    /// Where the driver refuses, or work before it failed.
    ///
    /// # Safety
    /// As many bytes must be there.
    pub unsafe fn download(&self, address: u64, to: &mut [u8]) -> Result<(), DriverError> {
        let driver = self.device.enter()?;
        // SAFETY: the caller answers for the source; nobody else sees the destination before the
        // copy is done.
        unsafe {
            driver.cuMemcpyDtoHAsync_v2(to.as_mut_ptr().cast(), address, to.len(), self.handle)?;
        }
        self.synchronize()
    }

    /// Lets later work wait for `event`.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn wait_for(&self, event: Event) -> Result<(), DriverError> {
        // SAFETY: whoever made the `Event` has said that it lives.
        unsafe { self.device.enter()?.cuStreamWaitEvent(self.handle, event.0, 0) }
    }

    /// Lets later work wait for what has been added to `other` so far. The calling thread does not
    /// wait.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn wait_for_stream(&self, other: ForeignStream) -> Result<(), DriverError> {
        let driver = self.device.enter()?;
        let (mut context, mut event) = (null_mut(), null_mut());
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: `other` exists, as `ForeignStream::from_raw` requires; an event is of the context that is
        // current, and must be of its stream's. What is pushed is popped, what is created is
        // destroyed: the driver frees an event once nothing waits for it.
        unsafe {
            driver.cuStreamGetCtx(other.0, &mut context)?;
            driver.cuCtxPushCurrent_v2(context)?;
            let created = driver.cuEventCreate(&mut event, flags);
            driver.cuCtxPopCurrent_v2(&mut null_mut())?;
            created?;
            let recorded = driver.cuEventRecord(event, other.0);
            let waits = recorded.and_then(|()| driver.cuStreamWaitEvent(self.handle, event, 0));
            driver.cuEventDestroy_v2(event)?;
            waits
        }
    }

    /// Whether all work is done.
    ///
    /// # Errors
    /// Where work failed.
    pub fn is_idle(&self) -> Result<bool, DriverError> {
        // SAFETY: the stream lives.
        match unsafe { self.device.enter()?.cuStreamQuery(self.handle) } {
            Ok(()) => Ok(true),
            Err(error) if error.is_not_ready() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits until all work is done.
    ///
    /// # Errors
    /// Where work failed.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        // SAFETY: the stream lives.
        unsafe { self.device.enter()?.cuStreamSynchronize(self.handle) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Ok(driver) = self.device.enter() {
            // SAFETY: nobody uses it any more.
            let _ = unsafe { driver.cuStreamDestroy_v2(self.handle) };
        }
    }
}

/// An event of the driver's, made and recorded by somebody else.
#[derive(Clone, Copy, Debug)]
pub struct Event(sys::CUevent);

// SAFETY: an event may be waited for from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// The event of this handle, a `CUevent`.
    ///
    /// # Safety
    /// It must live for as long as anybody may wait for it.
    pub unsafe fn from_raw(handle: *mut std::ffi::c_void) -> Self {
        Self(handle.cast())
    }

    /// Its handle, a `CUevent`.
    pub fn as_raw(self) -> *mut std::ffi::c_void {
        self.0.cast()
    }
}

/// A stream that somebody else works on.
#[derive(Clone, Copy, Debug)]
pub struct ForeignStream(sys::CUstream);

impl ForeignStream {
    /// The stream of this handle, a `CUstream` that `cuStreamCreate` made: none of the default
    /// streams, which are those of whatever context is current.
    ///
    /// # Safety
    /// It must exist for as long as this is used.
    pub unsafe fn from_raw(handle: *mut std::ffi::c_void) -> Self {
        Self(handle.cast())
    }
}
