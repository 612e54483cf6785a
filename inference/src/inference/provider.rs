// SPDX-License-Identifier: MIT OR Apache-2.0
//! Execution providers: the processor that runs a model.
//!
//! In: the provider that the user wants, and a GPU. Out: a session of ONNX Runtime.
//!
//! | wanted | used | nodes of the model that it does not support |
//! | --- | --- | --- |
//! | `auto` | `cuda`, else `cpu` with the reason in the log | |
//! | `cpu` | `cpu` | |
//! | `cuda` | `cuda`, or an error | run on the CPU |
//! | `tensorrt` | `tensorrt`, or an error | run on `cuda`, else on the CPU |
//!
//! `auto` does not use TensorRT, because it takes minutes to prepare a model at the first start.

use std::path::Path;
use std::ptr::null;
use std::sync::Arc;

use ort::AsPointer;
use ort::ep::{self, ExecutionProvider, ExecutionProviderDispatch};
use ort::session::Session;
use ort::sys::OrtMemoryInfoDeviceType;

use super::error::InferenceError;
use super::library::OnnxRuntime;
use nmsfilter_core::device::{Device, Stream};

/// The processor that runs a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// The CPU.
    Cpu,
    /// An NVIDIA GPU, by CUDA and cuDNN.
    Cuda,
    /// An NVIDIA GPU, by TensorRT.
    TensorRt,
}

impl Provider {
    /// The value of the property `provider`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::TensorRt => "tensorrt",
        }
    }
}

/// A model to open.
pub struct ModelFile<'f> {
    /// Its path.
    pub path: &'f Path,
    /// What is opened in place of the file's contents.
    pub changed: Option<Vec<u8>>,
}

/// Opens the model on the CPU.
///
/// # Errors
/// If the file is not a model.
pub fn open_on_cpu(library: &OnnxRuntime, file: &ModelFile<'_>) -> Result<Session, InferenceError> {
    open(library, file, Provider::Cpu, &[])
}

/// Opens the model on a GPU. All work is submitted to `stream`; with `has_graph`, which only CUDA has, as the
/// launch of a CUDA graph.
///
/// # Errors
/// If the library has no such provider, the provider cannot be used on this machine, or the file is not
/// a model; with `has_graph`, if a node of the model runs on the CPU.
pub fn open_on_gpu(
    library: &OnnxRuntime,
    file: &ModelFile<'_>,
    provider: Provider,
    stream: &Arc<GpuStream>,
    has_graph: bool,
) -> Result<Session, InferenceError> {
    library.preload_cuda();
    let ordinal = stream.device.ordinal() as i32;
    let handle = stream.stream.as_raw().cast();
    // SAFETY: the stream exists until the session is dropped (`Inference` drops the session first).
    let cuda = unsafe { ep::CUDA::default().with_device_id(ordinal).with_compute_stream(handle) };
    // The default search measures all algorithms in the first run, which takes seconds, and its choice
    // can differ from run to run.
    let cuda = cuda.with_conv_algorithm_search(ep::cuda::ConvAlgorithmSearch::Heuristic);
    require::<ep::CUDA>(provider)?;
    let cuda = cuda.with_cuda_graph(has_graph).build().error_on_failure();
    if provider == Provider::Cuda {
        return open(library, file, provider, &[cuda]);
    }
    require::<ep::TensorRT>(provider)?;
    // SAFETY: as above.
    let tensorrt =
        unsafe { ep::TensorRT::default().with_device_id(ordinal).with_compute_stream(handle) };
    open(library, file, provider, &[tensorrt.build().error_on_failure(), cuda])
}

/// # Errors
/// If the library was built without the provider `E`.
fn require<E: ExecutionProvider>(provider: Provider) -> Result<(), InferenceError> {
    match E::is_available() {
        Ok(true) => Ok(()),
        Ok(false) => Err(InferenceError::NoProvider { provider: provider.name() }),
        Err(error) => Err(InferenceError::provider(provider, &error)),
    }
}

fn open(
    library: &OnnxRuntime,
    file: &ModelFile<'_>,
    provider: Provider,
    providers: &[ExecutionProviderDispatch],
) -> Result<Session, InferenceError> {
    let mut builder = Session::builder(&library.environment)
        .and_then(|builder| Ok(builder.with_intra_op_spinning(false)?))
        .map_err(InferenceError::session)?;
    if !providers.is_empty() {
        builder = builder
            .with_execution_providers(providers)
            .map_err(|error| InferenceError::provider(provider, &error.into()))?;
    }
    let session = match &file.changed {
        None => builder.commit_from_file(file.path),
        Some(bytes) => {
            let folder = file.path.parent().unwrap_or(Path::new("")).to_string_lossy();
            let builder = builder.with_config_entry(WEIGHTS_FOLDER, folder);
            builder
                .map_err(|error| error.into())
                .and_then(|mut builder| builder.commit_from_memory(bytes))
        }
    };
    session.map_err(|error| InferenceError::model(file.path, &error))
}

/// The entry of a session's configuration that names the folder of a model's weights, if they are files of their own and the
/// model is opened from memory.
const WEIGHTS_FOLDER: &str = "session.model_external_initializers_file_folder_path";

/// Whether the model's input is read in host memory, because the provider has no kernel for the node that
/// reads it. ONNX Runtime would copy an input in device memory only once, when it is bound.
///
/// # Errors
/// If ONNX Runtime reports an error.
pub fn reads_input_on_host(session: &Session) -> Result<bool, InferenceError> {
    let mut memory = null();
    // SAFETY: the session exists and has one input, and `memory` is valid for writes of one pointer.
    let result = unsafe {
        let status = (ort::api().SessionGetMemoryInfoForInputs)(session.ptr(), &mut memory, 1);
        ort::Error::result_from_status(status)
    };
    result.map_err(InferenceError::session)?;
    let mut device = OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_CPU;
    if !memory.is_null() {
        // SAFETY: the session owns the description, and `device` is valid for writes.
        unsafe { (ort::api().MemoryInfoGetDeviceType)(memory, &mut device) };
    }
    Ok(device == OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_CPU)
}

/// A stream of a GPU, with which the sessions, the pixels and the outputs of one element are in order.
pub struct GpuStream {
    /// The GPU.
    pub device: Arc<Device>,
    /// Its stream.
    pub stream: Stream,
}
