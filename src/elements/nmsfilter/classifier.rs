// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classifiers: from the tensors of images to their classes.
//!
//! In: [`Images`], and the settings in force. Out: the classes of each image, counts, and warnings about readings that are
//! probably wrong. Scores are computed on the CPU: a tensor in device memory is copied.

use std::time::Duration;

use super::NmsFilter;
use super::debug_category::CAT;
use super::decode::{DecodeContext, FrameDecoder};
use super::enums::{Decoder, ScoreActivation};
use super::error::FrameError;
use super::model::Model;
use super::notices::Notices;
use super::quantization::QuantizationRules;
use super::reading::ModelTensors;
use super::settings::{Settings, SettingsError};
use crate::input::source::{ImageFrame, Images};
use crate::output::{FrameId, Labels};
use nmsfilter_core::decoder::classifier::{
    self, ClassLimits, ClassOutput, ClassScore, Classifier, ClassifierOptions, Evidence,
};
use nmsfilter_core::decoder::is_known;
use nmsfilter_core::engine::{EngineError, Params};
use nmsfilter_core::geometry::MappingError;
use nmsfilter_core::reading::Signatures;
use nmsfilter_core::tensor::TensorView;

/// How long no image has a class before a warning is posted.
const SILENCE: Duration = Duration::from_secs(10);

/// The plan for the tensors of a classifier.
pub(super) struct ClassifierPlan {
    classifier: Classifier,
    tensors: Signatures,
    quantization: QuantizationRules,
    limits: ClassLimits,
    /// Whether `score-activation` is set.
    has_activation: bool,
    /// For each output.
    silences: Vec<Silence>,
    /// True if the first image has been judged.
    has_begun: bool,
}

/// The images until the first with a class of an output.
#[derive(Clone, Default)]
struct Silence {
    is_over: bool,
    since: Option<Duration>,
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
        "{origin} has {labels} labels, but the model has {total} classes: those of {outputs}; {unlabelled} has no labels \
         (class-0, ...): set label-file to the labels of all outputs, one output after the other"
    )]
    LabelsOfOutputs {
        origin: &'static str,
        labels: usize,
        outputs: String,
        total: usize,
        unlabelled: String,
    },
    #[error(
        "only {read} is read as scores of classes, and not {ignored}: an output is read if its number of classes is \
         num-classes and, beside an output with one of the ids {} and {}, if it has such an id, too",
        classifier::IDS[0].0, classifier::IDS[1].0
    )]
    Ignored { read: String, ignored: String },
    #[error(
        "tensor {tensor}: all of its numbers are whole, so they are probably no scores but a sequence, as of characters, \
         or classes; read such tensors in the application, or set score-activation if they are scores"
    )]
    Whole { tensor: String },
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
        "none of {images} images has a class{output}: the best score is {score} ({label}), and score-threshold is {threshold}; \
         set a lower threshold, or compare the model's input (range, order of colors) with its training"
    )]
    Silence { images: u64, output: String, score: f32, label: String, threshold: f32 },
}

impl ClassifierPlan {
    /// Whether tensors are read as a classifier's: because `decoder` says so, or by their ids or their model.
    pub fn is_wanted(tensors: ModelTensors<'_>, settings: &Settings) -> bool {
        match settings.decoder {
            Decoder::Classifier => true,
            Decoder::Auto => {
                let has = |is_id: fn(&str) -> bool| tensors.tensors.iter().any(|it| is_id(it.id));
                let is_of_model = tensors.family.is_some_and(|family| family.is_classifier());
                (has(classifier::is_id) || is_of_model) && !has(is_known)
            }
            _ => false,
        }
    }

    /// The plan for `input`.
    ///
    /// # Errors
    /// If settings are not valid for a classifier, or the tensors do not have the scores of classes.
    pub fn new(tensors: ModelTensors<'_>, settings: &Settings) -> Result<Self, FrameError> {
        settings.check()?;
        settings.check_classifier(tensors.batch)?;
        let quantization = QuantizationRules::new(settings.quantization.as_deref())?;
        quantization.check(tensors.tensors)?;
        let options = ClassifierOptions {
            activation: settings.score_activation.activation(),
            // Ultralytics' models end with softmax.
            is_softmaxed: tensors.family.is_some_and(|family| family.is_classifier()),
            num_classes: settings.num_classes as usize,
        };
        let classifier = Classifier::choose(&quantization.applied(tensors.tensors), options)?;
        let outputs = classifier.outputs().len();
        let mut signatures = Signatures::default();
        signatures.set(tensors.tensors);
        let Params { multi_label, max_detections, thresholds, .. } = &settings.scalars;
        let max = if *multi_label { *max_detections } else { 1 };
        Ok(Self {
            classifier,
            tensors: signatures,
            quantization,
            limits: ClassLimits { threshold: thresholds.default, max },
            has_activation: settings.score_activation != ScoreActivation::Auto,
            silences: vec![Silence::default(); outputs],
            has_begun: false,
        })
    }

