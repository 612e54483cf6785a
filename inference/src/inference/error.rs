// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of inference. Each message says what was expected, what came, and what to do.

use std::fmt::Display;
use std::path::Path;

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

/// The reason why inference failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub enum InferenceError {
    /// ONNX Runtime's library, a provider or a GPU cannot be used.
    Library(String),
    /// A provider or a GPU is installed, but cannot be used. If the CPU takes over, this is worth a warning.
    Installation(String),
    /// The GPU failed.
    Device(#[from] DeviceError),
    /// ONNX Runtime could not create a session, or a call other than a run failed.
    #[error("ONNX Runtime: {0}")]
    Session(String),
    /// The file of the model or of the labels cannot be opened.
    File(String),
    /// A property, the model, or its `.modelinfo` file cannot be used.
    Settings(String),
    /// The model description has a value that is out of range, or an output cannot be attached.
    Info(#[from] InputError),
    /// The element is being stopped or flushed. This is no fault.
    #[error("the stream is being stopped or flushed")]
    Interrupted,
    /// The model failed while it ran.
    Run(String),
    /// A frame's memory or metadata does not match its caps.
    Frame(#[from] FrameError),
    /// A frame cannot be scaled.
    #[error("the frame cannot be scaled to the model's input: {0}")]
    Scale(#[from] glib::BoolError),
    /// An output has an invalid shape or element type.
    Tensor(#[from] TensorError),
    /// A frame of a batch came before caps, or one of the errors above is in it.
    Stream(String),
}

impl From<DriverError> for InferenceError {
    fn from(error: DriverError) -> Self {
        Self::Device(error.into())
    }
}

/// A failed call of ONNX Runtime, other than running a model, opening a file, or selecting a provider.
impl From<ort::Error> for InferenceError {
    fn from(error: ort::Error) -> Self {
        Self::Session(error.to_string())
    }
}

impl InferenceError {
    /// Returns whether the GPU failed, so that another processor may succeed.
    pub fn is_gpu_failure(&self) -> bool {
        matches!(self, Self::Device(_) | Self::Run(_) | Self::Session(_))
    }

    /// Returns the error with the number of the stream in whose frame it is.
    #[must_use]
    pub fn of_stream(self, number: u32) -> Self {
        match self {
            Self::Interrupted => self,
            error => Self::Stream(format!("stream {number} of the batch: {error}")),
        }
    }

    /// Creates the error for a model file that is not a model that ONNX Runtime can run, by the message of the operating
    /// system or of ONNX Runtime.
    pub fn no_model(path: &Path, problem: impl Display) -> Self {
        Self::File(format!(
            "the model {path:?} cannot be opened: {problem}; set model to a file in the ONNX format"
        ))
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
        Self::File(if let Some(node) = unknown_node(problem) {
            let (domain, operator) = node.rsplit_once(':').unwrap_or(("", node));
            let is_of_tensorrt = domain.to_ascii_lowercase().starts_with("trt")
                || operator.starts_with("TRT")
                || operator.ends_with("_TRT");
            if is_of_tensorrt {
                format!(
                    "the model {path:?} has a node {operator}, which is a part of TensorRT: set provider=tensorrt, with a \
                     build of ONNX Runtime that has it, where such nodes have the domain trt.plugins; or export the model \
                     without suppression (YOLOv7 and YOLOv6: without --end2end), and nmsfilter does it"
                )
            } else {
                format!(
                    "the model {path:?} has a node {operator}, which ONNX Runtime {} does not have; install a newer one, \
                     or export the model with the operators of ONNX",
                    name(library)
                )
            }
        } else if let Some(problem) = needs_newer(problem) {
            format!(
                "the model {path:?} cannot be opened: {problem}; ONNX Runtime {} is too old for it: install a newer one, or \
                 export the model with an older opset",
                name(library)
            )
        } else if let Some(at) = weights {
            format!(
                "the model {path:?} has its weights in a separate file, which cannot be read: {}; put that file into the \
                 model's folder, under the name that it had when the model was exported",
                &problem[at..]
            )
        } else {
            return Self::no_model(path, problem);
        })
    }

    /// Creates the error for a failure of `provider` that ONNX Runtime reports.
    pub fn provider(provider: Provider, options: &ProviderOptions, error: &ort::Error) -> Self {
        let message = error.to_string();
        // ONNX Runtime's message begins with a line of its source code. It is left out.
        let problem =
            message.rsplit_once(" : FAIL : ").map_or(&*message, |(_, problem)| problem).trim();
        let problem = problem.trim_end_matches('.');
        let (provider, advice) = (provider.name(), missing_library::advice(problem));
        if options.is_empty() {
            Self::Installation(format!(
                "provider={provider} cannot be used: {problem}; install {advice}, or set provider=cpu"
            ))
        } else {
            let options = options.iter().map(|(key, value)| format!("{key}={value}"));
            let options = options.collect::<Vec<_>>().join(",");
            Self::Library(format!(
                "provider={provider} cannot be used with provider-options={options}: {problem}; correct the options, or \
                 install {advice}"
            ))
        }
    }

    /// Creates the message that the element posts: the error as its text, `context` as its debug information.
    pub fn message(&self, context: &str) -> gst::ErrorMessage {
        match self {
            Self::Library(_) | Self::Installation(_) => {
                gst::error_msg!(gst::LibraryError::Init, ("{self}"), ["{context}"])
            }
            Self::Device(_) | Self::Session(_) => {
                gst::error_msg!(gst::LibraryError::Failed, ("{self}"), ["{context}"])
            }
            Self::File(_) => {
                gst::error_msg!(gst::ResourceError::OpenRead, ("{self}"), ["{context}"])
            }
            Self::Settings(_) | Self::Info(_) => {
                gst::error_msg!(gst::LibraryError::Settings, ("{self}"), ["{context}"])
            }
            Self::Interrupted
            | Self::Run(_)
            | Self::Frame(_)
            | Self::Scale(_)
            | Self::Tensor(_)
            | Self::Stream(_) => {
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
