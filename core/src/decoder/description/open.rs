// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shapes that leave a number open: how many of an anchor's numbers are scores, and how many are the components of
//! keypoints or the coefficients of a mask.
//!
//! In: the number of an anchor's numbers, and known facts about the model. Out: both numbers, if they fit.

use super::prototypes::PrototypeImages;
use super::shape::{Open, OpenNumber, Pattern, Placed};
use crate::decoder::{MAX_KEYPOINTS, Options};
use crate::tensor::TensorView;

/// Known facts about the model, besides an anchor's numbers.
#[derive(Clone, Copy)]
pub(super) struct KnownModel<'t> {
    /// The number of classes; `None` if any number fits.
    pub classes: Option<usize>,
    /// The tensor of the prototypes and its shapes; `None` without prototypes, or before their tensor.
    pub prototypes: Option<(&'t TensorView<'t>, &'t [Pattern])>,
    /// The size of the model's input, if the number of anchors follows from it.
    pub input: Option<[f32; 2]>,
    /// True if the first shape of the prototypes has the order of the other tensors.
    pub has_order: bool,
    pub options: Options,
}

/// Both ways in which a tensor of prototypes can be read, and whether the number of classes is known.
#[derive(Clone, Copy)]
pub(super) struct Ambiguity {
    pub readings: [PrototypeImages; 2],
    pub has_classes: bool,
}

/// Divides the `placed.numbers` numbers of an anchor of `shape`; `None` if they do not fit.
///
/// # Errors
/// If the prototypes can be read in two ways.
pub(super) fn divide(
    placed: Placed,
    shape: &Pattern,
    model: KnownModel<'_>,
) -> Result<Option<Placed>, Ambiguity> {
    let count = shape.numbers();
    let Some(kind) = count.open else { return Ok(Some(placed)) };
    let Some(after) = placed.numbers.checked_sub(count.constant) else { return Ok(None) };
    // The number of scores among the numbers after the constant ones, if it is known.
    let scores = if count.has_classes { model.classes } else { Some(0) };
    let mut prototypes = None;
    let number = match (kind, model.prototypes) {
        (Open::Keypoints(components), _) => keypoints(components, after, scores, model.options),
        (Open::Coefficients, None) => return Ok(Some(placed)),
        (Open::Coefficients, Some((tensor, shapes))) => {
            let is_possible = |images: &PrototypeImages| {
                let is_number = match scores {
                    Some(scores) => scores.checked_add(images.channels) == Some(after),
                    None => images.channels < after,
                };
                is_number && model.input.is_none_or(|input| images.has_ratio_of(input))
            };
            let has_classes = scores.is_some();
            prototypes = PrototypeImages::find(tensor, shapes, is_possible, model)
                .map_err(|readings| Ambiguity { readings, has_classes })?;
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

/// The numbers of keypoints with `components` each among `after` numbers, of which `scores` are scores.
///
/// If the numbers of keypoints and classes are both unknown, there is one class, as in models for people.
fn keypoints(
    components: usize,
    after: usize,
    scores: Option<usize>,
    options: Options,
) -> Option<usize> {
    match options.keypoints {
        Some(shape) if shape.components == components => {
            Some(shape.count.saturating_mul(components))
        }
        Some(_) => None,
        None => {
            let rest = after.checked_sub(scores.unwrap_or(1))?;
            let count = rest / components;
            let is_whole = rest.is_multiple_of(components);
            (is_whole && (1..=MAX_KEYPOINTS).contains(&count)).then_some(rest)
        }
    }
}
