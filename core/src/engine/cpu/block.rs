// SPDX-License-Identifier: MIT OR Apache-2.0
//! A structure of arrays of boxes.
//!
//! In: entries. Out: entries, read by loops that the compiler vectorizes
//! ([`Conflict`](super::conflict::Conflict)).

use super::conflict::Entry;
use crate::geometry::Corners;
use crate::geometry::overlap::Measured;

/// `WIDTH` boxes. Unused elements are empty boxes, which conflict with no box.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<const WIDTH: usize, S = ()> {
    x1: [f32; WIDTH],
    y1: [f32; WIDTH],
    x2: [f32; WIDTH],
    y2: [f32; WIDTH],
    area: [f32; WIDTH],
    shape: [S; WIDTH],
}

impl<const WIDTH: usize, S: Copy + Default> Block<WIDTH, S> {
    #[inline(always)]
    pub fn empty() -> Self {
        Self {
            x1: [f32::INFINITY; WIDTH],
            y1: [f32::INFINITY; WIDTH],
            x2: [f32::NEG_INFINITY; WIDTH],
            y2: [f32::NEG_INFINITY; WIDTH],
            area: [0.0; WIDTH],
            shape: [S::default(); WIDTH],
        }
    }

    #[inline(always)]
    pub fn set(&mut self, index: usize, entry: &Entry<S>) {
        let Measured { corners: Corners { x1, y1, x2, y2 }, area } = entry.measured;
        (self.x1[index], self.y1[index], self.x2[index], self.y2[index]) = (x1, y1, x2, y2);
        (self.area[index], self.shape[index]) = (area, entry.shape);
    }

    #[inline(always)]
    pub fn get(&self, index: usize) -> Entry<S> {
        let corners = Corners {
            x1: self.x1[index],
            y1: self.y1[index],
            x2: self.x2[index],
            y2: self.y2[index],
        };
        let measured = Measured { corners, area: self.area[index] };
        Entry { measured, shape: self.shape[index] }
    }
}
