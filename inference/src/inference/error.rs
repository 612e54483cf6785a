// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of inference: what was expected, what came, and what to do.

use std::path::{Path, PathBuf};

use gst::glib;

use super::library::OnnxRuntimeError;
use super::model::ModelError;
use super::provider::Provider;
use gstnmsfilter::frame::FrameError;
use gstnmsfilter::input::InputError;
use nmsfilter_core::device::{DeviceError, DriverError};
use nmsfilter_core::tensor::TensorError;

/// Why there is no inference.
#[derive(Clone, Debug, thiserror::Error)]
pub enum InferenceError {
    /// ONNX Runtime's library cannot be used.
    #[error(transparent)]
    Library(#[from] OnnxRuntimeError),
    /// The library was built without the provider.
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
        "provider={provider} cannot be used: {problem}; install what is missing, or set provider=cpu"
    )]
    Provider {
        /// The provider.
        provider: &'static str,
        /// The message of ONNX Runtime.
        problem: String,
    },
    /// There is no GPU that the provider can use.
    #[error("provider={provider} needs an NVIDIA GPU: {problem}")]
    NoGpu {
        /// The provider.
        provider: &'static str,
        /// Why there is none.
        problem: DeviceError,
    },
    /// A GPU failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The file is not a model that ONNX Runtime can run.
    #[error(
        "the model {path:?} cannot be opened: {problem}; set model to a file in the ONNX format"
    )]
    Model {
        /// The file.
        path: PathBuf,
        /// The message of the system or of ONNX Runtime.
        problem: String,
    },
    /// The model is there, and the file with its weights is not, or is cut off.
    #[error(
        "the model {path:?} has its weights in a file of their own, which cannot be read: {problem}; put \
         that file into the model's folder, with the name that it had when the model was exported"
    )]
    ExternalData {
        /// The model.
        path: PathBuf,
        /// The message of ONNX Runtime.
        problem: String,
    },
    /// The model is not a detector of pictures, or its properties or its `.modelinfo` file are wrong.
    #[error(transparent)]
    Description(#[from] ModelError),
    /// The model cannot run as a CUDA graph.
    #[error(
        "cuda-graph=on: {problem}; set cuda-graph=auto to run the model without a graph where it needs that"
    )]
    Graph {
        /// Why.
        problem: String,
    },
    /// Another element has the instance, with other options.
    #[error(
        "model-instance-id={id}: another element with this id has other values of {differing}; set the same \
         values, or another id"
    )]
    OtherOptions {
        /// The id.
        id: String,
        /// The names of the properties.
        differing: String,
    },
    /// ONNX Runtime does not make a session.
    #[error("ONNX Runtime: {0}")]
    Session(String),
    /// The model failed.
    #[error("{provider}: the model failed: {problem}")]
    Run {
        /// The provider that ran it.
        provider: &'static str,
        /// The message of ONNX Runtime.
        problem: String,
    },
    /// A frame does not have what its caps need.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A frame cannot be scaled.
    #[error("the frame cannot be scaled to the model's input: {0}")]
    Scale(#[from] glib::BoolError),
    /// The model description is out of range.
    #[error(transparent)]
    Info(#[from] InputError),
    /// An output cannot be attached.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A stream of a batch has a frame before caps.
    #[cfg(feature = "v1_28")]
    #[error("a frame came before caps; expected video caps with format, width and height first")]
    NoCaps,
    /// One of the above, for a frame of a batch.
    #[cfg(feature = "v1_28")]
    #[error("stream {number} of the batch: {error}")]
    Stream {
        /// The number of its stream.
        number: u32,
        /// What failed.
        error: Box<Self>,
    },
}

impl From<DriverError> for InferenceError {
    fn from(error: DriverError) -> Self {
        Self::Device(error.into())
    }
}

impl InferenceError {
    /// Whether a GPU failed, so that another processor may succeed.
    pub fn is_of_gpu(&self) -> bool {
        matches!(self, Self::Device(_) | Self::Run { .. } | Self::Session(_))
    }

    /// Whether a GPU or a provider is there but cannot be used, which is worth a warning where the CPU
    /// replaces it.
    pub fn is_of_installation(&self) -> bool {
        match self {
            Self::Provider { .. } => true,
            Self::NoGpu { problem, .. } => !problem.is_absence(),
            _ => false,
        }
    }

    /// A file that ONNX Runtime cannot open.
    pub fn model(path: &Path, error: &ort::Error) -> Self {
        let message = error.to_string();
        // It begins with the path, and can end with a full stop and a line feed.
        let prefix = format!("Load model from {} failed:", path.display());
        let problem = message.strip_prefix(&prefix).unwrap_or(&message);
        let problem = problem.trim().trim_end_matches('.');
        let path = path.to_owned();
        // Before it are the tensor's name, and a place in ONNX Runtime's source.
        match problem.rfind("External data path").or_else(|| problem.rfind("External initializer"))
        {
            Some(at) => Self::ExternalData { path, problem: problem[at..].to_owned() },
            None => Self::Model { path, problem: problem.to_owned() },
        }
    }

    /// A failure of ONNX Runtime other than those of a run, of a file, or of a provider.
    pub fn session(error: ort::Error) -> Self {
        Self::Session(error.to_string())
    }

    /// A failure of `provider` that ONNX Runtime reports.
    pub fn provider(provider: Provider, error: &ort::Error) -> Self {
        let message = error.to_string();
        // It begins with a place in ONNX Runtime's source.
        let problem =
            message.rsplit_once(" : FAIL : ").map_or(&*message, |(_, problem)| problem).trim();
        Self::Provider { provider: provider.name(), problem: problem.to_owned() }
    }

    /// The element message: the error as its text, `context` as its debug information.
    pub fn message(&self, context: &str) -> gst::ErrorMessage {
        match self {
            Self::Library(_)
            | Self::NoProvider { .. }
            | Self::NoGpu { .. }
            | Self::Provider { .. }
            | Self::Graph { .. } => {
                gst::error_msg!(gst::LibraryError::Init, ("{self}"), ["{context}"])
            }
            Self::Device(_) | Self::Session(_) => {
                gst::error_msg!(gst::LibraryError::Failed, ("{self}"), ["{context}"])
            }
            Self::Model { .. } | Self::ExternalData { .. } => {
                gst::error_msg!(gst::ResourceError::OpenRead, ("{self}"), ["{context}"])
            }
            Self::Description(_) | Self::Info(_) | Self::OtherOptions { .. } => {
                gst::error_msg!(gst::LibraryError::Settings, ("{self}"), ["{context}"])
            }
            Self::Run { .. } | Self::Frame(_) | Self::Scale(_) | Self::Tensor(_) => {
                gst::error_msg!(gst::StreamError::Failed, ("{self}"), ["{context}"])
            }
            #[cfg(feature = "v1_28")]
            Self::NoCaps | Self::Stream { .. } => {
                gst::error_msg!(gst::StreamError::Failed, ("{self}"), ["{context}"])
            }
        }
    }
}
