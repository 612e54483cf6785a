//! The CUDA driver's entry points: the one seam between this crate and NVIDIA's library.
//!
//! cudarc finds and opens the library and declares its types. Its functions are not called: they
//! panic where the library or a symbol is missing, and a code that a optional_name driver returns does not
//! fit their result type.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::panic::catch_unwind;
use std::ptr::null;

use cudarc::driver::sys;
use once_cell::sync::OnceCell;

use super::DeviceError;

/// A call that the driver refused, or an error that it had to tell of from before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed: {name} ({description})")]
pub struct DriverError {
    /// The driver's function.
    pub call: &'static str,
    /// The result's number.
    pub code: u32,
    /// The result's name.
    pub name: String,
    /// What the driver says of it.
    pub description: String,
}

impl DriverError {
    /// Whether it says that work is still under way.
    pub fn is_not_ready(&self) -> bool {
        self.code == NOT_READY
    }

    /// Whether it says that an argument is not what it should be.
    pub(super) fn is_invalid_value(&self) -> bool {
        self.code == INVALID_VALUE
    }
}

const SUCCESS: u32 = 0;
const INVALID_VALUE: u32 = sys::CUresult::CUDA_ERROR_INVALID_VALUE as u32;
const NOT_READY: u32 = sys::CUresult::CUDA_ERROR_NOT_READY as u32;

macro_rules! driver {
    (
        required { $($name:ident($($argument:ident: $type:ty),*);)* }
        optional { $($optional_name:ident($($optional_argument:ident: $optional_type:ty),*);)* }
    ) => {
        /// The driver's functions: each there, but for those that return an `Option`.
        #[allow(non_snake_case, reason = "they bear the driver's names")]
        pub struct Driver {
            error_name: unsafe extern "C" fn(c_uint, *mut *const c_char) -> c_uint,
            error_string: unsafe extern "C" fn(c_uint, *mut *const c_char) -> c_uint,
            $($name: unsafe extern "C" fn($($type),*) -> c_uint,)*
            $($optional_name: Option<unsafe extern "C" fn($($optional_type),*) -> c_uint>,)*
        }

        impl Driver {
            fn load() -> Result<Self, DeviceError> {
                // SAFETY: opening the driver's library runs its initializers, which is what
                // everyone who uses it does.
                let library = catch_unwind(|| unsafe {
                    sys::is_culib_present().then(|| sys::culib())
                });
                let library = library.ok().flatten().ok_or(DeviceError::NoDriver)?;
                let missing = |symbol| move |_| DeviceError::OldDriver { symbol };
                // SAFETY: the types are those of the driver's documentation, as cudarc has them.
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
                /// As the driver's documentation has it.
                ///
                /// # Errors
                /// Where it does not return success.
                ///
                /// # Safety
                /// As the driver's documentation has it.
                #[allow(non_snake_case, reason = "it bears the driver's name")]
                pub unsafe fn $name(&self, $($argument: $type),*) -> Result<(), DriverError> {
                    // SAFETY: the caller answers for the arguments.
                    self.call(stringify!($name), || unsafe { (self.$name)($($argument),*) })
                }
            )*

            $(
                /// As the driver's documentation has it; none where this driver is older than the
                /// function.
                ///
                /// # Errors
                /// Where it does not return success.
                ///
                /// # Safety
                /// As the driver's documentation has it.
                #[allow(non_snake_case, reason = "it bears the driver's name")]
                pub unsafe fn $optional_name(
                    &self,
                    $($optional_argument: $optional_type),*
                ) -> Option<Result<(), DriverError>> {
                    let function = self.$optional_name?;
                    // SAFETY: the caller answers for the arguments.
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
    cuMemHostGetDevicePointer_v2(device: *mut sys::CUdeviceptr, host: *mut c_void, flags: c_uint);
    cuMemsetD8Async(address: sys::CUdeviceptr, value: u8, bytes: usize, stream: sys::CUstream);
    cuMemcpyHtoDAsync_v2(to: sys::CUdeviceptr, from: *const c_void, bytes: usize, stream: sys::CUstream);
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: sys::CUdeviceptr, bytes: usize, stream: sys::CUstream);
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
    cuStreamGetCtx(stream: sys::CUstream, context: *mut sys::CUcontext);
    cuStreamDestroy_v2(stream: sys::CUstream);
    cuStreamQuery(stream: sys::CUstream);
    cuStreamSynchronize(stream: sys::CUstream);
    cuStreamWaitEvent(stream: sys::CUstream, event: sys::CUevent, flags: c_uint);
    cuEventCreate(event: *mut sys::CUevent, flags: c_uint);
    cuEventRecord(event: sys::CUevent, stream: sys::CUstream);
    cuEventDestroy_v2(event: sys::CUevent);
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
    // From CUDA 12.3 on; later than the types in use.
    cuGraphAddDependencies_v2(
        graph: sys::CUgraph,
        from: *const sys::CUgraphNode,
        to: *const sys::CUgraphNode,
        edges: *const EdgeData,
        count: usize
    );
}
}

/// `CUgraphEdgeData`: from which port of a node to which of the next, and of what kind.
#[repr(C)]
pub struct EdgeData {
    from_port: u8,
    to_port: u8,
    kind: u8,
    reserved: [u8; 5],
}

impl EdgeData {
    /// From a kernel to one that may take its place before its turn comes, and waits for it by
    /// itself: from CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, of the kind
    /// CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC.
    pub const IN_TURN: Self = Self { from_port: 1, to_port: 0, kind: 1, reserved: [0; 5] };
}

impl Driver {
    /// The driver, initialized; the same for the whole process.
    ///
    /// # Errors
    /// Where there is no driver, or one that lacks a function, or no device. A later call tries
    /// again: devices can appear.
    pub fn get() -> Result<&'static Self, DeviceError> {
        static DRIVER: OnceCell<Driver> = OnceCell::new();
        DRIVER.get_or_try_init(|| {
            let driver = Self::load()?;
            // SAFETY: it is the call to make first, and can be repeated.
            match unsafe { driver.cuInit(0) } {
                Ok(()) => Ok(driver),
                Err(error) if error.code == NO_DEVICE => Err(DeviceError::NoDevice),
                Err(error) => Err(error.into()),
            }
        })
    }

    /// Whether [`EdgeData`] can be told to it.
    pub fn knows_edges(&self) -> bool {
        self.cuGraphAddDependencies_v2.is_some()
    }

    /// The driver's version, as in 11040 for CUDA 11.4.
    ///
    /// # Errors
    /// Where the driver does not say.
    pub fn version(&self) -> Result<i32, DriverError> {
        let mut version = 0;
        // SAFETY: the address is that of a number.
        unsafe { self.cuDriverGetVersion(&mut version) }?;
        Ok(version)
    }

    /// What comes of `function`, which is named `name`.
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
        // Asked for in a loop while work is under way; nobody reads its text.
        if code == NOT_READY {
            let (name, description) = Default::default();
            return Err(DriverError { call, code, name, description });
        }
        let text = |of: unsafe extern "C" fn(c_uint, *mut *const c_char) -> c_uint| {
            let mut text = null();
            // SAFETY: the driver returns a static text, or an error and no text.
            unsafe {
                match of(code, &mut text) == SUCCESS && !text.is_null() {
                    true => CStr::from_ptr(text).to_string_lossy().into_owned(),
                    false => format!("error {code}"),
                }
            }
        };
        let (name, description) = (text(self.error_name), text(self.error_string));
        Err(DriverError { call, code, name, description })
    }
}

const NO_DEVICE: u32 = sys::CUresult::CUDA_ERROR_NO_DEVICE as u32;
