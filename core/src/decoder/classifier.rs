// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classifiers: models with outputs of one score for each class of an image.
//!
//! In: the tensors of an image. Out: for each output (color and type of a vehicle), the classes that reach a threshold, best
//! first. No box is read, so that no engine takes part: the numbers of one image are computed here, on the CPU.
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

use super::check::{
    check_classes, check_element_type, check_num_classes, shape_error, single_softmax,
};
use super::layout::Activation;
use super::{ChoiceError, Options};
use crate::engine::Params;
use crate::functions::{exp, sigmoid};
use crate::tensor::{HostImages, TensorError, TensorView};

/// The name of the decoder.
pub const NAME: &str = "classifier";

/// The tensor ids, as in GStreamer's `classifiertensordecoder`, with the activation of each.
pub const IDS: [(&str, Activation); 2] = [
    ("classification-generic-out", Activation::Softmax),
    ("classification-generic-softmaxed-out", Activation::None),
];

/// How far the sum of probabilities is from 1 because of rounding, also of numbers with 8 bits.
const TOLERANCE: f64 = 0.01;

/// Which classes of an image are wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassLimits {
    /// The least score.
    pub threshold: f32,
    /// The greatest number of classes; 0 for no limit.
    pub max: usize,
}

impl ClassLimits {
    /// The limits by these parameters: without multi-label, only the best class is wanted.
    pub fn new(params: &Params) -> Self {
        let max = if params.multi_label { params.max_detections } else { 1 };
        Self { threshold: params.thresholds.default, max }
    }
}

/// A class of an image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassScore {
    /// The index of the class.
    pub class: u32,
    /// The score.
    pub score: f32,
}

/// The tensors with scores, and how they are read.
#[derive(Clone, Debug, PartialEq)]
pub struct Classifier {
    outputs: Vec<ClassOutput>,
    ignored: Vec<usize>,
    /// The numbers of the last tensor.
    numbers: Vec<f32>,
}

/// A tensor with scores, and how it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassOutput {
    /// The index of the tensor.
    pub tensor: usize,
    /// The number of classes.
    pub classes: usize,
    /// The function that turns numbers into scores.
    pub activation: Activation,
}

/// The fewest numbers that are probably no scores if all are whole. Fewer can be whole by chance.
const MIN_WHOLE: usize = 8;

/// Evidence of the reading in the numbers of an image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Evidence {
    /// Nothing unexpected.
    Plausible {
        /// The best class, also if it does not reach the threshold.
        best: ClassScore,
    },
    /// A number is NaN, or the greatest is infinite: the image has no class.
    NotFinite(ClassScore),
    /// The numbers before softmax are from 0 to 1 with a sum of 1: they are probabilities already.
    Probabilities,
    /// A number that is taken for a probability is not from 0 to 1.
    NoProbability(ClassScore),
    /// The numbers are a sequence, such as characters, and no scores: whole numbers from 0, then -1 up to the end.
    /// The image has no class.
    Sequence {
        /// How many numbers are before the first -1.
        length: usize,
    },
    /// All numbers are whole, from 0, and of three values or more: they may be a sequence without an end.
    Whole,
}

