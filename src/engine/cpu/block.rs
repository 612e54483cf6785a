// SPDX-License-Identifier: MIT OR Apache-2.0
//! A structure of arrays of boxes.
//!
//! In: entries. Out: whether any of the boxes conflicts with one more entry, by a loop without branches that
//! the compiler vectorizes.

use super::conflict::{Conflict, Entry};
use crate::geometry::Corners;
use crate::geometry::overlap::Measured;

/// `WIDTH` boxes. Unused elements are empty boxes, which conflict with no box.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<const WIDTH: usize> {
    x1: [f32; WIDTH],
    y1: [f32; WIDTH],
    x2: [f32; WIDTH],
    y2: [f32; WIDTH],
    area: [f32; WIDTH],
    class: [u32; WIDTH],
}

impl<const WIDTH: usize> Block<WIDTH> {
    pub const EMPTY: Self = Self {
        x1: [f32::INFINITY; WIDTH],
        y1: [f32::INFINITY; WIDTH],
        x2: [f32::NEG_INFINITY; WIDTH],
        y2: [f32::NEG_INFINITY; WIDTH],
        area: [0.0; WIDTH],
        class: [0; WIDTH],
    };

    #[inline(always)]
    pub fn set(&mut self, index: usize, entry: &Entry) {
        let Measured { corners: Corners { x1, y1, x2, y2 }, area } = entry.measured;
        (self.x1[index], self.y1[index], self.x2[index], self.y2[index]) = (x1, y1, x2, y2);
        (self.area[index], self.class[index]) = (area, entry.class);
    }

    #[inline(always)]
    pub fn get(&self, index: usize) -> Entry {
        let corners = Corners {
            x1: self.x1[index],
            y1: self.y1[index],
            x2: self.x2[index],
            y2: self.y2[index],
        };
        Entry { measured: Measured { corners, area: self.area[index] }, class: self.class[index] }
    }

    /// Whether any of these boxes, all of which outrank `entry`, conflicts with it. There is no early exit,
    /// which would prevent vectorization.
    #[inline(always)]
    pub fn any_conflicts<C: Conflict>(&self, entry: &Entry, test: C) -> bool {
        let mut any = false;
        for index in 0..WIDTH {
            any |= test.conflict(&self.get(index), entry);
        }
        any
    }
}
