// SPDX-License-Identifier: MIT OR Apache-2.0
//! The masks of survivors.
//!
//! In: the survivors of a group of images with their columns, and the prototypes of each image. Out: the places and the bits of masks.
//!
//! Logits are only computed for the prototype pixels that a survivor's box needs, for all survivors
//! of an image together ([`mask_logits`](super::mask_logits)).

use std::ops::Range;

use super::super::EngineError;
use super::super::masks::{FrameSamples, MaskArea, MaskGrid, MaskPlace, Sample, WORD_BYTES};
use super::super::outcome::HostResults;
use super::dispatch::{Work, dispatch};
use super::host_tensors::HostTensors;
use super::mask_logits::MaskLogits;
use crate::decoder::Layout;
use crate::decoder::layout::{Column, Prototypes};

/// The number of logits from which on masks are finished before other masks are begun. So many
/// logits take 2 MB.
const MAX_LOGITS: usize = 1 << 19;

/// Computes the bits of masks.
#[derive(Debug, Default)]
pub(super) struct MaskBuffers {
    /// The masks of the current group whose bits are to be computed.
    pending: Vec<Pending>,
    logits: MaskLogits,
    scratch: Scratch,
}

/// A mask whose bits are to be computed.
#[derive(Clone, Copy, Debug)]
struct Pending {
    place: MaskPlace,
    /// The index of the image.
    image: usize,
    /// The index of the survivor's first coefficient in the columns of all survivors.
    coefficients: usize,
}

#[derive(Debug, Default)]
struct Scratch {
    /// The logits of a row of the frame.
    frame_row: Vec<f32>,
    /// Two rows of logits of prototypes, interpolated to the frame's columns, each with its row
    /// number.
    rows: [(Option<u32>, Vec<f32>); 2],
    /// For each frame column: the two prototype columns to interpolate between.
    columns: Vec<Sample>,
}

impl MaskBuffers {
    /// Adds the masks of the survivors of a group of `images`. The first survivor is at `begin`.
    ///
    /// # Errors
    /// If the prototypes of an image cannot be read.
    pub fn add_group(
        &mut self,
        layout: &Layout,
        prototypes: &Prototypes,
        host: &HostTensors<'_, '_>,
        images: Range<usize>,
        results: &mut HostResults,
        begin: usize,
    ) -> Result<(), EngineError> {
        let Self { pending, logits, scratch } = self;
        let HostResults { survivors, columns, masks, mask_bytes: bytes, .. } = results;
        let (survivors, anchors) = (&survivors[begin..], layout.anchors());
        let words = masks.add_group(images.clone(), anchors, survivors, bytes.len());
        bytes.resize(bytes.len() + words as usize * WORD_BYTES as usize, 0);
        let components = |columns: &[Column]| columns.iter().map(|it| it.components).sum::<usize>();
        let (before, rest) = layout.columns.split_at(prototypes.column);
        let (first, channels) = (components(before), rest[0].components);
        let row = components(&layout.columns);
        let rows = (begin * row + first..).step_by(row);
        let all = survivors.iter().zip(&masks.places[begin..]).zip(rows);
        pending.clear();
        let all = all.map(|((survivor, &place), coefficients)| {
            let image = images.start + survivor.anchor as usize / anchors;
            Pending { place, image, coefficients }
        });
        pending.extend(all.filter(|mask| mask.place.area.bytes() > 0));
        pending.sort_unstable_by_key(|mask| mask.image);
        for pending in pending.chunk_by(|a, b| a.image == b.image) {
            let image = pending[0].image;
            let grid = &masks.grids[image];
            let numbers = host.image(image)?.numbers(&prototypes.field);
            let mut rest = pending;
            while !rest.is_empty() {
                logits.clear();
                let mut count = 0;
                while count < rest.len() && logits.len() < MAX_LOGITS {
                    let mask = &rest[count];
                    let (corner, size) = prototype_pixels(grid, mask.place.area);
                    logits.push(corner, size, &columns[mask.coefficients..][..channels]);
                    count += 1;
                }
                logits.compute(&numbers, prototypes.width);
                let (together, later) = rest.split_at(count);
                dispatch(SetMasks { grid, masks: together, logits, bytes, scratch });
                rest = later;
            }
        }
        Ok(())
    }
}

/// The first column and row of the prototype pixels whose logits a mask needs, and their numbers of
/// columns and rows.
fn prototype_pixels(grid: &MaskGrid, area: MaskArea) -> ([u32; 2], [u32; 2]) {
    let MaskArea { left, top, width, height } = area;
    match grid {
        MaskGrid::Prototypes { .. } => ([left, top], [width, height]),
        MaskGrid::Frame { samples, .. } => {
            let between = |axis: usize, first: u32, count: u32| {
                let samples = &samples[axis];
                prototypes_between(samples.at(first), samples.at(first + count - 1))
            };
            let [(left, columns), (top, rows)] = [between(0, left, width), between(1, top, height)];
            ([left, top], [columns, rows])
        }
    }
}

/// Sets the bits of masks. `logits` has a rectangle for each of them.
struct SetMasks<'a> {
    grid: &'a MaskGrid,
    masks: &'a [Pending],
    logits: &'a mut MaskLogits,
    bytes: &'a mut [u8],
    scratch: &'a mut Scratch,
}

