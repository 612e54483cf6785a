// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keypoints of a region.

use std::ffi::CStr;

use super::field::field;

/// The keypoints of a region, read from the structure `keypoints`.
#[derive(Clone, Copy, Debug)]
pub struct AttachedKeypoints<'a> {
    numbers: &'a [f32],
    components: usize,
    layout: &'a CStr,
}

impl<'a> AttachedKeypoints<'a> {
    /// Returns `None` if a field is missing or has another type, if `components` is neither 2 nor 3, or if the data
    /// is too short for the points or not aligned for `f32`.
    pub(super) fn new(structure: &'a gst::StructureRef) -> Option<Self> {
        let count = usize::try_from(field!("count").int(structure)?).ok()?;
        let components = field!("components").int(structure).filter(|it| matches!(it, 2 | 3))?;
        let components = components as usize;
        let data = field!("data").bytes(structure)?;
        let size = count.checked_mul(components * size_of::<f32>())?;
        let numbers = bytemuck::try_cast_slice(data.get(..size)?).ok()?;
        let layout = field!("layout").string(structure).unwrap_or_default();
        Some(Self { numbers, components, layout })
    }

    /// Returns the number of points.
    pub fn len(&self) -> usize {
        self.numbers.len() / self.components
    }

    /// Returns whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Returns whether each point has a visibility.
    pub fn has_visibility(&self) -> bool {
        self.components == 3
    }

    /// Returns the numbers of all points: x and y in pixels of the frame and, if points have it, the visibility.
    pub fn numbers(&self) -> &'a [f32] {
        self.numbers
    }

    /// Returns the meaning of the points: `coco-17`, `face-5` or `points`, or a text that another element has set.
    /// Empty if the structure does not say.
    pub fn layout(&self) -> &'a CStr {
        self.layout
    }

    /// Returns x and y in pixels of the frame and the visibility of each point. The visibility is 1 if points have
    /// none. Coordinates can be outside the frame, NaN or infinite.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = [f32; 3]> + 'a {
        let points = self.numbers.chunks_exact(self.components);
        points.map(|point| [point[0], point[1], point.get(2).copied().unwrap_or(1.0)])
    }
}
