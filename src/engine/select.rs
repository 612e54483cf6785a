use super::auto::Auto;
use super::{Cpu, Cuda, Engine, EngineError};

/// Where to decode and suppress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Backend {
    /// Where the tensor lies; from the host's memory, where it takes less time.
    #[default]
    Auto = 0,
    /// On the CPU.
    Cpu = 1,
    /// On an NVIDIA GPU.
    Cuda = 2,
}

/// What [`select`] comes to.
pub struct Selection {
    /// The engine.
    pub engine: Box<dyn Engine>,
    /// What it runs on, for a log, as far as that is known:
    /// [`take_description`](Engine::take_description) has the rest.
    pub description: String,
}

/// The engine for `backend`, on GPU number `ordinal` if on any; without a number on the first, or
/// on the one where tensors turn out to lie. [`Backend::Auto`] touches no GPU here.
///
/// # Errors
/// Where `backend` is [`Backend::Cuda`] and the GPU cannot be used.
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
