// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks for invalid parameters.
//!
//! In: [`Params`] and other settings of a program. Out: a [`ParamError`], which names the
//! parameter, the expected range and the actual value. Interfaces in other languages print the
//! error with their names for parameters.

use std::fmt;

use super::params::MIN_EDGE_MARGIN;
use super::{ImagePlace, MAX_FRAME_SIDE, MaskSize, Params, SizeLimits};
use crate::geometry::FrameMap;

/// A parameter has an invalid value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: expected {expected}, got {got}", self.name())]
#[non_exhaustive]
pub struct ParamError {
    /// The name of its field in Rust, in [`Params`] or its [`SizeLimits`] (`sizes.min`), [`ImagePlace`] or its frame
    /// (`frame.size`). `thresholds` and fields of rules of classes can be of a [`class`](Self::class).
    pub parameter: &'static str,
    /// The class, if the value applies to a single class.
    pub class: Option<usize>,
    /// Describes valid values.
    pub expected: &'static str,
    /// The actual value.
    pub got: String,
}

/// An error unless `is_valid`.
fn check(
    parameter: &'static str,
    is_valid: bool,
    expected: &'static str,
    got: impl fmt::Display,
) -> Result<(), ParamError> {
    if is_valid {
        return Ok(());
    }
    Err(ParamError { parameter, class: None, expected, got: got.to_string() })
}

fn check_all<const N: usize, T: fmt::Debug>(
    parameter: &'static str,
    got: &[T; N],
    expected: &'static str,
    is_valid: impl Fn(&T) -> bool,
) -> Result<(), ParamError> {
    check(parameter, got.iter().all(is_valid), expected, format_args!("{got:?}"))
}

impl ParamError {
    fn of_class(self, class: usize) -> Self {
        Self { class: Some(class), ..self }
    }

    /// The name of the field in Rust, with the class.
    fn name(&self) -> String {
        match (self.class, self.parameter) {
            (None, field) => field.to_owned(),
            (Some(class), "thresholds") => format!("thresholds.per_class[{class}]"),
            (Some(class), field) => format!("class_rules[{class}].{field}"),
        }
    }
}

impl Params {
    /// Checks the parameters: no threshold or limit is NaN or out of range, and at least one class
    /// admits some box as a candidate. [`Nms::run`](crate::nms::Nms::run) returns an equal error.
    ///
    /// # Errors
    /// Fails if a parameter is invalid.
    pub fn check(&self) -> Result<(), ParamError> {
        self.check_thresholds()?;
        check_iou_threshold(self.iou_threshold)?;
        let offset = self.pixel_offset;
        check("pixel_offset", [0.0, 1.0].contains(&offset), "0 or 1", offset)?;
        check_sigma(self.sigma)?;
        let (margin, score) = (self.edge_margin, self.edge_score);
        let is_margin = margin.is_finite() && margin >= MIN_EDGE_MARGIN;
        check("edge_margin", is_margin, "a finite number of at least 1", margin)?;
        check("edge_score", score.is_finite(), "a finite number", score)?;
        check_embedding(self.embedding_distance, self.embedding_iou_threshold)?;
        check_sizes(&self.sizes)?;
        for (class, rule) in self.class_rules.iter().enumerate() {
            let check = || {
                rule.iou_threshold.map_or(Ok(()), check_iou_threshold)?;
                rule.sizes.as_ref().map_or(Ok(()), check_sizes)
            };
            check().map_err(|error| error.of_class(class))?;
        }
        Ok(())
    }

    /// Checks that a frame is known if masks are in its pixels. Without this check, an image that
    /// is not in a frame gets masks in pixels of the prototypes.
    ///
    /// # Errors
    /// Fails if masks are in pixels of the frame and `frame` is `None`.
    pub fn check_mask_frame(&self, has_frame: bool) -> Result<(), ParamError> {
        let is_known = self.mask_size != MaskSize::Frame || has_frame;
        let expected = "the size of the frame for masks in its pixels";
        check("frame.size", is_known, expected, "none")
    }

    fn check_thresholds(&self) -> Result<(), ParamError> {
        let thresholds = &self.thresholds;
        let check_number =
            |threshold: f32| check("thresholds", !threshold.is_nan(), "a number", threshold);
        check_number(thresholds.default)?;
        for (class, &threshold) in thresholds.per_class.iter().enumerate() {
            check_number(threshold).map_err(|error| error.of_class(class))?;
        }
        let mut all = thresholds.per_class.iter().chain([&thresholds.default]);
        check(
            "thresholds",
            all.any(|&threshold| threshold != f32::INFINITY),
            "a number for at least one class",
            "infinity for all, which excludes every class",
        )
    }
}

