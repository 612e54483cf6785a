// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parameters of the kernels in `kernels/resample.cu`. They are also in `kernels/resample_generated.cuh`, which
//! `c/tests/header.rs` writes.

use super::frame_format::CHANNELS;

/// The number of values of a byte: entries of the table per channel.
pub const VALUES: usize = 256;

/// The number of threads per block.
pub const RESAMPLE_THREADS: u32 = 128;

/// The position of columns and rows of the model's input that are outside of the region. The greatest index of a sample,
/// 2^24 - 1, has no fraction, so no sample has this position.
pub const OUTSIDE: u32 = 0xffff_ffff;

/// A component of a frame: Y, Cb, Cr, or R, G, B. Its sample (x, y) is the byte
/// samples + y * row_stride + x * pixel_stride.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct ResampleComponent {
    /// Device address, or address of mapped host memory.
    pub samples: u64,
    /// In bytes.
    pub row_stride: u32,
    /// In bytes.
    pub pixel_stride: u32,
}

/// Pictures of regions of a frame, which follow one another in `output`. Each is a model's input:
/// channel c of pixel (x, y) is written to element c * output_channel_stride + y * output_row_stride +
/// x * output_pixel_stride of the picture, from entry c * VALUES + value of the table.
///
/// Each picture has CHANNELS * (width + height) positions, in the order of the pictures. Component k has
/// width + height of them: one per column, then one per row of the model's input. A position says
/// where the column or row is among the samples: the index of the preceding sample, times
/// 2^POSITION_BITS, plus the fraction to the next sample. The fraction of the last sample is 0.
/// Columns and rows outside of the region have the position OUTSIDE, in all components.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct ResampleParams {
    pub components: [ResampleComponent; CHANNELS],
    /// Device address of uint32_t: the positions of the first picture.
    pub positions: u64,
    /// Device address, aligned to the elements' size.
    pub table: u64,
    /// Device address, aligned to the elements' size.
    pub output: u64,
    /// From components to channels.
    pub matrix: [[i32; CHANNELS]; CHANNELS],
    /// The number to add for each channel, rounding included.
    pub bias: [i32; CHANNELS],
    /// 1 to CHANNELS.
    pub component_count: u32,
    /// 1 to CHANNELS.
    pub channels: u32,
    /// Of the model's input, in pixels.
    pub width: u32,
    /// Of the model's input, in pixels.
    pub height: u32,
    /// The value of all channels outside of the region.
    pub border: u32,
    /// In elements.
    pub output_pixel_stride: u32,
    /// In elements.
    pub output_row_stride: u32,
    /// In elements.
    pub output_channel_stride: u32,
}

impl ResampleParams {
    /// Returns the number of blocks of a launch for this number of pictures; each has [`RESAMPLE_THREADS`] threads.
    pub fn grid(&self, pictures: u32) -> [u32; 3] {
        [self.width.div_ceil(RESAMPLE_THREADS), self.height, pictures]
    }
}
