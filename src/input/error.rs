//! Errors of tensor metadata.

use super::custom_meta;
use crate::tensor::TensorError;

/// Why tensors cannot be attached to a buffer or read from it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The plugin's own metadata lacks a field or has one of another type.
    #[error("metadata {name}: {problem}", name = custom_meta::META_NAME)]
    Malformed {
        /// What is wrong with it.
        problem: String,
    },
    /// The tensor itself.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}
