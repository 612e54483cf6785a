// SPDX-License-Identifier: MIT OR Apache-2.0
//! Points: keypoints of people, landmarks of faces.

use super::super::formula::{self, Prior};
use crate::decoder::layout::PointRule;

/// A point of a survivor.
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Point {
    /// The x coordinate, in pixels. NaN or infinite if the model outputs such a number.
    pub x: f32,
    /// The y coordinate.
    pub y: f32,
    /// The visibility, usually 0 to 1, or 1 if the model has no visibility.
    pub visibility: f32,
}

/// The points of a survivor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Points<'a> {
    pub(super) numbers: &'a [f32],
    pub(super) rule: Option<PointRule>,
    pub(super) prior: Option<Prior>,
    /// The factors of normalized coordinates.
    pub(super) scale: [f32; 2],
}

impl Points<'_> {
    /// Returns true if the model outputs the visibility of points.
    pub fn has_visibility(&self) -> bool {
        self.rule.is_some_and(|rule| rule.components == 3)
    }

    /// The points, in pixels of the model's input.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Point> {
        let Self { numbers, rule, prior, scale } = self;
        numbers.chunks_exact(rule.map_or(2, |rule| rule.components)).map(move |numbers| {
            let rule = rule.expect("a model without points gives no numbers of points");
            let scale = if rule.normalized { scale } else { [1.0; 2] };
            let [x, y] = formula::point(&rule, prior, scale, [numbers[0], numbers[1]]);
            let visibility = |&stored: &f32| formula::activated(rule.visibility, stored);
            Point { x, y, visibility: numbers.get(2).map_or(1.0, visibility) }
        })
    }
}
