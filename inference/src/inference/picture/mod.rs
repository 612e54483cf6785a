// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts a video frame to the numbers that a model takes.
//!
//! In: a frame of any raw format, or regions of it. Out: the model's input tensor. A region is scaled (bilinear
//! interpolation), its components are converted to red, green and blue, and each channel value is replaced by a number
//! from a [`Table`]:
//!
//! ```text
//! value[c] = matrix[c] x interpolated samples + bias[c]
//! tensor[c][y][x] = table[c][value[c]]
//! ```
//!
//! The processor that runs the model does this work: `cpu` or [`GpuResampler`]. Both use integer arithmetic with
//! equal numbers for positions and colors, and equal tables, so a model gets identical input on every processor,
//! bit for bit. On a GPU, nothing but the frame is read from the host, and a frame in device memory is read in
//! place ([`device_samples`]).
//!
//! GstVideoConverter also does this work, on the host, for more formats and with better filters. It is used for
//! formats whose samples are not bytes. docs/developers/measurements.md compares the times of both.

mod cpu;
mod device_frame;
mod frame_format;
mod gpu;
mod gpu_scalings;
mod pool_frame;
mod positions;
mod resample_params;
mod resampler;
mod scaling;
mod table;

pub use cpu::{Resampling, Rows, resample};
pub use device_frame::{component_samples, device_samples};
pub use gpu::{ComponentSamples, GpuResampler, Staging};
pub use gpu_scalings::GpuScalings;
pub use pool_frame::pinned_frame;
pub use resampler::{BORDER, Resampler, Scratch};
pub use scaling::Scaling;
pub use table::Table;
