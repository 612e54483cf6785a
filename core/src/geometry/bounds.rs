// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rectangle that boxes must intersect, in pixels of the model's input.

/// A rectangle in pixels of the model's input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Left edge.
    pub left: f32,
    /// Upper edge.
    pub top: f32,
    /// Right edge.
    pub right: f32,
    /// Lower edge.
    pub bottom: f32,
}

impl Bounds {
    /// The whole plane.
    pub const ANY: Self = Self {
        left: f32::NEG_INFINITY,
        top: f32::NEG_INFINITY,
        right: f32::INFINITY,
        bottom: f32::INFINITY,
    };

    /// Returns true if the intersection with a box of these edges (left, upper, right, lower) has an area.
    /// A box that only touches the rectangle does not intersect it.
    #[inline(always)]
    pub fn intersects(&self, [x1, y1, x2, y2]: [f32; 4]) -> bool {
        let is_beside = (x2 <= self.left) | (x1 >= self.right);
        let is_above_or_below = (y2 <= self.top) | (y1 >= self.bottom);
        !(is_beside | is_above_or_below)
    }

    /// Returns true if no edge of a box (left, upper, right, lower) is outside.
    #[inline(always)]
    pub(crate) fn contains(&self, [x1, y1, x2, y2]: [f32; 4]) -> bool {
        (x1 >= self.left) & (y1 >= self.top) & (x2 <= self.right) & (y2 <= self.bottom)
    }
}
