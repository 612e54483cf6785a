// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classifiers: from the tensors of images to their classes.
//!
//! In: [`Images`], and the settings in force. Out: the classes of each image, counts, and warnings about readings that are
//! probably wrong. Scores are computed on the CPU: a tensor in device memory is copied.

use super::NmsFilter;
use super::debug_category::CAT;
use super::decode::{DecodeContext, FrameDecoder};
use super::enums::{Decoder, ScoreActivation};
use super::error::FrameError;
use super::plan::PlanInput;
use super::planner::Planner;
use super::quantization::QuantizationRules;
use super::settings::{Settings, SettingsError};
use super::timeout::Timeout;
use super::warnings::Warnings;
use crate::input::source::{ImageFrame, Images};
use crate::output::{FrameId, Labels};
use nmsfilter_core::decoder::classifier::{
    self, ClassLimits, ClassScore, Classifier, ClassifierOptions, Evidence,
};
use nmsfilter_core::decoder::is_known;
use nmsfilter_core::engine::{EngineError, Params};
use nmsfilter_core::geometry::MappingError;
use nmsfilter_core::plan::Signatures;
use nmsfilter_core::tensor::TensorView;

/// How long no image has a class before a warning is posted.
const SILENCE: gst::ClockTime = gst::ClockTime::from_seconds(10);

/// The plan for the tensors of a classifier.
pub(super) struct ClassifierPlan {
    classifier: Classifier,
    tensors: Signatures,
    quantization: QuantizationRules,
    limits: ClassLimits,
    /// Whether `score-activation` is set.
    has_activation: bool,
    silence: Silence,
}

/// The images until the first with a class.
#[derive(Default)]
struct Silence {
    is_over: bool,
    since: Option<Timeout>,
    images: u64,
    /// The best class of all images.
    best: Option<ClassScore>,
}

/// A reading of a classifier's tensor that is probably wrong. Each kind is posted once.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum ClassifierWarning {
    #[error(
        "{origin} has {labels} labels, but tensor {tensor} has scores of {classes} classes, so labels are probably \
         wrong; set label-file to the labels of this model"
    )]
    Labels { origin: &'static str, labels: usize, tensor: String, classes: usize },
    #[error(
        "tensor {tensor}: the score of class {} is {}, so that the image has no class; expected finite numbers: correct \
         the model, or the range of its input", .at.class, .at.score
    )]
    NotFinite { tensor: String, at: ClassScore },
    #[error(
        "tensor {tensor}: its numbers are probabilities, and softmax makes them almost equal; set \
         score-activation=none, or give the tensor the id {}", classifier::IDS[1].0
    )]
    Probabilities { tensor: String },
    #[error(
        "tensor {tensor}: the score of class {} is {}, so the numbers are no probabilities; set score-activation to \
         softmax or sigmoid, or to none if the scores are final", .at.class, .at.score
    )]
    NoProbability { tensor: String, at: ClassScore },
    #[error(
        "none of {images} images has a class: the best score is {score} ({label}), and score-threshold is {threshold}; \
         set a lower threshold, or compare the model's input (range, order of colors) with its training"
    )]
    Silence { images: u64, score: f32, label: String, threshold: f32 },
}

impl ClassifierPlan {
    /// Whether tensors are read as a classifier's: because `decoder` says so, or by their ids or their model.
    pub fn is_wanted(input: PlanInput<'_>, settings: &Settings) -> bool {
        match settings.decoder {
            Decoder::Classifier => true,
            Decoder::Auto => {
                let has = |is_id: fn(&str) -> bool| input.tensors.iter().any(|it| is_id(it.id));
                let is_of_model = input.family.is_some_and(|family| family.is_classifier());
                (has(classifier::is_id) || is_of_model) && !has(is_known)
            }
            _ => false,
        }
    }

    /// The plan for `input`.
    ///
    /// # Errors
    /// If settings are not valid for a classifier, or the tensors do not have the scores of classes.
    pub fn new(input: PlanInput<'_>, settings: &Settings) -> Result<Self, FrameError> {
        settings.check()?;
        settings.check_classifier(input.batch)?;
        let quantization = QuantizationRules::new(settings.quantization.as_deref())?;
        quantization.check(input.tensors)?;
        let options = ClassifierOptions {
            activation: settings.score_activation.activation(),
            // Ultralytics' models end with softmax.
            is_softmaxed: input.family.is_some_and(|family| family.is_classifier()),
            num_classes: settings.num_classes as usize,
        };
        let classifier = Classifier::choose(&quantization.applied(input.tensors), options)?;
        let mut tensors = Signatures::default();
        tensors.set(input.tensors);
        let Params { multi_label, max_detections, thresholds, .. } = &settings.scalars;
        let max = if *multi_label { *max_detections } else { 1 };
        Ok(Self {
            classifier,
            tensors,
            quantization,
            limits: ClassLimits { threshold: thresholds.default, max },
            has_activation: settings.score_activation != ScoreActivation::Auto,
            silence: Silence::default(),
        })
    }

    /// Whether the plan was made for such tensors.
    pub fn tensors(&self) -> &Signatures {
        &self.tensors
    }

    /// Writes to the log how the tensors of `input` are read.
    pub fn log(&self, element: &NmsFilter, input: PlanInput<'_>, labels: &Labels) {
        gst::info!(
            CAT,
            obj = element,
            "decoder {}: tensor {}, {} classes, {} labels, score-activation {}, {:?}",
            classifier::NAME,
            input.tensors[self.classifier.tensor()],
            self.classifier.classes(),
            labels.count(),
            self.classifier.activation().name(),
            self.limits,
        );
    }

