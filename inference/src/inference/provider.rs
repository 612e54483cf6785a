// SPDX-License-Identifier: MIT OR Apache-2.0
//! Execution providers: the processors that can run a model.
//!
//! In: the provider that the user wants, and a GPU. Out: an ONNX Runtime session.
//!
//! | wanted | used | nodes of the model that the provider does not support |
//! | --- | --- | --- |
//! | `auto` | `cuda`, else `cpu` with the reason in the log | |
//! | `cpu` | `cpu` | |
//! | `cuda` | `cuda`, or an error | run on the CPU |
//! | `tensorrt` | `tensorrt`, or an error | run on `cuda`, else on the CPU |
//! | `plugin` | the provider in a library (`plugin_provider`), or an error | run on the CPU |
//!
//! `auto` does not use TensorRT, because TensorRT takes minutes to prepare a model at the first start.

use std::path::Path;
use std::ptr::null;

use ort::AsPointer;
use ort::ep::{self, ArbitrarilyConfigurableExecutionProvider, ExecutionProvider};
use ort::session::Session;
use ort::session::builder::SessionBuilder;
use ort::sys::OrtMemoryInfoDeviceType;

use super::InferenceOptions;
use super::error::InferenceError;
use super::library::OnnxRuntime;
use super::provider_options::ProviderOptions;
use nmsfilter_core::device::Stream;

/// The processor that runs a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// The CPU.
    Cpu,
    /// An NVIDIA GPU with CUDA and cuDNN.
    Cuda,
    /// An NVIDIA GPU with TensorRT.
    TensorRt,
    /// The device of a provider library.
    Plugin,
}

impl Provider {
    /// Returns the provider's value of the property `provider`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::TensorRt => "tensorrt",
            Self::Plugin => "plugin",
        }
    }
}

/// Opens the model on the CPU. If there are `changed` bytes, they are opened instead of the file's content.
///
/// # Errors
/// If the file is not a model.
pub fn open_on_cpu(
    library: &OnnxRuntime,
    options: &InferenceOptions,
    changed: Option<&[u8]>,
) -> Result<Session, InferenceError> {
    let builder = builder(library, options)?;
    commit(builder, &options.model, changed)
        .map_err(|error| InferenceError::model(&options.model, library, &error))
}

/// Opens the model on a GPU. All work is submitted to `stream`. With `has_graph`, each run is the launch of a CUDA
/// graph; only the CUDA provider supports this.
///
/// # Errors
/// If the library does not have the provider, if the provider cannot be used on this machine, or if the file is not
/// a model. Also if the provider rejects its options. With `has_graph`, also if a node of the model runs on the CPU.
pub fn open_on_gpu(
    library: &OnnxRuntime,
    options: &InferenceOptions,
    changed: Option<&[u8]>,
    provider: Provider,
    stream: &Stream,
    has_graph: bool,
) -> Result<Session, InferenceError> {
    library.preload_cuda();
    let ordinal = stream.device().ordinal() as i32;
    let handle = stream.as_raw().cast();
    // SAFETY: the stream exists until the session is dropped (`Inference` drops the session first).
    let cuda = unsafe { ep::CUDA::default().with_device_id(ordinal).with_compute_stream(handle) };
    // By default the first run measures all algorithms, which takes seconds, and the choice can differ from one run
    // to the next.
    let cuda = cuda.with_conv_algorithm_search(ep::cuda::ConvAlgorithmSearch::Heuristic);
    require::<ep::CUDA>(provider)?;
    let cuda = cuda.with_cuda_graph(has_graph);
    let providers = if provider == Provider::Cuda {
        vec![with_options(cuda, &options.provider_options).build().error_on_failure()]
    } else {
        require::<ep::TensorRT>(provider)?;
        // SAFETY: as above.
        let tensorrt =
            unsafe { ep::TensorRT::default().with_device_id(ordinal).with_compute_stream(handle) };
        let tensorrt = with_options(tensorrt, &options.provider_options);
        vec![tensorrt.build().error_on_failure(), cuda.build().error_on_failure()]
    };
    let builder =
        builder(library, options)?.with_execution_providers(providers).map_err(|error| {
            InferenceError::provider(provider, &options.provider_options, &error.into())
        })?;
    commit(builder, &options.model, changed)
        .map_err(|error| InferenceError::model(&options.model, library, &error))
}

