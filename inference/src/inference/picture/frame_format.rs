// SPDX-License-Identifier: MIT OR Apache-2.0
//! The components of a video format, and the color matrix that converts them to red, green and blue.
//!
//! In: the `GstVideoInfo` of a format with 8 bits per sample. Out: up to three [`Component`]s (Y, Cb, Cr; or R, G,
//! B; or gray), and the [`ColorMatrix`] from their samples to the model's channels.

use arrayvec::ArrayVec;
use gst_video::{VideoColorRange, VideoInfo};

use crate::inference::model::{ChannelOrder, InputSpec};
use gstnmsfilter::frame::{COLORS, Component, components};

/// The maximum number of components and of channels.
pub const CHANNELS: usize = COLORS;

/// The number of fractional bits of an entry in [`ColorMatrix`]: the most with which all entries fit in 16 bits.
pub const MATRIX_BITS: u32 = 13;

/// Converts samples to channels: `channel[c] = (matrix[c] x samples + bias[c]) >> MATRIX_BITS`, clamped to 0 to
/// 255.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColorMatrix {
    /// For each channel of the model, the weights of the components. They have 16 bits, because every processor can
    /// vectorize products of 16 bits.
    pub matrix: [[i16; CHANNELS]; CHANNELS],
    /// For each channel, the number to add. It includes one half, so that the shift rounds to the nearest value.
    pub bias: [i32; CHANNELS],
}

/// The samples of a video format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameFormat {
    /// The components except alpha.
    pub components: ArrayVec<Component, CHANNELS>,
    /// The conversion from components to the model's channels.
    pub color: ColorMatrix,
}

impl FrameFormat {
    /// Describes the samples of frames with this `info`. Returns `None` if a sample does not have 8 bits, or if the
    /// format stores its samples in tiles or uses a palette.
    pub fn new(info: &VideoInfo, input: &InputSpec) -> Option<Self> {
        let components = components(&info.format_info())?;
        Some(Self { components, color: ColorMatrix::new(info, input) })
    }
}

impl ColorMatrix {
    /// Computes the matrix from frames with this `info` to the channels of `input`.
    fn new(info: &VideoInfo, input: &InputSpec) -> Self {
        let colorimetry = info.colorimetry();
        // BT.601 is the default for formats that do not state a matrix.
        let (kr, kb) = colorimetry.matrix().kr_kb().unwrap_or((0.299, 0.114));
        let kg = 1.0 - kr - kb;
        let is_rgb = info.is_rgb();
        // The value of black, and the factors that scale luma and chroma to their full range.
        let (black, luma, chroma) = match colorimetry.range() {
            _ if is_rgb => (0.0, 1.0, 1.0),
            VideoColorRange::Range16_235 => (16.0, 255.0 / 219.0, 255.0 / 224.0),
            _ => (0.0, 1.0, 1.0),
        };
        // The weights of the components in red, green and blue.
        let colors = match (is_rgb, info.is_gray()) {
            (true, _) => [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            (_, true) => [[luma, 0.0, 0.0]; 3],
            _ => {
                let [cb, cr] = [kb, kr].map(|k| 2.0 * (1.0 - k) * chroma);
                [[luma, 0.0, cr], [luma, -cb * kb / kg, -cr * kr / kg], [luma, cb, 0.0]]
            }
        };
        let gray = match (is_rgb, info.is_gray()) {
            // These are the weights of gray in BT.601.
            (true, _) => [0.299, 0.587, 0.114],
            _ => [luma, 0.0, 0.0],
        };
        let rows = match (input.channels, input.order) {
            (1, _) => [gray; 3],
            (_, ChannelOrder::Rgb) => colors,
            (_, ChannelOrder::Bgr) => [colors[2], colors[1], colors[0]],
        };
        // A weight is at most 2 x 255 / 224 in absolute value, so it fits in 16 bits.
        let one = f64::from(1 << MATRIX_BITS);
        let matrix = rows.map(|row| row.map(|weight| (weight * one).round() as i16));
        let zero = if is_rgb { [0.0; 3] } else { [black, 128.0, 128.0] };
        let bias = matrix.map(|row| {
            let at_zero =
                row.iter().zip(zero).map(|(&weight, zero)| i32::from(weight) * zero as i32);
            (1 << (MATRIX_BITS - 1)) - at_zero.sum::<i32>()
        });
        Self { matrix, bias }
    }

    /// Returns the value of a channel with these weights and this bias, for these samples.
    #[inline(always)]
    pub fn value(weights: [i16; CHANNELS], bias: i32, samples: [u8; CHANNELS]) -> u8 {
        let product = |k: usize| i32::from(weights[k]) * i32::from(i16::from(samples[k]));
        let sum = product(0) + product(1) + product(2) + bias;
        (sum >> MATRIX_BITS).clamp(0, 255) as u8
    }
}

#[cfg(test)]
mod tests {
    use gst_video::VideoFormat;

    use super::*;
    use nmsfilter_core::tensor::ElementType;

    fn format(format: VideoFormat, colorimetry: &str, input: &InputSpec) -> Option<FrameFormat> {
        gst::init().unwrap();
        let colorimetry = colorimetry.parse().unwrap();
        let info = VideoInfo::builder(format, 64, 48).colorimetry(&colorimetry).build().unwrap();
        FrameFormat::new(&info, input)
    }

    fn rgb(color: &ColorMatrix, samples: [u8; 3]) -> [u8; 3] {
        [0, 1, 2].map(|c| ColorMatrix::value(color.matrix[c], color.bias[c], samples))
    }

    #[test]
    fn red_green_and_blue_are_unchanged_and_in_the_models_order() {
        let input = InputSpec::with_size([8, 8], ElementType::F32);
        let color = format(VideoFormat::Bgrx, "sRGB", &input).unwrap().color;
        assert_eq!(rgb(&color, [1, 128, 255]), [1, 128, 255]);
        let bgr = InputSpec { order: ChannelOrder::Bgr, ..input };
        let color = format(VideoFormat::Rgb, "sRGB", &bgr).unwrap().color;
        assert_eq!(rgb(&color, [1, 128, 255]), [255, 128, 1]);
    }

    /// The primary colors of ITU-R BT.601 and BT.709 in 8 bits.
    #[test]
    fn colors_follow_from_matrix_and_range() {
        let input = InputSpec::with_size([8, 8], ElementType::F32);
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
