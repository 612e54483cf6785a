// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of reading and writing tensor metadata.

use super::custom_meta;
use crate::deepstream::DeepStreamError;
use gst_newer::Missing;
use nmsfilter_core::tensor::TensorError;

/// The reason why tensors cannot be attached to a buffer or read from it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// A field of the plugin's own metadata is missing or has another type: the problem, for a message.
    #[error("metadata {name}: {0}", name = custom_meta::META_NAME)]
    Malformed(String),
    /// The field `model` of the plugin's own metadata does not describe a model, or a
    /// [`ModelInfo`](super::model::ModelInfo) cannot be attached: what was expected, and what was found.
    #[error("the tensors' model: {0}")]
    Model(String),
    /// DeepStream's metadata or libraries cannot be used.
    #[error(transparent)]
    DeepStream(#[from] DeepStreamError),
    /// The running GStreamer has no metadata for tensors.
    #[error("tensors cannot be attached: {0}")]
    Missing(#[from] Missing),
    /// The tensor's shape, element type or memory is invalid.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}
