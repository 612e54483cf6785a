// SPDX-License-Identifier: MIT OR Apache-2.0
//! The logits of prototypes' pixels: sums of coefficients times prototypes, channel after channel.
//!
//! In: an image's prototypes, rectangles of their pixels, and each rectangle's coefficients. Out:
//! the logits of each rectangle's pixels.
//!
//! Arithmetic takes less time than reading prototypes from the L2 or L3 cache, and rectangles of
//! large objects overlap. So the outer loop is over rows of prototypes. Each row is copied, in
//! single precision and with all of its channels, to memory that fits in the L1 cache, and is then
//! used for all rectangles that contain it ([`Sweep`]). The planes of channels are often a multiple
//! of 4096 bytes apart, so without the copy their rows would evict each other from the cache. Only
//! the columns that rectangles contain are copied.

use std::ops::Range;

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::dispatch::{Work, dispatch};
use super::host_tensors::Numbers;
use crate::decoder::Field;
use crate::tensor::{Element, Quantization, with_elements};

/// The number of pixels whose sums one instruction adds to.
const LANES: usize = 8;
/// The greatest number of pixels whose sums are in registers together.
const TILE: usize = 6 * LANES;
/// The size of a cache line in numbers.
const CACHE_LINE: usize = 16;

/// The logits of rectangles of an image.
#[derive(Debug, Default)]
pub(super) struct MaskLogits {
    rectangles: Vec<LogitArea>,
    /// Each rectangle's coefficients.
    coefficients: Vec<f32>,
    /// The logits of all rectangles, and maybe earlier ones after them.
    logits: Vec<f32>,
    /// The number of logits of all rectangles.
    count: usize,
    sweep: Sweep,
    /// The copy of a row of prototypes, channel after channel.
    row: Vec<f32>,
}

/// A rectangle of prototypes' pixels.
#[derive(Clone, Copy, Debug)]
struct LogitArea {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
    /// The index of the first logit.
    first: usize,
}

impl LogitArea {
    /// The distance between two rows of logits, a multiple of [`LANES`].
    fn stride(&self) -> usize {
        self.width.next_multiple_of(LANES)
    }

    /// The logits of a row of prototypes that the rectangle contains.
    fn row(&self, y: usize) -> Range<usize> {
        let first = self.first + (y - self.top) * self.stride();
        first..first + self.stride()
    }
}

impl MaskLogits {
    /// Removes all rectangles.
    pub fn clear(&mut self) {
        self.rectangles.clear();
        self.coefficients.clear();
        self.count = 0;
    }

    /// The number of logits of all rectangles.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Adds a rectangle with a survivor's coefficients. `corner` is its first column and row,
    /// `size` its numbers of columns and rows, which are at least 1. All rectangles have equal
    /// numbers of coefficients.
    pub fn push(&mut self, corner: [u32; 2], size: [u32; 2], coefficients: &[f32]) {
        let ([left, top], [width, height]) =
            (corner.map(|side| side as usize), size.map(|side| side as usize));
        let rectangle = LogitArea { left, top, width, height, first: self.count };
        self.count += rectangle.stride() * height;
        self.rectangles.push(rectangle);
        self.coefficients.extend_from_slice(coefficients);
    }

    /// The logits of row `y` of the prototypes in the rectangle with this index, from the
    /// rectangle's first column on. The row is padded to a multiple of 8.
    pub fn row(&self, rectangle: usize, y: u32) -> &[f32] {
        &self.logits[self.rectangles[rectangle].row(y as usize)]
    }

    /// Like [`row`](Self::row), for numbers that are overwritten.
    pub fn row_mut(&mut self, rectangle: usize, y: u32) -> &mut [f32] {
        &mut self.logits[self.rectangles[rectangle].row(y as usize)]
    }

    /// Computes the logits. Rows of prototypes have `width` pixels.
    pub fn compute(&mut self, numbers: &Numbers<'_>, width: usize) {
        let Numbers { elements, field, quantization } = *numbers;
        with_elements!(elements, elements => {
            dispatch((self, &Source { elements, field, quantization, width }));
        });
    }
}

impl<T: Stored> Work for (&mut MaskLogits, &Source<'_, T>) {
    #[inline(always)]
    fn run(self) {
        let (MaskLogits { rectangles, coefficients, logits, count, sweep, row }, source) = self;
        if logits.len() < *count {
            logits.resize(*count, 0.0);
        }
        let channels = coefficients.len().checked_div(rectangles.len()).unwrap_or(0);
        let left = rectangles.iter().map(|of| of.left).min().unwrap_or(0);
        let end = rectangles.iter().map(|of| of.left + of.stride()).max().unwrap_or(0);
        // An odd number of cache lines, so that channels do not evict each other. There is space
        // for the last block of a span.
        let stride = ((end - left + LANES).div_ceil(CACHE_LINE) | 1) * CACHE_LINE;
        row.resize(channels * stride, 0.0);
        sweep.begin(rectangles);
        while let Some(y) = sweep.next_row(rectangles) {
            for span in &sweep.spans {
                source.copy(y, span.clone(), channels, &mut row[span.start - left..], stride);
            }
            for &index in &sweep.current {
                let rectangle = &rectangles[index as usize];
                let coefficients = &coefficients[index as usize * channels..][..channels];
                let sums = &mut logits[rectangle.row(y)];
                add_channels(&row[rectangle.left - left..], stride, coefficients, sums);
            }
        }
    }
}

