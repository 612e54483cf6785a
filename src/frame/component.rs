// SPDX-License-Identifier: MIT OR Apache-2.0
//! Locates the samples of a video format.
//!
//! In: a video format. Out: up to three [`Component`]s (Y, Cb, Cr; or R, G, B; or gray) if the format's samples are
//! bytes.

use arrayvec::ArrayVec;
use gst_video::{VideoFormat, VideoFormatFlags, VideoFormatInfo};

/// The maximum number of components, not counting alpha.
pub const COLORS: usize = 3;

/// The position of a component's samples in the frame's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component {
    /// The index of the plane that contains the samples.
    pub plane: usize,
    /// The offset of the first sample from the start of the plane, in bytes.
    pub offset: usize,
    /// The distance between two neighboring samples of a row, in bytes.
    pub pixel_stride: usize,
    /// Horizontal and vertical subsampling: each side of the component is the frame's side divided by `2^shift` and
    /// rounded up.
    pub shift: [u32; 2],
}

/// Returns the components of `format` except alpha, or `None` if a sample does not have 8 bits, or if the format
/// stores its samples in tiles or uses a palette.
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

/// Returns the offset of the first sample of component `c` in its plane, in bytes.
fn offset(format: &VideoFormatInfo, c: usize) -> usize {
    match format.format() {
        // VYUY stores the bytes V, Y, U, Y. GStreamer's table has the offsets of UYVY with U and V exchanged, which
        // is wrong for VYUY; GStreamer's own conversions do not use this table.
        VideoFormat::Vyuy => [1, 2, 0][c],
        _ => format.poffset()[c] as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GStreamer's documentation says that the name of a packed format lists the bytes of two pixels.
    #[test]
    fn packed_luma_and_chroma_are_where_the_names_of_the_formats_list_them() {
        gst::init().unwrap();
        for (format, bytes) in [
            (VideoFormat::Yuy2, "YUYV"),
            (VideoFormat::Uyvy, "UYVY"),
            (VideoFormat::Yvyu, "YVYU"),
            (VideoFormat::Vyuy, "VYUY"),
            (VideoFormat::Ayuv, "AYUV"),
            (VideoFormat::V308, "YUV"),
        ] {
            let found = components(&VideoFormatInfo::from_format(format)).unwrap();
            let offsets: Vec<_> = found.iter().map(|component| component.offset).collect();
            let expected: Vec<_> = "YUV".chars().map(|name| bytes.find(name).unwrap()).collect();
            assert_eq!(offsets, expected, "{format}");
        }
        // GStreamer has this format since 1.16.
        let vuya = VideoFormat::from_string("VUYA");
        if vuya != VideoFormat::Unknown {
            let found = components(&VideoFormatInfo::from_format(vuya)).unwrap();
            assert!(found.iter().map(|component| component.offset).eq([2, 1, 0]));
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
