// SPDX-License-Identifier: MIT OR Apache-2.0
//! The normalization table.
//!
//! In: range, mean and standard deviation of each channel, and the element type. Out: for each channel of the
//! model, 256 elements: `(low + value x (high - low) / 255 - mean) / std`, computed in double precision and rounded
//! once.

use half::f16;

use super::resample_params::VALUES;
use crate::inference::model::{ChannelOrder, InputSpec};
use nmsfilter_core::tensor::ElementType;

/// The element for each value of each channel, in the model's order of channels.
#[derive(Clone, Debug, PartialEq)]
pub enum Table {
    /// For a picture of 32-bit floating-point numbers.
    F32(Vec<[f32; VALUES]>),
    /// For a picture of 16-bit floating-point numbers.
    F16(Vec<[f16; VALUES]>),
    /// For a picture of bytes, with or without a sign.
    U8(Vec<[u8; VALUES]>),
}

impl Table {
    /// Computes the table for `input`.
    pub fn new(input: &InputSpec) -> Self {
        let channels = match (input.channels, input.order) {
            (3, ChannelOrder::Rgb) => &[0, 1, 2][..],
            (3, ChannelOrder::Bgr) => &[2, 1, 0],
            _ => &[0],
        };
        let number = |channel: usize, value: usize| {
            let [low, high] = input.ranges[channel];
            let scaled = low + value as f64 * (high - low) / 255.0;
            (scaled - input.mean[channel]) / input.std[channel]
        };
        let all = |channel: &usize| std::array::from_fn(|value| number(*channel, value));
        let numbers = channels.iter().map(all);
        match input.element {
            ElementType::F16 => {
                Self::F16(numbers.map(|all: [f64; VALUES]| all.map(f16::from_f64)).collect())
            }
            // The casts clamp to the range of the type.
            ElementType::I8 => {
                let byte = |x: f64| (x.round() as i8).cast_unsigned();
                Self::U8(numbers.map(|all: [f64; VALUES]| all.map(byte)).collect())
            }
            ElementType::U8 => {
                Self::U8(numbers.map(|all: [f64; VALUES]| all.map(|x| x.round() as u8)).collect())
            }
            _ => Self::F32(numbers.map(|all: [f64; VALUES]| all.map(|x| x as f32)).collect()),
        }
    }

    /// Returns the elements as bytes, one channel after the other.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::F32(channels) => bytemuck::cast_slice(channels.as_flattened()),
            Self::F16(channels) => bytemuck::cast_slice(channels.as_flattened()),
            Self::U8(channels) => channels.as_flattened(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(element: ElementType) -> InputSpec {
        InputSpec::with_size([8, 8], element)
    }

    #[test]
    fn a_range_maps_black_and_white() {
        let Table::F32(table) =
            Table::new(&InputSpec { ranges: [[-1.0, 1.0]; 3], ..input(ElementType::F32) })
        else {
            panic!("expected 32 bits");
        };
        assert_eq!((table[0][0], table[2][255]), (-1.0, 1.0));
        assert_eq!(table[1][51], -0.6);
    }

    #[test]
    fn mean_and_std_apply_after_the_range() {
        // UltraFace uses (pixel - 127) / 128.
        let input = InputSpec {
            ranges: [[0.0, 255.0]; 3],
            mean: [127.0; 3],
            std: [128.0; 3],
            ..input(ElementType::F32)
        };
        let Table::F32(table) = Table::new(&input) else { panic!("expected 32 bits") };
        for (value, &found) in table[0].iter().enumerate() {
            assert_eq!(found, (value as f32 - 127.0) / 128.0);
        }
    }

    #[test]
    fn channels_are_in_the_models_order() {
        let ranges = [[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]];
        let input = InputSpec { ranges, order: ChannelOrder::Bgr, ..input(ElementType::F16) };
        let Table::F16(table) = Table::new(&input) else { panic!("expected 16 bits") };
        assert_eq!(
            table.iter().map(|channel| channel[255].to_f32()).collect::<Vec<_>>(),
            [3.0, 2.0, 1.0]
        );
    }

    #[test]
    fn bytes_are_unchanged_by_default_and_clamped() {
        let whole = InputSpec { ranges: [[0.0, 255.0]; 3], ..input(ElementType::U8) };
        let Table::U8(table) = Table::new(&whole) else { panic!("expected bytes") };
        assert!((0..256).all(|value| usize::from(table[1][value]) == value));
        let beyond = InputSpec { ranges: [[-100.0, 300.0]; 3], ..input(ElementType::U8) };
        let Table::U8(table) = Table::new(&beyond) else { panic!("expected bytes") };
        assert_eq!((table[0][0], table[0][255]), (0, 255));
    }
}