impl ImagePlace {
    /// Checks the place: no number is NaN or out of range.
    ///
    /// # Errors
    /// Fails if a field is invalid.
    pub fn check(&self) -> Result<(), ParamError> {
        check_model_size(self.model_size)?;
        let visible = &self.visible;
        // A comparison with NaN is false.
        let has_area = visible.left < visible.right && visible.top < visible.bottom;
        let edges = [visible.left, visible.top, visible.right, visible.bottom];
        let expected = "a left edge before the right one and an upper edge above the lower one";
        check_all("visible", &edges, expected, |_| has_area)?;
        let Some(FrameMap { size, ratio, offset }) = &self.frame else { return Ok(()) };
        let is_side = |side: &u32| (1..=MAX_FRAME_SIDE).contains(side);
        check_all("frame.size", size, "sides from 1 to 65536", is_side)?;
        let is_ratio = |ratio: &f64| ratio.is_finite() && *ratio > 0.0;
        check_all("frame.ratio", ratio, "finite numbers above 0", is_ratio)?;
        check_all("frame.offset", offset, "finite numbers", |offset| offset.is_finite())
    }
}

/// Checks a threshold for the overlap.
///
/// # Errors
/// Fails if the threshold is not from 0 to 1.
pub fn check_iou_threshold(
    threshold: impl Into<f64> + Copy + fmt::Display,
) -> Result<(), ParamError> {
    let is_valid = (0.0..=1.0).contains(&threshold.into());
    check("iou_threshold", is_valid, "a number from 0 to 1", threshold)
}

/// Checks the width of the Gaussian functions.
///
/// # Errors
/// Fails if `sigma` is not finite, or not above 0.
pub fn check_sigma(sigma: f32) -> Result<(), ParamError> {
    check("sigma", sigma.is_finite() && sigma > 0.0, "a finite number above 0", sigma)
}

/// Checks the distance and the overlap by which embeddings decide.
///
/// # Errors
/// Fails if `distance` is not finite or below 0, or if `iou_threshold` is not from 0 to 1.
pub fn check_embedding(distance: f32, iou_threshold: f32) -> Result<(), ParamError> {
    let is_distance = (0.0..f32::INFINITY).contains(&distance);
    check("embedding_distance", is_distance, "a finite number of at least 0", distance)?;
    let is_threshold = (0.0..=1.0).contains(&iou_threshold);
    check("embedding_iou_threshold", is_threshold, "a number from 0 to 1", iou_threshold)
}

/// Checks the size of a model's input. A size of 1 by 1 means that the size is unknown, or that
/// boxes remain normalized.
///
/// # Errors
/// Fails if a side is not finite or less than a pixel.
pub fn check_model_size(size: [f32; 2]) -> Result<(), ParamError> {
    let expected = "width and height in pixels, each at least 1";
    check_all("model_size", &size, expected, |side| side.is_finite() && *side >= 1.0)
}

