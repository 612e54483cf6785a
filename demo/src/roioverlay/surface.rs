// SPDX-License-Identifier: MIT OR Apache-2.0
//! Blends colors into video frames.
//!
//! In: a mapped frame with 8 bits per component, rectangles and colors. Out: changed samples, in
//! all planes and with chroma subsampling.

use std::ops::Range;

use arrayvec::ArrayVec;
use gst_video::VideoInfo;

use super::color::{Converter, Rgb};
use gstnmsfilter::frame::{
    COLORS, Component, FrameError, FrameLayout, MappedFrame, PlaneMut, components,
};

/// A rectangle of pixels. `x2` and `y2` are exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rect {
    pub x1: i32,
    pub y1: i32,
    pub x2: i32,
    pub y2: i32,
}

impl Rect {
    /// Returns the pixels in both rectangles, or `None` if there are none.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let both = Self {
            x1: self.x1.max(other.x1),
            y1: self.y1.max(other.y1),
            x2: self.x2.min(other.x2),
            y2: self.y2.min(other.y2),
        };
        (both.x1 < both.x2 && both.y1 < both.y2).then_some(both)
    }

    /// Returns the number of pixels.
    pub fn area(&self) -> i64 {
        i64::from(self.x2 - self.x1) * i64::from(self.y2 - self.y1)
    }

    /// Returns all pixels of frames that `info` describes.
    pub fn whole_frame(info: &VideoInfo) -> Self {
        Self { x1: 0, y1: 0, x2: info.width() as i32, y2: info.height() as i32 }
    }

    /// Returns left, top, right and bottom.
    pub fn corners(&self) -> [i32; 4] {
        [self.x1, self.y1, self.x2, self.y2]
    }

    /// Returns this rectangle, extended by `by` pixels on each side.
    pub fn expanded(&self, by: i32) -> Self {
        let Self { x1, y1, x2, y2 } = *self;
        Self { x1: x1 - by, y1: y1 - by, x2: x2 + by, y2: y2 + by }
    }
}

/// How colors are written to frames of one format and size.
#[derive(Clone, Debug)]
pub(super) struct SurfaceFormat {
    layout: FrameLayout,
    converter: Converter,
    /// Components other than alpha.
    components: ArrayVec<Component, COLORS>,
}

impl SurfaceFormat {
    /// Returns `None` if the samples are not bytes.
    pub fn new(info: &VideoInfo) -> Option<Self> {
        let components = components(&info.format_info())?;
        Some(Self { layout: FrameLayout::new(info), converter: Converter::new(info), components })
    }

    /// Returns all pixels of a frame.
    pub fn bounds(&self) -> Rect {
        Rect::whole_frame(self.layout.info())
    }
}

/// A frame with 8 bits per component.
pub(super) struct Surface<'a> {
    frame: MappedFrame<&'a mut gst::BufferRef>,
    format: &'a SurfaceFormat,
    /// The opacities of some rows.
    opacities: &'a mut Vec<u8>,
}

/// Blends `value` into a sample: `coverage` of `whole` parts.
fn blend_sample(sample: &mut u8, value: u8, coverage: i32, whole: i32) {
    if coverage > 0 {
        let (old, new) = (i32::from(*sample), i32::from(value));
        *sample = ((old * (whole - coverage) + new * coverage + whole / 2) / whole) as u8;
    }
}

impl<'a> Surface<'a> {
    /// Maps the frame in `buffer`, which must have this format. `opacities` is memory that is used again.
    ///
    /// # Errors
    /// Returns an error if the frame's memory is smaller than its layout requires.
    pub fn new(
        buffer: &'a mut gst::BufferRef,
        format: &'a SurfaceFormat,
        opacities: &'a mut Vec<u8>,
    ) -> Result<Self, FrameError> {
        let frame = MappedFrame::writable(buffer, &format.layout)?;
        Ok(Self { frame, format, opacities })
    }

    /// Returns all pixels of the frame.
    pub fn bounds(&self) -> Rect {
        self.format.bounds()
    }

    /// Blends `color` into the pixels of `rect`. `alpha` is between 0 (transparent) and 255
    /// (opaque).
    pub fn fill(&mut self, rect: Rect, color: Rgb, alpha: u8) {
        self.blend_rows(rect, color, |_, opacities| opacities.fill(alpha));
    }

    /// Blends `color` into the pixels of `rect`. `alpha` returns the opacity for a column and row.
    pub fn blend(&mut self, rect: Rect, color: Rgb, alpha: impl Fn(i32, i32) -> u8) {
        let first = rect.x1.max(0);
        self.blend_rows(rect, color, |y, opacities| {
            (first..).zip(opacities).for_each(|(x, opacity)| *opacity = alpha(x, y));
        });
    }

    /// Blends `color` into the pixels of `rect`. `opacities` gets the index of a row and sets the opacity of each of its
    /// pixels in `rect` and the frame.
    ///
    /// A sample that covers several pixels is blended with the mean of their opacities.
    pub fn blend_rows(
        &mut self,
        rect: Rect,
        color: Rgb,
        mut opacities: impl FnMut(i32, &mut [u8]),
    ) {
        let Some(rect) = rect.intersection(&self.format.bounds()) else { return };
        let width = (rect.x2 - rect.x1) as usize;
        let values = self.format.converter.components(color);
        let band = self.format.components.iter().map(|component| 1 << component.shift[1]).max();
        let band: i32 = band.unwrap_or(1);
        for first in (rect.y1 / band * band..rect.y2).step_by(band as usize) {
            let rows = first.max(rect.y1)..(first + band).min(rect.y2);
            self.opacities.resize(rows.len() * width, 0);
            for (y, row) in rows.clone().zip(self.opacities.chunks_exact_mut(width)) {
                opacities(y, row);
            }
            for (component, value) in self.format.components.iter().zip(values) {
                self.blend_component(component, value, rect, rows.clone());
            }
        }
    }