    /// Starts the time again that images without a class last.
    pub fn restart_clock(&mut self) {
        self.silences.iter_mut().for_each(|silence| silence.since = None);
    }

    /// The name of the tensor of each output, and its number of classes.
    pub fn output_classes<'t>(
        &self,
        tensors: &'t [TensorView<'t>],
    ) -> impl Iterator<Item = (&'t str, usize)> + Clone {
        self.classifier.outputs().iter().map(|output| (tensors[output.tensor].id, output.classes))
    }

    /// Whether the plan was made for such tensors.
    pub fn tensors(&self) -> &Signatures {
        &self.tensors
    }

    /// Writes to the log how the tensors are read.
    pub fn log(&self, element: &NmsFilter, tensors: ModelTensors<'_>, labels: &Labels) {
        for ClassOutput { tensor, classes, activation } in self.classifier.outputs() {
            gst::info!(
                CAT,
                obj = element,
                "decoder {}: tensor {}, {classes} classes, {} labels, score-activation {}, {:?}",
                classifier::NAME,
                tensors.tensors[*tensor],
                labels.count(),
                activation.name(),
                self.limits,
            );
        }
    }

    /// The warnings about tensors that are not read and about labels, before the first image of the plan.
    fn first_warnings(
        &mut self,
        tensors: &[TensorView<'_>],
        labels: &Labels,
    ) -> [Option<ClassifierWarning>; 2] {
        if std::mem::replace(&mut self.has_begun, true) {
            return [None, None];
        }
        let list = |indices: &mut dyn Iterator<Item = usize>| {
            indices.map(|index| tensors[index].to_string()).collect::<Vec<_>>().join(", ")
        };
        let (outputs, ignored) = (self.classifier.outputs(), self.classifier.ignored());
        let all = || list(&mut outputs.iter().map(|output| output.tensor));
        let not_read = (!ignored.is_empty()).then(|| ClassifierWarning::Ignored {
            read: all(),
            ignored: list(&mut ignored.iter().copied()),
        });
        let total = outputs.iter().map(|output| output.classes).sum::<usize>();
        let count = labels.count();
        let wrong = labels.source().filter(|_| count != total).map(|origin| match outputs {
            [output] => ClassifierWarning::Labels {
                origin,
                labels: count,
                tensor: tensors[output.tensor].to_string(),
                classes: total,
            },
            _ => {
                let is_unlabelled =
                    |(index, _): &(usize, &ClassOutput)| !labels.are_of_output(*index);
                let unlabelled = outputs.iter().enumerate().filter(is_unlabelled);
                ClassifierWarning::LabelsOfOutputs {
                    origin,
                    labels: count,
                    outputs: all(),
                    total,
                    unlabelled: list(&mut unlabelled.map(|(_, output)| output.tensor)),
                }
            }
        });
        [not_read, wrong]
    }

    /// The warning that no image had a class of an output, which is returned once for each: at the end of the stream (`now`
    /// is `None`) or after [`SILENCE`].
    fn silence_warning(
        &mut self,
        output: usize,
        labels: &mut Labels,
        now: Option<Duration>,
    ) -> Option<ClassifierWarning> {
        let has_several = self.silences.len() > 1;
        let Silence { is_over, since, images, best } = &mut self.silences[output];
        let is_due = now.is_none_or(|now| since.is_some_and(|since| now - since >= SILENCE));
        let ClassScore { class, score } = best.filter(|_| is_due && !*is_over)?;
        *is_over = true;
        let name = labels.output_name(output).as_str();
        Some(ClassifierWarning::Silence {
            images: *images,
            output: if has_several { format!(" of the tensor {name}") } else { String::new() },
            score,
            label: labels.quark_of_output(output, class).as_str().to_string(),
            threshold: self.limits.threshold,
        })
    }

    /// Posts the warnings that no image had a class, as [`silence_warning`](Self::silence_warning).
    pub fn warn_of_silence(
        &mut self,
        element: &NmsFilter,
        labels: &mut Labels,
        notices: &mut Notices,
        now: Option<Duration>,
    ) {
        for output in 0..self.silences.len() {
            if let Some(warning) = self.silence_warning(output, labels, now) {
                notices.classifier(element, output, warning);
            }
        }
    }

    /// Adds the classes of an image that an output has found to `found`. Returns the evidence against the reading, if there
    /// is any.
    fn classify(
        &mut self,
        output: usize,
        tensors: &[TensorView<'_>],
        found: &mut Vec<ClassScore>,
        now: Duration,
    ) -> Result<Option<ClassifierWarning>, FrameError> {
        let tensor = &tensors[self.classifier.outputs()[output].tensor];
        let first = found.len();
        let evidence = self
            .classifier
            .classify(output, tensor, self.limits, found)
            .map_err(EngineError::from)?;
        let silence = &mut self.silences[output];
        silence.is_over |= found.len() > first;
        silence.since.get_or_insert(now);
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
            Evidence::Whole if !self.has_activation => {
                Some(ClassifierWarning::Whole { tensor: text() })
            }
            Evidence::Probabilities | Evidence::NoProbability(_) | Evidence::Whole => None,
            Evidence::Sequence { length } => {
                return Err(FrameError::Sequence { tensor: text(), length });
            }
        })
    }
}