/// Adds the options of the user.
fn with_options<E: ArbitrarilyConfigurableExecutionProvider>(
    provider: E,
    options: &ProviderOptions,
) -> E {
    options
        .iter()
        .fold(provider, |provider, (key, value)| provider.with_arbitrary_config(key, value))
}

/// Checks that the library was built with the provider `E`.
///
/// # Errors
/// If it was not.
fn require<E: ExecutionProvider>(provider: Provider) -> Result<(), InferenceError> {
    match E::is_available() {
        Ok(true) => Ok(()),
        Ok(false) => Err(InferenceError::Library(format!(
            "provider={}: this build of ONNX Runtime has no such provider; install onnxruntime-gpu, or set provider=cpu",
            provider.name()
        ))),
        Err(error) => Err(InferenceError::provider(provider, &ProviderOptions::default(), &error)),
    }
}

/// Creates the builder of a session on the CPU, to which providers can be added.
///
/// # Errors
/// If ONNX Runtime reports an error.
pub fn builder(
    library: &OnnxRuntime,
    options: &InferenceOptions,
) -> Result<SessionBuilder, InferenceError> {
    let builder = Session::builder(&library.environment)
        .and_then(|builder| Ok(builder.with_intra_op_spinning(false)?));
    Ok(match options.threads {
        None => builder?,
        Some(threads) => builder.and_then(|builder| Ok(builder.with_intra_threads(threads)?))?,
    })
}

/// Opens the model with the builder's providers.
///
/// # Errors
/// If the file is not a model, or if a provider cannot be created.
pub fn commit(
    mut builder: SessionBuilder,
    model: &Path,
    changed: Option<&[u8]>,
) -> ort::Result<Session> {
    match changed {
        None => builder.commit_from_file(model),
        Some(bytes) => {
            let folder = model.parent().unwrap_or(Path::new("")).to_string_lossy();
            let builder = builder.with_config_entry(WEIGHTS_FOLDER, folder);
            builder
                .map_err(|error| error.into())
                .and_then(|mut builder| builder.commit_from_memory(bytes))
        }
    }
}

/// The key of a session's configuration that names the folder of a model's weights. It is needed if the weights are
/// in separate files and the model is opened from memory.
const WEIGHTS_FOLDER: &str = "session.model_external_initializers_file_folder_path";

/// Returns whether the model's input is read in host memory. This happens if the provider has no kernel for the
/// node that reads the input. ONNX Runtime would then copy an input in device memory only once, when it is bound.
///
/// # Errors
/// If ONNX Runtime reports an error.
///
/// # Panics
/// If the session has no input of this name.
pub fn reads_input_on_host(session: &Session, name: &str) -> Result<bool, InferenceError> {
    let inputs = session.inputs();
    let mut memories = vec![null(); inputs.len()];
    // SAFETY: the session exists, and `memories` is valid for writes of a pointer for each of its inputs.
    let result = unsafe {
        let (to, count) = (memories.as_mut_ptr(), memories.len());
        let status = (ort::api().SessionGetMemoryInfoForInputs)(session.ptr(), to, count);
        ort::Error::result_from_status(status)
    };
    result?;
    let input = inputs.iter().position(|input| input.name() == name);
    let memory = memories[input.expect("the session has the input")];
    let mut device = OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_CPU;
    if !memory.is_null() {
        // SAFETY: the session owns the description, and `device` is valid for writes.
        unsafe { (ort::api().MemoryInfoGetDeviceType)(memory, &mut device) };
    }
    Ok(device == OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_CPU)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_user_are_added_to_those_of_the_element() {
        let text = "trt_fp16_enable=1,trt_engine_cache_enable=1,trt_engine_cache_path=a b";
        let options = crate::inference::provider_options::parse(text).unwrap();
        let provider = with_options(ep::TensorRT::default().with_device_id(3), &options);
        // The options are private, but the debug text has them in order.
        let text = format!("{provider:?}");
        let parts = [
            "device_id",
            "3",
            "trt_fp16_enable",
            "1",
            "trt_engine_cache_enable",
            "1",
            "trt_engine_cache_path",
            "a b",
        ];
        let mut rest = &*text;
        for part in parts.map(|part| format!("\"{part}\"")) {
            let at = rest.find(&part).unwrap_or_else(|| panic!("{part} is missing in {text}"));
            rest = &rest[at + part.len()..];
        }
    }
}
