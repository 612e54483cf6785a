// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes where the pixels of a scaled picture lie among the samples of a component.
//!
//! In: a side of the frame or of its region, the corresponding side of the scaled picture, and the subsampling of the
//! component. Out: a position per pixel of the side. A position is the index of the sample before the pixel's center plus the
//! fraction of the way to the next sample, multiplied by 256. A pixel before the first sample or after the last
//! sample takes the position of this sample.

/// The number of fractional bits of a position.
pub const POSITION_BITS: u32 = 8;

/// Returns the sampling positions for a side of `side` pixels, of which the first is the frame's pixel `origin`. The side
/// is scaled to `pixels` pixels. The positions are among the samples of a component with the subsampling `shift`. All
/// samples are the side's: a region is scaled as if it had been cut out of the frame.
pub fn positions(origin: u32, side: u32, shift: u32, pixels: u32) -> Vec<u32> {
    let one = 1u64 << POSITION_BITS;
    let [origin, side, pixels] = [origin, side, pixels].map(u64::from);
    let (first, last) = (origin >> shift, (origin + side - 1) >> shift);
    let at = |pixel: u64| {
        // The center of the pixel in samples is (origin + (pixel + 1/2) x side / pixels) / 2^shift - 1/2.
        let center = ((2 * pixel + 1) * side + 2 * pixels * origin) * one;
        let position = center / ((2 * pixels) << shift);
        position.saturating_sub(one / 2).clamp(first * one, last * one) as u32
    };
    (0..pixels).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_scaling_pixels_are_at_their_samples() {
        assert_eq!(positions(0, 4, 0, 4), [0, 256, 512, 768]);
    }

    #[test]
    fn half_the_size_is_between_two_samples() {
        assert_eq!(positions(0, 4, 0, 2), [128, 640]);
    }

    #[test]
    fn pixels_beyond_the_samples_are_at_the_first_and_the_last() {
        assert_eq!(positions(0, 2, 0, 4), [0, 64, 192, 256]);
        assert_eq!(positions(0, 1, 0, 3), [0, 0, 0]);
    }

    #[test]
    fn subsampled_components_have_their_own_samples() {
        // 4 pixels have 2 samples of chroma, whose centers lie between pixels.
        assert_eq!(positions(0, 4, 1, 4), [0, 64, 192, 256]);
        // 5 pixels have 3 samples of chroma.
        assert_eq!(positions(0, 5, 1, 5), [0, 64, 192, 320, 448]);
    }

    #[test]
    fn a_region_has_the_positions_of_a_frame_that_was_cut_out() {
        for (origin, side, shift, pixels) in
            [(8, 6, 0, 9), (8, 6, 1, 9), (4, 8, 2, 3), (6, 2, 1, 2)]
        {
            let cut: Vec<u32> = positions(0, side, shift, pixels)
                .iter()
                .map(|at| at + ((origin >> shift) << 8))
                .collect();
            assert_eq!(
                positions(origin, side, shift, pixels),
                cut,
                "{origin} {side} {shift} {pixels}"
            );
        }
        // The first column of the region is the second pixel of the first chroma sample.
        assert_eq!(positions(1, 2, 1, 2), [64, 192]);
    }

    #[test]
    fn the_last_position_has_no_fraction_and_positions_ascend() {
        for (side, shift, pixels) in [(1920, 0, 640), (1080, 1, 360), (33, 1, 640), (3, 2, 7)] {
            let positions = positions(0, side, shift, pixels);
            assert!(positions.is_sorted());
            assert!(positions[pixels as usize - 1] <= (side.div_ceil(1 << shift) - 1) << 8);
        }
    }
}
