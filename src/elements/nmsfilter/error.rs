// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of one frame. In: the errors of input, decoder, engine, settings and output. Out: the
//! element message with its domain and code.

use super::settings::SettingsError;
use super::words;
use crate::input::InputError;
use nmsfilter_core::decoder::ChoiceError;
use nmsfilter_core::engine::EngineError;

/// The reason why a frame cannot be processed.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("{}", words::of_choice(.0))]
    Choice(#[from] ChoiceError),
    /// The tensors cannot be read: the text of the message.
    #[error("{0}")]
    Tensors(String),
    #[error("{}", words::phrase(.0))]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("regions cannot be attached: {0}")]
    Attach(#[from] gst::glib::BoolError),
    #[error("a buffer came before caps; expected video caps with width and height first")]
    NoCaps,
    /// The layout of the plan is for a model's input of another size: each frame needs a separate run.
    #[error("the frames of a run have models with inputs of different sizes")]
    OtherInput,
    #[error("stream {number} of the batch: {error}")]
    Stream { number: u32, error: Box<Self> },
}

impl FrameError {
    /// The error with the signatures of the model, one of which would say how the tensors are read.
    pub fn with_signatures(self, signatures: &[String]) -> Self {
        match self {
            Self::Choice(error) if !signatures.is_empty() => Self::Tensors(format!(
                "{}; or set signature of ortinference to the right one of those that the model has: {}",
                words::of_choice(&error),
                signatures.join(", ")
            )),
            other => other,
        }
    }

    /// The error of a frame of the stream with this number.
    pub fn in_stream(self, stream: Option<u32>) -> Self {
        match stream {
            Some(number) => Self::Stream { number, error: Box::new(self) },
            None => self,
        }
    }

    /// Returns true if the GPU failed.
    pub fn is_device_error(&self) -> bool {
        matches!(self, Self::Engine(error) if error.is_device_error())
    }

    /// The element message: the error as its text, `context` as its debug information.
    pub fn message(&self, context: &str) -> gst::ErrorMessage {
        let of_frame: &Self = match self {
            Self::Stream { error, .. } => error,
            error => error,
        };
        match of_frame {
            Self::Settings(_) => {
                gst::error_msg!(gst::LibraryError::Settings, ("{self}"), ["{context}"])
            }
            Self::NoCaps => gst::error_msg!(gst::CoreError::Negotiation, ("{self}"), ["{context}"]),
            Self::Input(_) | Self::Choice(_) | Self::Tensors(_) => {
                gst::error_msg!(gst::StreamError::Format, ("{self}"), ["{context}"])
            }
            Self::Engine(error) if error.is_device_error() => {
                gst::error_msg!(gst::LibraryError::Failed, ("{self}"), ["{context}"])
            }
            Self::Engine(_) | Self::OtherInput | Self::Attach(_) | Self::Stream { .. } => {
                gst::error_msg!(gst::StreamError::Decode, ("{self}"), ["{context}"])
            }
        }
    }
}
