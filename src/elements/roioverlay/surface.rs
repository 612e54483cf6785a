//! A frame as something to blend colours into, whatever its planes.

use gst_video::VideoFrameRef;
use gst_video::prelude::*;

use super::colour::{Converter, Rgb};

/// Pixels from `x1`, `y1` up to but not including `x2`, `y2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rect {
    pub x1: i32,
    pub y1: i32,
    pub x2: i32,
    pub y2: i32,
}

impl Rect {
    /// What is in both.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let both = Self {
            x1: self.x1.max(other.x1),
            y1: self.y1.max(other.y1),
            x2: self.x2.min(other.x2),
            y2: self.y2.min(other.y2),
        };
        (both.x1 < both.x2 && both.y1 < both.y2).then_some(both)
    }

    /// The number of its pixels.
    pub fn area(&self) -> i64 {
        i64::from(self.x2 - self.x1) * i64::from(self.y2 - self.y1)
    }

    /// The same with `by` pixels more on each side.
    pub fn grown(&self, by: i32) -> Self {
        let Self { x1, y1, x2, y2 } = *self;
        Self { x1: x1 - by, y1: y1 - by, x2: x2 + by, y2: y2 + by }
    }
}

/// A frame of 8 bits per component.
pub(super) struct Surface<'a, 'b> {
    frame: &'a mut VideoFrameRef<&'b mut gst::BufferRef>,
    converter: Converter,
}

/// Where a component's samples lie.
struct Component {
    plane: u32,
    stride: usize,
    offset: usize,
    pixel: usize,
    /// Pixels per sample, as powers of two.
    wide: u32,
    high: u32,
}

impl<'a, 'b> Surface<'a, 'b> {
    pub fn new(frame: &'a mut VideoFrameRef<&'b mut gst::BufferRef>, converter: Converter) -> Self {
        Self { frame, converter }
    }

    pub fn bounds(&self) -> Rect {
        let (x2, y2) = (self.frame.width() as i32, self.frame.height() as i32);
        Rect { x1: 0, y1: 0, x2, y2 }
    }

    /// Blends `colour` into the pixels of `rect`; `alpha` is 0 (none) to 255 (covered).
    pub fn fill(&mut self, rect: Rect, colour: Rgb, alpha: u8) {
        self.blend(rect, colour, |_, _| alpha);
    }

    /// Blends `colour` into the pixels of `rect`, each covered by as much as `alpha` says of its
    /// column and row.
    ///
    /// A sample that stands for several pixels takes up the mean of their cover.
    pub fn blend(&mut self, rect: Rect, colour: Rgb, alpha: impl Fn(i32, i32) -> u8) {
        let Some(rect) = rect.intersection(&self.bounds()) else {
            return;
        };
        let values = self.converter.components(colour);
        for (i, value) in values.into_iter().enumerate().take(self.components()) {
            let component = self.component(i);
            let Ok(plane) = self.frame.plane_data_mut(component.plane) else {
                return;
            };
            let (wide, high) = (1 << component.wide, 1 << component.high);
            for row in (rect.y1 >> component.high)..=((rect.y2 - 1) >> component.high) {
                for column in (rect.x1 >> component.wide)..=((rect.x2 - 1) >> component.wide) {
                    let at = row as usize * component.stride
                        + column as usize * component.pixel
                        + component.offset;
                    let Some(sample) = plane.get_mut(at) else {
                        continue;
                    };
                    let mut cover = 0;
                    for y in (row * high).max(rect.y1)..(row * high + high).min(rect.y2) {
                        for x in (column * wide).max(rect.x1)..(column * wide + wide).min(rect.x2) {
                            cover += i32::from(alpha(x, y));
                        }
                    }
                    let whole = 255 * wide * high;
                    let (old, new) = (i32::from(*sample), i32::from(value));
                    *sample = ((old * (whole - cover) + new * cover + whole / 2) / whole) as u8;
                }
            }
        }
    }

    /// How many components take a colour: not alpha.
    fn components(&self) -> usize {
        (self.frame.format_info().n_components() as usize).min(3)
    }

    fn component(&self, i: usize) -> Component {
        let format = self.frame.format_info();
        let plane = format.plane()[i];
        Component {
            plane,
            stride: self.frame.plane_stride()[plane as usize] as usize,
            offset: format.poffset()[i] as usize,
            pixel: format.pixel_stride()[i] as usize,
            wide: format.w_sub()[i],
            high: format.h_sub()[i],
        }
    }
}
