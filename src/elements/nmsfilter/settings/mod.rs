// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of the element's properties.
//!
//! In: properties, and the tensors' model description. Out: options of the decoder, the size of the
//! model's input and the letterbox, and parameters of the engine.

pub(super) mod class_rules;
pub(super) mod nvinfer_config;
mod properties;
pub(super) mod quantization;
pub(super) mod region_rules;

use std::path::Path;
use std::sync::Arc;

use super::enums::{Decoder, Method, NmsFilterLetterbox};
use crate::elements::property;
use crate::file;
use crate::input::model::ModelInput;
use crate::output::Kinds;
use class_rules::ClassRules;
use gst_newer::Capabilities;
use nmsfilter_core::decoder::description::MAX_LENGTH;
use nmsfilter_core::decoder::{self, MAX_KEYPOINTS};
use nmsfilter_core::engine::{self, Params, Scalar, ScalarKind, SizeLimits};
use nmsfilter_core::geometry::{self, FrameRegion, Mapping, MappingError};
use nvinfer_config::NvinferConfig;
pub(super) use properties::Settings;

/// The reason why values of properties, or the files that they name, cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(in crate::elements::nmsfilter) struct SettingsError(pub String);

/// An error of the mapping, with the properties to set.
impl From<MappingError> for SettingsError {
    fn from(error: MappingError) -> Self {
        Self(match error {
            MappingError::HalfModel(width, height) => format!(
                "model-width and model-height go together; got {width} and {height}: set both or neither"
            ),
            MappingError::LetterboxWithoutModel => {
                "letterbox needs the size of the model's input: set model-width and model-height"
                    .into()
            }
            _ => error.to_string(),
        })
    }
}

/// The property whose number is NaN, if there is one.
fn not_a_number(params: &Params) -> Option<String> {
    let is_nan = |scalar: &&Scalar| match scalar.kind {
        ScalarKind::Number(field, _) => (field.get)(params).is_nan(),
        ScalarKind::Flag(_) | ScalarKind::Count(_) => false,
    };
    Params::SCALARS.iter().find(is_nan).map(|scalar| property::name(scalar.name))
}

/// The origin of a value, for the log.
const FROM_PROPERTIES: &str = "from the properties";
const FROM_TENSORS: &str = "from the tensors";

impl Settings {
    /// Checks the settings, as far as the checks do not depend on tensors, labels or the frame's size.
    ///
    /// # Errors
    /// If a number is NaN, the size limits contradict each other, or the metadata is not supported.
    pub fn check(&self) -> Result<(), SettingsError> {
        self.check_analytics()?;
        let sizes = [("min-size", self.min_size), ("max-size", self.max_size)];
        let size = sizes.iter().find(|(_, number)| number.is_nan());
        let size = size.map(|&(property, _)| property.to_owned());
        if let Some(property) = not_a_number(&self.scalars).or(size) {
            return Err(SettingsError(format!("{property}: expected a number, got NaN")));
        }
        let (min, max) = (self.min_size, self.max_size);
        if max > 0.0 && max < 1.0 {
            return Err(SettingsError(format!(
                "max-size is {max}, so no box is small enough: it is in pixels of the frame; set it to at least 1, or to 0 \
                 for no limit"
            )));
        }
        if max > 0.0 && min > max {
            return Err(SettingsError(format!(
                "min-size is {min} and max-size {max}, so no box has a size between; set min-size to at most max-size, or \
                 max-size to 0 for no limit"
            )));
        }
        self.keypoints()?;
        Ok(())
    }

    /// Checks that the running GStreamer has metadata of the analytics library, if no other is attached. The element does
    /// not start without.
    ///
    /// # Errors
    /// If it does not have it.
    pub fn check_analytics(&self) -> Result<(), SettingsError> {
        match Capabilities::get().relations {
            Err(missing) if self.attach == Kinds::ANALYTICS => {
                Err(SettingsError(format!("attach=analytics: {missing}; set attach=roi")))
            }
            _ => Ok(()),
        }
    }

