// SPDX-License-Identifier: MIT OR Apache-2.0
//! Masks as lengths of runs of equal pixels.

/// A mask.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub(crate) struct MaskRuns {
    /// The rectangle that the mask covers, in pixels of the frame.
    x: f64,
    y: f64,
    w: f64,
    h: f64,
    /// The number of pixels per row, and the number of rows.
    width: u32,
    height: u32,
    /// The lengths of runs of equal pixels, row by row. The first run has pixels that are not set.
    runs: Vec<u32>,
}

impl MaskRuns {
    /// A mask of `size` pixels on the rectangle with this left, top, width and height.
    pub fn new([x, y, w, h]: [f64; 4], [width, height]: [u32; 2], runs: Vec<u32>) -> Self {
        Self { x, y, w, h, width, height, runs }
    }
}

/// Computes the lengths of runs of equal pixels. The first run has pixels that are not set; its length is 0 if the
/// first pixel is set. The sum of all runs is the number of pixels.
pub(super) fn runs(pixels: impl Iterator<Item = bool>) -> Vec<u32> {
    let mut runs = vec![0u32];
    let mut is_set = false;
    for pixel in pixels {
        if pixel != is_set {
            is_set = pixel;
            runs.push(0);
        }
        *runs.last_mut().expect("there is a first run") += 1;
    }
    runs
}

/// Returns the number of pixels of a mask, or `None` if it is 0 or does not fit in `u32`.
pub(super) fn area([width, height]: [u32; 2]) -> Option<usize> {
    let area = width.checked_mul(height).filter(|&area| area > 0)?;
    usize::try_from(area).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_begin_with_pixels_that_are_not_set() {
        let runs_of = |bits: &[u8]| runs(bits.iter().map(|&bit| bit == 1));
        assert_eq!(runs_of(&[0, 0, 1, 1, 1, 0]), [2, 3, 1]);
        assert_eq!(runs_of(&[1, 0, 0]), [0, 1, 2]);
        assert_eq!(runs_of(&[0, 0]), [2]);
        assert_eq!(runs_of(&[1, 1]), [0, 2]);
    }

    #[test]
    fn a_mask_without_pixels_or_with_too_many_has_no_area() {
        assert_eq!(area([3, 5]), Some(15));
        for size in [[0, 5], [5, 0], [65_536, 65_536], [u32::MAX, 2]] {
            assert_eq!(area(size), None, "{size:?}");
        }
    }
}
