// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resampling on the CPU: the arithmetic of `kernels/resample.cu`, row by row.
//!
//! In: the samples of a frame. Out: the model's input tensor. A row of the picture is made in three steps,
//! whose loops the compiler vectorizes in part: two rows of samples become one (in 16 bits, exactly), its
//! samples are interpolated at the columns, and their colors are looked up in the table.

use super::frame_format::CHANNELS;
use super::positions::POSITION_BITS;
use super::resampler::{BORDER, Plane, Resampler};
use super::table::Table;
use crate::inference::model::{Input, InputLayout};

/// Memory for rows, used again for every frame.
#[derive(Default)]
pub struct Rows {
    blended: Vec<u16>,
    samples: [Vec<u8>; CHANNELS],
    values: [Vec<u8>; CHANNELS],
}

/// Writes the elements of the model's input to `tensor`, the bytes of a tensor as `input` describes.
///
/// # Panics
/// If `tensor` has another size.
pub fn resample(
    resampler: &Resampler,
    planes: &[Plane<'_>],
    (input, table): (&Input, &Table),
    rows: &mut Rows,
    tensor: &mut [u8],
) {
    match table {
        Table::F32(table) => {
            elements(resampler, planes, (input, table), rows, bytemuck::cast_slice_mut(tensor));
        }
        Table::F16(table) => {
            elements(resampler, planes, (input, table), rows, bytemuck::cast_slice_mut(tensor));
        }
        Table::U8(table) => elements(resampler, planes, (input, table), rows, tensor),
    }
}

fn elements<T: Copy>(
    resampler: &Resampler,
    planes: &[Plane<'_>],
    (input, table): (&Input, &[[T; 256]]),
    rows: &mut Rows,
    tensor: &mut [T],
) {
    let [width, height] = input.size.map(|side| side as usize);
    let channels = table.len();
    assert_eq!(tensor.len(), width * height * channels, "the tensor has the input's size");
    let [left, top] = resampler.fit.offset.map(|side| side as usize);
    let [region_width, region_height] = resampler.fit.size.map(|side| side as usize);
    for values in &mut rows.values[..channels] {
        values.clear();
        values.resize(width, BORDER);
    }
    for y in 0..height {
        let inside = (top..top + region_height).contains(&y);
        if inside {
            row(resampler, planes, y - top, rows, left..left + region_width, channels);
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

/// Makes row `y` of the region: the values of the model's channels at `columns`.
fn row(
    resampler: &Resampler,
    planes: &[Plane<'_>],
    y: usize,
    rows: &mut Rows,
    columns: std::ops::Range<usize>,
    channels: usize,
) {
    const ONE: u32 = 1 << POSITION_BITS;
    let components = &resampler.format.components;
    for (k, (component, plane)) in components.iter().zip(planes).enumerate() {
        let positions = &resampler.positions[k];
        let at = positions.rows[y];
        let (above, fy) = ((at / ONE) as usize, at % ONE);
        let above = &plane.data[plane.offset + above * plane.stride..];
        let below = if fy == 0 { above } else { &above[plane.stride..] };
        let last = positions.columns.last().map_or(0, |at| at.div_ceil(ONE) as usize);
        let stride = component.pixel_stride;
        rows.blended.clear();
        let pairs = above.iter().step_by(stride).zip(below.iter().step_by(stride));
        // At most 255 x 256.
        let blend = |(&above, &below): (&u8, &u8)| {
            u16::from(above) * (ONE - fy) as u16 + u16::from(below) * fy as u16
        };
        rows.blended.extend(pairs.take(last + 1).map(blend));

        let blended = &rows.blended[..];
        let interpolate = |&at: &u32| {
            let (index, fx) = ((at / ONE) as usize, at % ONE);
            let next = index + usize::from(fx != 0);
            let [left, right] = [blended[index], blended[next]].map(u32::from);
            let half = 1 << (2 * POSITION_BITS - 1);
            ((left * (ONE - fx) + right * fx + half) >> (2 * POSITION_BITS)) as u8
        };
        rows.samples[k].clear();
        rows.samples[k].extend(positions.columns.iter().map(interpolate));
    }
    let color = &resampler.format.color;
    let Rows { samples, values, .. } = rows;
    for (channel, values) in values.iter_mut().enumerate().take(channels) {
        let values = values[columns.clone()].iter_mut();
        match components.len() {
            1 => {
                for (value, &a) in values.zip(&samples[0]) {
                    *value = color.value(channel, [i32::from(a), 0, 0]);
                }
            }
            _ => {
                let samples = samples[0].iter().zip(&samples[1]).zip(&samples[2]);
                for (value, ((&a, &b), &c)) in values.zip(samples) {
                    *value = color.value(channel, [a, b, c].map(i32::from));
                }
            }
        }
    }
}
