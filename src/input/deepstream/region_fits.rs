// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds out how nvdspreprocess has fitted regions into the model's input.
//!
//! In: the ratios and offsets of all regions of a batch. Out: the one letterbox that gives all of them.

use crate::deepstream::{DeepStreamError, RegionScaling};
use nmsfilter_core::geometry::{FitRule, Letterbox, Rounding};

/// The letterboxes that give the scaling of all regions so far.
#[derive(Debug)]
pub(super) struct RegionFits([Option<Letterbox>; 3]);

impl Default for RegionFits {
    fn default() -> Self {
        Self([Letterbox::None, Letterbox::TopLeft, Letterbox::Center].map(Some))
    }
}

impl RegionFits {
    /// Adds a region of `region` pixels (width, height), which was scaled to a model's input of `model` pixels.
    ///
    /// # Errors
    /// If no letterbox scales this region and all before it in this way.
    pub fn add(
        &mut self,
        region: [u32; 2],
        model: [u32; 2],
        scaling: RegionScaling,
    ) -> Result<(), DeepStreamError> {
        for known in &mut self.0 {
            *known = known.filter(|&letterbox| is_scaled_by(letterbox, region, model, scaling));
        }
        if self.0.iter().any(Option::is_some) {
            return Ok(());
        }
        let RegionScaling { ratio, offset } = scaling;
        Err(DeepStreamError(format!(
            "a region of interest of {}x{} pixels was scaled by {ratio:?} with the offsets {offset:?}, which no \
                 letterbox does for a model's input of {}x{}: set processing-width and processing-height of \
                 nvdspreprocess to the model's input, and use one configuration for all regions",
            region[0], region[1], model[0], model[1]
        )))
    }

    /// The letterbox of all regions so far.
    pub fn letterbox(&self) -> Letterbox {
        self.0.iter().flatten().next().copied().unwrap_or(Letterbox::None)
    }
}

fn is_scaled_by(
    letterbox: Letterbox,
    region: [u32; 2],
    model: [u32; 2],
    RegionScaling { ratio, offset }: RegionScaling,
) -> bool {
    let fit = FitRule::from(letterbox).with_rounding(Rounding::EvenSides).fit(region, model);
    [0, 1].into_iter().all(|axis| {
        let expected = f64::from(fit.size[axis]) / f64::from(fit.source[axis]);
        (ratio[axis] - expected).abs() <= 1e-9 * expected
            && offset[axis] == f64::from(fit.offset[axis])
    })
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
            let mut fits = RegionFits::default();
            for (region, scaling) in [square, other, square] {
                fits.add(region, MODEL, scaling).unwrap();
            }
            assert_eq!(fits.letterbox(), expected);
        }
    }

    #[test]
    fn a_scaling_of_no_letterbox_and_of_different_letterboxes_is_an_error() {
        let mut fits = RegionFits::default();
        let error = fits.add([320, 160], MODEL, scaled([1.5; 2], [0.0; 2])).unwrap_err();
        assert!(error.to_string().contains("processing-width"), "{error}");
        let mut fits = RegionFits::default();
        fits.add([320, 160], MODEL, scaled([2.0; 2], [0.0; 2])).unwrap();
        assert!(fits.add([320, 160], MODEL, scaled([2.0; 2], [0.0, 160.0])).is_err());
        let mut fits = RegionFits::default();
        assert!(fits.add([320, 160], MODEL, scaled([f64::NAN; 2], [0.0; 2])).is_err());
    }
}