/// Goes through the rows that rectangles contain.
#[derive(Debug, Default)]
struct Sweep {
    /// The indices of all rectangles, in the order of their first rows.
    by_top: Vec<u32>,
    /// The number of rectangles that have begun.
    begun: usize,
    next: usize,
    /// The indices of the rectangles that contain the row, in the order of their first columns.
    current: Vec<u32>,
    /// The columns that these rectangles contain.
    spans: Vec<Range<usize>>,
}

impl Sweep {
    fn begin(&mut self, rectangles: &[LogitArea]) {
        self.by_top.clear();
        self.by_top.extend(0..rectangles.len() as u32);
        self.by_top.sort_unstable_by_key(|&index| rectangles[index as usize].top);
        (self.begun, self.next) = (0, 0);
        self.current.clear();
    }

    /// Goes to the next row that a rectangle contains and returns its number, or `None` after the
    /// last one.
    fn next_row(&mut self, rectangles: &[LogitArea]) -> Option<usize> {
        let Self { by_top, begun, next, current, .. } = self;
        let of = |index: u32| &rectangles[index as usize];
        let before = current.len();
        current.retain(|&index| *next < of(index).top + of(index).height);
        let mut has_changed = current.len() < before;
        if current.is_empty() {
            *next = of(*by_top.get(*begun)?).top;
        }
        while let Some(&index) = by_top.get(*begun)
            && of(index).top == *next
        {
            let place = current.partition_point(|&other| of(other).left <= of(index).left);
            current.insert(place, index);
            *begun += 1;
            has_changed = true;
        }
        *next += 1;
        let row = *next - 1;
        if has_changed {
            self.find_spans(rectangles);
        }
        Some(row)
    }

    fn find_spans(&mut self, rectangles: &[LogitArea]) {
        self.spans.clear();
        for &index in &self.current {
            let LogitArea { left, width, .. } = rectangles[index as usize];
            // Columns that are less than a cache line apart have most of their lines in common.
            match self.spans.last_mut().filter(|span| left <= span.end + CACHE_LINE) {
                Some(span) => span.end = span.end.max(left + width),
                None => self.spans.push(left..left + width),
            }
        }
    }
}

/// Sets `sums` to sums of products. `row` has `stride` numbers per channel. The length of `sums` is
/// a multiple of [`LANES`].
#[inline(always)]
fn add_channels(row: &[f32], stride: usize, coefficients: &[f32], sums: &mut [f32]) {
    for (first, sums) in (0..).step_by(TILE).zip(sums.chunks_mut(TILE)) {
        let row = &row[first..];
        match sums.len() / LANES {
            1 => add_channels_to::<{ LANES }>(row, stride, coefficients, sums),
            2 => add_channels_to::<{ 2 * LANES }>(row, stride, coefficients, sums),
            3 => add_channels_to::<{ 3 * LANES }>(row, stride, coefficients, sums),
            4 => add_channels_to::<{ 4 * LANES }>(row, stride, coefficients, sums),
            5 => add_channels_to::<{ 5 * LANES }>(row, stride, coefficients, sums),
            _ => add_channels_to::<TILE>(row, stride, coefficients, sums),
        }
    }
}

/// [`add_channels`] for `N` pixels, whose sums are in registers.
#[inline(always)]
fn add_channels_to<const N: usize>(
    row: &[f32],
    stride: usize,
    coefficients: &[f32],
    to: &mut [f32],
) {
    let mut sums = [0.0; N];
    for (channel, &coefficient) in coefficients.iter().enumerate() {
        let numbers: &[f32; N] =
            row[channel * stride..].first_chunk().expect("a channel ends after the rectangle");
        for (sum, number) in sums.iter_mut().zip(numbers) {
            *sum += coefficient * number;
        }
    }
    *to.first_chunk_mut().expect("there are N sums") = sums;
}

/// An element type of prototypes.
trait Stored: Element {
    /// Copies elements in single precision. Both slices have equal lengths, multiples of [`LANES`]
    /// except at the end of the memory.
    #[inline(always)]
    fn copy(from: &[Self], to: &mut [f32]) {
        from.iter().zip(to).for_each(|(from, to)| *to = from.to_f32());
    }
}

impl Stored for f32 {
    #[inline(always)]
    fn copy(from: &[Self], to: &mut [f32]) {
        // Spans are short, so a call of `memcpy` would take longer.
        let (from, from_rest) = from.as_chunks::<LANES>();
        let (to, to_rest) = to.as_chunks_mut::<LANES>();
        from.iter().zip(to).for_each(|(from, to)| *to = *from);
        from_rest.iter().zip(to_rest).for_each(|(from, to)| *to = *from);
    }
}

impl Stored for f16 {
    #[inline(always)]
    fn copy(from: &[Self], to: &mut [f32]) {
        from.convert_to_f32_slice(to);
    }
}

