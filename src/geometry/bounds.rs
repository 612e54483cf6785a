//! A rectangle that boxes must intersect.

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
    /// All of the plane.
    pub const ANY: Self = Self {
        left: f32::NEG_INFINITY,
        top: f32::NEG_INFINITY,
        right: f32::INFINITY,
        bottom: f32::INFINITY,
    };

    /// Whether a box of these edges (left, upper, right, lower) has area in common with it; boxes
    /// that only touch it have none.
    #[inline(always)]
    pub fn intersects(&self, [x1, y1, x2, y2]: [f32; 4]) -> bool {
        let is_beside = (x2 <= self.left) | (x1 >= self.right);
        let is_above_or_below = (y2 <= self.top) | (y1 >= self.bottom);
        !(is_beside | is_above_or_below)
    }
}
