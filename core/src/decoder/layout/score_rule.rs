// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the score of a candidate from the scores in tensors.

use crate::named::named;

named! {
    /// The function that turns a tensor's scores into probabilities.
    pub enum Activation {
        /// None: scores are probabilities, or have no unit.
        #[default]
        None = 0 "none",
        /// The logistic function of each score and of objectness.
        Sigmoid = 1 "sigmoid",
        /// Softmax over all scores of an anchor, including the background's. Objectness is not changed.
        Softmax = 2 "softmax",
    }
}

named! {
    /// How objectness and the score of a class are combined.
    pub enum Combination {
        /// Their product.
        #[default]
        Product = 0 "product",
        /// The square root of the product of both, each limited to 0 to 1.
        SquareRoot = 1 "square-root",
    }
}

named! {
    /// Which of an anchor's scores is the background's, also called "no object": it is the score of no class.
    pub enum Background {
        /// None: each score belongs to a class.
        #[default]
        None = 0 "none",
        /// The first, before the classes'.
        First = 1 "first",
        /// The last, after the classes'.
        Last = 2 "last",
    }
}

impl Background {
    /// The number of scores that belong to no class.
    pub(crate) fn columns(self) -> usize {
        usize::from(self != Self::None)
    }
}

/// How the score of a candidate is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScoreRule {
    /// The number of class scores of an anchor, at least one. It is one if the class has a separate field
    /// ([`Group::class`](super::Group::class)).
    pub components: usize,
    /// The class of the first score. If the class has a field, it is the least class, and engines do not read it.
    pub first_class: u32,
    /// The position of the background's score, which is never the best.
    pub background: Background,
    /// The function that turns scores into probabilities.
    pub activation: Activation,
    /// How objectness, if there is any, is combined with the score.
    pub combination: Combination,
    /// True if a class counts only where its score is a peak: where no neighboring cell of the anchor's grid has a
    /// greater score of the class (CenterNet).
    pub peaks: bool,
}

impl ScoreRule {
    /// The rule of `classes` scores that are final.
    pub fn of_classes(classes: usize) -> Self {
        Self {
            components: classes,
            first_class: 0,
            background: Background::None,
            activation: Activation::None,
            combination: Combination::Product,
            peaks: false,
        }
    }

    /// The number of scores in the tensor per anchor.
    pub fn columns(&self) -> usize {
        self.components.saturating_add(self.background.columns())
    }

    /// The index of the first class's score among the scores of an anchor.
    pub fn first_column(&self) -> usize {
        usize::from(self.background == Background::First)
    }

    /// The index of the background's score among the scores of an anchor.
    pub fn background_column(&self) -> Option<usize> {
        match self.background {
            Background::None => None,
            Background::First => Some(0),
            Background::Last => Some(self.components),
        }
    }
}
