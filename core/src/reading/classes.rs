// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reading of a classifier's tensors.
//!
//! In: the tensors of each image. Out: the classes of each output; notices about numbers that are probably no scores, and
//! about outputs of which no image has a class.

use std::time::Duration;

use super::notice::{ClassFinding, Finding, Notice};
use super::watch::{QUIET, is_over};
use super::{Facts, Refusal, Settings};
use crate::decoder::classifier::{
    ClassLimits, ClassOutput, ClassScore, Classifier, Evidence, is_id,
};
use crate::decoder::layout::LayoutProblem;
use crate::decoder::{ChoiceError, LayoutError, is_known};
use crate::engine::{EngineError, Params};
use crate::tensor::TensorView;

/// The tensors that can be the scores of a classifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Classifiers {
    /// They are boxes.
    #[default]
    Never,
    /// They are, if their ids or their model say so, and no decoder is set.
    Auto,
    /// They are.
    Always,
}

/// How the tensors of a classifier are read.
pub struct ClassReading {
    classifier: Classifier,
    limits: ClassLimits,
    /// True if the function of the scores is set.
    has_activation: bool,
    /// For each output, with the id of its tensor.
    quiet: Vec<(String, Quiet)>,
}

/// The images until the first with a class of an output.
#[derive(Clone, Default)]
struct Quiet {
    is_over: bool,
    since: Option<Duration>,
    images: usize,
    /// The best class of all images.
    best: Option<ClassScore>,
}

/// The result for an output of an image.
pub struct Classified {
    /// False if the image has no class, because its numbers are not finite.
    pub is_finite: bool,
    /// Notices to post; notices of one kind can come again.
    pub notices: Vec<Notice>,
}

/// True if tensors are read as a classifier's.
pub(super) fn are_classes(facts: &Facts<'_>, settings: &Settings<'_>) -> bool {
    let has = |is_of: fn(&str) -> bool| facts.tensors.iter().any(|tensor| is_of(tensor.id));
    match settings.classifiers {
        Classifiers::Never => false,
        Classifiers::Auto => {
            settings.decoder.is_none() && (has(is_id) || facts.has_classifier()) && !has(is_known)
        }
        Classifiers::Always => true,
    }
}

impl ClassReading {
    /// The reading, and the notices that follow from facts and settings alone.
    pub(super) fn new(
        classifier: Classifier,
        params: &Params,
        facts: &Facts<'_>,
        settings: &Settings<'_>,
    ) -> (Self, Vec<Notice>) {
        let list = |indices: &[usize]| {
            indices.iter().map(|&it| facts.tensors[it].to_string()).collect::<Vec<_>>().join(", ")
        };
        let mut notices = Vec::new();
        if !classifier.ignored().is_empty() {
            let read: Vec<usize> = classifier.outputs().iter().map(|it| it.tensor).collect();
            let found = ClassFinding::Ignored { ignored: list(classifier.ignored()) };
            notices.push(notice(0, list(&read), found));
        }
        let id = |output: &ClassOutput| facts.tensors[output.tensor].id.to_owned();
        let quiet = classifier.outputs().iter().map(|it| (id(it), Quiet::default())).collect();
        let has_activation = settings.options.score_activation.is_some();
        let limits = ClassLimits::new(params);
        (Self { classifier, limits, has_activation, quiet }, notices)
    }

    pub(super) fn follow(&mut self, earlier: Self) {
        if self.classifier.outputs() == earlier.classifier.outputs()
            && self.limits == earlier.limits
        {
            self.quiet = earlier.quiet;
        }
    }

    pub(super) fn set_params(&mut self, params: &Params) {
        self.limits = ClassLimits::new(params);
    }

    /// The outputs; at least one.
    pub fn outputs(&self) -> &[ClassOutput] {
        self.classifier.outputs()
    }

    /// Which classes are wanted.
    pub fn limits(&self) -> ClassLimits {
        self.limits
    }

    /// Adds the classes that the output with this index has found to `found`, the best first. `tensors` are those of an
    /// image. `now` is the time since any moment; without a clock, images are counted instead. Does not allocate with the
    /// second image, apart from `found` and notices.
    ///
    /// # Errors
    /// If the elements cannot be read, or are a sequence.
    ///
    /// # Panics
    /// If there is no such output.
    pub fn classify(
        &mut self,
        output: usize,
        tensors: &[TensorView<'_>],
        found: &mut Vec<ClassScore>,
        now: Option<Duration>,
    ) -> Result<Classified, Refusal> {
        let tensor = &tensors[self.classifier.outputs()[output].tensor];
        let first = found.len();
        let evidence = self.classifier.classify(output, tensor, self.limits, found);
        let evidence = evidence.map_err(EngineError::from)?;
        let (_, quiet) = &mut self.quiet[output];
        quiet.is_over |= found.len() > first;
        quiet.images += 1;
        let finding = match evidence {
            Evidence::Plausible { best } => {
                quiet.best = quiet.best.filter(|it| it.score >= best.score).or(Some(best));
                None
            }
            Evidence::NotFinite(at) => Some(ClassFinding::NotFinite(at)),
            Evidence::Probabilities => (quiet.images == 1).then_some(ClassFinding::Probabilities),
            Evidence::NoProbability(at) => Some(ClassFinding::NoProbability(at)),
            Evidence::Whole => Some(ClassFinding::Whole),
            Evidence::Sequence { length } => {
                let text = format!(
                    "tensor {tensor} is no score for each class: it has whole numbers ({length}), then -1 up to the end, \
                     which is a sequence, as of the characters of a license plate; decoder classifier expects scores: read \
                     such tensors in the application"
                );
                let error = LayoutError::new(LayoutProblem::Sequence, text);
                return Err(ChoiceError::from(error).into());
            }
        };
        let is_expected = self.has_activation
            && matches!(finding, Some(ClassFinding::NoProbability(_) | ClassFinding::Whole));
        let is_finite = !matches!(finding, Some(ClassFinding::NotFinite(_)));
        let finding = finding.filter(|_| !is_expected);
        let found = finding.map(|finding| notice(output, tensor.to_string(), finding));
        let mut notices: Vec<Notice> = found.into_iter().collect();
        if is_over(&mut quiet.since, now, QUIET, quiet.images) {
            notices.extend(self.end_quiet(output));
        }
        Ok(Classified { is_finite, notices })
    }

    pub(super) fn restart_clock(&mut self) {
        self.quiet.iter_mut().for_each(|(_, quiet)| quiet.since = None);
    }

    pub(super) fn finish(&mut self) -> Vec<Notice> {
        (0..self.quiet.len()).filter_map(|output| self.end_quiet(output)).collect()
    }

    /// The notice that no image had a class of an output; returned once.
    fn end_quiet(&mut self, output: usize) -> Option<Notice> {
        let (id, quiet) = &mut self.quiet[output];
        let images = quiet.images;
        let best = quiet.best.filter(|_| !quiet.is_over)?;
        quiet.is_over = true;
        let threshold = self.limits.threshold;
        let finding = ClassFinding::Silence { images, best, threshold };
        Some(notice(output, id.clone(), finding))
    }
}

/// A notice about an output, whose tensor is `tensor`.
fn notice(output: usize, tensor: String, found: ClassFinding) -> Notice {
    Notice(Finding::Class { output, tensor, found })
}
