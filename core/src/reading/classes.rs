// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reading of a classifier's tensors.
//!
//! In: the tensors of each image. Out: the classes of each output; notices about numbers that are probably no scores, and
//! about outputs of which no image has a class.
//!
//! No box is read, so that no engine takes part: the numbers of one image are computed here, on the CPU.
//!
//! With x the numbers of the tensor and m the greatest of them, the score of class c is
//!
//! | activation | score |
//! | --- | --- |
//! | none | x_c |
//! | sigmoid | [`sigmoid`]`(x_c)` |
//! | softmax | `exp(x_c - m) / sum`, the sum of `exp(x_i - m)` over all classes |
//!
//! The difference and [`exp`] are of single precision; the sum, in the order of the classes, and the quotient are of
//! double precision. Rounded to single precision, a score has equal bits on every platform. Classes are ordered by
//! x, then by their number, since several scores can be rounded to one number, such as 1.

use std::time::Duration;

use super::notice::{ClassFinding, Finding, Notice};
use super::watch::{QUIET, is_over};
use super::{Facts, Settings};
use crate::decoder::classifier::{ClassLimits, ClassOutput, ClassScore, is_id};
use crate::decoder::layout::{Activation, LayoutProblem};
use crate::decoder::{ChoiceError, LayoutError, is_known};
use crate::engine::{EngineError, Params};
use crate::functions::{exp, sigmoid};
use crate::tensor::{HostImages, TensorView};

/// How far the sum of probabilities is from 1 because of rounding, also of numbers with 8 bits.
const TOLERANCE: f64 = 0.01;