impl Work for SetMasks<'_> {
    #[inline(always)]
    fn run(self) {
        let Self { grid, masks, logits, bytes, scratch } = self;
        for (index, &Pending { place: MaskPlace { area, first }, .. }) in masks.iter().enumerate() {
            let bytes = &mut bytes[first..][..area.bytes()];
            match grid {
                MaskGrid::Prototypes { .. } => {
                    for (y, bytes) in (area.top..).zip(bytes.chunks_exact_mut(area.stride())) {
                        set_bits(logits.row_mut(index, y), area.width as usize, bytes);
                    }
                }
                MaskGrid::Frame { samples, .. } => {
                    let row = |y: u32| logits.row(index, y);
                    set_frame_pixels(samples, area, row, bytes, scratch);
                }
            }
        }
    }
}

/// Sets the bits of a mask in pixels of the frame. `logits` returns the logits of a row of
/// prototypes, from the first column on that the mask needs.
#[inline(always)]
fn set_frame_pixels<'a>(
    samples: &[FrameSamples; 2],
    area: MaskArea,
    logits: impl Fn(u32) -> &'a [f32],
    bytes: &mut [u8],
    scratch: &mut Scratch,
) {
    let width = area.width as usize;
    let Scratch { frame_row, rows, columns } = scratch;
    columns.clear();
    columns.extend((area.left..area.left + area.width).map(|x| samples[0].at(x)));
    let (left, _) = prototypes_between(columns[0], columns[width - 1]);
    frame_row.resize(width.next_multiple_of(8), 0.0);
    rows.iter_mut().for_each(|(number, _)| *number = None);
    for (y, bytes) in (area.top..).zip(bytes.chunks_exact_mut(area.stride())) {
        let between = samples[1].at(y);
        if rows[1].0 == Some(between.first) {
            rows.swap(0, 1);
        }
        for (row, number) in rows.iter_mut().zip([between.first, between.second]) {
            if row.0 != Some(number) {
                let logits = logits(number);
                row.0 = Some(number);
                row.1.resize(width, 0.0);
                for (to, column) in row.1.iter_mut().zip(&*columns) {
                    let a = logits[(column.first - left) as usize];
                    let b = logits[(column.second - left) as usize];
                    *to = a + (b - a) * column.weight;
                }
            }
        }
        let [(_, upper), (_, lower)] = &*rows;
        for ((logit, p), q) in frame_row.iter_mut().zip(upper).zip(lower) {
            *logit = p + (q - p) * between.weight;
        }
        set_bits(frame_row, width, bytes);
    }
}

/// Returns the first of the columns or rows of prototypes that pixels of the frame need, and their
/// number. `begin` and `end` belong to the first and the last of the pixels.
fn prototypes_between(begin: Sample, end: Sample) -> (u32, u32) {
    // Positions ascend or descend.
    let (first, last) = (begin.first.min(end.first), begin.second.max(end.second));
    (first, last - first + 1)
}

/// Sets a row's bits where the logit is greater than 0. The logits beyond the first `width` are
/// overwritten.
#[inline(always)]
fn set_bits(logits: &mut [f32], width: usize, bytes: &mut [u8]) {
    logits[width..width.next_multiple_of(8)].fill(0.0);
    for (byte, logits) in bytes.iter_mut().zip(logits.as_chunks::<8>().0) {
        *byte = positive_bits(logits);
    }
}

/// A byte with a bit for each number that is greater than 0; the most significant bit belongs to
/// the first number.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn positive_bits(&[a, b, c, d, e, f, g, h]: &[f32; 8]) -> u8 {
    use std::arch::x86_64::{_mm_cmpgt_ps, _mm_movemask_ps, _mm_setr_ps, _mm_setzero_ps};
    // The compiler has no form of the loop below that becomes `movmskps`, which is twice as fast.
    let bits = |a: f32, b: f32, c: f32, d: f32| {
        // SAFETY: every x86-64 processor has SSE.
        unsafe { _mm_movemask_ps(_mm_cmpgt_ps(_mm_setr_ps(a, b, c, d), _mm_setzero_ps())) }
    };
    // `movmskps` has the least significant bit first.
    (bits(d, c, b, a) << 4 | bits(h, g, f, e)) as u8
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn positive_bits(numbers: &[f32; 8]) -> u8 {
    let shifted = (0..8).map(|index| u32::from(numbers[index] > 0.0) << (7 - index));
    shifted.fold(0, |bits, bit| bits | bit) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_significant_bit_is_the_first_pixel_and_bits_beyond_the_width_are_0() {
        let mut rng = fastrand::Rng::with_seed(1);
        for width in 1..40usize {
            let mut logits: Vec<f32> = (0..width + 7)
                .map(|_| *rng.choice(&[1.0, -1.0, 0.0, -0.0, f32::NAN, f32::INFINITY]).unwrap())
                .collect();
            let mut expected = vec![0u8; width.div_ceil(8)];
            for (x, logit) in logits[..width].iter().enumerate() {
                if *logit > 0.0 {
                    expected[x / 8] |= 0x80 >> (x % 8);
                }
            }
            let mut bytes = vec![0xff; width.div_ceil(8)];
            set_bits(&mut logits, width, &mut bytes);
            assert_eq!(bytes, expected, "{width}");
        }
    }
}
