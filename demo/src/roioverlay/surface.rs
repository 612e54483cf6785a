// SPDX-License-Identifier: MIT OR Apache-2.0
//! Blends colors into video frames.
//!
//! In: a mapped frame of 8 bits per component, rectangles and colors. Out: changed samples, in all
//! planes and with chroma subsampling.

use arrayvec::ArrayVec;
use gst_video::VideoFrameRef;
use gst_video::prelude::*;

use super::color::{Converter, Rgb};
use gstnmsfilter::internals::elements::plane::{Plane, PlaneError, plane};

/// A rectangle of pixels; `x2` and `y2` are exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rect {
    pub x1: i32,
    pub y1: i32,
    pub x2: i32,
    pub y2: i32,
}

impl Rect {
    /// The pixels that are in both rectangles; `None` if there are none.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let both = Self {
            x1: self.x1.max(other.x1),
            y1: self.y1.max(other.y1),
            x2: self.x2.min(other.x2),
            y2: self.y2.min(other.y2),
        };
        (both.x1 < both.x2 && both.y1 < both.y2).then_some(both)
    }

    /// The number of pixels.
    pub fn area(&self) -> i64 {
        i64::from(self.x2 - self.x1) * i64::from(self.y2 - self.y1)
    }

    /// All pixels of `frame`.
    pub fn of(frame: &VideoFrameRef<&mut gst::BufferRef>) -> Self {
        Self { x1: 0, y1: 0, x2: frame.width() as i32, y2: frame.height() as i32 }
    }

    /// Left, top, right and bottom.
    pub fn corners(&self) -> [i32; 4] {
        [self.x1, self.y1, self.x2, self.y2]
    }

    /// This rectangle, extended by `by` pixels on each side.
    pub fn expanded(&self, by: i32) -> Self {
        let Self { x1, y1, x2, y2 } = *self;
        Self { x1: x1 - by, y1: y1 - by, x2: x2 + by, y2: y2 + by }
    }
}

/// A frame of 8 bits per component.
pub(super) struct Surface<'a, 'b> {
    frame: &'a mut VideoFrameRef<&'b mut gst::BufferRef>,
    converter: Converter,
    /// The components except alpha.
    components: ArrayVec<Component, 3>,
}

/// The positions of a component's samples in memory.
#[derive(Clone, Copy)]
struct Component {
    plane: usize,
    offset: usize,
    pixel_stride: usize,
    /// Binary logarithms of the pixels per sample (chroma subsampling), across and down.
    log2_width: u32,
    log2_height: u32,
    /// Bytes of a row up to its last sample, and number of rows.
    row_bytes: usize,
    rows: usize,
}

impl<'a, 'b> Surface<'a, 'b> {
    /// A surface for `frame`; `converter` must be that of its format.
    ///
    /// # Errors
    /// If the frame's memory is smaller than its layout requires.
    pub fn new(
        frame: &'a mut VideoFrameRef<&'b mut gst::BufferRef>,
        converter: Converter,
    ) -> Result<Self, PlaneError> {
        let count = (frame.format_info().n_components() as usize).min(3);
        let components = (0..count).map(|i| Component::new(frame, i)).collect();
        let mut surface = Self { frame, converter, components };
        for i in 0..count {
            surface.samples(i)?;
        }
        Ok(surface)
    }

    fn bounds(&self) -> Rect {
        Rect::of(self.frame)
    }

    /// The frame's width in pixels.
    pub fn width(&self) -> i32 {
        self.bounds().x2
    }

    /// The rows that contain the samples of component `i`.
    fn samples(&mut self, i: usize) -> Result<Plane<'_>, PlaneError> {
        let Component { plane: at, row_bytes, rows, .. } = self.components[i];
        plane(self.frame, at, row_bytes, rows)
    }

    /// Blends `color` into the pixels of `rect`; `alpha` is 0 (transparent) to 255 (opaque).
    pub fn fill(&mut self, rect: Rect, color: Rgb, alpha: u8) {
        self.blend(rect, color, |_, _| alpha);
    }

    /// Blends `color` into the pixels of `rect`; `alpha` returns the opacity for a column and row.
    ///
    /// A sample of several pixels is blended with the mean of their opacities.
    pub fn blend(&mut self, rect: Rect, color: Rgb, alpha: impl Fn(i32, i32) -> u8) {
        let bounds = self.bounds();
        let Some(rect) = rect.intersection(&bounds) else {
            return;
        };
        let values = self.converter.components(color);
        for (i, value) in values.into_iter().enumerate().take(self.components.len()) {
            let component = self.components[i];
            // Does not fail: `new` has checked it.
            let Ok(Plane { data, stride }) = self.samples(i) else {
                return;
            };
            let (width, height) = (1 << component.log2_width, 1 << component.log2_height);
            for row in (rect.y1 >> component.log2_height)..=((rect.y2 - 1) >> component.log2_height)
            {
                for column in
                    (rect.x1 >> component.log2_width)..=((rect.x2 - 1) >> component.log2_width)
                {
                    // The last sample of a row or column can have fewer pixels.
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

impl Component {
    fn new(frame: &VideoFrameRef<&mut gst::BufferRef>, i: usize) -> Self {
        let format = frame.format_info();
        let samples = |pixels: u32, sub: u32| pixels.div_ceil(1 << sub).max(1) as usize;
        let (log2_width, log2_height) = (format.w_sub()[i], format.h_sub()[i]);
        let (offset, pixel_stride) =
            (format.poffset()[i] as usize, format.pixel_stride()[i] as usize);
        Self {
            plane: format.plane()[i] as usize,
            offset,
            pixel_stride,
            log2_width,
            log2_height,
            row_bytes: (samples(frame.width(), log2_width) - 1) * pixel_stride + offset + 1,
            rows: samples(frame.height(), log2_height),
        }
    }
}
