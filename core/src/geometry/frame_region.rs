// SPDX-License-Identifier: MIT OR Apache-2.0
//! A part of a video frame: a tile, or a region of interest.

/// A rectangle of whole pixels of a video frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameRegion {
    /// The first column.
    pub left: u32,
    /// The first row.
    pub top: u32,
    /// The number of columns.
    pub width: u32,
    /// The number of rows.
    pub height: u32,
}

impl FrameRegion {
    /// The whole of a frame of `size` pixels (width, height).
    pub const fn whole(size: [u32; 2]) -> Self {
        Self { left: 0, top: 0, width: size[0], height: size[1] }
    }

    /// The left and the upper edge.
    pub fn origin(&self) -> [u32; 2] {
        [self.left, self.top]
    }

    /// Width and height.
    pub fn size(&self) -> [u32; 2] {
        [self.width, self.height]
    }

    /// Returns true if the region has a pixel, and all its pixels are in a frame of `size` pixels (width, height).
    pub fn is_inside(&self, size: [u32; 2]) -> bool {
        let is_inside = |axis: usize| {
            let end = u64::from(self.origin()[axis]) + u64::from(self.size()[axis]);
            self.size()[axis] > 0 && end <= u64::from(size[axis])
        };
        is_inside(0) && is_inside(1)
    }
}

impl std::fmt::Display for FrameRegion {
    /// Writes `left,top,width,height`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{},{},{}", self.left, self.top, self.width, self.height)
    }
}
