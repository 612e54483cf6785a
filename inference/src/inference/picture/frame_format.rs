// SPDX-License-Identifier: MIT OR Apache-2.0
//! The components of a video format, and the matrix from their samples to red, green and blue.
//!
//! In: a `GstVideoInfo` of a format of 8 bits. Out: up to three [`Component`]s (Y, Cb, Cr, or R, G, B, or
//! gray), and the [`ColorMatrix`] from their samples to the model's channels.

use arrayvec::ArrayVec;
use gst_video::{VideoColorRange, VideoInfo};

use crate::inference::model::{ChannelOrder, InputSpec};
use gstnmsfilter::frame::{COLORS, Component, components};

/// The greatest number of components, and of channels.
pub const CHANNELS: usize = COLORS;

/// Bits after the point of an entry of [`ColorMatrix`]: as many as let entries fit 16 bits.
pub const MATRIX_BITS: u32 = 13;

/// `channel[c] = (matrix[c] x samples + bias[c]) >> MATRIX_BITS`, clamped to 0 to 255.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColorMatrix {
    /// For each of the model's channels, the weight of each component.
    pub matrix: [[i32; CHANNELS]; CHANNELS],
    /// For each channel, what is added; it rounds to the nearest value.
    pub bias: [i32; CHANNELS],
}

/// The samples of a video format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameFormat {
    /// Its components; alpha is left out.
    pub components: ArrayVec<Component, CHANNELS>,
    /// From components to the model's channels.
    pub color: ColorMatrix,
}

impl FrameFormat {
    /// The samples of frames described by `info`; `None` if they are not of 8 bits each, or in tiles, or
    /// behind a palette.
    pub fn new(info: &VideoInfo, input: &InputSpec) -> Option<Self> {
        let components = components(&info.format_info())?;
        Some(Self { components, color: ColorMatrix::new(info, input) })
    }
}

impl ColorMatrix {
    /// The matrix from frames described by `info` to the channels of `input`.
    fn new(info: &VideoInfo, input: &InputSpec) -> Self {
        let colorimetry = info.colorimetry();
        // BT.601 for formats without a matrix.
        let (kr, kb) = colorimetry.matrix().kr_kb().unwrap_or((0.299, 0.114));
        let kg = 1.0 - kr - kb;
        let is_rgb = info.is_rgb();
        // The values of black, and the spans of luma and chroma.
        let (black, luma, chroma) = match colorimetry.range() {
            _ if is_rgb => (0.0, 1.0, 1.0),
            VideoColorRange::Range16_235 => (16.0, 255.0 / 219.0, 255.0 / 224.0),
            _ => (0.0, 1.0, 1.0),
        };
        // Red, green and blue by component.
        let colors = match (is_rgb, info.is_gray()) {
            (true, _) => [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            (_, true) => [[luma, 0.0, 0.0]; 3],
            _ => {
                let [cb, cr] = [kb, kr].map(|k| 2.0 * (1.0 - k) * chroma);
                [[luma, 0.0, cr], [luma, -cb * kb / kg, -cr * kr / kg], [luma, cb, 0.0]]
            }
        };
        let gray = match (is_rgb, info.is_gray()) {
            // As the gray of Y'CbCr 601.
            (true, _) => [0.299, 0.587, 0.114],
            _ => [luma, 0.0, 0.0],
        };
        let rows = match (input.channels, input.order) {
            (1, _) => [gray; 3],
            (_, ChannelOrder::Rgb) => colors,
            (_, ChannelOrder::Bgr) => [colors[2], colors[1], colors[0]],
        };
        let one = f64::from(1 << MATRIX_BITS);
        let matrix = rows.map(|row| row.map(|weight| (weight * one).round() as i32));
        let zero = if is_rgb { [0.0; 3] } else { [black, 128.0, 128.0] };
        let bias = matrix.map(|row| {
            let at_zero = row.iter().zip(zero).map(|(&weight, zero)| weight * zero as i32);
            (1 << (MATRIX_BITS - 1)) - at_zero.sum::<i32>()
        });
        Self { matrix, bias }
    }

    /// What makes channel `c` of samples.
    pub fn channel(&self, c: usize) -> ChannelWeights {
        // At most 2 x 255 / 224 in absolute value.
        ChannelWeights { weights: self.matrix[c].map(|weight| weight as i16), bias: self.bias[c] }
    }
}

/// A row of a [`ColorMatrix`]. Products of 16 bits can be vectorized on every processor.
#[derive(Clone, Copy, Debug)]
pub struct ChannelWeights {
    weights: [i16; CHANNELS],
    bias: i32,
}

impl ChannelWeights {
    /// The value of the channel for these samples.
    pub fn value(self, samples: [u8; CHANNELS]) -> u8 {
        let product = |k: usize| i32::from(self.weights[k]) * i32::from(i16::from(samples[k]));
        let sum = product(0) + product(1) + product(2) + self.bias;
        (sum >> MATRIX_BITS).clamp(0, 255) as u8
    }
}

#[cfg(test)]
mod tests {
    use gst_video::VideoFormat;

    use super::*;
    use crate::inference::model::PixelElement;

    fn format(format: VideoFormat, colorimetry: &str, input: &InputSpec) -> Option<FrameFormat> {
        gst::init().unwrap();
        let colorimetry = colorimetry.parse().unwrap();
        let info = VideoInfo::builder(format, 64, 48).colorimetry(&colorimetry).build().unwrap();
        FrameFormat::new(&info, input)
    }

    fn rgb(color: &ColorMatrix, samples: [u8; 3]) -> [u8; 3] {
        [0, 1, 2].map(|c| color.channel(c).value(samples))
    }

    #[test]
    fn red_green_and_blue_are_unchanged_and_in_the_models_order() {
        let input = InputSpec::of_size([8, 8], PixelElement::F32);
        let color = format(VideoFormat::Bgrx, "sRGB", &input).unwrap().color;
        assert_eq!(rgb(&color, [1, 128, 255]), [1, 128, 255]);
        let bgr = InputSpec { order: ChannelOrder::Bgr, ..input };
        let color = format(VideoFormat::Rgb, "sRGB", &bgr).unwrap().color;
        assert_eq!(rgb(&color, [1, 128, 255]), [255, 128, 1]);
    }

    /// Primary colors of ITU-R BT.601 and BT.709 in 8 bits.
    #[test]
    fn colors_follow_from_matrix_and_range() {
        let input = InputSpec::of_size([8, 8], PixelElement::F32);
        for (colorimetry, samples, expected) in [
            ("bt601", [16, 128, 128], [0, 0, 0]),
            ("bt601", [235, 128, 128], [255, 255, 255]),
            ("bt601", [81, 90, 240], [255, 0, 0]),
            ("bt709", [63, 102, 240], [255, 0, 0]),
            ("bt709", [32, 240, 118], [0, 0, 255]),
            ("1:4:0:0", [255, 128, 128], [255, 255, 255]),
        ] {
            let color = format(VideoFormat::I420, colorimetry, &input).unwrap().color;
            let found = rgb(&color, samples);
            let near = found.iter().zip(expected).all(|(&a, b)| a.abs_diff(b) <= 1);
            assert!(near, "{colorimetry} {samples:?}: {found:?}, expected {expected:?}");
        }
    }
}
