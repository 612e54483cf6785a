// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes where the pixels of a scaled picture lie among the samples of a component.
//!
//! In: a side of the frame, the corresponding side of the scaled picture, and the subsampling of the component.
//! Out: a position per pixel of the side. A position is the index of the sample before the pixel's center plus the
//! fraction of the way to the next sample, multiplied by 256. A pixel before the first sample or after the last
//! sample takes the position of this sample.

/// The number of fractional bits of a position.
pub const POSITION_BITS: u32 = 8;

/// Returns the sampling positions for a frame's side of `side` pixels that is scaled to `pixels` pixels, among the
/// samples of a component with the subsampling `shift`.
pub fn positions(side: u32, shift: u32, pixels: u32) -> Vec<u32> {
    let one = 1u64 << POSITION_BITS;
    let samples = u64::from(side.div_ceil(1 << shift));
    let at = |pixel: u32| {
        // The center of the pixel in samples is (pixel + 1/2) x side / 2^shift / pixels - 1/2.
        let center = (2 * u64::from(pixel) + 1) * u64::from(side) * one;
        let position = center / ((2 * u64::from(pixels)) << shift);
        position.saturating_sub(one / 2).min((samples - 1) * one) as u32
    };
    (0..pixels).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_scaling_pixels_are_at_their_samples() {
        assert_eq!(positions(4, 0, 4), [0, 256, 512, 768]);
    }

    #[test]
    fn half_the_size_is_between_two_samples() {
        assert_eq!(positions(4, 0, 2), [128, 640]);
    }

    #[test]
    fn pixels_beyond_the_samples_are_at_the_first_and_the_last() {
        assert_eq!(positions(2, 0, 4), [0, 64, 192, 256]);
        assert_eq!(positions(1, 0, 3), [0, 0, 0]);
    }

    #[test]
    fn subsampled_components_have_their_own_samples() {
        // 4 pixels have 2 samples of chroma, whose centers lie between pixels.
        assert_eq!(positions(4, 1, 4), [0, 64, 192, 256]);
        // 5 pixels have 3 samples of chroma.
        assert_eq!(positions(5, 1, 5), [0, 64, 192, 320, 448]);
    }

    #[test]
    fn the_last_position_has_no_fraction_and_positions_ascend() {
        for (side, shift, pixels) in [(1920, 0, 640), (1080, 1, 360), (33, 1, 640), (3, 2, 7)] {
            let positions = positions(side, shift, pixels);
            assert!(positions.is_sorted());
            assert!(positions[pixels as usize - 1] <= (side.div_ceil(1 << shift) - 1) << 8);
        }
    }
}
