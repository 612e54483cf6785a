// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tensor's dimensions.

use std::fmt;

use arrayvec::ArrayVec;

/// The greatest number of dimensions of a tensor.
pub const MAX_DIMENSIONS: usize = 8;

/// A tensor's dimensions, slowest first (row-major, contiguous).
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Shape(ArrayVec<usize, MAX_DIMENSIONS>);

impl Shape {
    /// The shape with these dimensions; `None` if there are more than [`MAX_DIMENSIONS`].
    pub fn new(dims: &[usize]) -> Option<Self> {
        ArrayVec::try_from(dims).ok().map(Self)
    }

    /// The number of elements; `None` if it overflows.
    pub fn elements(&self) -> Option<usize> {
        self.0.iter().try_fold(1usize, |n, &d| n.checked_mul(d))
    }

    /// The shape of one image, if the first dimension is the number of images.
    pub(super) fn of_image(&self) -> Self {
        let mut shape = self.clone();
        if let Some(images) = shape.0.first_mut() {
            *images = 1;
        }
        shape
    }
}

impl std::ops::Deref for Shape {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Written as `1x84x8400`; a scalar as `scalar`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("scalar");
        }
        for (i, dim) in self.0.iter().enumerate() {
            write!(f, "{}{dim}", if i == 0 { "" } else { "x" })?;
        }
        Ok(())
    }
}
