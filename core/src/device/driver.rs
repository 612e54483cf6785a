// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions of the CUDA driver API, loaded at run time.
//!
//! In: arguments as documented for the CUDA driver API. Out: `Ok`, or a [`DriverError`] that names the function and
//! the result. This module uses cudarc's types, and uses cudarc to find and open the library. It does not use
//! cudarc's functions: they panic if the library or a symbol is missing, and their result type cannot represent the
//! result codes of newer drivers.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::panic::catch_unwind;
use std::ptr::null;

use cudarc::driver::sys;
use once_cell::sync::OnceCell;

use super::DeviceError;

/// The error of a driver call that did not return success: either the call itself failed, or the call reports that
/// earlier asynchronous work failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed: {name} ({description})")]
#[non_exhaustive]
pub struct DriverError {
    /// The name of the driver's function.
    pub call: &'static str,
    /// The result code, a `CUresult`.
    pub code: u32,
    /// The name of the result code, from `cuGetErrorName`.
    pub name: String,
    /// The description of the result code, from `cuGetErrorString`.
    pub description: String,
}

impl DriverError {
    /// Returns whether this is the result.
    pub(super) fn is(&self, result: sys::CUresult) -> bool {
        self.code == result as u32
    }
}

const SUCCESS: u32 = 0;
const NOT_READY: u32 = sys::CUresult::CUDA_ERROR_NOT_READY as u32;

macro_rules! driver {
    (
        required { $($name:ident($($argument:ident: $type:ty),*);)* }
        optional { $($optional_name:ident($($optional_argument:ident: $optional_type:ty),*);)* }
    ) => {
        /// The driver's functions. A function that old drivers lack returns an `Option`.
        #[allow(non_snake_case, reason = "fields have the names of the driver's functions")]
        pub struct Driver {
            error_name: unsafe extern "C" fn(c_uint, *mut *const c_char) -> c_uint,
            error_string: unsafe extern "C" fn(c_uint, *mut *const c_char) -> c_uint,
            $($name: unsafe extern "C" fn($($type),*) -> c_uint,)*
            $($optional_name: Option<unsafe extern "C" fn($($optional_type),*) -> c_uint>,)*
        }

        impl Driver {
            fn load() -> Result<Self, DeviceError> {
                // SAFETY: the library is NVIDIA's driver. Its initializers have no preconditions.
                let library = catch_unwind(|| unsafe {
                    sys::is_culib_present().then(|| sys::culib())
                });
                let library = library.ok().flatten().ok_or(DeviceError::NoDriver)?;
                let missing = |symbol| {
                    move |_| {
                        DeviceError::Unusable(format!(
                            "the NVIDIA driver has no {symbol}; install one for CUDA 11.4 or later"
                        ))
                    }
                };
                // SAFETY: the functions have these types in the documentation of the driver API, with cudarc's
                // declarations of its types. The library is never unloaded.
                unsafe {
                    Ok(Self {
                        error_name: *library.get(b"cuGetErrorName\0").map_err(missing("cuGetErrorName"))?,
                        error_string: *library.get(b"cuGetErrorString\0").map_err(missing("cuGetErrorString"))?,
                        $($name: *library
                            .get(concat!(stringify!($name), "\0").as_bytes())
                            .map_err(missing(stringify!($name)))?,)*
                        $($optional_name: library
                            .get(concat!(stringify!($optional_name), "\0").as_bytes())
                            .ok()
                            .map(|function| *function),)*
                    })
                }
            }

            $(
                /// Calls the driver's function with this name.
                ///
                /// # Errors
                /// If the function does not return `CUDA_SUCCESS`.
                ///
                /// # Safety
                /// See the documentation of the driver API: pointers and handles must be valid.
                #[allow(
                    non_snake_case,
                    clippy::too_many_arguments,
                    reason = "the method has the name and the arguments of the driver's function"
                )]
                pub unsafe fn $name(&self, $($argument: $type),*) -> Result<(), DriverError> {
                    // SAFETY: the caller guarantees that the arguments are valid for the call.
                    self.call(stringify!($name), || unsafe { (self.$name)($($argument),*) })
                }
            )*

            $(
                /// Calls the driver's function with this name. Returns `None` if the driver lacks it.
                ///
                /// # Errors
                /// If the function does not return `CUDA_SUCCESS`.
                ///
                /// # Safety
                /// The documentation of the driver API has the requirements: pointers and handles must be valid.
                #[allow(non_snake_case, reason = "the method has the name of the driver's function")]
                pub unsafe fn $optional_name(
                    &self,
                    $($optional_argument: $optional_type),*
                ) -> Option<Result<(), DriverError>> {
                    let function = self.$optional_name?;
                    // SAFETY: the caller guarantees that the arguments are valid for the call.
                    Some(self.call(stringify!($optional_name), || unsafe { function($($optional_argument),*) }))
                }
            )*
        }
    };
}

