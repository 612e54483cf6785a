// SPDX-License-Identifier: MIT OR Apache-2.0
//! Regions with what belongs to them, as the writers read them.

use super::region::{Region, RegionDetail, RegionMask};
use nmsfilter_core::engine::detail::Point;
use nmsfilter_core::geometry::OrientedBox;

/// Regions of one frame, or of all frames of a buffer, with their details.
#[derive(Clone, Copy, Debug, Default)]
pub struct DetailedRegions<'a> {
    /// The regions.
    pub regions: &'a [Region],
    /// Of each region; empty if there are none.
    pub details: &'a [RegionDetail],
    /// What the details refer to.
    pub points: &'a [Point],
    /// Whether the model gives the visibility of points.
    pub has_visibility: bool,
    /// What the details refer to.
    pub mask_bytes: &'a [u8],
}

/// A region with what belongs to it.
#[derive(Clone, Copy, Debug)]
pub struct DetailedRegion<'a> {
    /// The region.
    pub region: &'a Region,
    /// The oriented box, of which the region is the bounds.
    pub oriented: Option<OrientedBox>,
    /// The points, in pixels of the frame. They can be outside of it, NaN, or infinite.
    pub points: &'a [Point],
    /// Whether the points have a visibility.
    pub has_visibility: bool,
    /// The mask.
    pub mask: Option<Mask<'a>>,
}

/// A mask with its rows.
#[derive(Clone, Copy, Debug)]
pub struct Mask<'a> {
    /// The size, and what it covers.
    pub shape: &'a RegionMask,
    /// Rows of bits, each padded to whole bytes, the most significant bit first.
    pub rows: &'a [u8],
}

impl<'a> DetailedRegions<'a> {
    /// The regions in their order.
    pub fn iter(self) -> impl Iterator<Item = DetailedRegion<'a>> {
        let mut details = self.details.iter();
        self.regions.iter().map(move |region| match details.next() {
            None => DetailedRegion::from(region),
            Some(detail) => DetailedRegion {
                region,
                oriented: detail.oriented,
                points: &self.points[detail.points.clone()],
                has_visibility: self.has_visibility,
                mask: detail
                    .mask
                    .as_ref()
                    .map(|shape| Mask { shape, rows: &self.mask_bytes[shape.bytes.clone()] }),
            },
        })
    }

    /// The number of masks.
    #[cfg(feature = "v1_26")]
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

impl Mask<'_> {
    /// Whether the pixel is set.
    pub fn is_set(&self, column: usize, row: usize) -> bool {
        let byte = self.rows[row * self.shape.stride() + column / 8];
        byte & (0x80 >> (column % 8)) != 0
    }
}
