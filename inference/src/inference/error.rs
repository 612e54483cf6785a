// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of inference. Each message says what was expected, what came, and what to do.

use std::path::{Path, PathBuf};

use gst::glib;

use super::library::OnnxRuntime;
use super::missing_library;
use super::plugin_provider;
use super::provider::Provider;
use super::provider_options::ProviderOptions;
use gstnmsfilter::frame::FrameError;
use gstnmsfilter::input::InputError;
use nmsfilter_core::device::{DeviceError, DriverError};
use nmsfilter_core::tensor::TensorError;

/// A property, the model, or its `.modelinfo` file cannot be used. The text says which, what was expected and what came.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub String);

/// The reason why a model's file cannot be opened, after its path.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FileProblem {
    /// It is not a model that ONNX Runtime can run, by the message of the operating system or of ONNX Runtime.
    #[error("cannot be opened: {0}; set model to a file in the ONNX format")]
    NoModel(String),
    /// The library is older than the model's opset or file format.
    #[error(
        "cannot be opened: {problem}; ONNX Runtime {library} is too old for it: install a newer one, or export the model with \
         an older opset"
    )]
    TooOld {
        /// The library's version and path.
        library: String,
        /// ONNX Runtime's message.
        problem: String,
    },
    /// The model exists, but the file with its weights is missing or truncated, by ONNX Runtime's message.
    #[error(
        "has its weights in a separate file, which cannot be read: {0}; put that file into the model's folder, under the name \
         that it had when the model was exported"
    )]
    ExternalData(String),
    /// The model has a node of this type, which exists in TensorRT only.
    #[error(
        "has a node {0}, which is a part of TensorRT: set provider=tensorrt, with a build of ONNX Runtime that has it, where \
         such nodes have the domain trt.plugins; or export the model without suppression (YOLOv7 and YOLOv6: without \
         --end2end), and nmsfilter does it"
    )]
    TensorRtNode(String),
    /// The model has a node that the library does not have.
    #[error(
        "has a node {node}, which ONNX Runtime {library} does not have; install a newer one, or export the model with the \
         operators of ONNX"
    )]
    UnknownNode {
        /// The library's version and path.
        library: String,
        /// The type of the node.
        node: String,
    },
}

