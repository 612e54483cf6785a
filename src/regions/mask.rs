// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mask of a region.

use super::field::field;
use crate::bindings::field_name::FieldName;

/// The mask of a region, read from the structure `mask`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AttachedMask<'a> {
    /// The number of pixels per row; at least 1.
    pub width: u32,
    /// The number of rows; at least 1.
    pub height: u32,
    /// The left, upper, right and lower edge of the rectangle that the mask covers, in pixels of the frame. Part of
    /// the rectangle can be outside the frame.
    pub edges: [f64; 4],
    /// The rows, each of `width / 8` bytes, rounded up. The first pixel is the most significant bit.
    pub bytes: &'a [u8],
}

impl<'a> AttachedMask<'a> {
    /// Returns `None` if a field is missing or has another type, if the mask has no pixels, if the rectangle has no
    /// area, or if the data is too short for the pixels.
    pub(super) fn new(structure: &'a gst::StructureRef) -> Option<Self> {
        let side =
            |name: &FieldName| u32::try_from(name.int(structure)?).ok().filter(|&side| side > 0);
        let (width, height) = (side(field!("width"))?, side(field!("height"))?);
        let edge = |name: &FieldName| name.double(structure).filter(|edge| edge.is_finite());
        let [left, top] = [edge(field!("left"))?, edge(field!("top"))?];
        let [right, bottom] = [edge(field!("right"))?, edge(field!("bottom"))?];
        let size = (width.div_ceil(8) as usize).checked_mul(height as usize)?;
        let bytes = field!("data").bytes(structure)?.get(..size)?;
        let has_area = left < right && top < bottom;
        has_area.then_some(Self { width, height, edges: [left, top, right, bottom], bytes })
    }
}