    /// The keypoints by the property; `None` if it is unset or empty.
    ///
    /// # Errors
    /// If it is not two numbers of a shape.
    fn keypoints(&self) -> Result<Option<decoder::KeypointShape>, SettingsError> {
        let Some(value) = self.keypoint_shape.as_deref().filter(|value| !value.is_empty()) else {
            return Ok(None);
        };
        let shape = value.split_once('x').and_then(|(count, components)| {
            let [count, components] = [count, components].map(|number| number.trim().parse().ok());
            Some(decoder::KeypointShape { count: count?, components: components? })
        });
        let is_shape = |shape: &decoder::KeypointShape| {
            (1..=MAX_KEYPOINTS).contains(&shape.count) && [2, 3].contains(&shape.components)
        };
        let error = || {
            SettingsError(format!(
                "keypoint-shape: expected the number of keypoints, at most {MAX_KEYPOINTS}, and 2 (x, y) or 3 (x, y, \
                 visibility) numbers of each, such as 17x3, got \"{value}\""
            ))
        };
        shape.filter(is_shape).map(Some).ok_or_else(error)
    }

    /// Checks that regions can be attached to a buffer with a batch of this many frames (DeepStream),
    /// or without a batch.
    ///
    /// # Errors
    /// If none of the metadata in `attach` can be attached to such a buffer.
    pub fn check_attach(&self, batch: Option<usize>) -> Result<(), SettingsError> {
        let has = |kind| self.attach.contains(kind);
        let (roi, analytics) = (has(Kinds::ROI), has(Kinds::ANALYTICS));
        match batch {
            Some(frames @ 2..) if (roi || analytics) && !has(Kinds::NVDS) => {
                let attach = match (roi, analytics) {
                    (true, true) => "roi+analytics",
                    (true, false) => "roi",
                    (false, _) => "analytics",
                };
                Err(SettingsError(format!(
                    "attach={attach} attaches nothing to a batch of {frames} frames: roi and analytics do not contain the \
                     frame that a region belongs to; add nvds"
                )))
            }
            None if has(Kinds::NVDS)
                && !roi
                && !(analytics && Capabilities::get().relations.is_ok()) =>
            {
                Err(SettingsError(
                    "attach=nvds attaches nothing to a buffer without a batch of DeepStream; add roi".into(),
                ))
            }
            _ => Ok(()),
        }
    }

    /// Checks the settings for a classifier, whose tensors are on a batch of DeepStream or not.
    ///
    /// # Errors
    /// If a classifier cannot have one of them.
    pub fn check_classifier(&self, batch: Option<usize>) -> Result<(), SettingsError> {
        if batch.is_some() {
            return Err(SettingsError(
                "decoder=classifier does not read batches of DeepStream; set network-type=1 in the configuration of \
                 nvinfer, which then attaches classes itself"
                    .into(),
            ));
        }
        let lists = [
            ("classes", &self.classes),
            ("class-thresholds", &self.class_thresholds),
            ("class-max-detections", &self.class_max_detections),
        ];
        let is_set =
            |(_, list): &(_, &Option<String>)| list.as_ref().is_some_and(|it| !it.is_empty());
        if let Some((property, _)) = lists.into_iter().find(is_set) {
            return Err(SettingsError(format!(
                "{property} is for detectors; with decoder=classifier, score-threshold counts for all classes: unset \
                 {property}"
            )));
        }
        Ok(())
    }