impl Stored for i8 {}
impl Stored for u8 {}
impl Stored for i32 {}
impl Stored for i64 {}

/// The prototypes of an image.
struct Source<'a, T> {
    elements: &'a [T],
    field: Field,
    quantization: Option<Quantization>,
    /// The number of pixels in a row.
    width: usize,
}

impl<T: Stored> Source<'_, T> {
    /// Copies a span of columns of row `y`. `to` has `stride` numbers per channel.
    #[inline(always)]
    fn copy(&self, y: usize, span: Range<usize>, channels: usize, to: &mut [f32], stride: usize) {
        let pixel = self.field.index(y * self.width + span.start, 0);
        let stride_of_pixels = self.field.anchor_stride;
        for (channel, to) in to.chunks_mut(stride).take(channels).enumerate() {
            let from = &self.elements[pixel + channel * self.field.component_stride..];
            let mut count = span.len();
            if stride_of_pixels == 1 {
                // Whole blocks, where the memory has them.
                let padded = count.next_multiple_of(LANES);
                count = if padded <= from.len() { padded } else { count };
                T::copy(&from[..count], &mut to[..count]);
            } else {
                for (column, to) in to[..count].iter_mut().enumerate() {
                    *to = from[column * stride_of_pixels].to_f32();
                }
            }
            if let Some(quantization) = self.quantization {
                to[..count].iter_mut().for_each(|number| *number = quantization.number(*number));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Elements;

    const CHANNELS: usize = 5;

    /// A rectangle's corner, size and coefficients.
    type Wanted = ([u32; 2], [u32; 2], Vec<f32>);

    /// Rectangles anywhere in the prototypes: a few, or so many that they share rows and columns.
    fn any_rectangles(rng: &mut fastrand::Rng, sides: [u32; 2]) -> Vec<Wanted> {
        let mut rectangle = || {
            let corner = sides.map(|side| rng.u32(..side));
            let size = [0, 1].map(|axis| {
                let most = sides[axis] - corner[axis];
                if rng.bool() { rng.u32(1..=most) } else { most.min(rng.u32(1..=9)) }
            });
            (corner, size, (0..CHANNELS).map(|_| rng.f32() - 0.5).collect())
        };
        let count = [1, 2, 5, 40][rectangle().0[0] as usize % 4];
        (0..count).map(|_| rectangle()).collect()
    }

    /// Compares logits with sums of products in the order of channels, each operation rounded by
    /// itself.
    fn check(numbers: &Numbers<'_>, width: usize, wanted: &[Wanted], logits: &MaskLogits) {
        for (index, ([left, top], [columns, rows], coefficients)) in wanted.iter().enumerate() {
            for y in *top..top + rows {
                for (x, logit) in (*left..left + columns).zip(logits.row(index, y)) {
                    let mut sum = 0.0f32;
                    for (channel, coefficient) in coefficients.iter().enumerate() {
                        let pixel = y as usize * width + x as usize;
                        let element = numbers.elements.to_f32(numbers.field.index(pixel, channel));
                        let number = numbers.quantization.map(|of| of.number(element));
                        sum += coefficient * number.unwrap_or(element);
                    }
                    assert_eq!(logit.to_bits(), sum.to_bits(), "rectangle {index}, {x}, {y}");
                }
            }
        }
    }

    #[test]
    fn logits_are_sums_in_the_order_of_channels_for_all_strides_and_element_types() {
        let mut rng = fastrand::Rng::with_seed(39);
        let mut logits = MaskLogits::default();
        for turn in 0..600 {
            let [width, height] = [0, 1].map(|_| rng.usize(1..90));
            let pixels = width * height;
            let bytes: Vec<i8> = (0..pixels * CHANNELS).map(|_| rng.i8(..)).collect();
            let halves: Vec<f16> = bytes.iter().map(|&byte| f16::from_f32(byte.into())).collect();
            let floats: Vec<f32> = bytes.iter().map(|&byte| f32::from(byte) * 0.37).collect();
            let (elements, quantization) = match turn % 3 {
                0 => (Elements::F32(&floats), None),
                1 => (Elements::F16(&halves), None),
                _ => (Elements::I8(&bytes), Some(Quantization::new(0.3, 5).unwrap())),
            };
            let orders = [[1, pixels], [CHANNELS, 1], [0, 1], [1, 0]];
            let [anchor_stride, component_stride] = rng.choice(orders).unwrap();
            let field =
                Field { tensor: 0, offset: 0, image_stride: 0, anchor_stride, component_stride };
            let numbers = Numbers { elements, quantization, field };
            let wanted = any_rectangles(&mut rng, [width as u32, height as u32]);
            logits.clear();
            for (corner, size, coefficients) in &wanted {
                logits.push(*corner, *size, coefficients);
            }
            logits.compute(&numbers, width);
            check(&numbers, width, &wanted, &logits);
            if let Elements::F32(elements) = elements {
                logits.logits.fill(f32::NAN);
                (&mut logits, &Source { elements, field, quantization, width }).run();
                check(&numbers, width, &wanted, &logits);
            }
        }
    }
}
