// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensors of random numbers, and the numbers that their stored elements stand for.

use half::f16;
use nmsfilter_core::tensor::{ElementType, Quantization, Shape, Storage, TensorView};

use super::{SIDE, STRIDES};

/// How a tensor is stored.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    pub element: ElementType,
    pub is_channels_last: bool,
}

/// A tensor in memory.
pub struct Stored {
    shape: Vec<usize>,
    element: ElementType,
    quantization: Option<Quantization>,
    /// Elements, in words of 4 bytes so that they are aligned.
    words: Vec<u32>,
    bytes: usize,
}

impl Stored {
    /// Stores `numbers` in the order of memory, and returns what the elements stand for. Integers have a scale and a zero
    /// point with which the least number is -128 and the greatest 127.
    pub fn new(shape: &[usize], numbers: &[f32], element: ElementType) -> (Self, Vec<f64>) {
        let mut quantization = None;
        let (elements, stand_for): (Vec<u8>, Vec<f64>) = match element {
            ElementType::F16 => {
                let halves: Vec<f16> =
                    numbers.iter().map(|&number| f16::from_f32(number)).collect();
                let bytes = halves.iter().flat_map(|half| half.to_ne_bytes()).collect();
                (bytes, halves.iter().map(|half| half.to_f64()).collect())
            }
            ElementType::I8 => {
                let (least, greatest) = numbers
                    .iter()
                    .fold((f32::MAX, f32::MIN), |(a, b), &number| (a.min(number), b.max(number)));
                let scale = (greatest - least) / 255.0;
                let zero_point = (-128.0 - least / scale).round() as i32;
                quantization = Some(Quantization::new(scale, zero_point).unwrap());
                let integer = |&number: &f32| (number / scale + zero_point as f32).round() as i8;
                let integers: Vec<i8> = numbers.iter().map(integer).collect();
                let stands_for =
                    |&integer: &i8| f64::from(i32::from(integer) - zero_point) * f64::from(scale);
                let bytes = integers.iter().map(|&integer| integer as u8).collect();
                (bytes, integers.iter().map(stands_for).collect())
            }
            _ => {
                let bytes = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
                (bytes, numbers.iter().map(|&number| f64::from(number)).collect())
            }
        };
        let bytes = elements.len();
        let mut words = vec![0; bytes.div_ceil(4)];
        bytemuck::cast_slice_mut(&mut words)[..bytes].copy_from_slice(&elements);
        (Self { shape: shape.to_vec(), element, quantization, words, bytes }, stand_for)
    }

    pub fn view(&self, id: &'static str) -> TensorView<'_> {
        let bytes = &bytemuck::cast_slice(&self.words)[..self.bytes];
        let shape = Shape::new(&self.shape).unwrap();
        TensorView::new(id, self.element, shape, Storage::Host(bytes))
            .with_quantization(self.quantization)
    }
}

/// A tensor of the cells of one stride.
pub struct Level {
    pub stride: usize,
    /// The numbers that the elements of each cell stand for.
    pub rows: Vec<Vec<f64>>,
    pub tensor: Stored,
}

impl Level {
    /// Stores the numbers of each cell, as `[1,channels,H,W]` or `[1,H,W,channels]`.
    pub fn new(stride: usize, rows: Vec<Vec<f32>>, format: Format) -> Self {
        let (cells, channels) = (rows.len(), rows[0].len());
        let side = cells.isqrt();
        let (shape, at): (_, Box<dyn Fn(usize, usize) -> usize>) = match format.is_channels_last {
            true => {
                ([1, side, side, channels], Box::new(|cell, channel| cell * channels + channel))
            }
            false => ([1, channels, side, side], Box::new(|cell, channel| channel * cells + cell)),
        };
        let mut numbers = vec![0.0; cells * channels];
        for (cell, row) in rows.iter().enumerate() {
            for (channel, &number) in row.iter().enumerate() {
                numbers[at(cell, channel)] = number;
            }
        }
        let (tensor, stand_for) = Stored::new(&shape, &numbers, format.element);
        let row = |cell| (0..channels).map(|channel| stand_for[at(cell, channel)]).collect();
        Self { stride, rows: (0..cells).map(row).collect(), tensor }
    }

    /// A level for each stride, of random numbers.
    pub fn all(
        rng: &mut fastrand::Rng,
        channels: usize,
        number: impl Fn(&mut fastrand::Rng, usize) -> f32,
        format: Format,
    ) -> Vec<Self> {
        Self::of_strides((SIDE, &STRIDES), rng, channels, number, format)
    }

    /// A level for each of the strides of an input of this side, of random numbers.
    pub fn of_strides(
        (side, strides): (usize, &[usize]),
        rng: &mut fastrand::Rng,
        channels: usize,
        number: impl Fn(&mut fastrand::Rng, usize) -> f32,
        format: Format,
    ) -> Vec<Self> {
        let level = |&stride: &usize| {
            let cells = (side / stride) * (side / stride);
            let rows = (0..cells)
                .map(|_| (0..channels).map(|channel| number(rng, channel)).collect())
                .collect();
            Self::new(stride, rows, format)
        };
        strides.iter().map(level).collect()
    }

    /// The tensors of each stride in turn, with names that say nothing.
    pub fn views<'a>(heads: &[&'a Vec<Self>]) -> Vec<TensorView<'a>> {
        let ids = ["a", "b", "c", "d"];
        let of_level =
            |level: usize| heads.iter().zip(ids).map(move |(head, id)| head[level].tensor.view(id));
        (0..heads[0].len()).flat_map(of_level).collect()
    }

    /// The numbers of an anchor.
    pub fn row(levels: &[Self], anchor: usize) -> &[f64] {
        levels.iter().flat_map(|level| &level.rows).nth(anchor).unwrap()
    }

    /// The stride of an anchor, and the column and row of its cell.
    pub fn cell(levels: &[Self], mut anchor: usize) -> (usize, [usize; 2]) {
        for level in levels {
            if anchor < level.rows.len() {
                let side = level.rows.len().isqrt();
                return (level.stride, [anchor % side, anchor / side]);
            }
            anchor -= level.rows.len();
        }
        panic!("there are fewer anchors");
    }
}