impl Classifier {
    /// Finds the tensors with scores: those with an id of [`IDS`] or, if none has one, those of their shape. Of several
    /// without an id, those with one number are left out if that has no score ([`LayoutProblem::SingleSoftmax`](super::layout::LayoutProblem::SingleSoftmax)), and those
    /// with another number of classes than is expected.
    ///
    /// The function of the scores is that of the options, else of the id, else none if `is_softmaxed` (the model is known to
    /// end with softmax), else softmax.
    ///
    /// # Errors
    /// If there is no such tensor, or if the shape, element type or number of classes of one does not fit.
    pub fn choose(
        tensors: &[TensorView<'_>],
        options: &Options,
        is_softmaxed: bool,
    ) -> Result<Self, ChoiceError> {
        let is_row = |&index: &usize| classes(&tensors[index]).is_some();
        let mut chosen: Vec<usize> =
            (0..tensors.len()).filter(|&index| is_id(tensors[index].id)).collect();
        let has_ids = !chosen.is_empty();
        if !has_ids {
            chosen = (0..tensors.len()).filter(is_row).collect();
        }
        if chosen.is_empty() && tensors.len() == 1 {
            chosen.push(0);
        }
        let mut outputs = Vec::with_capacity(chosen.len());
        let (is_one, mut first_error) = (chosen.len() == 1 || has_ids, None);
        for tensor in chosen {
            match ClassOutput::of(tensors, tensor, options, is_softmaxed) {
                Ok(output) => outputs.push(output),
                Err(error) if is_one => return Err(error),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        if outputs.is_empty() {
            let none = ChoiceError::NoClassifier { tensors: super::choose::list(tensors) };
            return Err(first_error.unwrap_or(none));
        }
        let is_read = |index: &usize| outputs.iter().any(|output| output.tensor == *index);
        let ignored = (0..tensors.len()).filter(|index| is_row(index) && !is_read(index)).collect();
        Ok(Self { outputs, ignored, numbers: Vec::new() })
    }

    /// The tensors with scores, in the order of the tensors; at least one.
    pub fn outputs(&self) -> &[ClassOutput] {
        &self.outputs
    }

    /// The indices of the tensors that could be read as scores, and are not.
    pub fn ignored(&self) -> &[usize] {
        &self.ignored
    }

    /// Adds the classes of an image that are wanted to `found`, best first: those of the output with the index `output`,
    /// whose tensor is `tensor`. Does not allocate with the second image, apart from `found`.
    ///
    /// # Errors
    /// If the elements cannot be read. `tensor` must have the shape for which the classifier was made.
    ///
    /// # Panics
    /// If there is no such output.
    pub fn classify(
        &mut self,
        output: usize,
        tensor: &TensorView<'_>,
        limits: ClassLimits,
        found: &mut Vec<ClassScore>,
    ) -> Result<Evidence, TensorError> {
        let number = HostImages::new(tensor)?.numbers(0)?;
        self.numbers.clear();
        let ClassOutput { classes, activation, .. } = self.outputs[output];
        self.numbers.extend((0..classes).map(number));
        let numbers = &self.numbers;
        let at = |class: usize| ClassScore { class: class as u32, score: numbers[class] };
        if let Some(class) = numbers.iter().position(|number| number.is_nan()) {
            return Ok(Evidence::NotFinite(at(class)));
        }
        let is_float = tensor.quantization.is_none();
        if let Some(length) = sequence(numbers).filter(|_| is_float) {
            return Ok(Evidence::Sequence { length });
        }
        // The first of equal numbers.
        let best = (1..numbers.len())
            .fold(0, |best, class| if numbers[class] > numbers[best] { class } else { best });
        let greatest = numbers[best];
        if greatest.is_infinite() {
            return Ok(Evidence::NotFinite(at(best)));
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
        Ok(match activation {
            _ if is_float && are_whole(numbers) => Evidence::Whole,
            Activation::Softmax if are_probabilities(numbers) => Evidence::Probabilities,
            Activation::None => match numbers.iter().position(|&number| !is_probability(number)) {
                Some(class) => Evidence::NoProbability(at(class)),
                None => Evidence::Plausible { best: scored(best) },
            },
            _ => Evidence::Plausible { best: scored(best) },
        })
    }
}

impl ClassOutput {
    /// The reading of a tensor.
    fn of(
        tensors: &[TensorView<'_>],
        index: usize,
        options: &Options,
        is_softmaxed: bool,
    ) -> Result<Self, ChoiceError> {
        let tensor = &tensors[index];
        let expected = "[C], [1,C] or [1,C,1,1]: one score for each class and no boxes; export the model with a batch \
                        size of 1, or set the decoder of the detector";
        let classes = classes(tensor).ok_or_else(|| shape_error(tensor, NAME, expected))?;
        check_classes(tensor, classes)?;
        check_element_type(tensor)?;
        check_num_classes(tensor, NAME, classes, *options)?;
        let of_model = if is_softmaxed { Activation::None } else { Activation::Softmax };
        let activation =
            options.score_activation.or_else(|| activation_of(tensor.id)).unwrap_or(of_model);
        if activation == Activation::Softmax && classes == 1 {
            return Err(single_softmax(tensor, NAME).into());
        }
        Ok(Self { tensor: index, classes, activation })
    }
}

/// Returns whether a tensor with this id has the scores of classes.
pub fn is_id(id: &str) -> bool {
    activation_of(id).is_some()
}

fn activation_of(id: &str) -> Option<Activation> {
    IDS.iter().find(|(known, _)| *known == id).map(|&(_, activation)| activation)
}

/// The number of classes, if all dimensions but one are 1.
fn classes(tensor: &TensorView<'_>) -> Option<usize> {
    let count = tensor.shape.elements().filter(|&count| count > 0)?;
    tensor.shape.contains(&count).then_some(count)
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
