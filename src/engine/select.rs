use gst::glib;

use super::auto::Auto;
use super::{Cpu, Cuda, Engine, EngineError};
use crate::device::DeviceError;

/// Where to decode and suppress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstNmsFilterBackend")]
pub enum Backend {
    /// Where the tensor lies; from the host's memory, where it takes less time.
    #[default]
    #[enum_value(
        name = "Auto: where the tensor lies, or where it takes less time; the CPU if need be",
        nick = "auto"
    )]
    Auto = 0,
    /// On the CPU.
    #[enum_value(name = "CPU", nick = "cpu")]
    Cpu = 1,
    /// On an NVIDIA GPU.
    #[enum_value(name = "CUDA: an NVIDIA GPU, or an error", nick = "cuda")]
    Cuda = 2,
}

/// What [`select`] comes to.
pub struct Selection {
    /// The engine.
    pub engine: Box<dyn Engine>,
    /// What it runs on, for a log.
    pub description: String,
    /// Why there is no GPU, although there should be one; not set where there simply is none.
    pub warning: Option<DeviceError>,
}

/// The engine for `backend`, on GPU number `ordinal` if on any; without a number on the first, or
/// on the one where tensors turn out to lie.
///
/// # Errors
/// Where `backend` asks for a GPU that cannot be used.
pub fn select(backend: Backend, ordinal: Option<u32>) -> Result<Selection, EngineError> {
    let on_cpu =
        |description, warning| Selection { engine: Box::new(Cpu::default()), description, warning };
    if backend == Backend::Cpu {
        return Ok(on_cpu("the CPU".to_owned(), None));
    }
    match (backend, Cuda::new(ordinal)) {
        (Backend::Cuda, cuda) => {
            let cuda = cuda?;
            let description = cuda.to_string();
            Ok(Selection { engine: Box::new(cuda), description, warning: None })
        }
        (_, Ok(cuda)) => {
            let auto = Auto::new(cuda);
            let description = auto.to_string();
            Ok(Selection { engine: Box::new(auto), description, warning: None })
        }
        (_, Err(error)) => {
            let description = format!("the CPU ({error})");
            Ok(on_cpu(description, Some(error).filter(|error| !error.is_absence())))
        }
    }
}
