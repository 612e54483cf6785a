// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds out how nvdspreprocess has fitted regions into the model's input.
//!
//! In: the ratios and offsets of all regions of a batch. Out: the one letterbox that gives all of them.

use arrayvec::ArrayVec;

use crate::deepstream::{DeepStreamError, RegionScaling};
use nmsfilter_core::geometry::{FitRule, Letterbox, Rounding};

/// The letterboxes that give the scaling of all regions so far.
pub(super) type RegionFits = ArrayVec<Letterbox, 3>;

/// The letterboxes before the first region.
pub(super) fn all() -> RegionFits {
    [Letterbox::None, Letterbox::TopLeft, Letterbox::Center].into()
}

/// Adds a region of `region` pixels (width, height), which was scaled to a model's input of `model` pixels.
///
/// # Errors
/// If no letterbox scales this region and all before it in this way.
pub(super) fn add(
    fits: &mut RegionFits,
    region: [u32; 2],
    model: [u32; 2],
    RegionScaling { ratio, offset }: RegionScaling,
) -> Result<(), DeepStreamError> {
    fits.retain(|letterbox| {
        let rule = FitRule::from(*letterbox).with_rounding(Rounding::EvenSides);
        let fit = rule.fit(region, model);
        [0, 1].into_iter().all(|axis| {
            let expected = f64::from(fit.size[axis]) / f64::from(fit.source[axis]);
            (ratio[axis] - expected).abs() <= 1e-9 * expected
                && offset[axis] == f64::from(fit.offset[axis])
        })
    });
    if !fits.is_empty() {
        return Ok(());
    }
    Err(DeepStreamError(format!(
        "a region of interest of {}x{} pixels was scaled by {ratio:?} with the offsets {offset:?}, which no \
             letterbox does for a model's input of {}x{}: set processing-width and processing-height of \
             nvdspreprocess to the model's input, and use one configuration for all regions",
        region[0], region[1], model[0], model[1]
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: [u32; 2] = [640, 640];

    fn scaled(ratio: [f64; 2], offset: [f64; 2]) -> RegionScaling {
        RegionScaling { ratio, offset }
    }

    #[test]
    fn the_letterbox_that_gives_all_regions_is_found() {
        let square = ([320, 320], scaled([2.0; 2], [0.0; 2]));
        let stretched = ([320, 160], scaled([2.0, 4.0], [0.0; 2]));
        let top_left = ([320, 160], scaled([2.0; 2], [0.0; 2]));
        let center = ([320, 160], scaled([2.0; 2], [0.0, 160.0]));
        for (other, expected) in [
            (stretched, Letterbox::None),
            (top_left, Letterbox::TopLeft),
            (center, Letterbox::Center),
        ] {
            let mut fits = all();
            for (region, scaling) in [square, other, square] {
                add(&mut fits, region, MODEL, scaling).unwrap();
            }
            assert_eq!(fits.first(), Some(&expected));
        }
    }

    #[test]
    fn a_scaling_of_no_letterbox_and_of_different_letterboxes_is_an_error() {
        let mut fits = all();
        let error = add(&mut fits, [320, 160], MODEL, scaled([1.5; 2], [0.0; 2])).unwrap_err();
        assert!(error.to_string().contains("processing-width"), "{error}");
        let mut fits = all();
        add(&mut fits, [320, 160], MODEL, scaled([2.0; 2], [0.0; 2])).unwrap();
        assert!(add(&mut fits, [320, 160], MODEL, scaled([2.0; 2], [0.0, 160.0])).is_err());
        let mut fits = all();
        assert!(add(&mut fits, [320, 160], MODEL, scaled([f64::NAN; 2], [0.0; 2])).is_err());
    }
}
