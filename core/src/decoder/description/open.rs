// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shapes that leave a number open: how many of an anchor's numbers are scores, and how many are the components of
//! keypoints or the coefficients of a mask.
//!
//! In: the number of an anchor's numbers, and known facts about the model. Out: both numbers, if they fit.

use super::Levels;
use super::fit::Fitting;
use super::keypoints::split;
use super::prototypes::PrototypeImages;
use super::shape::{Open, OpenNumber, Pattern, Placed};
use crate::decoder::LayoutError;
use crate::decoder::layout::LayoutProblem;
use crate::wording::Setting::{KeypointShape, NumClasses};

/// Names the number of classes as what decides, unless it is known, or no score is of a class.
pub(super) fn unless(is_known: bool, separator: &str) -> String {
    if is_known { String::new() } else { format!("{NumClasses}{separator}") }
}

impl Fitting<'_> {
    /// Divides the `placed.numbers` numbers of an anchor of `shape`, one of the tensor's; `None` if they do not fit.
    ///
    /// # Errors
    /// If the prototypes can be read in two ways, or if several numbers of classes and keypoints fit.
    pub(super) fn divide(
        self,
        placed: Placed,
        shape: &Pattern,
    ) -> Result<Option<Placed>, LayoutError> {
        let count = shape.numbers();
        let Some(kind) = count.open else { return Ok(Some(placed)) };
        let Some(after) = placed.numbers.checked_sub(count.constant) else { return Ok(None) };
        // The number of scores among the numbers after the constant ones, if it is known.
        let scores = if count.has_classes { self.classes } else { Some(0) };
        let mut prototypes = None;
        let number = match (kind, self.prototypes) {
            (Open::Keypoints(components), _) => {
                let known = (self.classes, self.options.keypoints);
                let found = split(&self.rule.shapes, placed.numbers, known).map_err(|readings| {
                    let (tensor, decoder) = (self.tensor, self.of.name);
                    let text = format!(
                        "tensor {tensor}: decoder {decoder} can read an anchor's numbers in several ways, such as {readings}; \
                         set {}{KeypointShape}",
                        unless(scores.is_some(), " or ")
                    );
                    LayoutError::new(LayoutProblem::Keypoints(decoder), text)
                })?;
                found.filter(|it| it.components == components).map(|it| it.count * it.components)
            }
            (Open::Coefficients, None) => return Ok(Some(placed)),
            (Open::Coefficients, Some((tensor, shapes))) => {
                let is_possible = |images: &PrototypeImages| {
                    let is_number = match scores {
                        Some(scores) => scores.checked_add(images.channels) == Some(after),
                        None => images.channels < after,
                    };
                    let has_strides = matches!(self.of.anchors.levels, Levels::Strides(_));
                    let input = self.options.model_size.filter(|_| has_strides);
                    is_number && input.is_none_or(|input| images.has_ratio_of(input))
                };
                let tensor = (tensor, shapes);
                prototypes = PrototypeImages::find(tensor, is_possible, scores.is_some(), self)?;
                prototypes.map(|prototypes| prototypes.channels)
            }
        };
        let rest = number.and_then(|number| after.checked_sub(number));
        let Some((number, rest)) = number.zip(rest) else { return Ok(None) };
        let is_fit = match count.has_classes {
            true => rest > 0 && scores.is_none_or(|scores| scores == rest),
            false => rest == 0,
        };
        let classes = count.has_classes.then_some(rest);
        let open = Some(OpenNumber { kind, number });
        Ok(is_fit.then_some(Placed { classes, open, prototypes, ..placed }))
    }
}
