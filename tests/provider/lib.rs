// SPDX-License-Identifier: MIT OR Apache-2.0
//! A library with an execution provider for ONNX Runtime: a double for tests of how `ortinference` registers such
//! libraries, chooses a device, and passes options on. It supports no node, so that all run on the CPU, unless an option
//! says otherwise.
//!
//! - The library offers the CPU twice, as two devices. If its file is named `libnone.so`, it offers no device.
//! - With the option `negate=1`, the provider claims all nodes of a model with one input and one output, and writes the
//!   negated input, in single precision, to the output. The option `level` has no effect. With `report=1`, the provider fails with an error that says which device and
//!   options it got. Other options are errors.
//!
//! The structures are the parts that version 1.23 of `onnxruntime_ep_c_api.h` has.
#![allow(non_snake_case, reason = "ONNX Runtime looks for functions with these names")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{null, null_mut};

use ort::sys::{
    OrtApi, OrtApiBase, OrtEpDevice, OrtErrorCode, OrtGraph, OrtHardwareDevice,
    OrtHardwareDeviceType, OrtKernelContext, OrtKeyValuePairs, OrtNode, OrtSessionOptions,
    OrtStatusPtr,
};

const API_VERSION: u32 = 23;
const NAME: &CStr = c"TestExecutionProvider";
/// The beginning of the names of the provider's options among the session's settings.
const OPTION_PREFIX: &str = "ep.testexecutionprovider.";
/// The key of a device's number in its metadata.
const NUMBER: &CStr = c"number";

/// The first functions of `OrtEpApi`.
#[repr(C)]
struct EpApi {
    create_ep_device: unsafe extern "C" fn(
        *mut Factory,
        *const OrtHardwareDevice,
        *const OrtKeyValuePairs,
        *const OrtKeyValuePairs,
        *mut *mut OrtEpDevice,
    ) -> OrtStatusPtr,
    release_ep_device: *const c_void,
    add_nodes_to_fuse: unsafe extern "C" fn(
        *mut c_void,
        *const *const OrtNode,
        usize,
        *const c_void,
    ) -> OrtStatusPtr,
}

/// `OrtEpFactory`, followed by data of the library.
#[repr(C)]
pub struct Factory {
    version: u32,
    get_name: unsafe extern "C" fn(*const Factory) -> *const c_char,
    get_vendor: unsafe extern "C" fn(*const Factory) -> *const c_char,
    get_supported_devices: unsafe extern "C" fn(
        *mut Factory,
        *const *const OrtHardwareDevice,
        usize,
        *mut *mut OrtEpDevice,
        usize,
        *mut usize,
    ) -> OrtStatusPtr,
    create_ep: unsafe extern "C" fn(
        *mut Factory,
        *const *const OrtHardwareDevice,
        *const *const OrtKeyValuePairs,
        usize,
        *const OrtSessionOptions,
        *const c_void,
        *mut *mut Ep,
    ) -> OrtStatusPtr,
    release_ep: unsafe extern "C" fn(*mut Factory, *mut Ep),
    get_vendor_id: unsafe extern "C" fn(*const Factory) -> u32,
    get_version: unsafe extern "C" fn(*const Factory) -> *const c_char,
    validate_compatibility: *const c_void,
    create_allocator: unsafe extern "C" fn(
        *mut Factory,
        *const c_void,
        *const OrtKeyValuePairs,
        *mut *mut c_void,
    ) -> OrtStatusPtr,
    release_allocator: unsafe extern "C" fn(*mut Factory, *mut c_void),
    create_data_transfer: unsafe extern "C" fn(*mut Factory, *mut *mut c_void) -> OrtStatusPtr,
    is_stream_aware: unsafe extern "C" fn(*const Factory) -> bool,
    create_sync_stream: *const c_void,
    api: &'static OrtApi,
    has_devices: bool,
}

