// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams and events.
//!
//! In: work for a GPU. Out: the work is done asynchronously, in stream order; [`Stream::synchronize`] waits for it.

use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys;

use super::{ContextGuard, Device, DeviceBuffer, DriverError, PinnedBuffer, Ready};

/// A CUDA stream. The GPU does its work in the order of submission.
#[derive(Debug)]
pub struct Stream {
    device: Arc<Device>,
    pub(super) handle: sys::CUstream,
    /// True if other code owns the stream and will destroy it.
    is_foreign: bool,
}

// SAFETY: a stream can be used on any thread on which its context is current, and every method makes the context
// current.
unsafe impl Send for Stream {}
// SAFETY: the handle is immutable, and the driver's functions are thread-safe.
unsafe impl Sync for Stream {}

impl Stream {
    /// Creates a non-blocking stream, which does not wait for the default stream.
    ///
    /// # Errors
    /// If the driver cannot create the stream.
    pub fn new(device: &Arc<Device>) -> Result<Self, DriverError> {
        let mut handle = null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: `handle` is valid for writes, and `drop` destroys the stream.
        unsafe { device.enter()?.cuStreamCreate(&mut handle, flags) }?;
        Ok(Self { device: device.clone(), handle, is_foreign: false })
    }

    /// Creates a non-blocking stream with the GPU's highest priority: blocks of its kernels are scheduled before
    /// pending blocks of streams with a lower priority. Running blocks are not preempted.
    ///
    /// # Errors
    /// If the driver cannot create the stream.
    pub fn with_highest_priority(device: &Arc<Device>) -> Result<Self, DriverError> {
        let driver = device.enter()?;
        let (mut least, mut greatest, mut handle) = (0, 0, null_mut());
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: `least`, `greatest` and `handle` are valid for writes, and `drop` destroys the stream.
        unsafe {
            driver.cuCtxGetStreamPriorityRange(&mut least, &mut greatest)?;
            driver.cuStreamCreateWithPriority(&mut handle, flags, greatest)?;
        }
        drop(driver);
        Ok(Self { device: device.clone(), handle, is_foreign: false })
    }

    /// Wraps a stream of other code on this GPU. The stream must exist as long as this value is used, as
    /// [`ForeignStream::from_raw`] requires.
    pub fn of_other_code(device: &Arc<Device>, stream: ForeignStream) -> Self {
        Self { device: device.clone(), handle: stream.0, is_foreign: true }
    }

    /// Returns the stream as one of other code, for comparisons.
    pub(crate) fn as_foreign(&self) -> ForeignStream {
        ForeignStream(self.handle)
    }

    /// Returns whether the handle stands for the legacy default stream, whatever the thread.
    pub(crate) fn is_default(&self) -> bool {
        const LEGACY: usize = 1;
        self.handle.addr() <= LEGACY
    }

    /// Returns the GPU that does the work.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Returns the handle, a `CUstream`. It is valid until this value is dropped.
    pub fn as_raw(&self) -> *mut std::ffi::c_void {
        self.handle.cast()
    }

    /// Sets all bytes of `buffer` to zero, asynchronously, in stream order.
    ///
    /// # Errors
    /// If the call fails.
    pub fn zero(&self, buffer: &DeviceBuffer) -> Result<(), DriverError> {
        // SAFETY: the buffer has `buffer.len()` bytes, and freeing it waits for this work.
        unsafe { self.write_zeros(buffer.address(), buffer.len()) }
    }

    /// Copies the first `len` bytes of `from` to `to`, asynchronously, in stream order. If a byte of `from` is
    /// written before the copy has completed, either the old or the new value is copied.
    ///
    /// # Errors
    /// If the call fails.
    ///
    /// # Panics
    /// If `from` or `to` has fewer than `len` bytes.
    pub fn upload(
        &self,
        from: &PinnedBuffer,
        to: &DeviceBuffer,
        len: usize,
    ) -> Result<(), DriverError> {
        assert!(len <= from.len() && len <= to.len(), "a copy stays within its buffers");
        let (driver, from) = (self.device.enter()?, from.as_ptr().cast_const().cast());
        // SAFETY: both buffers have at least `len` bytes, and freeing either of them waits for the copy.
        unsafe { driver.cuMemcpyHtoDAsync_v2(to.address(), from, len, self.handle) }
    }

    /// Copies `to.len()` bytes from the device address `address`, in stream order, and waits until the copy has
    /// completed.
    ///
    /// # Errors
    /// If the call fails, or if earlier work in the stream failed.
    ///
    /// # Safety
    /// `address` must be valid for reads of `to.len()` bytes.
    pub unsafe fn download(&self, address: u64, to: &mut [u8]) -> Result<(), DriverError> {
        let driver = self.device.enter()?;
        // SAFETY: the caller guarantees the source. The destination is borrowed exclusively until the copy has
        // completed.
        unsafe {
            driver.cuMemcpyDtoHAsync_v2(to.as_mut_ptr().cast(), address, to.len(), self.handle)?;
        }
        self.synchronize()
    }