/// Finds the classes of a range of images, with the classifier of `model`, which has this index. After an error
/// nothing of the range is left: its frames can be decoded one by one.
///
/// # Errors
/// If a tensor cannot be read, the size of a frame is not known, or a region is not inside its frame.
pub(super) fn classify(
    decoder: &mut FrameDecoder,
    DecodeContext { element, now }: DecodeContext<'_>,
    images: Images<'_, '_>,
    run: std::ops::Range<usize>,
    (index, model): (usize, &mut Model),
) -> Result<(), FrameError> {
    let (frames, counts) = (decoder.regions.frame_count(), decoder.counts);
    let result = classify_all(decoder, (element, now), images, run, (index, &mut *model));
    if result.is_err() {
        decoder.regions.truncate_classified(frames);
        decoder.counts = counts;
        return result;
    }
    model.decoded = true;
    Ok(())
}

fn classify_all(
    decoder: &mut FrameDecoder,
    (element, now): (&NmsFilter, Duration),
    images: Images<'_, '_>,
    run: std::ops::Range<usize>,
    (index, model): (usize, &mut Model),
) -> Result<(), FrameError> {
    let FrameDecoder { regions, counts, notices, .. } = decoder;
    let (plan, labels) = model.classifying().expect("the tensors are a classifier's");
    for image in run.clone() {
        let ImageFrame { index: frame, size, region, .. } = images.frame(image);
        let size = size.ok_or(FrameError::NoCaps)?;
        if let Some(region) = region.filter(|region| !region.pixels.is_inside(size)) {
            let error = MappingError::RegionOutside { region: region.pixels, frame: size };
            return Err(SettingsError::from(error).into());
        }
        if image == run.start || !images.are_regions() {
            regions.add(FrameId { index: frame, size, model: index }, std::iter::empty());
            counts.frames += 1;
        }
        let tensors = images.tensors(image..image + 1);
        let mut views = tensors.views();
        plan.quantization.apply(&mut views);
        for warning in plan.first_warnings(&views, labels).into_iter().flatten() {
            notices.classifier(element, 0, warning);
        }
        counts.candidates += 1;
        let mut is_rejected = false;
        for output in 0..plan.silences.len() {
            regions.add_classified(region, output, |found| {
                let first = found.len();
                let warning = plan.classify(output, &views, found, now)?;
                counts.survivors += found.len() - first;
                if let Some(warning) = warning {
                    is_rejected |= matches!(warning, ClassifierWarning::NotFinite { .. });
                    notices.classifier(element, output, warning);
                }
                Ok::<(), FrameError>(())
            })?;
        }
        counts.rejected += usize::from(is_rejected);
    }
    plan.warn_of_silence(element, labels, notices, Some(now));
    counts.engine = "cpu";
    Ok(())
}