/// `OrtEp`.
#[repr(C)]
struct Ep {
    version: u32,
    get_name: unsafe extern "C" fn(*const Ep) -> *const c_char,
    get_capability: unsafe extern "C" fn(*mut Ep, *const OrtGraph, *mut c_void) -> OrtStatusPtr,
    compile: unsafe extern "C" fn(
        *mut Ep,
        *const *const c_void,
        *const *const c_void,
        usize,
        *mut *mut Negation,
        *mut *mut c_void,
    ) -> OrtStatusPtr,
    release_compiled: unsafe extern "C" fn(*mut Ep, *mut *mut Negation, usize),
    /// Functions that a provider can leave out.
    optional: [*const c_void; 8],
    api: &'static OrtApi,
    negates: bool,
}

/// `OrtNodeComputeInfo`, followed by data of the library.
#[repr(C)]
struct Negation {
    version: u32,
    create_state:
        unsafe extern "C" fn(*mut Negation, *const c_void, *mut *mut c_void) -> OrtStatusPtr,
    compute:
        unsafe extern "C" fn(*mut Negation, *mut c_void, *mut OrtKernelContext) -> OrtStatusPtr,
    release_state: unsafe extern "C" fn(*mut Negation, *mut c_void),
    api: &'static OrtApi,
}

/// Creates the factory of the provider.
///
/// # Safety
/// The arguments are those that ONNX Runtime passes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn CreateEpFactories(
    registered_name: *const c_char,
    base: *const OrtApiBase,
    _logger: *const c_void,
    factories: *mut *mut Factory,
    _capacity: usize,
    count: *mut usize,
) -> OrtStatusPtr {
    // SAFETY: ONNX Runtime passes its API, a C string, an array with room for at least one factory, and a number.
    unsafe {
        let api = &*((*base).GetApi)(API_VERSION);
        let factory = Factory {
            version: API_VERSION,
            get_name: factory_name,
            get_vendor: factory_vendor,
            get_supported_devices,
            create_ep,
            release_ep,
            get_vendor_id,
            get_version,
            validate_compatibility: null(),
            create_allocator,
            release_allocator,
            create_data_transfer,
            is_stream_aware,
            create_sync_stream: null(),
            api,
            has_devices: CStr::from_ptr(registered_name) != c"none",
        };
        *factories = Box::into_raw(Box::new(factory));
        *count = 1;
    }
    success()
}

/// Frees the factory.
///
/// # Safety
/// `factory` comes from [`CreateEpFactories`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ReleaseEpFactory(factory: *mut Factory) -> OrtStatusPtr {
    // SAFETY: the factory was made by `Box::into_raw`.
    drop(unsafe { Box::from_raw(factory) });
    success()
}

fn success() -> OrtStatusPtr {
    OrtStatusPtr(null_mut())
}

unsafe extern "C" fn factory_name(_: *const Factory) -> *const c_char {
    NAME.as_ptr()
}

unsafe extern "C" fn factory_vendor(_: *const Factory) -> *const c_char {
    c"nmsfilter".as_ptr()
}

unsafe extern "C" fn get_vendor_id(_: *const Factory) -> u32 {
    0
}

unsafe extern "C" fn get_version(_: *const Factory) -> *const c_char {
    c"1.0.0".as_ptr()
}

unsafe extern "C" fn is_stream_aware(_: *const Factory) -> bool {
    false
}

/// Leaves memory to ONNX Runtime.
unsafe extern "C" fn create_allocator(
    _: *mut Factory,
    _: *const c_void,
    _: *const OrtKeyValuePairs,
    allocator: *mut *mut c_void,
) -> OrtStatusPtr {
    // SAFETY: the pointer is valid for writes.
    unsafe { *allocator = null_mut() };
    success()
}

unsafe extern "C" fn release_allocator(_: *mut Factory, _: *mut c_void) {}

unsafe extern "C" fn create_data_transfer(
    _: *mut Factory,
    transfer: *mut *mut c_void,
) -> OrtStatusPtr {
    // SAFETY: the pointer is valid for writes.
    unsafe { *transfer = null_mut() };
    success()
}

