// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a video frame to the numbers that a model takes.
//!
//! In: a frame of any raw format. Out: the model's input tensor. There are two steps:
//!
//! 1. [`Scaler`]: the frame becomes a picture of 8-bit RGB (or gray) of the model's size, by
//!    GstVideoConverter on the host. A frame that is one already is used as it is.
//! 2. Packing: `tensor[channel][y][x] = table[channel][pixel]`, where the [`Table`] has the number for each
//!    of the 256 values of a channel. The CPU does it for a model on the CPU ([`pack`]), and the GPU for a
//!    model on the GPU ([`DevicePacker`]): so a quarter of the bytes is uploaded.
//!
//! Both ways of packing copy numbers from the same table, so a model takes the same input on every
//! processor.

mod device;
mod pack;
mod pack_params;
mod scaler;
mod table;

pub use device::DevicePacker;
pub use pack::pack;
#[cfg(feature = "internals")]
pub use pack_params::{PACK_THREADS, PackParams};
pub use scaler::{Picture, Pixels, Scaler};
pub use table::Table;
