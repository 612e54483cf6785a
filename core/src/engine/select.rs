// SPDX-License-Identifier: MIT OR Apache-2.0
//! Creates the engine of a [`Backend`].
//!
//! In: the backend and, optionally, the number of a GPU. Out: the engine.

use super::auto::Auto;
use super::{Cpu, Cuda, Engine, EngineError};

/// The processor that decodes and suppresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
#[non_exhaustive]
pub enum Backend {
    /// The GPU for tensors in device memory; for tensors in host memory, the processor that takes less time.
    #[default]
    Auto = 0,
    /// The CPU.
    Cpu = 1,
    /// An NVIDIA GPU.
    Cuda = 2,
}

/// The engine for `backend`. An engine that uses a GPU takes GPU number `ordinal`. If `ordinal` is
/// `None`, it takes the first GPU, or the GPU that holds the tensors. [`Backend::Auto`] does not
/// open a GPU here.
///
/// # Errors
/// Fails if `backend` is [`Backend::Cuda`] and the GPU cannot be used.
pub fn select(backend: Backend, ordinal: Option<u32>) -> Result<Box<dyn Engine>, EngineError> {
    Ok(match backend {
        Backend::Cpu => Box::new(Cpu::default()),
        Backend::Cuda => Box::new(Cuda::new(ordinal)?),
        Backend::Auto => Box::new(Auto::new(ordinal)),
    })
}
