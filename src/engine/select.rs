use gst::glib;

use super::{Cpu, Engine};

/// Where to decode and suppress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstNmsFilterBackend")]
pub enum Backend {
    /// Where the tensor lies.
    #[default]
    #[enum_value(name = "Auto: the best engine there is", nick = "auto")]
    Auto = 0,
    /// On the CPU.
    #[enum_value(name = "CPU", nick = "cpu")]
    Cpu = 1,
    /// On an NVIDIA GPU.
    #[enum_value(name = "CUDA: an NVIDIA GPU (not in this version)", nick = "cuda")]
    Cuda = 2,
}

/// Why there is no engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// The engine is not part of this build.
    #[error("this version has no CUDA engine; set backend to auto or cpu")]
    NoCuda,
}

/// The engine for `backend`.
///
/// # Errors
/// Where there is none.
pub fn select(backend: Backend) -> Result<Box<dyn Engine>, SelectError> {
    match backend {
        Backend::Auto | Backend::Cpu => Ok(Box::new(Cpu::default())),
        Backend::Cuda => Err(SelectError::NoCuda),
    }
}