fn check_sizes(sizes: &SizeLimits) -> Result<(), ParamError> {
    let SizeLimits { min, max } = sizes;
    // A comparison with NaN is false.
    check_all("sizes.min", min, "numbers of at least 0", |&limit| limit >= 0.0)?;
    let expected = "numbers above 0, infinity for no limit";
    check_all("sizes.max", max, expected, |&limit| limit > 0.0)?;
    let are_ordered = min[0] <= max[0] && min[1] <= max[1];
    check_all("sizes.min", min, "numbers of at most the greatest size", |_| are_ordered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{ClassRule, ClassThresholds};
    use crate::geometry::{Bounds, FrameMap};

    fn text(change: impl FnOnce(&mut Params)) -> String {
        let mut params = Params::default();
        change(&mut params);
        params.check().expect_err("the value cannot work").to_string()
    }

    fn place_text(change: impl FnOnce(&mut ImagePlace)) -> String {
        let mut place = ImagePlace::in_model([1.0; 2]);
        change(&mut place);
        place.check().expect_err("the value cannot work").to_string()
    }

    #[test]
    fn parameters_that_cannot_work_are_named() {
        let nan = f32::NAN;
        let rule = |rule| vec![ClassRule::default(), rule];
        let sizes = |min, max| SizeLimits { min, max };
        assert_eq!(
            text(|params| params.thresholds.default = nan),
            "thresholds: expected a number, got NaN"
        );
        assert_eq!(
            text(|params| params.thresholds.per_class = vec![0.5, nan]),
            "thresholds.per_class[1]: expected a number, got NaN"
        );
        assert_eq!(
            text(|params| params.thresholds = ClassThresholds::uniform(f32::INFINITY)),
            "thresholds: expected a number for at least one class, got infinity for all, which excludes every class"
        );
        assert_eq!(
            text(|params| params.iou_threshold = 45.0),
            "iou_threshold: expected a number from 0 to 1, got 45"
        );
        assert_eq!(
            text(|params| {
                params.class_rules =
                    rule(ClassRule { iou_threshold: Some(nan), ..ClassRule::default() });
            }),
            "class_rules[1].iou_threshold: expected a number from 0 to 1, got NaN"
        );
        assert_eq!(
            text(|params| params.pixel_offset = nan),
            "pixel_offset: expected 0 or 1, got NaN"
        );
        for (sigma, got) in [(nan, "NaN"), (0.0, "0"), (-1.0, "-1"), (f32::INFINITY, "inf")] {
            assert_eq!(
                text(|params| params.sigma = sigma),
                format!("sigma: expected a finite number above 0, got {got}")
            );
        }
        for (distance, got) in [(nan, "NaN"), (-1.0, "-1"), (f32::INFINITY, "inf")] {
            assert_eq!(
                text(|params| params.embedding_distance = distance),
                format!("embedding_distance: expected a finite number of at least 0, got {got}")
            );
        }
        assert_eq!(
            text(|params| params.embedding_iou_threshold = 1.5),
            "embedding_iou_threshold: expected a number from 0 to 1, got 1.5"
        );
        for (margin, got) in [(0.5, "0.5"), (nan, "NaN"), (f32::INFINITY, "inf")] {
            assert_eq!(
                text(|params| params.edge_margin = margin),
                format!("edge_margin: expected a finite number of at least 1, got {got}")
            );
        }
        assert_eq!(
            text(|params| params.edge_score = f32::INFINITY),
            "edge_score: expected a finite number, got inf"
        );
        assert_eq!(
            text(|params| params.sizes.min[1] = nan),
            "sizes.min: expected numbers of at least 0, got [0.0, NaN]"
        );
        assert_eq!(
            text(|params| params.sizes.max = [0.0; 2]),
            "sizes.max: expected numbers above 0, infinity for no limit, got [0.0, 0.0]"
        );
        assert_eq!(
            text(|params| params.sizes.max[0] = nan),
            "sizes.max: expected numbers above 0, infinity for no limit, got [NaN, inf]"
        );
        assert_eq!(
            text(|params| {
                let sizes = Some(sizes([9.0; 2], [8.0; 2]));
                params.class_rules = rule(ClassRule { sizes, ..ClassRule::default() });
            }),
            "class_rules[1].sizes.min: expected numbers of at most the greatest size, got [9.0, 9.0]"
        );
        assert_eq!(
            place_text(|place| {
                place.visible = Bounds { left: 0.0, top: 0.0, right: 0.0, bottom: 9.0 };
            }),
            "visible: expected a left edge before the right one and an upper edge above the lower one, \
             got [0.0, 0.0, 0.0, 9.0]"
        );
        let frame = FrameMap { size: [640, 480], ratio: [1.0; 2], offset: [0.0; 2] };
        assert_eq!(
            place_text(|place| place.frame = Some(FrameMap { size: [0, 480], ..frame })),
            "frame.size: expected sides from 1 to 65536, got [0, 480]"
        );
        assert_eq!(
            place_text(|place| place.frame = Some(FrameMap { ratio: [0.0, 1.0], ..frame })),
            "frame.ratio: expected finite numbers above 0, got [0.0, 1.0]"
        );
        assert_eq!(
            place_text(|place| place.frame = Some(FrameMap { offset: [f64::NAN, 0.0], ..frame })),
            "frame.offset: expected finite numbers, got [NaN, 0.0]"
        );
    }

    #[test]
    fn parameters_that_can_work_are_accepted() {
        let mut params = Params::default();
        assert_eq!(params.check(), Ok(()));
        params.thresholds = ClassThresholds { default: f32::INFINITY, per_class: vec![0.5] };
        params.sizes = SizeLimits { min: [5.0; 2], max: [5.0, f32::INFINITY] };
        (params.iou_threshold, params.pixel_offset) = (1.0, 1.0);
        (params.edge_margin, params.edge_score) = (1.0, -5.0);
        assert_eq!(params.check(), Ok(()));
        let frame = FrameMap { size: [65_536, 1], ratio: [0.1; 2], offset: [-5.0, 0.0] };
        let place = ImagePlace { frame: Some(frame), ..ImagePlace::in_model([1.0; 2]) };
        assert_eq!(place.check(), Ok(()));
        // Lets every score pass, for boxes without scores.
        params.thresholds = ClassThresholds::uniform(f32::NEG_INFINITY);
        assert_eq!(params.check(), Ok(()));
    }

    #[test]
    fn masks_in_pixels_of_a_frame_need_the_frame() {
        let in_frame = Params { mask_size: MaskSize::Frame, ..Params::default() };
        assert_eq!(Params::default().check_mask_frame(false), Ok(()));
        assert_eq!(in_frame.check_mask_frame(true), Ok(()));
        assert_eq!(
            in_frame.check_mask_frame(false).unwrap_err().to_string(),
            "frame.size: expected the size of the frame for masks in its pixels, got none"
        );
    }

    #[test]
    fn the_size_of_a_models_input_is_at_least_a_pixel() {
        assert_eq!(check_model_size([1.0, 640.0]), Ok(()));
        for size in [[0.0, 640.0], [640.0, f32::NAN], [f32::INFINITY, 640.0], [-640.0, 640.0]] {
            let error = check_model_size(size).unwrap_err();
            assert_eq!(error.parameter, "model_size");
        }
    }
}
