//! Boxes: which region of the image a candidate covers, and when two candidates overlap too much.
//!
//! In: corners and areas, in pixels of the model's input. Out: whether a box intersects [`Bounds`], and the
//! [`Overlap`] measures with the bounds that let engines skip pairs of boxes.

mod bounds;
pub mod overlap;

pub use bounds::Bounds;
pub use overlap::Overlap;

/// An axis-aligned box: left, upper, right and lower edge.
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
    /// The area, with sides that are `offset` pixels longer than the difference of their edges.
    #[inline(always)]
    pub fn area(&self, offset: f32) -> f32 {
        (self.x2 - self.x1 + offset) * (self.y2 - self.y1 + offset)
    }
}

/// The lesser of two numbers: one instruction, unlike `f32::min`, which treats NaN apart.
#[inline(always)]
pub(crate) fn lesser(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

/// The greater of two numbers; as [`lesser`].
#[inline(always)]
pub(crate) fn greater(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}
