// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classifiers: models whose output is one score for each class of an image.
//!
//! In: the tensors of an image. Out: the classes that reach a threshold, best first. No box is read, so that no engine
//! takes part: the numbers of one image are computed here, on the CPU.
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
//! double precision. Rounded to single precision, a score has the same bits on every platform. Classes are ordered by
//! x, then by their number, since several scores can be rounded to the same number, such as 1.

use super::layout::Activation;
use super::matrix::{check_classes, check_element_type};
use super::{ChoiceError, LayoutError};
use crate::functions::{exp, sigmoid};
use crate::tensor::{TensorError, TensorView};

/// The name of the decoder.
pub const NAME: &str = "classifier";

/// The tensor ids, as in GStreamer's `classifiertensordecoder`, with the activation of each.
pub const IDS: [(&str, Activation); 2] = [
    ("classification-generic-out", Activation::Softmax),
    ("classification-generic-softmaxed-out", Activation::None),
];

/// How far the sum of probabilities is from 1 because of rounding, also of numbers with 8 bits.
const TOLERANCE: f64 = 0.01;

/// The properties of a classifier that its tensor does not contain.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClassifierOptions {
    /// The function that turns the numbers into scores; `None` for the function of the tensor's id, else of the model,
    /// else softmax.
    pub activation: Option<Activation>,
    /// Whether the model is known to end with softmax. Counts for tensors whose id is not one of [`IDS`].
    pub is_softmaxed: bool,
    /// The number of classes; 0 if it is unknown.
    pub num_classes: usize,
}

/// Which classes of an image are wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassLimits {
    /// The least score.
    pub threshold: f32,
    /// The greatest number of classes; 0 for no limit.
    pub max: usize,
}

/// A class of an image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassScore {
    /// The index of the class.
    pub class: u32,
    /// The score.
    pub score: f32,
}

/// The tensor with the scores, and how it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Classifier {
    tensor: usize,
    classes: usize,
    activation: Activation,
    /// The numbers of the last image.
    numbers: Vec<f32>,
}

/// What the numbers of an image say about the reading.
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
}

impl Classifier {
    /// Finds the tensor with the scores: the tensor with an id of [`IDS`], or the only one of its shape.
    ///
    /// # Errors
    /// If there is no such tensor or several, or if its shape, element type or number of classes do not fit.
    pub fn choose(
        tensors: &[TensorView<'_>],
        options: ClassifierOptions,
    ) -> Result<Self, ChoiceError> {
        let index = match tensors.iter().position(|tensor| activation_of(tensor.id).is_some()) {
            Some(index) => index,
            None => {
                let mut rows =
                    (0..tensors.len()).filter(|&index| classes(&tensors[index]).is_some());
                match (rows.next(), rows.next()) {
                    (Some(index), None) => index,
                    (None, _) if tensors.len() == 1 => 0,
                    _ => {
                        return Err(ChoiceError::NoClassifier {
                            tensors: super::choose::list(tensors),
                        });
                    }
                }
            }
        };
        let tensor = &tensors[index];
        let text = || tensor.to_string();
        let classes = classes(tensor).ok_or_else(|| LayoutError::Shape {
            tensor: text(),
            decoder: NAME,
            expected: "[C], [1,C] or [1,C,1,1]: one score for each class and no boxes; export the model with a batch \
                       size of 1, or set the decoder of the detector"
                .to_owned(),
        })?;
        check_classes(tensor, classes)?;
        check_element_type(tensor)?;
        let expected = options.num_classes;
        if expected != 0 && expected != classes {
            return Err(LayoutError::NumClasses {
                tensor: text(),
                decoder: NAME,
                classes,
                expected,
            }
            .into());
        }
        let of_model = if options.is_softmaxed { Activation::None } else { Activation::Softmax };
        let activation =
            options.activation.or_else(|| activation_of(tensor.id)).unwrap_or(of_model);
        if activation == Activation::Softmax && classes == 1 {
            return Err(LayoutError::SingleSoftmax { tensor: text(), decoder: NAME }.into());
        }
        Ok(Self { tensor: index, classes, activation, numbers: Vec::new() })
    }

    /// The index of the tensor with the scores.
    pub fn tensor(&self) -> usize {
        self.tensor
    }

    /// The number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The function that turns numbers into scores.
    pub fn activation(&self) -> Activation {
        self.activation
    }

    /// Adds the classes of an image that are wanted to `found`, best first. Does not allocate with the second image,
    /// apart from `found`.
    ///
    /// # Errors
    /// If the elements cannot be read. `tensor` must have the shape for which the classifier was made.
    pub fn classify(
        &mut self,
        tensor: &TensorView<'_>,
        limits: ClassLimits,
        found: &mut Vec<ClassScore>,
    ) -> Result<Evidence, TensorError> {
        let elements = tensor.elements()?;
        let number = |index| match tensor.quantization {
            Some(quantization) => quantization.number(elements.to_f32(index)),
            None => elements.to_f32(index),
        };
        self.numbers.clear();
        self.numbers.extend((0..self.classes).map(number));
        let Self { numbers, activation, .. } = self;
        let at = |class: usize| ClassScore { class: class as u32, score: numbers[class] };
        if let Some(class) = numbers.iter().position(|number| number.is_nan()) {
            return Ok(Evidence::NotFinite(at(class)));
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
            Activation::Softmax if are_probabilities(numbers) => Evidence::Probabilities,
            Activation::None => match numbers.iter().position(|&number| !is_probability(number)) {
                Some(class) => Evidence::NoProbability(at(class)),
                None => Evidence::Plausible { best: scored(best) },
            },
            _ => Evidence::Plausible { best: scored(best) },
        })
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
