// SPDX-License-Identifier: MIT OR Apache-2.0
//! The masks of survivors.
//!
//! In: the survivors of a group of images with their columns, and the prototypes of each image. Out: the places and the bits of masks.
//!
//! Logits are only computed for the pixels of a survivor's box. The outer loop is over channels, a
//! few at a time, and the inner loops are over the box's rows and columns: each pixel's additions
//! happen in the order of the rules, and memory is read in the order in which it is stored. The
//! planes of channels are often a multiple of 4096 bytes apart, so a loop that read all channels of
//! a few pixels would evict its own lines from the cache.

use std::ops::Range;

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::super::masks::{
    FrameSamples, MaskArea, MaskGrid, MaskMemory, MaskPlace, Sample, WORD_BYTES,
};
use super::super::{Detection, ImagePlace, Params};
use super::host_tensors::Numbers;
use crate::decoder::Layout;
use crate::decoder::layout::Prototypes;
use crate::tensor::{Element, Elements, Quantization};

/// The masks of a run.
#[derive(Debug, Default)]
pub(super) struct MaskBuffers {
    pub places: Vec<MaskPlace>,
    pub bytes: Vec<u8>,
    /// The memory for the current group, which begins at `first_byte`.
    memory: MaskMemory,
    first_byte: usize,
    scratch: Scratch,
}

#[derive(Debug, Default)]
struct Scratch {
    logits: Logits,
    /// The logits of a row of the frame.
    frame_row: Vec<f32>,
    /// Two rows of logits of prototypes, interpolated to the frame's columns, each with its row
    /// number.
    rows: [(Option<u32>, Vec<f32>); 2],
    /// For each frame column: the two prototype columns to interpolate between.
    columns: Vec<Sample>,
}

/// The prototypes of an image, and the positions of the numbers that its masks are computed from.
pub(super) struct ImageMasks<'a> {
    pub grid: MaskGrid,
    pub numbers: Numbers<'a>,
    /// The number of pixels in a row of prototypes.
    width: usize,
    /// The positions of the coefficients in a survivor's row of columns.
    coefficients: Range<usize>,
}

impl<'a> ImageMasks<'a> {
    pub fn new(
        layout: &Layout,
        prototypes: &Prototypes,
        params: &Params,
        place: &ImagePlace,
        numbers: Numbers<'a>,
    ) -> Self {
        let before = layout.columns[..prototypes.column].iter().map(|column| column.components);
        let first: usize = before.sum();
        let channels = layout.columns[prototypes.column].components;
        Self {
            grid: MaskGrid::new(layout, prototypes, params, place),
            numbers,
            width: prototypes.width,
            coefficients: first..first + channels,
        }
    }
}

impl MaskBuffers {
    pub fn clear(&mut self) {
        self.places.clear();
        self.bytes.clear();
    }

    /// Begins the masks of the next group of images.
    pub fn begin_group(&mut self) {
        (self.memory, self.first_byte) = (MaskMemory::default(), self.bytes.len());
    }

    /// Adds the mask of a survivor of `image`, with the survivor's row of columns.
    pub fn add(&mut self, image: &ImageMasks<'_>, survivor: &Detection, row: &[f32]) {
        let place = self.memory.place(image.grid.area(survivor), self.first_byte);
        self.places.push(place);
        if place.area.bytes() == 0 {
            return;
        }
        let words = place.area.words() as usize;
        self.bytes.resize(place.first + words * WORD_BYTES as usize, 0);
        let (bytes, scratch) =
            (&mut self.bytes[place.first..][..place.area.bytes()], &mut self.scratch);
        let work = Work {
            grid: &image.grid,
            width: image.width,
            coefficients: &row[image.coefficients.clone()],
            area: place.area,
        };
        let numbers = &image.numbers;
        match numbers.elements {
            Elements::F32(elements) => work.run(&Source::new(elements, numbers), bytes, scratch),
            Elements::F16(elements) => work.run(&Source::new(elements, numbers), bytes, scratch),
            Elements::I8(elements) => work.run(&Source::new(elements, numbers), bytes, scratch),
            Elements::U8(elements) => work.run(&Source::new(elements, numbers), bytes, scratch),
            Elements::I32(elements) => work.run(&Source::new(elements, numbers), bytes, scratch),
            Elements::I64(elements) => work.run(&Source::new(elements, numbers), bytes, scratch),
        }
    }
}

/// An element type of prototypes.
trait Stored: Element {
    /// The elements in single precision.
    fn widened<const N: usize>(stored: &[Self; N]) -> [f32; N];
}

impl Stored for f16 {
    #[inline(always)]
    fn widened<const N: usize>(stored: &[Self; N]) -> [f32; N] {
        let mut numbers = [0.0; N];
        stored.convert_to_f32_slice(&mut numbers);
        numbers
    }
}

