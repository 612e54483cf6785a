// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the samples of a format are.
//!
//! In: a video format. Out: up to three [`Component`]s (Y, Cb, Cr, or R, G, B, or gray), if their samples are bytes.

use arrayvec::ArrayVec;
use gst_video::{VideoFormat, VideoFormatFlags, VideoFormatInfo};

/// The greatest number of components, without alpha.
pub const COLORS: usize = 3;

/// Where the samples of a component are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component {
    /// The plane that has them.
    pub plane: usize,
    /// The byte of the first in its plane.
    pub offset: usize,
    /// Bytes from one to the next of a row.
    pub pixel_stride: usize,
    /// Subsampling, horizontal and vertical: each side of the component is that of the frame divided by
    /// 2 to the power of this, rounded up.
    pub shift: [u32; 2],
}

/// The components of `format` without alpha; `None` if their samples are not of 8 bits each, or in tiles, or
/// behind a palette.
pub fn components(format: &VideoFormatInfo) -> Option<ArrayVec<Component, COLORS>> {
    let others = VideoFormatFlags::PALETTE | VideoFormatFlags::COMPLEX | VideoFormatFlags::TILED;
    if format.flags().intersects(others) || format.n_components() == 0 {
        return None;
    }
    let colors = if format.is_gray() { 1 } else { COLORS };
    let mut components = ArrayVec::new();
    for c in 0..colors {
        let is_byte = format.depth().get(c) == Some(&8) && format.shift()[c] == 0;
        let pixel_stride = usize::try_from(format.pixel_stride()[c]).ok()?;
        if !is_byte || pixel_stride == 0 {
            return None;
        }
        components.push(Component {
            plane: format.plane()[c] as usize,
            offset: offset(format, c),
            pixel_stride,
            shift: [format.w_sub()[c], format.h_sub()[c]],
        });
    }
    Some(components)
}

/// The byte of the first sample of component `c` in its plane.
fn offset(format: &VideoFormatInfo, c: usize) -> usize {
    match format.format() {
        // The bytes are V, Y, U, Y. GStreamer's table has those of UYVY, with U and V exchanged; its conversions
        // do not use that table.
        VideoFormat::Vyuy => [1, 2, 0][c],
        _ => format.poffset()[c] as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names list the bytes of two pixels: GStreamer's documentation of the formats.
    #[test]
    fn packed_luma_and_chroma_are_where_the_names_of_the_formats_list_them() {
        gst::init().unwrap();
        for (format, bytes) in [
            (VideoFormat::Yuy2, "YUYV"),
            (VideoFormat::Uyvy, "UYVY"),
            (VideoFormat::Yvyu, "YVYU"),
            (VideoFormat::Vyuy, "VYUY"),
            (VideoFormat::Ayuv, "AYUV"),
            (VideoFormat::Vuya, "VUYA"),
            (VideoFormat::V308, "YUV"),
        ] {
            let found = components(&VideoFormatInfo::from_format(format)).unwrap();
            let offsets: Vec<_> = found.iter().map(|component| component.offset).collect();
            let expected: Vec<_> = "YUV".chars().map(|name| bytes.find(name).unwrap()).collect();
            assert_eq!(offsets, expected, "{format}");
        }
    }

    #[test]
    fn formats_of_other_depths_tiles_and_palettes_have_no_bytes_to_sample() {
        use VideoFormat as F;
        gst::init().unwrap();
        let is_known = |format| components(&VideoFormatInfo::from_format(format)).is_some();
        for other in
            [F::I42010le, F::P01010le, F::Rgb16, F::Rgb8p, F::Nv1264z32, F::V210, F::Gray16Le]
        {
            assert!(!is_known(other), "{other:?}");
        }
        for bytes in [
            F::I420,
            F::Yv12,
            F::Nv12,
            F::Nv21,
            F::Yuy2,
            F::Uyvy,
            F::Y42b,
            F::Y444,
            F::Ayuv,
            F::Gray8,
        ] {
            assert!(is_known(bytes), "{bytes:?}");
        }
    }
}