    /// The decoder that is set; `None` for `auto` and `classifier`.
    ///
    /// # Errors
    /// If the decoder is described by a file that cannot be used.
    pub fn wanted_decoder(&self) -> Result<Option<&'static decoder::Decoder>, SettingsError> {
        match self.decoder {
            Decoder::Layout => self.described_decoder().map(Some),
            named => Ok(named.decoder()),
        }
    }

    /// The decoder that the layout file describes.
    ///
    /// # Errors
    /// If no path is set, the file cannot be read, or it is not in the format.
    fn described_decoder(&self) -> Result<&'static decoder::Decoder, SettingsError> {
        let path = self.layout_file.as_deref().filter(|path| !path.is_empty()).ok_or_else(|| {
            let text =
                "decoder=layout needs a description of the tensors; set layout-file to its path";
            SettingsError(text.into())
        })?;
        let text = file::read_text(Path::new(path), MAX_LENGTH as u64)
            .map_err(|cause| SettingsError(format!("the layout file {path:?} {cause}")))?;
        decoder::from_text(&text)
            .map_err(|cause| SettingsError(format!("the layout file {path:?}, {cause}")))
    }

    /// Options that tensors do not contain; `labels` is the number of labels, `batch` whether the tensors'
    /// first dimension is a batch dimension, `model` the known facts about the model's input, and `frame` the size of the
    /// frame.
    pub fn decoder_options(
        &self,
        labels: usize,
        batch: bool,
        model: ModelInput,
        frame: [u32; 2],
    ) -> decoder::Options {
        let size = match self.model_size(model).0 {
            [0, 0] => frame,
            size => size,
        };
        decoder::Options {
            box_format: self.box_format.into(),
            coordinates: self.coordinates.into(),
            channels: self.channels.into(),
            num_classes: self.num_classes as usize,
            labels,
            batch,
            model_size: (!size.contains(&0)).then(|| size.map(|side| side as f32)),
            score_activation: self.score_activation.chosen(),
            background: self.background.chosen(),
            keypoints: self.keypoints().ok().flatten().or_else(|| {
                model.keypoints.map(|[count, components]| decoder::KeypointShape {
                    count: count as usize,
                    components: components as usize,
                })
            }),
        }
    }

    /// The size of the model's input, with its origin: the properties, else the tensors, else, as 0x0,
    /// the frame. If only one of the properties is set, the result is invalid, which is an error of
    /// [`mapping`](Self::mapping).
    pub fn model_size(&self, model: ModelInput) -> ([u32; 2], &'static str) {
        match ([self.model_width, self.model_height], model.size) {
            ([0, 0], Some(size)) => (size, FROM_TENSORS),
            ([0, 0], None) => ([0, 0], "of the frame"),
            (set, _) => (set, FROM_PROPERTIES),
        }
    }

    /// How the frame was fitted into the model's input, with the origin of this fact: the property, else the
    /// tensors, else none.
    pub fn letterbox(&self, model: ModelInput) -> (geometry::Letterbox, &'static str) {
        match (self.letterbox.chosen(), model.letterbox) {
            (Some(letterbox), _) => (letterbox, FROM_PROPERTIES),
            (None, Some(letterbox)) => (letterbox, FROM_TENSORS),
            (None, None) => (geometry::Letterbox::None, "by default"),
        }
    }

    /// The mapping from the model's input to a frame of the size `frame`, or to this region of the frame.
    ///
    /// # Errors
    /// If only one of `model-width` and `model-height` is set, if the frame is letterboxed and the size of the model's
    /// input is not known, if the frame has no pixels, or if the region is not inside the frame.
    pub fn mapping(
        &self,
        frame: [u32; 2],
        region: Option<FrameRegion>,
        model: ModelInput,
    ) -> Result<Mapping, SettingsError> {
        let (rule, size) = (model.fit_rule(self.letterbox(model).0), self.model_size(model).0);
        let region = region.unwrap_or(FrameRegion::whole(frame));
        Ok(Mapping::of_region(frame, region, size, rule)?)
    }

    /// The settings by these properties and a configuration of nvinfer: a value comes from the property if it was set, else
    /// from the configuration, else from the property's default.
    pub fn with_nvinfer(&self, nvinfer: Option<&Arc<NvinferConfig>>) -> Self {
        let mut settings = Self { nvinfer: nvinfer.cloned(), ..self.clone() };
        let Some(config) = nvinfer else { return settings };
        let is_set = |name| self.was_set.contains(name);
        let scalars = &mut settings.scalars;
        let score = Some(config.all.score_threshold());
        fill(&mut scalars.thresholds.default, score, is_set("score-threshold"));
        fill(&mut scalars.iou_threshold, config.all.iou_threshold, is_set("iou-threshold"));
        let method = config.suppresses_nothing().then_some(Method::None);
        fill(&mut settings.method, method, is_set("method"));
        let decoder = config.is_end_to_end().then_some(Decoder::End2end);
        fill(&mut settings.decoder, decoder, is_set("decoder"));
        fill(&mut settings.num_classes, config.num_classes, is_set("num-classes"));
        let letterbox = config.keeps_aspect().map(|[keeps, is_symmetric]| match is_symmetric {
            _ if !keeps => NmsFilterLetterbox::None,
            false => NmsFilterLetterbox::TopLeft,
            true => NmsFilterLetterbox::Center,
        });
        fill(&mut settings.letterbox, letterbox, is_set("letterbox"));
        fill(&mut settings.unique_id, config.unique_id, is_set("unique-id"));
        settings
    }

    /// The engine's parameters. Lengths are in pixels of the frame. Without a set method, there is no suppression for a model
    /// that needs none; without `multi-label`, that of a model that selects pairs of box and class is true.
    pub fn params(&self, class_rules: ClassRules, model: ModelInput) -> Params {
        let ClassRules { thresholds, rules: class_rules } = class_rules;
        let is_set = |name| self.was_set.contains(name);
        let is_suppression_set =
            is_set("method") || is_set("iou-threshold") || self.nvinfer.is_some();
        let mut scalars = self.scalars.clone();
        if let (Some(queries), false, None) = (model.queries, is_set("multi-label"), &self.nvinfer)
        {
            let queries = queries.get() as usize;
            scalars.multi_label = true;
            scalars.max_detections = match scalars.max_detections {
                0 => queries,
                limit => limit.min(queries),
            };
        }
        let max = match self.max_size {
            0.0 => SizeLimits::ANY.max,
            limit => [limit; 2],
        };
        Params {
            method: match model.is_suppressed && !is_suppression_set {
                true => engine::Method::None,
                false => self.method.into(),
            },
            overlap: self.overlap.into(),
            pixel_offset: self.pixel_offset as f32,
            thresholds,
            sizes: SizeLimits { min: [self.min_size; 2], max },
            class_rules,
            region_edges: self.region_edges.into(),
            mask_size: self.mask_size.into(),
            ..scalars
        }
    }
}

