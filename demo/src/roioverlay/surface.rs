// SPDX-License-Identifier: MIT OR Apache-2.0
//! Blends colors into video frames.
//!
//! In: a mapped frame with 8 bits per component, rectangles and colors. Out: changed samples, in
//! all planes and with chroma subsampling.

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
}

impl<'a> Surface<'a> {
    /// Maps the frame in `buffer`, which must have this format.
    ///
    /// # Errors
    /// Returns an error if the frame's memory is smaller than its layout requires.
    pub fn new(
        buffer: &'a mut gst::BufferRef,
        format: &'a SurfaceFormat,
    ) -> Result<Self, FrameError> {
        Ok(Self { frame: MappedFrame::writable(buffer, &format.layout)?, format })
    }

    /// Returns all pixels of the frame.
    pub fn bounds(&self) -> Rect {
        self.format.bounds()
    }

    /// Blends `color` into the pixels of `rect`. `alpha` is between 0 (transparent) and 255
    /// (opaque).
    pub fn fill(&mut self, rect: Rect, color: Rgb, alpha: u8) {
        self.blend(rect, color, |_, _| alpha);
    }

    /// Blends `color` into the pixels of `rect`. `alpha` returns the opacity for a column and row.
    ///
    /// A sample that covers several pixels is blended with the mean of their opacities.
    pub fn blend(&mut self, rect: Rect, color: Rgb, alpha: impl Fn(i32, i32) -> u8) {
        let bounds = self.format.bounds();
        let Some(rect) = rect.intersection(&bounds) else {
            return;
        };
        let values = self.format.converter.components(color);
        for (component, value) in self.format.components.iter().zip(values) {
            let PlaneMut { data, stride } = self.frame.plane_mut(component.plane);
            let [log2_width, log2_height] = component.shift;
            let (width, height) = (1 << log2_width, 1 << log2_height);
            for row in (rect.y1 >> log2_height)..=((rect.y2 - 1) >> log2_height) {
                for column in (rect.x1 >> log2_width)..=((rect.x2 - 1) >> log2_width) {
                    // The last sample of a row or column may cover fewer pixels.
                    let (right, below) = (
                        (column * width + width).min(bounds.x2),
                        (row * height + height).min(bounds.y2),
                    );
                    let whole = 255 * (right - column * width) * (below - row * height);
                    let mut coverage = 0;
                    for y in (row * height).max(rect.y1)..below.min(rect.y2) {
                        for x in (column * width).max(rect.x1)..right.min(rect.x2) {
                            coverage += i32::from(alpha(x, y));
                        }
                    }
                    let sample = &mut data[row as usize * stride
                        + column as usize * component.pixel_stride
                        + component.offset];
                    let (old, new) = (i32::from(*sample), i32::from(value));
                    *sample =
                        ((old * (whole - coverage) + new * coverage + whole / 2) / whole) as u8;
                }
            }
        }
    }
}