macro_rules! stored {
    ($element:ty) => {
        impl Stored for $element {
            #[inline(always)]
            fn widened<const N: usize>(stored: &[Self; N]) -> [f32; N] {
                stored.map(|element| element as f32)
            }
        }
    };
}
stored!(f32);
stored!(i8);
stored!(u8);
stored!(i32);
stored!(i64);

/// The prototypes of an image.
struct Source<'a, T> {
    elements: &'a [T],
    quantization: Option<Quantization>,
    offset: usize,
    pixel_stride: usize,
    channel_stride: usize,
}

impl<'a, T: Stored> Source<'a, T> {
    fn new(elements: &'a [T], numbers: &Numbers<'_>) -> Self {
        Self {
            elements,
            quantization: numbers.quantization,
            offset: numbers.field.offset,
            pixel_stride: numbers.field.anchor_stride,
            channel_stride: numbers.field.component_stride,
        }
    }

    #[inline(always)]
    fn numbers<const N: usize>(&self, stored: &[T; N]) -> [f32; N] {
        let numbers = T::widened(stored);
        match self.quantization {
            Some(quantization) => numbers.map(|number| quantization.number(number)),
            None => numbers,
        }
    }

    /// Computes the logits of a rectangle of pixels: `rows` rows of `columns` pixels, the first of
    /// which begins at `pixel`. `width` is the distance between two rows of prototypes in pixels.
    #[inline(always)]
    fn logits(
        &self,
        coefficients: &[f32],
        [pixel, width]: [usize; 2],
        [columns, rows]: [usize; 2],
        logits: &mut Logits,
    ) {
        logits.reset(columns, rows);
        let stride = logits.stride;
        for (first_channel, coefficients) in
            (0..).step_by(CHANNELS_AT_ONCE).zip(coefficients.chunks(CHANNELS_AT_ONCE))
        {
            let rows = (pixel..).step_by(width).zip(logits.numbers.chunks_exact_mut(stride));
            let channel = self.offset + first_channel * self.channel_stride;
            for (pixel, sums) in rows {
                let first = channel + pixel * self.pixel_stride;
                match coefficients.first_chunk::<CHANNELS_AT_ONCE>() {
                    Some(coefficients) => self.add(coefficients, first, columns, sums),
                    None => coefficients.iter().enumerate().for_each(|(i, &coefficient)| {
                        self.add(&[coefficient], first + i * self.channel_stride, columns, sums);
                    }),
                }
            }
        }
    }

    /// Adds the products of `N` consecutive channels to the sums of `count` consecutive pixels,
    /// channel after channel. `first` is the index of the first pixel's element in the first of
    /// the channels. Sums beyond the `count` pixels can change.
    #[inline(always)]
    fn add<const N: usize>(
        &self,
        coefficients: &[f32; N],
        first: usize,
        count: usize,
        sums: &mut [f32],
    ) {
        let blocks = if self.pixel_stride == 1 {
            // A block may extend beyond the row, but not beyond the memory.
            let available = self.elements.len() - (first + (N - 1) * self.channel_stride);
            if available < sums.len() { count / LANES } else { sums.len() / LANES }
        } else {
            0
        };
        let channels: [&[T]; N] =
            std::array::from_fn(|i| &self.elements[first + i * self.channel_stride..]);
        for (block, sums) in sums.as_chunks_mut::<LANES>().0[..blocks].iter_mut().enumerate() {
            for (channel, &coefficient) in channels.iter().zip(coefficients) {
                let numbers = self.numbers(&channel.as_chunks::<LANES>().0[block]);
                sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += coefficient * number);
            }
        }
        for (pixel, sum) in sums[..count].iter_mut().enumerate().skip(blocks * LANES) {
            for (channel, &coefficient) in channels.iter().zip(coefficients) {
                let stored = std::array::from_ref(&channel[pixel * self.pixel_stride]);
                let [number] = self.numbers(stored);
                *sum += coefficient * number;
            }
        }
    }
}

/// The number of pixels whose sums one instruction adds to.
const LANES: usize = 8;
/// The number of channels that are added to a sum while it is in a register.
const CHANNELS_AT_ONCE: usize = 4;

/// The logits of a rectangle of prototypes' pixels.
#[derive(Debug, Default)]
struct Logits {
    numbers: Vec<f32>,
    /// The distance between two rows, a multiple of [`LANES`].
    stride: usize,
}

impl Logits {
    fn reset(&mut self, columns: usize, rows: usize) {
        self.stride = columns.next_multiple_of(LANES);
        self.numbers.clear();
        self.numbers.resize(self.stride * rows, 0.0);
    }

    fn row(&self, row: usize) -> &[f32] {
        &self.numbers[row * self.stride..][..self.stride]
    }

    fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.numbers[row * self.stride..][..self.stride]
    }
}

