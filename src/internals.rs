// SPDX-License-Identifier: MIT OR Apache-2.0
//! The modules that are not part of the interface, for this repository's other packages: the plugin
//! `nmsfilterdemo`, tests, benchmarks and fuzzer. They change without notice.
#![allow(missing_docs, reason = "each module has its documentation")]

pub mod decoder {
    pub use crate::decoder::*;
}

pub mod detail {
    pub use crate::detail::*;
}

#[cfg(feature = "gstreamer")]
pub mod deepstream {
    pub use crate::deepstream::*;
}

pub mod device {
    pub use crate::device::*;
}

#[cfg(feature = "gstreamer")]
pub mod elements {
    pub use crate::elements::*;
}

pub mod engine {
    pub use crate::engine::*;
}

#[cfg(feature = "gstreamer")]
pub mod file {
    pub use crate::file::*;
}

#[cfg(feature = "gstreamer")]
pub mod frame {
    pub use crate::frame::*;
}

pub mod geometry {
    pub use crate::geometry::*;
}

#[cfg(feature = "onnxruntime")]
pub mod inference {
    pub use crate::inference::*;
}

#[cfg(feature = "v1_20")]
pub mod cuda_memory {
    pub use crate::input::cuda_memory::upload::from_buffer;
}

#[cfg(feature = "gstreamer")]
pub mod output {
    pub use crate::output::*;
}

pub mod plan {
    pub use crate::plan::*;
}

#[cfg(feature = "gstreamer")]
pub mod text {
    pub use crate::text::*;
}
