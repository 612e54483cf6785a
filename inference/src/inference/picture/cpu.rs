// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resampling on the CPU: the arithmetic of `kernels/resample.cu`, row by row.
//!
//! In: the samples of a frame. Out: the model's input tensor. Each row of the picture is made in four steps. First,
//! two pixels beside each other are read from two rows, for each column. Their samples are interpolated, without
//! rounding in between, and converted to colors: the compiler vectorizes these loops. Finally, each color is looked up
//! in the table.

use super::frame_format::{CHANNELS, ColorMatrix};
use super::positions::POSITION_BITS;
use super::resample_params::VALUES;
use super::resampler::{BORDER, Resampler};
use super::scaling::Scaling;
use super::table::Table;
use crate::inference::model::{InputLayout, InputSpec};
use gstnmsfilter::frame::Plane;

/// Memory for rows, which is used again for every frame.
#[derive(Default)]
pub struct Rows {
    /// For each column, 8 bytes of the rows above and below: the pixel at its position, and the next one.
    pixels: [Vec<u64>; 2],
    samples: [Vec<u8>; CHANNELS],
    values: [Vec<u8>; CHANNELS],
}

/// A region of a frame, and the model's input that is made of it.
#[derive(Clone, Copy)]
pub struct Resampling<'a> {
    /// The format of the frame.
    pub resampler: &'a Resampler,
    /// The scaling of the region.
    pub scaling: &'a Scaling,
    /// The plane of each component.
    pub planes: &'a [Plane<'a>],
    /// The model's input.
    pub input: &'a InputSpec,
    /// The elements of the input.
    pub table: &'a Table,
}

/// Writes the model's input to `tensor`.
///
/// # Panics
/// If `tensor` has another size.
pub fn resample(of: Resampling<'_>, rows: &mut Rows, tensor: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn with_avx2(of: Resampling<'_>, rows: &mut Rows, tensor: &mut [u8]) {
            resample_portable(of, rows, tensor);
        }
        // SAFETY: the processor has AVX2, which is the only feature that the function requires.
        return unsafe { with_avx2(of, rows, tensor) };
    }
    resample_portable(of, rows, tensor);
}

#[inline(always)]
fn resample_portable(of: Resampling<'_>, rows: &mut Rows, tensor: &mut [u8]) {
    match of.table {
        Table::F32(table) => elements(of, table, rows, bytemuck::cast_slice_mut(tensor)),
        Table::F16(table) => elements(of, table, rows, bytemuck::cast_slice_mut(tensor)),
        Table::U8(table) => elements(of, table, rows, tensor),
    }
}

#[inline(always)]
fn elements<T: Copy>(of: Resampling<'_>, table: &[[T; VALUES]], rows: &mut Rows, tensor: &mut [T]) {
    let Resampling { input, scaling, .. } = of;
    let [width, height] = input.size.map(|side| side as usize);
    let channels = table.len();
    assert_eq!(tensor.len(), width * height * channels, "the tensor has the input's size");
    let [left, top] = scaling.fit.offset.map(|side| side as usize);
    let [region_width, region_height] = scaling.fit.size.map(|side| side as usize);
    for values in &mut rows.values[..channels] {
        values.clear();
        values.resize(width, BORDER);
    }
    for y in 0..height {
        let inside = (top..top + region_height).contains(&y);
        if inside {
            row(of, y - top, rows, left..left + region_width);
        } else if y == top + region_height {
            rows.values.iter_mut().for_each(|values| values.fill(BORDER));
        }
        for (channel, table) in table.iter().enumerate() {
            let values = rows.values[channel].iter();
            match input.layout {
                InputLayout::Nchw => {
                    let elements = &mut tensor[(channel * height + y) * width..][..width];
                    if !inside {
                        // Takes less time than looking each value up.
                        elements.fill(table[usize::from(BORDER)]);
                        continue;
                    }
                    for (element, &value) in elements.iter_mut().zip(values) {
                        *element = table[usize::from(value)];
                    }
                }
                InputLayout::Nhwc => {
                    let start = y * width * channels + channel;
                    let elements = tensor[start..].iter_mut().step_by(channels);
                    for (element, &value) in elements.zip(values) {
                        *element = table[usize::from(value)];
                    }
                }
            }
        }
    }
}

