// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boxes: the region of the image that a candidate covers, the overlap of two boxes, and the fit of a frame
//! into the model's input.
//!
//! In: corners and areas, in pixels of the model's input. Out: whether a box intersects [`Bounds`], and the
//! [`Overlap`] measures with the bounds that let engines skip pairs of boxes. [`FitRule`] has the rules by
//! which a frame is scaled to the model's input, and [`Mapping`] maps boxes back to the frame.

mod bounds;
mod frame_map;
mod frame_region;
mod letterbox;
mod mapping;
pub mod oriented;
pub mod overlap;
mod tiles;

pub use bounds::Bounds;
pub use frame_map::FrameMap;
pub use frame_region::FrameRegion;
pub use letterbox::{Fit, FitRule, Letterbox, Rounding};
pub use mapping::{Mapping, MappingError};
pub use oriented::OrientedBox;
pub use overlap::Overlap;
pub use tiles::{MAX_OVERLAP, MAX_TILES, tiles};

/// An axis-aligned box by its edges, in pixels of the model's input, or of the frame to which it was mapped.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Corners {
    /// Left edge.
    pub x1: f32,
    /// Upper edge.
    pub y1: f32,
    /// Right edge; `x2 > x1`.
    pub x2: f32,
    /// Lower edge; `y2 > y1`.
    pub y2: f32,
}

impl Corners {
    /// The area in square pixels, with `offset` pixels added to the length of each side.
    #[inline(always)]
    pub fn area(&self, offset: f32) -> f32 {
        (self.x2 - self.x1 + offset) * (self.y2 - self.y1 + offset)
    }
}

/// The lesser of two numbers; `b` if either is NaN. It compiles to one instruction, unlike
/// `f32::min`, which returns the number that is not NaN.
#[inline(always)]
pub(crate) fn lesser(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

/// The greater of two numbers; `b` if either is NaN. See [`lesser`].
#[inline(always)]
pub(crate) fn greater(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}
