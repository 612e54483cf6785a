// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parameters of the kernels in `kernels/resample.cu`. They are also in `kernels/resample_generated.cuh`, which
//! `c/tests/header.rs` writes.

use super::frame_format::CHANNELS;

/// The number of values of a byte: entries of the table per channel.
pub const VALUES: usize = 256;

/// The number of threads per block.
pub const RESAMPLE_THREADS: u32 = 128;

/// A component of a frame: Y, Cb, Cr, or R, G, B. Its sample (x, y) is the byte
/// samples + y * row_stride + x * pixel_stride.
///
/// columns[x] and rows[y] say where pixel (x, y) of the region is among the samples: the index of
/// the preceding sample, times 2^POSITION_BITS, plus the fraction to the next sample. The fraction
/// of the last sample is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct ResampleComponent {
    /// Device address, or address of mapped host memory.
    pub samples: u64,
    /// Device address of uint32_t, one per column of the region.
    pub columns: u64,
    /// Device address of uint32_t, one per row of the region.
    pub rows: u64,
    /// In bytes.
    pub row_stride: u32,
    /// In bytes.
    pub pixel_stride: u32,
}

/// Pixel (x, y) of the model's input is either in the region or in the border. Channel c of the
/// pixel is written to element c * output_channel_stride + y * output_row_stride + x *
/// output_pixel_stride of `output`, from entry c * VALUES + value of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct ResampleParams {
    pub components: [ResampleComponent; CHANNELS],
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
    /// The region in the model's input, in pixels.
    pub left: u32,
    pub top: u32,
    /// Exclusive.
    pub right: u32,
    /// Exclusive.
    pub bottom: u32,
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
    /// Returns the number of blocks of a launch; each has [`RESAMPLE_THREADS`] threads.
    pub fn grid(&self) -> [u32; 3] {
        [self.width.div_ceil(RESAMPLE_THREADS), self.height, 1]
    }
}