/// Replaces the value of a property that was not set by the configuration's, if it has one.
fn fill<T>(property: &mut T, configured: Option<T>, is_set: bool) {
    if let Some(value) = configured.filter(|_| !is_set) {
        *property = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nmsfilter_core::engine::ClassThresholds;

    /// The exception is `max_detections`: the engine returns all survivors by default. The element
    /// has a finite default, since every region costs time in every element downstream.
    #[test]
    fn the_defaults_are_those_of_the_engine_except_max_detections() {
        let settings = Settings::default();
        let thresholds = settings.scalars.thresholds.clone();
        let expected = Params { max_detections: 1000, ..Params::default() };
        let rules = ClassRules { thresholds, rules: Vec::new() };
        assert_eq!(settings.params(rules, ModelInput::default()), expected);
    }

    /// The core checks for all interfaces. The element checks its properties with errors that name them.
    #[test]
    fn settings_that_pass_the_check_give_parameters_that_pass_the_check_of_the_core() {
        let mut accepted = 0;
        for min_size in [0.0, 5.0, f32::NAN] {
            for max_size in [0.0, 0.5, 1.0, 5.0, 10.0, f32::INFINITY, f32::NAN] {
                for iou_threshold in [0.0, 0.45, 1.0, f32::NAN] {
                    for score_threshold in [-1.0, 0.25, f32::NAN] {
                        let thresholds = ClassThresholds::uniform(score_threshold);
                        let scalars = Params { iou_threshold, thresholds, ..Params::default() };
                        let settings =
                            Settings { min_size, max_size, scalars, ..Settings::default() };
                        if settings.check().is_ok() {
                            let thresholds = ClassThresholds::uniform(score_threshold);
                            let rules = ClassRules { thresholds, rules: Vec::new() };
                            assert_eq!(
                                settings.params(rules, ModelInput::default()).check(),
                                Ok(()),
                                "{settings:?}"
                            );
                            accepted += 1;
                        }
                    }
                }
            }
        }
        // 9 pairs of sizes, 3 overlap thresholds and 2 score thresholds.
        assert_eq!(accepted, 9 * 6);
    }

    /// The element does not start with this error, so it must be reported before any other.
    #[test]
    fn unsupported_metadata_is_reported_before_other_errors() {
        let Err(missing) = Capabilities::get().relations else { return };
        for min_size in [0.0, 10.0, f32::NAN] {
            let attach = Kinds::ANALYTICS;
            let settings = Settings { attach, min_size, max_size: 8.0, ..Settings::default() };
            let error = settings.check().unwrap_err().to_string();
            assert_eq!(error, format!("attach=analytics: {missing}; set attach=roi"));
        }
    }

    #[test]
    fn contradictory_size_limits_are_refused() {
        let check = |min_size, max_size| {
            Settings { min_size, max_size, ..Settings::default() }
                .check()
                .map_err(|e| e.to_string())
        };
        assert_eq!(check(10.0, 10.0), Ok(()));
        assert_eq!(check(10.0, 0.0), Ok(()));
        let error = check(0.0, 0.5).unwrap_err();
        assert!(error.starts_with("max-size is 0.5, so no box is small enough"), "{error}");
        assert_eq!(check(0.0, 1.0), Ok(()));
        let error = check(10.5, 8.0).unwrap_err();
        assert!(error.starts_with("min-size is 10.5 and max-size 8, so no box"), "{error}");
        let error = check(f32::NAN, 8.0).unwrap_err();
        assert_eq!(error, "min-size: expected a number, got NaN");
    }
}