/// A survivor's mask that is to be computed.
struct Work<'a> {
    grid: &'a MaskGrid,
    /// The number of pixels in a row of prototypes.
    width: usize,
    coefficients: &'a [f32],
    area: MaskArea,
}

impl Work<'_> {
    fn run<T: Stored>(&self, source: &Source<'_, T>, bytes: &mut [u8], scratch: &mut Scratch) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, which is the only feature that the function requires.
            unsafe { self.run_with_avx2(source, bytes, scratch) };
            return;
        }
        self.run_portable(source, bytes, scratch);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn run_with_avx2<T: Stored>(
        &self,
        source: &Source<'_, T>,
        bytes: &mut [u8],
        scratch: &mut Scratch,
    ) {
        self.run_portable(source, bytes, scratch);
    }

    #[inline(always)]
    fn run_portable<T: Stored>(
        &self,
        source: &Source<'_, T>,
        bytes: &mut [u8],
        scratch: &mut Scratch,
    ) {
        match self.grid {
            MaskGrid::Prototypes { .. } => self.prototype_pixels(source, bytes, scratch),
            MaskGrid::Frame { samples, .. } => self.frame_pixels(source, samples, bytes, scratch),
        }
    }

    #[inline(always)]
    fn prototype_pixels<T: Stored>(
        &self,
        source: &Source<'_, T>,
        bytes: &mut [u8],
        scratch: &mut Scratch,
    ) {
        let &Self { area, coefficients, .. } = self;
        let [left, top, width, height] =
            [area.left, area.top, area.width, area.height].map(|side| side as usize);
        let first = top * self.width + left;
        let logits = &mut scratch.logits;
        source.logits(coefficients, [first, self.width], [width, height], logits);
        for (y, bytes) in bytes.chunks_exact_mut(area.stride()).enumerate() {
            set_bits(logits.row_mut(y), width, bytes);
        }
    }

    #[inline(always)]
    fn frame_pixels<T: Stored>(
        &self,
        source: &Source<'_, T>,
        samples: &[FrameSamples; 2],
        bytes: &mut [u8],
        scratch: &mut Scratch,
    ) {
        let &Self { area, coefficients, .. } = self;
        let width = area.width as usize;
        let Scratch { logits, frame_row, rows, columns } = scratch;
        columns.clear();
        columns.extend((area.left..area.left + area.width).map(|x| samples[0].at(x)));
        let (left, count) = prototypes_between(columns[0], columns[width - 1]);
        let [begin, end] = [area.top, area.top + area.height - 1].map(|y| samples[1].at(y));
        let (top, row_count) = prototypes_between(begin, end);
        let first = top as usize * self.width + left as usize;
        source.logits(coefficients, [first, self.width], [count, row_count], logits);
        frame_row.resize(width.next_multiple_of(8), 0.0);
        rows.iter_mut().for_each(|(number, _)| *number = None);
        for (y, bytes) in (area.top..).zip(bytes.chunks_exact_mut(area.stride())) {
            let between = samples[1].at(y);
            if rows[1].0 == Some(between.first) {
                rows.swap(0, 1);
            }
            for (row, number) in rows.iter_mut().zip([between.first, between.second]) {
                if row.0 != Some(number) {
                    let logits = logits.row((number - top) as usize);
                    let of_columns = columns.iter().map(|column| {
                        let a = logits[(column.first - left) as usize];
                        let b = logits[(column.second - left) as usize];
                        a + (b - a) * column.weight
                    });
                    row.0 = Some(number);
                    row.1.clear();
                    row.1.extend(of_columns);
                }
            }
            let [(_, upper), (_, lower)] = &*rows;
            for ((logit, p), q) in frame_row.iter_mut().zip(upper).zip(lower) {
                *logit = p + (q - p) * between.weight;
            }
            set_bits(frame_row, width, bytes);
        }
    }
}

/// Returns the first of the columns or rows of prototypes that pixels of the frame need, and their
/// number. `begin` and `end` belong to the first and the last of the pixels.
fn prototypes_between(begin: Sample, end: Sample) -> (u32, usize) {
    // Positions ascend or descend.
    let (first, last) = (begin.first.min(end.first), begin.second.max(end.second));
    (first, (last - first + 1) as usize)
}

/// Sets a row's bits where the logit is greater than 0. The logits beyond the first `width` are
/// overwritten.
#[inline(always)]
fn set_bits(logits: &mut [f32], width: usize, bytes: &mut [u8]) {
    logits[width..width.next_multiple_of(8)].fill(0.0);
    for (byte, logits) in bytes.iter_mut().zip(logits.as_chunks::<8>().0) {
        let ones = u64::from_le_bytes(logits.map(|logit| u8::from(logit > 0.0)));
        // Byte i of the factor moves bit 8 i to bit 63 - i. No two products share a bit.
        *byte = (ones.wrapping_mul(0x8040_2010_0804_0201) >> 56) as u8;
    }
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