/// The reason why inference failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum InferenceError {
    /// ONNX Runtime's library, or a provider's library, cannot be used.
    #[error("{0}")]
    Library(String),
    /// The library was built without this provider.
    #[error(
        "provider={provider}: this build of ONNX Runtime has no such provider; install \
         onnxruntime-gpu, or set provider=cpu"
    )]
    NoProvider {
        /// The provider.
        provider: &'static str,
    },
    /// The provider cannot be used on this machine.
    #[error(
        "provider={provider} cannot be used: {problem}; install {}, or set provider=cpu",
        missing_library::advice(problem)
    )]
    Provider {
        /// The provider.
        provider: &'static str,
        /// ONNX Runtime's message.
        problem: String,
    },
    /// The provider cannot be used with the options that the user has set.
    #[error(
        "provider={provider} cannot be used with provider-options={options}: {problem}; correct the options, or install {}",
        missing_library::advice(problem)
    )]
    ProviderOptions {
        /// The provider.
        provider: &'static str,
        /// The options.
        options: ProviderOptions,
        /// ONNX Runtime's message.
        problem: String,
    },
    /// There is no GPU that the provider can use.
    #[error("provider={provider} needs an NVIDIA GPU: {problem}")]
    NoGpu {
        /// The provider.
        provider: &'static str,
        /// The reason.
        problem: DeviceError,
    },
    /// The GPU failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The model's file cannot be opened.
    #[error("the model {path:?} {problem}")]
    Model {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong with it.
        problem: FileProblem,
    },
    /// The settings or the model cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The label file cannot be used.
    #[error("{0}")]
    Labels(String),
    /// The model cannot run as a CUDA graph.
    #[error(
        "cuda-graph=on: {problem}; set cuda-graph=auto to run the model without a graph if necessary"
    )]
    Graph {
        /// The reason.
        problem: String,
    },
    /// ONNX Runtime could not create a session, or a call other than a run failed.
    #[error("ONNX Runtime: {0}")]
    Session(String),
    /// The element is being stopped or flushed. This is no fault.
    #[error("the stream is being stopped or flushed")]
    Interrupted,
    /// The model failed while it ran.
    #[error("{provider}: the model failed: {problem}")]
    Run {
        /// The provider that ran the model.
        provider: &'static str,
        /// ONNX Runtime's message.
        problem: String,
    },
    /// A frame's memory or metadata does not match its caps.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A frame cannot be scaled.
    #[error("the frame cannot be scaled to the model's input: {0}")]
    Scale(#[from] glib::BoolError),
    /// The model description has a value that is out of range, or an output cannot be attached.
    #[error(transparent)]
    Info(#[from] InputError),
    /// An output has an invalid shape or element type.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A stream of a batch sent a frame before its caps.
    #[error("a frame came before caps; expected video caps with format, width and height first")]
    NoCaps,
    /// One of the errors above, in a frame of a batch.
    #[error("stream {number} of the batch: {error}")]
    Stream {
        /// The number of the stream.
        number: u32,
        /// The error.
        error: Box<Self>,
    },
}

impl From<DriverError> for InferenceError {
    fn from(error: DriverError) -> Self {
        Self::Device(error.into())
    }
}

impl InferenceError {
    /// Returns whether the element is being stopped or flushed.
    pub fn is_interruption(&self) -> bool {
        match self {
            Self::Stream { error, .. } => error.is_interruption(),
            error => matches!(error, Self::Interrupted),
        }
    }

    /// Returns whether the GPU failed, so that another processor may succeed.
    pub fn is_gpu_failure(&self) -> bool {
        matches!(self, Self::Device(_) | Self::Run { .. } | Self::Session(_))
    }

    /// Returns whether a GPU or provider is installed but unusable. If the CPU takes over, such an error is worth a
    /// warning; a missing GPU is not.
    pub fn is_installation_problem(&self) -> bool {
        match self {
            Self::Provider { .. } => true,
            Self::NoGpu { problem, .. } => !problem.is_absence(),
            _ => false,
        }
    }

    /// Creates the error for a model file that `library` cannot open.
    pub fn model(path: &Path, library: &OnnxRuntime, error: &ort::Error) -> Self {
        let message = error.to_string();
        // ONNX Runtime's message begins with the path, and may end with a full stop and a line feed.
        let prefix = format!("Load model from {} failed:", path.display());
        let problem = message.strip_prefix(&prefix).unwrap_or(&message);
        let problem = problem.trim().trim_end_matches('.');
        // The parts of some messages before these words name a line of ONNX Runtime's source code, or a tensor. They are left
        // out.
        let weights =
            problem.rfind("External data path").or_else(|| problem.rfind("External initializer"));
        let problem = if let Some(node) = unknown_node(problem) {
            let (domain, operator) = node.rsplit_once(':').unwrap_or(("", node));
            let is_of_tensorrt = domain.to_ascii_lowercase().starts_with("trt")
                || operator.starts_with("TRT")
                || operator.ends_with("_TRT");
            let node = operator.to_owned();
            match is_of_tensorrt {
                true => FileProblem::TensorRtNode(node),
                false => FileProblem::UnknownNode { library: name(library), node },
            }
        } else if let Some(problem) = needs_newer(problem) {
            FileProblem::TooOld { library: name(library), problem: problem.to_owned() }
        } else if let Some(at) = weights {
            FileProblem::ExternalData(problem[at..].to_owned())
        } else {
            FileProblem::NoModel(problem.to_owned())
        };
        Self::Model { path: path.to_owned(), problem }
    }

    /// Creates the error for a failed call of ONNX Runtime, other than running a model, opening a file, or
    /// selecting a provider.
    pub fn session(error: ort::Error) -> Self {
        Self::Session(error.to_string())
    }

    /// Creates the error for a failure of `provider` that ONNX Runtime reports.
    pub fn provider(provider: Provider, options: &ProviderOptions, error: &ort::Error) -> Self {
        let message = error.to_string();
        // ONNX Runtime's message begins with a line of its source code. It is left out.
        let problem =
            message.rsplit_once(" : FAIL : ").map_or(&*message, |(_, problem)| problem).trim();
        let problem = problem.trim_end_matches('.');
        let (provider, problem) = (provider.name(), problem.to_owned());
        if options.is_empty() {
            Self::Provider { provider, problem }
        } else {
            Self::ProviderOptions { provider, options: options.clone(), problem }
        }
    }

    /// Creates the message that the element posts: the error as its text, `context` as its debug information.
    pub fn message(&self, context: &str) -> gst::ErrorMessage {
        match self {
            Self::Library(_)
            | Self::NoProvider { .. }
            | Self::NoGpu { .. }
            | Self::Provider { .. }
            | Self::ProviderOptions { .. }
            | Self::Graph { .. } => {
                gst::error_msg!(gst::LibraryError::Init, ("{self}"), ["{context}"])
            }
            Self::Device(_) | Self::Session(_) => {
                gst::error_msg!(gst::LibraryError::Failed, ("{self}"), ["{context}"])
            }
            Self::Model { .. } | Self::Labels(_) => {
                gst::error_msg!(gst::ResourceError::OpenRead, ("{self}"), ["{context}"])
            }
            Self::Settings(_) | Self::Info(_) => {
                gst::error_msg!(gst::LibraryError::Settings, ("{self}"), ["{context}"])
            }
            Self::Interrupted
            | Self::Run { .. }
            | Self::Frame(_)
            | Self::Scale(_)
            | Self::Tensor(_)
            | Self::NoCaps
            | Self::Stream { .. } => {
                gst::error_msg!(gst::StreamError::Failed, ("{self}"), ["{context}"])
            }
        }
    }
}

/// Returns the version of ONNX Runtime, if it is known, and the library's path.
fn name(library: &OnnxRuntime) -> String {
    let version = plugin_provider::version(library).unwrap_or_default();
    format!("{version} ({:?})", library.path)
}

/// Returns the domain and the type of a node that ONNX Runtime does not have, by its message.
fn unknown_node(problem: &str) -> Option<&str> {
    let before = |end: &str| problem.split_once(end)?.0.rsplit(' ').next();
    let after = |start: &str| problem.split_once(start)?.1.split(' ').next();
    let is_of_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    // ONNX Runtime knows the attributes of some of TensorRT's nodes.
    let of_tensorrt =
        || problem.split(|other| !is_of_word(other)).find(|word| word.ends_with("_TRT"));
    let node = before(" is not a registered function/op")
        .or_else(|| after("No Op registered for "))
        .or_else(|| after("Could not find an implementation for "))
        .or_else(of_tensorrt)?;
    // A version in parentheses can follow.
    node.split('(').next()
}

/// Returns the part of ONNX Runtime's message that says what a later version could have, if the message says so.
fn needs_newer(problem: &str) -> Option<&str> {
    let from = |words| problem.find(words).map(|at| &problem[at..]);
    from("Unsupported model IR version")
        .or_else(|| from("Opset ").filter(|rest| rest.contains("Current official support")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of ONNX Runtime 1.31.
    #[test]
    fn messages_that_a_newer_library_would_not_give_are_known() {
        for (before, problem) in [
            (
                "/onnxruntime_src/onnxruntime/core/graph/model.cc:256 onnxruntime::Model::Model() ",
                "Unsupported model IR version: 99, max supported IR version: 13",
            ),
            (
                "/onnxruntime_src/model_load_utils.h:46 ONNX Runtime only *guarantees* support for models stamped with \
                 official released onnx opset versions. ",
                "Opset 99 is under development and support for this is limited. Current official support for domain ai.onnx \
                 is till opset 26",
            ),
        ] {
            assert_eq!(needs_newer(&format!("{before}{problem}")), Some(problem));
        }
        assert_eq!(needs_newer("Protobuf parsing failed"), None);
    }
}
