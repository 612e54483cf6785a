// SPDX-License-Identifier: MIT OR Apache-2.0
//! Colors of regions.
//!
//! In: a class number or label, and the format and colorimetry of a frame. Out: the components of a
//! color.

use gst_video::{VideoColorMatrix, VideoColorRange, VideoInfo};

/// Red, green and blue, each from 0 to 255.
pub(super) type Rgb = [u8; 3];

/// Colors that are easy to distinguish and bright enough for dark text.
const PALETTE: [Rgb; 12] = [
    [255, 214, 10],
    [64, 224, 120],
    [64, 196, 255],
    [255, 120, 96],
    [224, 140, 255],
    [255, 166, 48],
    [140, 255, 236],
    [255, 132, 190],
    [176, 238, 72],
    [150, 172, 255],
    [236, 200, 160],
    [232, 232, 232],
];

/// Color of text, and of the lines beside a box's lines. It keeps the box visible on a background
/// of the box's color.
pub(super) const DARK_COLOR: Rgb = [16, 16, 20];

/// Returns the color of a class number.
pub(super) fn for_class(class: i32) -> Rgb {
    PALETTE[class.rem_euclid(PALETTE.len() as i32) as usize]
}

/// Returns the color of a label that has no class number. It is reproducible, since it is a hash
/// (FNV-1a) of the label's UTF-8 bytes.
pub(super) fn for_label(label: impl Iterator<Item = char>) -> Rgb {
    let mut hash = 0x811c_9dc5_u32;
    for character in label {
        for byte in character.encode_utf8(&mut [0; 4]).bytes() {
            hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
    }
    for_class((hash % PALETTE.len() as u32) as i32)
}

/// Converts colors to the components of a format: red, green, blue, or Y', Cb, Cr.
#[derive(Clone, Copy, Debug)]
pub(super) struct Converter(Option<Yuv>);

/// Weights of red and blue in luma, and the range of the components.
#[derive(Clone, Copy, Debug)]
struct Yuv {
    red: f32,
    blue: f32,
    luma_offset: f32,
    luma_scale: f32,
    chroma_scale: f32,
}

impl Converter {
    pub fn new(info: &VideoInfo) -> Self {
        if info.format_info().is_rgb() {
            return Self(None);
        }
        let colorimetry = info.colorimetry();
        // ITU-R BT.601, BT.709, BT.2020 and SMPTE 240M.
        let (red, blue) = match colorimetry.matrix() {
            VideoColorMatrix::Bt709 => (0.2126, 0.0722),
            VideoColorMatrix::Bt2020 => (0.2627, 0.0593),
            VideoColorMatrix::Smpte240m => (0.212, 0.087),
            _ => (0.299, 0.114),
        };
        let full = colorimetry.range() == VideoColorRange::Range0_255;
        let (luma_offset, luma_scale, chroma_scale) =
            if full { (0.0, 255.0, 255.0) } else { (16.0, 219.0, 224.0) };
        Self(Some(Yuv { red, blue, luma_offset, luma_scale, chroma_scale }))
    }

    /// Returns the components of `color` in GStreamer's order.
    pub fn components(&self, color: Rgb) -> [u8; 3] {
        let Some(yuv) = &self.0 else { return color };
        let [r, g, b] = color.map(|component| f32::from(component) / 255.0);
        let luma = yuv.red * r + (1.0 - yuv.red - yuv.blue) * g + yuv.blue * b;
        let cb = (b - luma) / (2.0 * (1.0 - yuv.blue));
        let cr = (r - luma) / (2.0 * (1.0 - yuv.red));
        let byte = |value: f32| value.round().clamp(0.0, 255.0) as u8;
        [
            byte(yuv.luma_offset + yuv.luma_scale * luma),
            byte(128.0 + yuv.chroma_scale * cb),
            byte(128.0 + yuv.chroma_scale * cr),
        ]
    }
}

#[cfg(test)]
mod tests {
    use gst_video::{VideoColorimetry, VideoFormat};

    use super::*;

    fn converter(format: VideoFormat, colorimetry: &str) -> Converter {
        gst::init().unwrap();
        let colorimetry: VideoColorimetry = colorimetry.parse().unwrap();
        let info = VideoInfo::builder(format, 64, 64).colorimetry(&colorimetry).build().unwrap();
        Converter::new(&info)
    }

    #[test]
    fn rgb_stays_rgb() {
        assert_eq!(converter(VideoFormat::Rgb, "sRGB").components([1, 2, 3]), [1, 2, 3]);
    }

    #[test]
    fn primaries_have_the_values_of_the_standards() {
        // Primaries at 100 % in BT.601 and BT.709, in limited range.
        let bt601 = converter(VideoFormat::I420, "bt601");
        assert_eq!(bt601.components([255, 0, 0]), [81, 90, 240]);
        assert_eq!(bt601.components([255, 255, 255]), [235, 128, 128]);
        let bt709 = converter(VideoFormat::I420, "bt709");
        assert_eq!(bt709.components([255, 0, 0]), [63, 102, 240]);
        assert_eq!(bt709.components([0, 0, 0]), [16, 128, 128]);
    }

    #[test]
    fn a_label_has_the_same_color_every_time() {
        assert_eq!(for_label("person".chars()), for_label("person".chars()));
        assert_ne!(for_label("person".chars()), for_label("bicycle".chars()));
    }
}