/// Offers the first CPU twice.
unsafe extern "C" fn get_supported_devices(
    this: *mut Factory,
    devices: *const *const OrtHardwareDevice,
    device_count: usize,
    offered: *mut *mut OrtEpDevice,
    _capacity: usize,
    offered_count: *mut usize,
) -> OrtStatusPtr {
    // SAFETY: the factory exists, there are `device_count` devices, and `offered` has room for eight.
    unsafe {
        *offered_count = 0;
        let (api, has_devices) = ((*this).api, (*this).has_devices);
        let ep_api = &*(api.GetEpApi)().cast::<EpApi>();
        let devices = std::slice::from_raw_parts(devices, device_count);
        let is_cpu = |device: &&*const OrtHardwareDevice| {
            (api.HardwareDevice_Type)(**device) == OrtHardwareDeviceType::OrtHardwareDeviceType_CPU
        };
        let Some(&cpu) = devices.iter().find(is_cpu).filter(|_| has_devices) else {
            return success();
        };
        for number in [c"0", c"1"] {
            let mut metadata = null_mut();
            (api.CreateKeyValuePairs)(&mut metadata);
            (api.AddKeyValuePair)(metadata, NUMBER.as_ptr(), number.as_ptr());
            let to = offered.add(*offered_count);
            let status = (ep_api.create_ep_device)(this, cpu, metadata, null(), to);
            (api.ReleaseKeyValuePairs)(metadata);
            if !status.0.is_null() {
                return status;
            }
            *offered_count += 1;
        }
    }
    success()
}

/// Creates a provider, unless the options say otherwise.
unsafe extern "C" fn create_ep(
    this: *mut Factory,
    _devices: *const *const OrtHardwareDevice,
    metadata: *const *const OrtKeyValuePairs,
    _device_count: usize,
    settings: *const OrtSessionOptions,
    _logger: *const c_void,
    ep: *mut *mut Ep,
) -> OrtStatusPtr {
    // SAFETY: the factory, the settings and the metadata of at least one device exist, and `ep` is valid for writes.
    unsafe {
        let api = (*this).api;
        let number = CStr::from_ptr((api.GetKeyValue)(*metadata, NUMBER.as_ptr()));
        let options = options(api, settings);
        let is_unknown =
            |(key, _): &&(String, String)| !["level", "negate", "report"].contains(&&**key);
        if let Some((key, _)) = options.iter().find(is_unknown) {
            return failure(api, &format!("unknown option {key:?}"));
        }
        if options.iter().any(|(key, _)| key == "report") {
            let device = number.to_string_lossy();
            return failure(api, &format!("device {device} with {options:?}"));
        }
        let value = Ep {
            version: API_VERSION,
            get_name: ep_name,
            get_capability,
            compile,
            release_compiled,
            optional: [null(); 8],
            api,
            negates: options.iter().any(|(key, _)| key == "negate"),
        };
        *ep = Box::into_raw(Box::new(value));
    }
    success()
}

unsafe extern "C" fn release_ep(_: *mut Factory, ep: *mut Ep) {
    // SAFETY: the provider was made by `Box::into_raw`.
    drop(unsafe { Box::from_raw(ep) });
}

/// Returns the provider's options among the settings of a session, sorted by key.
///
/// # Safety
/// The settings exist.
unsafe fn options(api: &OrtApi, settings: *const OrtSessionOptions) -> Vec<(String, String)> {
    let (mut pairs, mut keys, mut values, mut count) = (null_mut(), null(), null(), 0);
    // SAFETY: the arrays have `count` C strings until the pairs are released.
    let mut options: Vec<_> = unsafe {
        let status = (api.GetSessionOptionsConfigEntries)(settings, &mut pairs);
        assert!(status.0.is_null(), "the settings can be read");
        (api.GetKeyValuePairs)(pairs, &mut keys, &mut values, &mut count);
        let text = |pointer: *const c_char| CStr::from_ptr(pointer).to_string_lossy().into_owned();
        let pair = |index| (text(*keys.add(index)), text(*values.add(index)));
        let all: Vec<_> = (0..count).map(pair).collect();
        (api.ReleaseKeyValuePairs)(pairs);
        all.into_iter()
    }
    .filter_map(|(key, value)| Some((key.strip_prefix(OPTION_PREFIX)?.to_owned(), value)))
    .collect();
    options.sort();
    options
}

