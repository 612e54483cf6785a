// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a video frame to the numbers that a model takes.
//!
//! In: a frame of any raw format. Out: the model's input tensor. The frame is scaled
//! (bilinear interpolation), its components become red, green and blue, and each value of a channel becomes
//! a number by a [`Table`]:
//!
//! ```text
//! value[c] = matrix[c] x interpolated samples + bias[c]
//! tensor[c][y][x] = table[c][value[c]]
//! ```
//!
//! The processor that runs the model does it: [`cpu`] or [`GpuResampler`]. Both use the same integers for
//! positions and colors, and the same table, so a model takes the same input on every processor, bit for
//! bit. On a GPU the frame is all that is read from the host, and a frame in its memory is read there
//! ([`DeviceFrame`]).
//!
//! GstVideoConverter does the same on the host, in more formats and with better filters. It is used for
//! formats whose samples are not bytes; docs/measurements.md has the times of both.

mod cpu;
mod device_frame;
mod formats;
mod frame_format;
mod gpu;
mod positions;
mod resample_params;
mod resampler;
mod table;

pub use cpu::{Rows, resample};
pub use device_frame::DeviceFrame;
pub use formats::Formats;
pub use gpu::{GpuResampler, Staged, Staging};
pub use resampler::{BORDER, Plane};
pub use resampler::{Resampler, Scratch};
pub use table::Table;
