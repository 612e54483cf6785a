// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the score of a candidate from the scores in tensors.

/// The function that turns a tensor's scores into probabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Activation {
    /// None: scores are probabilities, or have no unit.
    #[default]
    None = 0,
    /// The logistic function of each score and of objectness.
    Sigmoid = 1,
    /// Softmax over all scores of an anchor, including the background's. Objectness is not changed.
    Softmax = 2,
}

impl Activation {
    /// The name, as in layout files and the property `score-activation`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sigmoid => "sigmoid",
            Self::Softmax => "softmax",
        }
    }
}

/// How objectness and the score of a class are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Combination {
    /// Their product.
    #[default]
    Product = 0,
    /// The square root of the product of both, each limited to 0 to 1.
    SquareRoot = 1,
}

/// How the score of a candidate is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScoreRule {
    /// The number of class scores of an anchor, at least one. It is one if the class has a separate field
    /// ([`Group::class`](super::Group::class)).
    pub components: usize,
    /// The class of the first score. If the class has a field, it is the least class, and engines do not read it.
    pub first_class: u32,
    /// True if the background's score precedes the scores of classes; it is never the
    /// best.
    pub background: bool,
    /// The function that turns scores into probabilities.
    pub activation: Activation,
    /// How objectness, if there is any, is combined with the score.
    pub combination: Combination,
}

impl ScoreRule {
    /// The rule of `classes` scores that are final.
    pub fn of_classes(classes: usize) -> Self {
        Self {
            components: classes,
            first_class: 0,
            background: false,
            activation: Activation::None,
            combination: Combination::Product,
        }
    }

    /// The number of scores in the tensor per anchor.
    pub fn columns(&self) -> usize {
        self.components.saturating_add(usize::from(self.background))
    }
}