fn failure(api: &OrtApi, text: &str) -> OrtStatusPtr {
    let text = CString::new(text).expect("the text has no NUL");
    // SAFETY: the text is a C string.
    unsafe { (api.CreateStatus)(OrtErrorCode::ORT_INVALID_ARGUMENT, text.as_ptr()) }
}

unsafe extern "C" fn ep_name(_: *const Ep) -> *const c_char {
    NAME.as_ptr()
}

/// Claims all nodes or none.
unsafe extern "C" fn get_capability(
    this: *mut Ep,
    graph: *const OrtGraph,
    support: *mut c_void,
) -> OrtStatusPtr {
    // SAFETY: the provider and the graph exist, and the array has room for all nodes.
    unsafe {
        if !(*this).negates {
            return success();
        }
        let api = (*this).api;
        let mut count = 0;
        let status = (api.Graph_GetNumNodes)(graph, &mut count);
        assert!(status.0.is_null(), "the nodes can be counted");
        let mut nodes = vec![null(); count];
        let status = (api.Graph_GetNodes)(graph, nodes.as_mut_ptr(), count);
        assert!(status.0.is_null(), "the nodes can be read");
        let ep_api = &*(api.GetEpApi)().cast::<EpApi>();
        (ep_api.add_nodes_to_fuse)(support, nodes.as_ptr(), count, null())
    }
}

unsafe extern "C" fn compile(
    this: *mut Ep,
    _graphs: *const *const c_void,
    _nodes: *const *const c_void,
    count: usize,
    compiled: *mut *mut Negation,
    _contexts: *mut *mut c_void,
) -> OrtStatusPtr {
    for index in 0..count {
        // SAFETY: the provider exists, and the array has room for `count` pointers.
        unsafe {
            let api = (*this).api;
            let negation =
                Negation { version: API_VERSION, create_state, compute, release_state, api };
            *compiled.add(index) = Box::into_raw(Box::new(negation));
        }
    }
    success()
}

unsafe extern "C" fn release_compiled(_: *mut Ep, compiled: *mut *mut Negation, count: usize) {
    for index in 0..count {
        // SAFETY: `compile` made the pointers with `Box::into_raw`.
        drop(unsafe { Box::from_raw(*compiled.add(index)) });
    }
}

unsafe extern "C" fn create_state(
    _: *mut Negation,
    _: *const c_void,
    state: *mut *mut c_void,
) -> OrtStatusPtr {
    // SAFETY: the pointer is valid for writes.
    unsafe { *state = null_mut() };
    success()
}

unsafe extern "C" fn release_state(_: *mut Negation, _: *mut c_void) {}

/// Writes the negated input to the output.
unsafe extern "C" fn compute(
    this: *mut Negation,
    _: *mut c_void,
    context: *mut OrtKernelContext,
) -> OrtStatusPtr {
    // SAFETY: the model has one input and one output with equal dimensions, in single precision and in host memory.
    unsafe {
        let api = (*this).api;
        let check = |status: OrtStatusPtr| assert!(status.0.is_null(), "tensors can be read");
        let (mut input, mut output, mut info, mut dim_count) = (null(), null_mut(), null_mut(), 0);
        check((api.KernelContext_GetInput)(context, 0, &mut input));
        check((api.GetTensorTypeAndShape)(input, &mut info));
        check((api.GetDimensionsCount)(info, &mut dim_count));
        let mut dims = vec![0; dim_count];
        check((api.GetDimensions)(info, dims.as_mut_ptr(), dim_count));
        (api.ReleaseTensorTypeAndShapeInfo)(info);
        check((api.KernelContext_GetOutput)(context, 0, dims.as_ptr(), dim_count, &mut output));
        let (mut from, mut to) = (null_mut(), null_mut());
        check((api.GetTensorMutableData)(input.cast_mut(), &mut from));
        check((api.GetTensorMutableData)(output, &mut to));
        let len = dims.iter().product::<i64>() as usize;
        let from = std::slice::from_raw_parts(from.cast::<f32>(), len);
        let to = std::slice::from_raw_parts_mut(to.cast::<f32>(), len);
        for (from, to) in from.iter().zip(to) {
            *to = -from;
        }
    }
    success()
}
