// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resampling on the CPU: the arithmetic of `kernels/resample.cu`, row by row.
//!
//! In: the samples of a frame. Out: the model's input tensor. Each row of the picture is made in three steps, whose
//! loops the compiler vectorizes in part. First, two rows of samples are blended into one row of 16-bit numbers,
//! without rounding. Then this row is interpolated at the positions of the columns. Finally, each resulting color
//! is looked up in the table.

use super::frame_format::CHANNELS;
use super::positions::POSITION_BITS;
use super::resample_params::VALUES;
use super::resampler::{BORDER, Plane, Resampler};
use super::scaling::Scaling;
use super::table::Table;
use crate::inference::model::{InputLayout, InputSpec};

/// Memory for rows, which is used again for every frame.
#[derive(Default)]
pub struct Rows {
    blended: Vec<u16>,
    samples: [Vec<u8>; CHANNELS],
    values: [Vec<u8>; CHANNELS],
}

/// Writes the model's input to `tensor`. `input` describes the elements whose bytes are in `tensor`.
///
/// # Panics
/// If `tensor` has another size.
pub fn resample(
    (resampler, scaling): (&Resampler, &Scaling),
    planes: &[Plane<'_>],
    (input, table): (&InputSpec, &Table),
    rows: &mut Rows,
    tensor: &mut [u8],
) {
    match table {
        Table::F32(table) => {
            elements(
                (resampler, scaling),
                planes,
                (input, table),
                rows,
                bytemuck::cast_slice_mut(tensor),
            );
        }
        Table::F16(table) => {
            elements(
                (resampler, scaling),
                planes,
                (input, table),
                rows,
                bytemuck::cast_slice_mut(tensor),
            );
        }
        Table::U8(table) => elements((resampler, scaling), planes, (input, table), rows, tensor),
    }
}

fn elements<T: Copy>(
    (resampler, scaling): (&Resampler, &Scaling),
    planes: &[Plane<'_>],
    (input, table): (&InputSpec, &[[T; VALUES]]),
    rows: &mut Rows,
    tensor: &mut [T],
) {
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
            row((resampler, scaling), planes, y - top, rows, left..left + region_width, channels);
        } else if y == top + region_height {
            rows.values.iter_mut().for_each(|values| values.fill(BORDER));
        }
        for (channel, table) in table.iter().enumerate() {
            let values = rows.values[channel].iter();
            match input.layout {
                InputLayout::Nchw => {
                    let start = (channel * height + y) * width;
                    for (element, &value) in tensor[start..start + width].iter_mut().zip(values) {
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

/// Blends two rows into one: `count` samples, `stride` bytes apart. The results are multiplied by 256; the weights
/// are `fy` for `below` and `256 - fy` for `above`.
fn blend(blended: &mut Vec<u16>, above: &[u8], below: &[u8], fy: u16, stride: usize, count: usize) {
    // The sum is at most 255 x 256, which fits in 16 bits.
    let sum = |above: u8, below: u8| u16::from(above) * (256 - fy) + u16::from(below) * fy;
    blended.clear();
    match stride {
        // These strides occur in the formats of decoders and cameras. Their loops are vectorized.
        1 => blended.extend(above[..count].iter().zip(&below[..count]).map(|(&a, &b)| sum(a, b))),
        2 => pixels::<2>(blended, above, below, count, sum),
        3 => pixels::<3>(blended, above, below, count, sum),
        4 => pixels::<4>(blended, above, below, count, sum),
        _ => {
            let pairs = above.iter().step_by(stride).zip(below.iter().step_by(stride));
            blended.extend(pairs.take(count).map(|(&a, &b)| sum(a, b)));
        }
    }
}

/// Implements [`blend`] for samples that are `N` bytes apart.
fn pixels<const N: usize>(
    blended: &mut Vec<u16>,
    above: &[u8],
    below: &[u8],
    count: usize,
    sum: impl Fn(u8, u8) -> u16,
) {
    let pairs = above.as_chunks::<N>().0.iter().zip(below.as_chunks::<N>().0);
    blended.extend(pairs.take(count).map(|(a, b)| sum(a[0], b[0])));
    // After the last sample, the row may have less than a whole pixel left.
    let rest = blended.len()..count;
    blended.extend(rest.map(|at| sum(above[at * N], below[at * N])));
}

/// Computes row `y` of the scaled region: the values of the model's channels at `columns`.
fn row(
    (resampler, scaling): (&Resampler, &Scaling),
    planes: &[Plane<'_>],
    y: usize,
    rows: &mut Rows,
    columns: std::ops::Range<usize>,
    channels: usize,
) {
    const ONE: u32 = 1 << POSITION_BITS;
    let components = &resampler.format.components;
    for (k, (component, plane)) in components.iter().zip(planes).enumerate() {
        let positions = &scaling.positions[k];
        let at = positions.rows[y];
        let (above, fy) = ((at / ONE) as usize, at % ONE);
        // Only the samples of the region are blended.
        let first = positions.columns.first().map_or(0, |at| (at / ONE) as usize);
        let last = positions.columns.last().map_or(0, |at| at.div_ceil(ONE) as usize);
        let start = above * plane.stride + first * component.pixel_stride;
        let above = &plane.data[plane.offset + start..];
        let below = if fy == 0 { above } else { &above[plane.stride..] };
        blend(&mut rows.blended, above, below, fy as u16, component.pixel_stride, last + 1 - first);

        let blended = &rows.blended[..];
        let interpolate = |&at: &u32| {
            let (index, fx) = ((at / ONE) as usize - first, at % ONE);
            let next = index + usize::from(fx != 0);
            let [left, right] = [blended[index], blended[next]].map(u32::from);
            let half = 1 << (2 * POSITION_BITS - 1);
            ((left * (ONE - fx) + right * fx + half) >> (2 * POSITION_BITS)) as u8
        };
        rows.samples[k].clear();
        rows.samples[k].extend(positions.columns.iter().map(interpolate));
    }
    let Rows { samples, values, .. } = rows;
    for (channel, values) in values.iter_mut().enumerate().take(channels) {
        let color = resampler.format.color.channel(channel);
        let values = values[columns.clone()].iter_mut();
        match components.len() {
            1 => values.zip(&samples[0]).for_each(|(value, &a)| *value = color.value([a, 0, 0])),
            _ => {
                let samples = samples[0].iter().zip(&samples[1]).zip(&samples[2]);
                for (value, ((&a, &b), &c)) in values.zip(samples) {
                    *value = color.value([a, b, c]);
                }
            }
        }
    }
}