driver! {
required {
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGet(device: *mut sys::CUdevice, ordinal: c_int);
    cuDeviceGetName(name: *mut c_char, len: c_int, device: sys::CUdevice);
    cuDeviceGetAttribute(value: *mut c_int, attribute: sys::CUdevice_attribute, device: sys::CUdevice);
    cuDevicePrimaryCtxRetain(context: *mut sys::CUcontext, device: sys::CUdevice);
    cuDevicePrimaryCtxRelease_v2(device: sys::CUdevice);
    cuCtxPushCurrent_v2(context: sys::CUcontext);
    cuCtxPopCurrent_v2(context: *mut sys::CUcontext);
    cuCtxSynchronize();
    cuModuleLoadData(module: *mut sys::CUmodule, image: *const c_void);
    cuModuleUnload(module: sys::CUmodule);
    cuModuleGetFunction(function: *mut sys::CUfunction, module: sys::CUmodule, name: *const c_char);
    cuMemAlloc_v2(address: *mut sys::CUdeviceptr, bytes: usize);
    cuMemFree_v2(address: sys::CUdeviceptr);
    cuMemHostAlloc(address: *mut *mut c_void, bytes: usize, flags: c_uint);
    cuMemFreeHost(address: *mut c_void);
    cuMemHostRegister_v2(address: *mut c_void, bytes: usize, flags: c_uint);
    cuMemHostUnregister(address: *mut c_void);
    cuMemHostGetDevicePointer_v2(device: *mut sys::CUdeviceptr, host: *mut c_void, flags: c_uint);
    cuMemsetD8Async(address: sys::CUdeviceptr, value: u8, bytes: usize, stream: sys::CUstream);
    cuMemcpyHtoDAsync_v2(to: sys::CUdeviceptr, from: *const c_void, bytes: usize, stream: sys::CUstream);
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: sys::CUdeviceptr, bytes: usize, stream: sys::CUstream);
    cuMemcpy2DAsync_v2(copy: *const sys::CUDA_MEMCPY2D, stream: sys::CUstream);
    cuPointerGetAttribute(value: *mut c_void, attribute: sys::CUpointer_attribute, address: sys::CUdeviceptr);
    cuPointerGetAttributes(
        count: c_uint,
        attributes: *const sys::CUpointer_attribute,
        values: *const *mut c_void,
        address: sys::CUdeviceptr
    );
    cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);
    cuStreamCreate(stream: *mut sys::CUstream, flags: c_uint);
    cuStreamCreateWithPriority(stream: *mut sys::CUstream, flags: c_uint, priority: c_int);
    cuStreamIsCapturing(stream: sys::CUstream, status: *mut sys::CUstreamCaptureStatus);
    cuStreamGetCtx(stream: sys::CUstream, context: *mut sys::CUcontext);
    cuStreamDestroy_v2(stream: sys::CUstream);
    cuStreamQuery(stream: sys::CUstream);
    cuStreamSynchronize(stream: sys::CUstream);
    cuStreamWaitEvent(stream: sys::CUstream, event: sys::CUevent, flags: c_uint);
    cuEventCreate(event: *mut sys::CUevent, flags: c_uint);
    cuEventRecord(event: sys::CUevent, stream: sys::CUstream);
    cuEventSynchronize(event: sys::CUevent);
    cuEventDestroy_v2(event: sys::CUevent);
    cuLaunchKernel(
        function: sys::CUfunction,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared_bytes: c_uint,
        stream: sys::CUstream,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void
    );
    cuGraphCreate(graph: *mut sys::CUgraph, flags: c_uint);
    cuGraphAddKernelNode(
        node: *mut sys::CUgraphNode,
        graph: sys::CUgraph,
        dependencies: *const sys::CUgraphNode,
        count: usize,
        parameters: *const sys::CUDA_KERNEL_NODE_PARAMS
    );
    cuGraphInstantiateWithFlags(exec: *mut sys::CUgraphExec, graph: sys::CUgraph, flags: u64);
    cuGraphExecKernelNodeSetParams(
        exec: sys::CUgraphExec,
        node: sys::CUgraphNode,
        parameters: *const sys::CUDA_KERNEL_NODE_PARAMS
    );
    cuGraphLaunch(exec: sys::CUgraphExec, stream: sys::CUstream);
    cuGraphExecDestroy(exec: sys::CUgraphExec);
    cuGraphDestroy(graph: sys::CUgraph);
}
optional {
    cuThreadExchangeStreamCaptureMode(mode: *mut sys::CUstreamCaptureMode);
    cuEventElapsedTime(milliseconds: *mut f32, from: sys::CUevent, to: sys::CUevent);
    // For measurements.
    cuGraphAddMemsetNode(
        node: *mut sys::CUgraphNode,
        graph: sys::CUgraph,
        dependencies: *const sys::CUgraphNode,
        count: usize,
        memory: *const sys::CUDA_MEMSET_NODE_PARAMS,
        context: sys::CUcontext
    );
    // Requires CUDA 12.3; cudarc has the types of CUDA 11.4. An edge is a `CUgraphEdgeData`: the ports that it connects,
    // the type of the dependency, and 5 bytes that are 0.
    cuGraphAddDependencies_v2(
        graph: sys::CUgraph,
        from: *const sys::CUgraphNode,
        to: *const sys::CUgraphNode,
        edges: *const [u8; 8],
        count: usize
    );
}
}