    /// Blends `value` into the samples of a component with the opacities of these rows of `rect`.
    fn blend_component(&mut self, component: &Component, value: u8, rect: Rect, rows: Range<i32>) {
        let bounds = self.format.bounds();
        let PlaneMut { data, stride } = self.frame.plane_mut(component.plane);
        let [log2_width, log2_height] = component.shift;
        let (width, height) = (1 << log2_width, 1 << log2_height);
        let row_len = (rect.x2 - rect.x1) as usize;
        for row in (rows.start >> log2_height)..=((rows.end - 1) >> log2_height) {
            // The last sample of a row or column may cover fewer pixels.
            let below = (row * height + height).min(bounds.y2);
            let covered = (row * height).max(rows.start)..below.min(rows.end);
            let place = |y: i32| (y - rows.start) as usize * row_len;
            let opacities = &self.opacities[place(covered.start)..place(covered.end)];
            let column = rect.x1 >> log2_width;
            let first = row as usize * stride + column as usize * component.pixel_stride;
            let samples = data[first + component.offset..].chunks_mut(component.pixel_stride);
            if (width, height) == (1, 1) {
                for (sample, opacity) in samples.zip(opacities) {
                    blend_sample(&mut sample[0], value, i32::from(*opacity), 255);
                }
                continue;
            }
            for (column, sample) in (column..=(rect.x2 - 1) >> log2_width).zip(samples) {
                let right = (column * width + width).min(bounds.x2);
                let whole = 255 * (right - column * width) * (below - row * height);
                let [left, right] = [(column * width).max(rect.x1), right.min(rect.x2)]
                    .map(|x| (x - rect.x1) as usize);
                let rows = opacities.chunks_exact(row_len);
                let coverage = rows.flat_map(|row| &row[left..right]);
                let coverage = coverage.map(|opacity| i32::from(*opacity)).sum();
                blend_sample(&mut sample[0], value, coverage, whole);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gst_video::VideoFormat as F;

    /// Blends one sample after the other, each with the sum of the opacities of its pixels.
    fn blend_samples(
        samples: &mut [u8],
        info: &VideoInfo,
        (rect, color): (Rect, Rgb),
        opacity: impl Fn(i32, i32) -> u8,
    ) {
        let [frame_width, frame_height] = [info.width() as i32, info.height() as i32];
        let values = Converter::new(info).components(color);
        for (component, value) in components(&info.format_info()).unwrap().iter().zip(values) {
            let [width, height] = component.shift.map(|shift| 1 << shift);
            for (row, y) in (0..frame_height).step_by(height).enumerate() {
                for (column, x) in (0..frame_width).step_by(width).enumerate() {
                    let rows = y..(y + height as i32).min(frame_height);
                    let columns = x..(x + width as i32).min(frame_width);
                    let pixels = rows.flat_map(|y| columns.clone().map(move |x| [x, y]));
                    let alpha = |[x, y]: [i32; 2]| {
                        let is_inside =
                            (rect.x1..rect.x2).contains(&x) && (rect.y1..rect.y2).contains(&y);
                        i32::from(if is_inside { opacity(x, y) } else { 0 })
                    };
                    let whole = 255 * pixels.clone().count() as i32;
                    let coverage: i32 = pixels.map(alpha).sum();
                    let sample = &mut samples[info.offset()[component.plane]
                        + row * info.stride()[component.plane] as usize
                        + column * component.pixel_stride
                        + component.offset];
                    let sum = i32::from(*sample) * (whole - coverage) + i32::from(value) * coverage;
                    *sample = ((sum + whole / 2) / whole) as u8;
                }
            }
        }
    }

    #[test]
    fn every_sample_is_blended_with_the_mean_opacity_of_its_pixels() {
        gst::init().unwrap();
        let mut random = fastrand::Rng::with_seed(3);
        for format in [F::Rgb, F::Bgrx, F::I420, F::Nv12, F::Yuy2, F::Y41b, F::Yuv9, F::Gray8] {
            for (width, height) in [(24, 16), (23, 17)] {
                let info = VideoInfo::builder(format, width, height).build().unwrap();
                let surface = SurfaceFormat::new(&info).unwrap();
                let bytes: Vec<u8> = (0..info.size()).map(|_| random.u8(..)).collect();
                let opacities: Vec<u8> =
                    (0..width * height).map(|_| random.choice([0, 0, 255, 90]).unwrap()).collect();
                let opacity = |x: i32, y: i32| opacities[y as usize * width as usize + x as usize];
                let edge = |random: &mut fastrand::Rng| random.i32(-3..30);
                let [x1, y1, x2, y2] = [0; 4].map(|_| edge(&mut random));
                let rect =
                    Rect { x1: x1.min(x2), y1: y1.min(y2), x2: x1.max(x2) + 1, y2: y1.max(y2) + 1 };
                let color = [200, 30, 90];
                let mut expected = bytes.clone();
                blend_samples(&mut expected, &info, (rect, color), opacity);
                let mut buffer = gst::Buffer::from_mut_slice(bytes);
                let mut memory = vec![7; 3];
                Surface::new(buffer.get_mut().unwrap(), &surface, &mut memory)
                    .unwrap()
                    .blend(rect, color, opacity);
                let found = buffer.map_readable().unwrap();
                assert!(*found == expected, "{format} {width}x{height} {rect:?}");
            }
        }
    }
}
