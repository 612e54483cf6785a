// SPDX-License-Identifier: MIT OR Apache-2.0
//! Creates the engine of a [`Backend`].
//!
//! In: the backend and, optionally, the number of a GPU. Out: the engine, and a text that names the
//! processor.

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

/// The result of [`select`].
pub struct Selection {
    /// The engine.
    pub engine: Box<dyn Engine>,
    /// The processor that the engine runs on, for a log. If it only becomes known later,
    /// [`take_description`](Engine::take_description) returns it.
    pub description: String,
}

/// The engine for `backend`. An engine that uses a GPU takes GPU number `ordinal`. If `ordinal` is
/// `None`, it takes the first GPU, or the GPU that holds the tensors. [`Backend::Auto`] does not
/// open a GPU here.
///
/// # Errors
/// Fails if `backend` is [`Backend::Cuda`] and the GPU cannot be used.
pub fn select(backend: Backend, ordinal: Option<u32>) -> Result<Selection, EngineError> {
    Ok(match backend {
        Backend::Cpu => {
            Selection { engine: Box::new(Cpu::default()), description: "the CPU".to_owned() }
        }
        Backend::Cuda => {
            let cuda = Cuda::new(ordinal)?;
            let description = cuda.to_string();
            Selection { engine: Box::new(cuda), description }
        }
        Backend::Auto => {
            let auto = Auto::new(ordinal);
            let description = auto.to_string();
            Selection { engine: Box::new(auto), description }
        }
    })
}
