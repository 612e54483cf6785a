// SPDX-License-Identifier: MIT OR Apache-2.0
//! Regions and their details, in the form that the writers read.

use super::classification::ClassifiedImage;
use super::region::{Region, RegionDetail, RegionMask};
use nmsfilter_core::decoder::classifier::ClassScore;
use nmsfilter_core::engine::detail::Point;
use nmsfilter_core::geometry::OrientedBox;

/// Regions of one frame, or of all frames of a buffer, with their details.
#[derive(Clone, Copy, Debug, Default)]
pub struct DetailedRegions<'a> {
    /// The regions.
    pub regions: &'a [Region],
    /// The details of each region; empty if no region has any.
    pub details: &'a [RegionDetail],
    /// The points that the details refer to.
    pub points: &'a [Point],
    /// The bytes of masks that the details refer to.
    pub mask_bytes: &'a [u8],
    /// The images of which a classifier has found the classes; then there are no regions.
    pub classified: &'a [ClassifiedImage],
    /// The classes that these images refer to.
    pub classes: &'a [ClassScore],
}

/// A region with its details.
#[derive(Clone, Copy, Debug)]
pub struct DetailedRegion<'a> {
    /// The region.
    pub region: &'a Region,
    /// The oriented box. The region is its bounds.
    pub oriented: Option<OrientedBox>,
    /// The points in pixels of the frame. They can be outside the frame, NaN, or infinite.
    pub points: &'a [Point],
    /// True if the points have a visibility.
    pub has_visibility: bool,
    /// The mask.
    pub mask: Option<MaskRows<'a>>,
}

/// A mask with its rows.
#[derive(Clone, Copy, Debug)]
pub struct MaskRows<'a> {
    /// The size of the mask, and the part of the frame that it covers.
    pub shape: &'a RegionMask,
    /// The rows of bits. Each row is padded to whole bytes, and begins with the most significant bit.
    pub rows: &'a [u8],
}

impl<'a> DetailedRegions<'a> {
    /// Returns the regions in their order.
    pub fn iter(self) -> impl Iterator<Item = DetailedRegion<'a>> {
        let mut details = self.details.iter();
        self.regions.iter().map(move |region| match details.next() {
            None => DetailedRegion::from(region),
            Some(detail) => DetailedRegion {
                region,
                oriented: detail.oriented,
                points: &self.points[detail.points.clone()],
                has_visibility: detail.has_visibility,
                mask: detail
                    .mask
                    .as_ref()
                    .map(|shape| MaskRows { shape, rows: &self.mask_bytes[shape.bytes.clone()] }),
            },
        })
    }

    /// Returns the number of masks.
    pub(super) fn masks(self) -> usize {
        self.details.iter().filter(|detail| detail.mask.is_some()).count()
    }
}

impl<'a> From<&'a [Region]> for DetailedRegions<'a> {
    fn from(regions: &'a [Region]) -> Self {
        Self { regions, ..Self::default() }
    }
}

/// A region without details.
impl<'a> From<&'a Region> for DetailedRegion<'a> {
    fn from(region: &'a Region) -> Self {
        Self { region, oriented: None, points: &[], has_visibility: false, mask: None }
    }
}

impl MaskRows<'_> {
    /// Returns whether the pixel is set.
    pub fn is_set(&self, column: usize, row: usize) -> bool {
        let byte = self.rows[row * self.shape.stride() + column / 8];
        byte & (0x80 >> (column % 8)) != 0
    }
}