    /// Records `event`: it completes when all work that has been submitted to this stream so far has completed. An
    /// earlier record is replaced, but a stream that already waits for it continues to do so.
    ///
    /// # Errors
    /// If the call fails, for example because the event belongs to another GPU.
    pub fn record(&self, event: &OwnedEvent) -> Result<(), DriverError> {
        // SAFETY: the stream and the event exist until they are dropped. The driver returns an error for an event
        // of another context.
        unsafe { self.device.enter()?.cuEventRecord(event.event.0, self.handle) }
    }

    /// Makes later work in this stream wait for `event`. The calling thread does not wait.
    ///
    /// # Errors
    /// If the call fails.
    pub fn wait_for(&self, event: Event) -> Result<(), DriverError> {
        // SAFETY: the event exists, as `Event::from_raw` requires.
        unsafe { self.device.enter()?.cuStreamWaitEvent(self.handle, event.0, 0) }
    }

    /// Makes later work in this stream wait for all work that has been submitted to `other` so far. The calling
    /// thread does not wait.
    ///
    /// # Errors
    /// If a call fails.
    pub fn wait_for_stream(&self, other: ForeignStream) -> Result<(), DriverError> {
        let driver = self.device.enter()?;
        let (mut context, mut event) = (null_mut(), null_mut());
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: `other` exists, as `ForeignStream::from_raw` requires. The event is created in the context of
        // `other`, because it is recorded there. The context is popped after it was pushed. The event is destroyed
        // once, and the driver frees it after the work that waits for it.
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

    /// Launches a kernel, asynchronously, in stream order. `driver` has the device's context. The values of the parameters
    /// are copied before this returns.
    ///
    /// # Errors
    /// If the call fails, for example because of the size of the grid, or if earlier work failed.
    ///
    /// # Safety
    /// [`Kernel::launch`](super::Kernel::launch) has the requirements, for the function and the parameters of `kernel`.
    pub(crate) unsafe fn launch(
        &self,
        driver: &ContextGuard<'_>,
        kernel: &sys::CUDA_KERNEL_NODE_PARAMS,
    ) -> Result<(), DriverError> {
        // SAFETY: the stream exists until `drop`. The caller guarantees the rest.
        unsafe {
            driver.cuLaunchKernel(
                kernel.func,
                kernel.gridDimX,
                kernel.gridDimY,
                kernel.gridDimZ,
                kernel.blockDimX,
                kernel.blockDimY,
                kernel.blockDimZ,
                kernel.sharedMemBytes,
                self.handle,
                kernel.kernelParams,
                kernel.extra,
            )
        }
    }

    /// Returns whether work is captured into a graph instead of being done. False if the driver cannot capture.
    ///
    /// # Errors
    /// If the call fails.
    pub(crate) fn is_capturing(&self) -> Result<bool, DriverError> {
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the stream exists, and `status` is valid for writes.
        unsafe { self.device.enter()?.cuStreamIsCapturing(self.handle, &mut status) }?;
        Ok(status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    /// Returns whether all work in the stream has completed.
    ///
    /// # Errors
    /// If work failed.
    pub fn is_idle(&self) -> Result<bool, DriverError> {
        // SAFETY: the stream exists until `drop`.
        match unsafe { self.device.enter()?.cuStreamQuery(self.handle) } {
            Ok(()) => Ok(true),
            Err(error) if error.is(sys::CUresult::CUDA_ERROR_NOT_READY) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes later work in this stream wait until `ready` says that the memory at `address` may be read. Returns
    /// false if nothing is known about the producer's work.
    ///
    /// # Errors
    /// If a call fails.
    pub fn wait_for_producer(&self, ready: Ready, address: u64) -> Result<bool, DriverError> {
        match ready {
            Ready::Now => {}
            Ready::After(event) => self.wait_for(event)?,
            Ready::AfterStream(producer) => self.wait_for_stream(producer)?,
            Ready::AfterOwner => return self.device.wait_for_owner(address),
        }
        Ok(true)
    }

    /// Waits until all work in the stream has completed.
    ///
    /// # Errors
    /// If work failed.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        // SAFETY: the stream exists until `drop`.
        unsafe { self.device.enter()?.cuStreamSynchronize(self.handle) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !self.is_foreign
            && let Ok(driver) = self.device.enter()
        {
            // SAFETY: the stream is owned, and is destroyed once. Pending work completes.
            let _ = unsafe { driver.cuStreamDestroy_v2(self.handle) };
        }
    }
}

/// A CUDA event. [`Stream::record`] records it.
#[derive(Debug)]
pub struct OwnedEvent {
    device: Arc<Device>,
    event: Event,
}

impl OwnedEvent {
    /// Creates an event. Until it is recorded, it counts as complete.
    ///
    /// # Errors
    /// If the driver cannot create the event.
    pub fn new(device: &Arc<Device>) -> Result<Self, DriverError> {
        Self::with_flags(device, sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32)
    }

    /// Creates an event for which a thread waits without using the processor. The thread may notice the event about
    /// 50 us later than by polling.
    ///
    /// # Errors
    /// If the driver cannot create the event.
    pub fn with_blocking_wait(device: &Arc<Device>) -> Result<Self, DriverError> {
        let without_time = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        let blocking = sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC as u32;
        Self::with_flags(device, without_time | blocking)
    }

    /// Creates an event whose time can be compared with another event's by [`since`](Self::since).
    ///
    /// # Errors
    /// If the driver cannot create the event.
    pub fn with_time(device: &Arc<Device>) -> Result<Self, DriverError> {
        Self::with_flags(device, sys::CUevent_flags::CU_EVENT_DEFAULT as u32)
    }

    fn with_flags(device: &Arc<Device>, flags: u32) -> Result<Self, DriverError> {
        let mut handle = null_mut();
        // SAFETY: `handle` is valid for writes, and `drop` destroys the event.
        unsafe { device.enter()?.cuEventCreate(&mut handle, flags) }?;
        Ok(Self { device: device.clone(), event: Event(handle) })
    }

    /// Returns the event, for readers of the memory that it announces.
    ///
    /// # Safety
    /// `self` must exist as long as the result or a copy of it is used (see [`Event::from_raw`]).
    pub unsafe fn event(&self) -> Event {
        self.event
    }

    /// Records the event after all work that has been submitted to `stream` so far. Other code has created the
    /// stream, on the event's GPU. An earlier record is replaced.
    ///
    /// # Errors
    /// If the call fails, for example because the stream belongs to another GPU.
    pub fn record_after(&self, stream: ForeignStream) -> Result<(), DriverError> {
        // SAFETY: the event exists until `drop`, and the stream exists, as `ForeignStream::from_raw` requires. The
        // driver returns an error for a stream of another context.
        unsafe { self.device.enter()?.cuEventRecord(self.event.0, stream.0) }
    }

    /// Returns the time from `earlier` to this event, both of which must have been created by
    /// [`with_time`](Self::with_time). `None` if one of them has not been recorded or has not completed, or if the
    /// driver cannot measure times.
    ///
    /// # Errors
    /// If work failed.
    pub fn since(&self, earlier: &Self) -> Result<Option<Duration>, DriverError> {
        let mut milliseconds = 0.0;
        // SAFETY: the events exist until they are dropped, and `milliseconds` is valid for writes.
        let result = unsafe {
            let driver = self.device.enter()?;
            driver.cuEventElapsedTime(&mut milliseconds, earlier.event.0, self.event.0)
        };
        match result {
            Some(Ok(())) => Ok(Some(Duration::from_secs_f32(milliseconds.max(0.0) / 1000.0))),
            Some(Err(error))
                if !error.is(sys::CUresult::CUDA_ERROR_NOT_READY)
                    && !error.is(sys::CUresult::CUDA_ERROR_INVALID_HANDLE) =>
            {
                Err(error)
            }
            Some(Err(_)) | None => Ok(None),
        }
    }

    /// Waits until the work after which the event was last recorded has completed.
    ///
    /// # Errors
    /// If work failed.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        // SAFETY: the event exists until `drop`.
        unsafe { self.device.enter()?.cuEventSynchronize(self.event.0) }
    }
}

impl Drop for OwnedEvent {
    fn drop(&mut self) {
        if let Ok(driver) = self.device.enter() {
            // SAFETY: the event is owned, and is destroyed once. The driver frees it after the work that waits for
            // it.
            let _ = unsafe { driver.cuEventDestroy_v2(self.event.0) };
        }
    }
}

/// A CUDA event. Other code has created and records it, or an [`OwnedEvent`] owns it.
#[derive(Clone, Copy, Debug)]
pub struct Event(sys::CUevent);

// SAFETY: a stream can wait for an event from any thread.
unsafe impl Send for Event {}
// SAFETY: a handle is immutable, and the driver's functions are thread-safe.
unsafe impl Sync for Event {}

impl Event {
    /// Wraps an event handle, a `CUevent`.
    ///
    /// # Safety
    /// The event must exist as long as this value or a copy of it is used.
    pub unsafe fn from_raw(handle: *mut std::ffi::c_void) -> Self {
        Self(handle.cast())
    }

    /// Returns the handle, a `CUevent`.
    pub fn as_raw(self) -> *mut std::ffi::c_void {
        self.0.cast()
    }
}

/// A CUDA stream that other code has created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignStream(sys::CUstream);

// SAFETY: work can be submitted to a stream from any thread.
unsafe impl Send for ForeignStream {}
// SAFETY: a handle is immutable, and the driver's functions are thread-safe.
unsafe impl Sync for ForeignStream {}

impl ForeignStream {
    /// Wraps a stream handle, a `CUstream` that was created by `cuStreamCreate`. A default stream (null,
    /// `CU_STREAM_LEGACY`, `CU_STREAM_PER_THREAD`) stands for the default stream in the primary context of the GPU
    /// on which it is used.
    ///
    /// # Safety
    /// The stream must exist as long as this value or a copy of it is used.
    pub unsafe fn from_raw(handle: *mut std::ffi::c_void) -> Self {
        Self(handle.cast())
    }
}