/// Returns up to 8 bytes of `row` from `start` on, and zeros after its end.
#[inline(always)]
fn eight_bytes(row: &[u8], start: usize) -> u64 {
    match row[start..].first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => row[start..].iter().rev().fold(0, |bytes, &byte| bytes << 8 | u64::from(byte)),
    }
}

/// Computes row `y` of the scaled region: the values of the model's channels at `columns`.
#[inline(always)]
fn row(
    Resampling { resampler, scaling, planes, input, .. }: Resampling<'_>,
    y: usize,
    rows: &mut Rows,
    columns: std::ops::Range<usize>,
) {
    const ONE: u32 = 1 << POSITION_BITS;
    let Rows { pixels, samples, values } = rows;
    let components = &resampler.format.components;
    for (k, (component, plane)) in components.iter().zip(planes).enumerate() {
        let (positions, size) = (&scaling.positions[k], component.pixel_stride);
        // A byte of the first pixel, and how many pixels are before it.
        let (before, byte) = (component.offset / size, component.offset % size);
        let at = positions.rows[y];
        let is_read = k > 0 && {
            let other = &components[k - 1];
            (other.plane, other.pixel_stride, other.shift, other.offset / size)
                == (component.plane, size, component.shift, before)
        };
        if !is_read {
            let above = &plane.data[(at / ONE) as usize * plane.stride + before * size..];
            let below = if at % ONE == 0 { above } else { &above[plane.stride..] };
            let [from_above, from_below] = &mut *pixels;
            from_above.resize(columns.len(), 0);
            from_below.resize(columns.len(), 0);
            let both = from_above.iter_mut().zip(from_below);
            for ((from_above, from_below), &at) in both.zip(&positions.columns) {
                let start = (at / ONE) as usize * size;
                (*from_above, *from_below) = (eight_bytes(above, start), eight_bytes(below, start));
            }
        }
        // The samples of two pixels, in the halves of 32 bits. No format has more than 4 bytes per pixel.
        let (left, right) = (8 * byte as u32, 8 * (byte + size) as u32);
        let pair = |pixels: u64| {
            ((pixels >> left) & 0xff) as u32 | (((pixels >> right) & 0xff) as u32) << 16
        };
        let fy = at % ONE;
        samples[k].resize(columns.len(), 0);
        let [above, below] = &*pixels;
        let sources = positions.columns.iter().zip(above).zip(below);
        for (sample, ((&at, &above), &below)) in samples[k].iter_mut().zip(sources) {
            // Each half is at most 255 x 256.
            let blended = pair(above) * (ONE - fy) + pair(below) * fy;
            let fx = at % ONE;
            let half = 1 << (2 * POSITION_BITS - 1);
            let sum = (blended & 0xffff) * (ONE - fx) + (blended >> 16) * fx + half;
            *sample = (sum >> (2 * POSITION_BITS)) as u8;
        }
    }
    for (channel, values) in values.iter_mut().enumerate().take(input.channels) {
        let ColorMatrix { matrix, bias } = resampler.format.color;
        let (weights, bias) = (matrix[channel], bias[channel]);
        let values = values[columns.clone()].iter_mut();
        let [first, second, third] = &*samples;
        if components.len() == 1 {
            for (value, &a) in values.zip(first) {
                *value = ColorMatrix::value(weights, bias, [a, 0, 0]);
            }
        } else {
            for (value, ((&a, &b), &c)) in values.zip(first.iter().zip(second).zip(third)) {
                *value = ColorMatrix::value(weights, bias, [a, b, c]);
            }
        }
    }
}
