// SPDX-License-Identifier: MIT OR Apache-2.0
//! Modules and kernels.
//!
//! In: PTX, or machine code. Out: kernels, which are launched in a stream, or are nodes of a graph.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use cudarc::driver::sys;

use super::{Device, DriverError, Stream};

/// PTX or machine code that is loaded on a GPU. It is unloaded when the module and all of its kernels have been dropped.
#[derive(Debug)]
pub struct Module {
    device: Arc<Device>,
    handle: sys::CUmodule,
}

// SAFETY: a module can be used on any thread on which its context is current, and every method makes the context
// current.
unsafe impl Send for Module {}
// SAFETY: a handle is immutable, and the driver's functions are thread-safe.
unsafe impl Sync for Module {}

impl Module {
    /// Loads `ptx`. The driver compiles it for the GPU.
    ///
    /// # Errors
    /// If the text is not PTX, or if the driver cannot compile or load it.
    pub fn load(device: &Arc<Device>, ptx: &CStr) -> Result<Arc<Self>, DriverError> {
        // The driver also accepts machine code, whose length is stated in its headers. If a string merely starts
        // like machine code, the driver would read past the end of the string.
        let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        if !ptx.to_bytes().iter().all(is_text) {
            // The driver is not called.
            return Err(DriverError {
                call: "cuModuleLoadData",
                code: sys::CUresult::CUDA_ERROR_INVALID_PTX as u32,
                name: "CUDA_ERROR_INVALID_PTX".to_owned(),
                description: "the image is not ASCII text".to_owned(),
            });
        }
        // SAFETY: the image is text with a terminating zero.
        unsafe { Self::of_image(device, ptx.to_bytes_with_nul()) }
    }

    /// Loads PTX or machine code.
    ///
    /// # Errors
    /// If the driver cannot compile or load it.
    ///
    /// # Safety
    /// PTX must have a terminating zero, and machine code must be complete.
    pub(crate) unsafe fn of_image(
        device: &Arc<Device>,
        image: &[u8],
    ) -> Result<Arc<Self>, DriverError> {
        let mut handle = null_mut();
        // SAFETY: `handle` is valid for writes; the caller guarantees the image. `drop` unloads the module.
        unsafe { device.enter()?.cuModuleLoadData(&mut handle, image.as_ptr().cast()) }?;
        Ok(Arc::new(Self { device: device.clone(), handle }))
    }

    /// Returns the kernel with this name.
    ///
    /// # Errors
    /// If the module has no such kernel.
    pub fn kernel(self: &Arc<Self>, name: &CStr) -> Result<Kernel, DriverError> {
        let mut function = null_mut();
        // SAFETY: `function` is valid for writes, the module is loaded, and the name is a C string.
        unsafe {
            let driver = self.device.enter()?;
            driver.cuModuleGetFunction(&mut function, self.handle, name.as_ptr())?;
        }
        Ok(Kernel { module: self.clone(), function })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Ok(driver) = self.device.enter() {
            // SAFETY: the module was loaded in this context, and is unloaded once. `Kernel::launch` requires that
            // its kernels have completed.
            let _ = unsafe { driver.cuModuleUnload(self.handle) };
        }
    }
}

/// A kernel of a [`Module`].
#[derive(Clone, Debug)]
pub struct Kernel {
    pub(crate) module: Arc<Module>,
    function: sys::CUfunction,
}

// SAFETY: a function can be used on any thread on which its context is current, and every method makes the context
// current.
unsafe impl Send for Kernel {}
// SAFETY: a handle is immutable, and the driver's functions are thread-safe.
unsafe impl Sync for Kernel {}

impl Kernel {
    /// The kernel as a node of a [`NodeSequence`](super::NodeSequence): `grid` blocks of `block` threads without dynamic
    /// shared memory. `params` has the address of each parameter.
    pub fn node(
        &self,
        grid: [u32; 3],
        block: [u32; 3],
        params: &mut [*mut c_void],
    ) -> sys::CUDA_KERNEL_NODE_PARAMS {
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (grid, block);
        sys::CUDA_KERNEL_NODE_PARAMS {
            func: self.function,
            gridDimX: grid_x,
            gridDimY: grid_y,
            gridDimZ: grid_z,
            blockDimX: block_x,
            blockDimY: block_y,
            blockDimZ: block_z,
            sharedMemBytes: 0,
            kernelParams: params.as_mut_ptr(),
            extra: null_mut(),
        }
    }

    /// Launches `grid` blocks of `block` threads without dynamic shared memory, asynchronously, in
    /// stream order. `params` has the address of each parameter; their values are copied before this
    /// returns.
    ///
    /// # Errors
    /// If the call fails, for example because of the size of the grid, or if earlier work failed.
    ///
    /// # Safety
    /// - `params` must have an address for each parameter of the kernel, which is valid for reads of the
    ///   parameter's type.
    /// - `stream` must belong to the kernel's GPU.
    /// - Until the kernel has completed, this kernel or its module must exist, and the memory that the kernel
    ///   accesses must be valid for these accesses. No other code or work may access memory that the kernel writes,
    ///   or write memory that it reads.
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        grid: [u32; 3],
        block: [u32; 3],
        params: &mut [*mut c_void],
    ) -> Result<(), DriverError> {
        let driver = self.module.device.enter()?;
        // SAFETY: the function belongs to a loaded module. The caller guarantees the parameters and the kernel's
        // accesses.
        unsafe { stream.launch(&driver, &self.node(grid, block, params)) }
    }
}