impl Driver {
    /// Returns the initialized driver, which is loaded once per process.
    ///
    /// # Errors
    /// If there is no driver, if the driver lacks a required function, or if there is no GPU. After an error the
    /// next call tries again, because a GPU can become available.
    pub fn get() -> Result<&'static Self, DeviceError> {
        static DRIVER: OnceCell<Driver> = OnceCell::new();
        DRIVER.get_or_try_init(|| {
            let driver = Self::load()?;
            // SAFETY: `cuInit` has no preconditions, and may be called several times.
            match unsafe { driver.cuInit(0) } {
                Ok(()) => Ok(driver),
                Err(error) if error.is(sys::CUresult::CUDA_ERROR_NO_DEVICE) => {
                    Err(DeviceError::NoDevice)
                }
                Err(error) => Err(error.into()),
            }
        })
    }

    /// Returns whether the driver supports edges with data.
    pub fn supports_edge_data(&self) -> bool {
        self.cuGraphAddDependencies_v2.is_some()
    }

    /// Returns the latest CUDA version that the driver supports: 1000 x major + 10 x minor.
    ///
    /// # Errors
    /// If the call fails.
    pub fn version(&self) -> Result<i32, DriverError> {
        let mut version = 0;
        // SAFETY: `version` is valid for writes.
        unsafe { self.cuDriverGetVersion(&mut version) }?;
        Ok(version)
    }

    /// Calls `function`, which is the driver's function with this name, and checks its result.
    fn call(
        &self,
        name: &'static str,
        function: impl FnOnce() -> c_uint,
    ) -> Result<(), DriverError> {
        #[cfg(feature = "fault-injection")]
        if let Some(code) = super::fault::injected_code(name) {
            return self.check(name, code);
        }
        let code = function();
        #[cfg(feature = "fault-injection")]
        if code == SUCCESS {
            super::fault::record(name);
        }
        self.check(name, code)
    }

    fn check(&self, call: &'static str, code: u32) -> Result<(), DriverError> {
        if code == SUCCESS {
            return Ok(());
        }
        // This code is the normal result of polling for work that has not completed. The texts are not needed then,
        // and would have to be allocated.
        if code == NOT_READY {
            let (name, description) = Default::default();
            return Err(DriverError { call, code, name, description });
        }
        let text = |function: unsafe extern "C" fn(c_uint, *mut *const c_char) -> c_uint| {
            let mut text = null();
            // SAFETY: `text` is valid for writes. On success, the driver stores the address of a static C string in
            // it.
            unsafe {
                if function(code, &mut text) == SUCCESS && !text.is_null() {
                    CStr::from_ptr(text).to_string_lossy().into_owned()
                } else {
                    format!("error {code}")
                }
            }
        };
        let (name, description) = (text(self.error_name), text(self.error_string));
        Err(DriverError { call, code, name, description })
    }
}