    /// The warning of a number of labels other than that of classes, before the first image of the plan.
    fn label_warning(
        &self,
        tensors: &[TensorView<'_>],
        labels: &Labels,
    ) -> Option<ClassifierWarning> {
        let origin = labels.source().filter(|_| self.silence.images == 0)?;
        let (labels, classes) = (labels.count(), self.classifier.classes());
        let tensor = || tensors[self.classifier.tensor()].to_string();
        (labels != classes).then(|| ClassifierWarning::Labels {
            origin,
            labels,
            tensor: tensor(),
            classes,
        })
    }

    /// The warning that no image had a class, which is returned once: at the end of the stream (`pts` is `None`) or after
    /// [`SILENCE`].
    fn silence_warning(
        &mut self,
        labels: &mut Labels,
        pts: Option<Option<gst::ClockTime>>,
    ) -> Option<ClassifierWarning> {
        let Silence { is_over, since, images, best } = &mut self.silence;
        let is_due = pts.is_none_or(|pts| since.is_some_and(|since| since.has_expired(pts)));
        let ClassScore { class, score } = best.filter(|_| is_due && !*is_over)?;
        *is_over = true;
        let (label, threshold) = (labels.quark(class).as_str().to_string(), self.limits.threshold);
        Some(ClassifierWarning::Silence { images: *images, score, label, threshold })
    }

    /// Adds the classes of an image to `found`. Returns the evidence against the reading, if there is any.
    fn classify(
        &mut self,
        tensors: &mut [TensorView<'_>],
        found: &mut Vec<ClassScore>,
        pts: Option<gst::ClockTime>,
    ) -> Result<Option<ClassifierWarning>, FrameError> {
        self.quantization.apply(tensors);
        let tensor = &tensors[self.classifier.tensor()];
        let first = found.len();
        let evidence =
            self.classifier.classify(tensor, self.limits, found).map_err(EngineError::from)?;
        let silence = &mut self.silence;
        silence.is_over |= found.len() > first;
        silence.since.get_or_insert_with(|| Timeout::start_of(SILENCE, pts));
        silence.images += 1;
        let text = || tensor.to_string();
        Ok(match evidence {
            Evidence::Plausible { best } => {
                silence.best = silence.best.filter(|it| it.score >= best.score).or(Some(best));
                None
            }
            Evidence::NotFinite(at) => Some(ClassifierWarning::NotFinite { tensor: text(), at }),
            Evidence::Probabilities if silence.images == 1 => {
                Some(ClassifierWarning::Probabilities { tensor: text() })
            }
            Evidence::NoProbability(at) if !self.has_activation => {
                Some(ClassifierWarning::NoProbability { tensor: text(), at })
            }
            Evidence::Probabilities | Evidence::NoProbability(_) => None,
        })
    }
}

/// Finds the classes of a range of images, with the classifier of `planner`, which has the index `model`. After an error
/// nothing of the range is left: its frames can be decoded one by one.
///
/// # Errors
/// If a tensor cannot be read, the size of a frame is not known, or a region is not inside its frame.
pub(super) fn classify(
    decoder: &mut FrameDecoder,
    DecodeContext { element, pts }: DecodeContext<'_>,
    images: Images<'_, '_>,
    run: std::ops::Range<usize>,
    (model, planner): (usize, &mut Planner),
) -> Result<(), FrameError> {
    let (frames, counts) = (decoder.regions.frame_count(), decoder.counts);
    let result = classify_all(decoder, (element, pts), images, run, (model, &mut *planner));
    if result.is_err() {
        decoder.regions.truncate_classified(frames);
        decoder.counts = counts;
        return result;
    }
    planner.decoded = true;
    Ok(())
}

fn classify_all(
    decoder: &mut FrameDecoder,
    (element, pts): (&NmsFilter, Option<gst::ClockTime>),
    images: Images<'_, '_>,
    run: std::ops::Range<usize>,
    (model, planner): (usize, &mut Planner),
) -> Result<(), FrameError> {
    let FrameDecoder { regions, counts, warnings, .. } = decoder;
    let (plan, labels) = planner.classifying().expect("the tensors are a classifier's");
    for image in run.clone() {
        let ImageFrame { index, size, region, .. } = images.frame(image);
        let size = size.ok_or(FrameError::NoCaps)?;
        if let Some(region) = region.filter(|region| !region.pixels.is_inside(size)) {
            let error = MappingError::RegionOutside { region: region.pixels, frame: size };
            return Err(SettingsError::from(error).into());
        }
        if image == run.start || !images.are_regions() {
            regions.add(FrameId { index, size, model }, std::iter::empty());
            counts.frames += 1;
        }
        let tensors = images.tensors(image..image + 1);
        let mut views = tensors.views();
        if let Some(warning) = plan.label_warning(&views, labels) {
            warnings.classifier(element, warning);
        }
        regions.add_classified(region, |found| {
            let first = found.len();
            let warning = plan.classify(&mut views, found, pts)?;
            counts.candidates += 1;
            counts.survivors += found.len() - first;
            if let Some(warning) = warning {
                counts.rejected +=
                    usize::from(matches!(warning, ClassifierWarning::NotFinite { .. }));
                warnings.classifier(element, warning);
            }
            Ok::<(), FrameError>(())
        })?;
    }
    if let Some(warning) = plan.silence_warning(labels, Some(pts)) {
        warnings.classifier(element, warning);
    }
    counts.engine = "cpu";
    Ok(())
}

/// Posts the warnings that are due at the end of the stream.
pub(super) fn end_stream(element: &NmsFilter, planner: &mut Planner, warnings: &mut Warnings) {
    let Some((plan, labels)) = planner.classifying() else { return };
    if let Some(warning) = plan.silence_warning(labels, None) {
        warnings.classifier(element, warning);
    }
}
