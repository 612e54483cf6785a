// SPDX-License-Identifier: MIT OR Apache-2.0
//! Regions: the survivors in pixels of their frame.
//!
//! In: survivors, and the mapping of their image to the frame. Out: what the writers attach.

use crate::engine::Detection;
use crate::geometry::{Corners, Mapping};

/// A detection in pixels of the video frame, clipped to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// Left edge, in pixels of the frame.
    pub x1: f32,
    /// Upper edge, in pixels of the frame.
    pub y1: f32,
    /// Right edge; `x2 > x1`.
    pub x2: f32,
    /// Lower edge; `y2 > y1`.
    pub y2: f32,
    /// The score of the detection.
    pub confidence: f32,
    /// The class of the detection.
    pub class: u32,
}

impl Region {
    /// The region of a survivor, by the mapping of its image; `None` if it is outside the frame.
    pub fn of(detection: &Detection, mapping: &Mapping) -> Option<Self> {
        let Corners { x1, y1, x2, y2 } = mapping.to_frame(detection.corners())?;
        Some(Self { x1, y1, x2, y2, confidence: detection.score, class: detection.class })
    }

    /// The region in whole pixels (left, top, width, height): at least one pixel, within the frame.
    pub fn pixels(&self, frame: [u32; 2]) -> [u32; 4] {
        let span = |low: f32, high: f32, limit: u32| {
            // Both are within 0..=limit, since regions are clipped, so the casts are exact.
            let low = (low.round() as u32).min(limit - 1);
            let high = (high.round() as u32).clamp(low + 1, limit);
            (low, high - low)
        };
        let (x, w) = span(self.x1, self.x2, frame[0]);
        let (y, h) = span(self.y1, self.y2, frame[1]);
        [x, y, w, h]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_covers_at_least_one_pixel_inside_the_frame() {
        let region = Region { x1: 99.8, y1: 0.1, x2: 100.0, y2: 0.2, confidence: 0.5, class: 0 };
        assert_eq!(region.pixels([100, 50]), [99, 0, 1, 1]);
    }
}
