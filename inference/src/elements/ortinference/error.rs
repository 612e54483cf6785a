// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of the element.
//!
//! In: the errors of inference and of properties. Out: the message to post, with its domain and code.

use crate::inference::error::InferenceError;
use crate::inference::model::ModelError;
use crate::inference::provider_options::ProviderOptionsError;
use crate::regions::RegionError;
use gstnmsfilter::output::LabelError;

/// The reason why the element cannot start.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error("no model is set: set model to a file in the ONNX format")]
    NoModel,
    #[error(
        "{unused} is set, but only provider=plugin uses it; set provider=plugin, or leave {unused} unset"
    )]
    NotPlugin { unused: &'static str },
    #[error(
        "provider-options is set, but only the providers cuda, tensorrt and plugin have options; set provider to one of \
         them, or leave provider-options unset"
    )]
    NoOptions,
    #[error(transparent)]
    ProviderOptions(#[from] ProviderOptionsError),
    #[error(transparent)]
    Property(#[from] ModelError),
    #[error(transparent)]
    Regions(#[from] RegionError),
    #[error(transparent)]
    Labels(#[from] LabelError),
    #[error(transparent)]
    Inference(#[from] InferenceError),
}

impl StartError {
    /// Creates the message to post: the error as its text, `context` as its debug information.
    pub fn message(&self, context: &str) -> gst::ErrorMessage {
        match self {
            Self::NoModel
            | Self::NotPlugin { .. }
            | Self::NoOptions
            | Self::ProviderOptions(_)
            | Self::Property(_)
            | Self::Regions(_) => {
                gst::error_msg!(gst::LibraryError::Settings, ("{self}"), ["{context}"])
            }
            Self::Labels(_) => {
                gst::error_msg!(gst::ResourceError::OpenRead, ("{self}"), ["{context}"])
            }
            Self::Inference(error) => error.message(context),
        }
    }
}