/// The fewest numbers that are probably no scores if all are whole. Fewer can be whole by chance.
const MIN_WHOLE: usize = 8;

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
    outputs: Vec<ClassOutput>,
    limits: ClassLimits,
    /// True if the function of the scores is set.
    has_activation: bool,
    /// For each output, with the id of its tensor.
    quiet: Vec<(String, Quiet)>,
    /// The numbers of the last tensor.
    numbers: Vec<f32>,
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
        (outputs, ignored): (Vec<ClassOutput>, Vec<usize>),
        params: &Params,
        facts: &Facts<'_>,
        settings: &Settings<'_>,
    ) -> (Self, Vec<Notice>) {
        let list = |indices: &[usize]| {
            indices.iter().map(|&it| facts.tensors[it].to_string()).collect::<Vec<_>>().join(", ")
        };
        let mut notices = Vec::new();
        if !ignored.is_empty() {
            let read: Vec<usize> = outputs.iter().map(|it| it.tensor).collect();
            let found = ClassFinding::Ignored { ignored: list(&ignored) };
            notices.push(notice(0, list(&read), found));
        }
        let id = |output: &ClassOutput| facts.tensors[output.tensor].id.to_owned();
        let quiet = outputs.iter().map(|it| (id(it), Quiet::default())).collect();
        let has_activation = settings.options.score_activation.is_some();
        let limits = ClassLimits::new(params);
        (Self { outputs, limits, has_activation, quiet, numbers: Vec::new() }, notices)
    }

    pub(super) fn follow(&mut self, earlier: Self) {
        if self.outputs == earlier.outputs && self.limits == earlier.limits {
            self.quiet = earlier.quiet;
        }
    }

    pub(super) fn set_params(&mut self, params: &Params) {
        self.limits = ClassLimits::new(params);
    }

    /// The outputs; at least one.
    pub fn outputs(&self) -> &[ClassOutput] {
        &self.outputs
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
    pub fn classify<E: From<ChoiceError> + From<EngineError>>(
        &mut self,
        output: usize,
        tensors: &[TensorView<'_>],
        found: &mut Vec<ClassScore>,
        now: Option<Duration>,
    ) -> Result<Classified, E> {
        let ClassOutput { tensor, classes, activation } = self.outputs[output];
        let tensor = &tensors[tensor];
        let images = HostImages::new(tensor).map_err(EngineError::from)?;
        let number = images.numbers(0).map_err(EngineError::from)?;
        self.numbers.clear();
        self.numbers.extend((0..classes).map(number));
        let (_, quiet) = &mut self.quiet[output];
        quiet.images += 1;
        let is_float = tensor.quantization.is_none();
        if let Some(length) = sequence(&self.numbers).filter(|_| is_float) {
            let text = format!(
                "tensor {tensor} is no score for each class: it has whole numbers ({length}), then -1 up to the end, \
                 which is a sequence, as of the characters of a license plate; decoder classifier expects scores: read \
                 such tensors in the application"
            );
            let error = LayoutError::new(LayoutProblem::Sequence, text);
            return Err(ChoiceError::from(error).into());
        }
        let first = found.len();
        let finding = match scores(&self.numbers, is_float, activation, self.limits, found) {
            Ok(best) => {
                quiet.best = quiet.best.filter(|it| it.score >= best.score).or(Some(best));
                None
            }
            Err(ClassFinding::Probabilities) if quiet.images > 1 => None,
            Err(finding) => Some(finding),
        };
        quiet.is_over |= found.len() > first;
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

/// Adds the classes that are wanted to `found`, best first. Returns the best class, also if it does not reach the
/// threshold.
///
/// # Errors
/// If the numbers contradict the activation, or are not finite: then the image has no class.
fn scores(
    numbers: &[f32],
    is_float: bool,
    activation: Activation,
    limits: ClassLimits,
    found: &mut Vec<ClassScore>,
) -> Result<ClassScore, ClassFinding> {
    let at = |class: usize| ClassScore { class: class as u32, score: numbers[class] };
    if let Some(class) = numbers.iter().position(|number| number.is_nan()) {
        return Err(ClassFinding::NotFinite(at(class)));
    }
    // The first of equal numbers.
    let best = (1..numbers.len())
        .fold(0, |best, class| if numbers[class] > numbers[best] { class } else { best });
    let greatest = numbers[best];
    if greatest.is_infinite() {
        return Err(ClassFinding::NotFinite(at(best)));
    }
    let sum: f64 = match activation {
        Activation::Softmax => numbers.iter().map(|x| f64::from(exp(x - greatest))).sum(),
        Activation::None | Activation::Sigmoid => 1.0,
    };
    let score = |class: usize| {
        let x = numbers[class];
        match activation {
            Activation::None => x,
            Activation::Sigmoid => sigmoid(x),
            Activation::Softmax => (f64::from(exp(x - greatest)) / sum) as f32,
        }
    };
    let scored = |class| ClassScore { class: class as u32, score: score(class) };
    let first = found.len();
    found.extend((0..numbers.len()).map(scored).filter(|it| it.score >= limits.threshold));
    found[first..].sort_unstable_by(|a, b| {
        let [x, y] = [a, b].map(|it| numbers[it.class as usize]);
        y.partial_cmp(&x).expect("no number is NaN").then(a.class.cmp(&b.class))
    });
    if limits.max != 0 {
        found.truncate(first + limits.max);
    }
    match activation {
        _ if is_float && are_whole(numbers) => Err(ClassFinding::Whole),
        Activation::Softmax if are_probabilities(numbers) => Err(ClassFinding::Probabilities),
        Activation::None => match numbers.iter().position(|&number| !is_probability(number)) {
            Some(class) => Err(ClassFinding::NoProbability(at(class))),
            None => Ok(scored(best)),
        },
        _ => Ok(scored(best)),
    }
}

fn is_probability(number: f32) -> bool {
    (-TOLERANCE..=1.0 + TOLERANCE).contains(&f64::from(number))
}

fn are_probabilities(numbers: &[f32]) -> bool {
    let sum: f64 = numbers.iter().copied().map(f64::from).sum();
    numbers.iter().all(|&number| (0.0..=1.0).contains(&number)) && (sum - 1.0).abs() <= TOLERANCE
}

fn is_whole(number: &f32) -> bool {
    *number >= 0.0 && number.fract() == 0.0
}

/// The number of characters before the -1 that fill the rest of a sequence; `None` if the numbers are no sequence that
/// ends so. Two or three numbers with one -1 can be logits that are whole by chance.
fn sequence(numbers: &[f32]) -> Option<usize> {
    let length = numbers.iter().position(|&number| number == -1.0)?;
    let (characters, rest) = numbers.split_at(length);
    let is_sequence = characters.iter().all(is_whole) && rest.iter().all(|&it| it == -1.0);
    (is_sequence && (rest.len() > 1 || length > 2)).then_some(length)
}

/// Returns whether the numbers are probably no scores, because all of them are whole and few are equal.
fn are_whole(numbers: &[f32]) -> bool {
    let other = numbers.iter().find(|&&number| number != numbers[0]);
    let has_third = numbers.iter().any(|number| *number != numbers[0] && Some(number) != other);
    numbers.len() >= MIN_WHOLE && has_third && numbers.iter().all(is_whole)
}
