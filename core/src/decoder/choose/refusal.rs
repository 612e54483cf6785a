// SPDX-License-Identifier: MIT OR Apache-2.0
//! The errors for tensors without a decoder.
//!
//! In: the tensors, their readings that fit, and the errors of the others. Out: the [`ChoiceError`].

use super::Choice;
use super::error::ChoiceError;
use crate::decoder::layout::LayoutProblem;
use crate::decoder::{Decoder, LayoutError, Role, decoders};
use crate::tensor::TensorView;

/// The greatest length of a list of tensors with the expected ones, in bytes. An error is at most six lines.
const MAX_LIST: usize = 540;

pub(in crate::decoder) fn list(tensors: &[TensorView<'_>]) -> String {
    list_within(tensors, MAX_LIST / 2)
}

/// Lists the first tensors in at most `most` bytes.
fn list_within(tensors: &[TensorView<'_>], most: usize) -> String {
    let mut list = String::new();
    for (index, tensor) in tensors.iter().enumerate() {
        let tensor = tensor.to_string();
        if index > 0 && list.len() + tensor.len() > most {
            return format!("{list} and {} others", tensors.len() - index);
        }
        list = if index == 0 { tensor } else { format!("{list}, {tensor}") };
    }
    if list.is_empty() { "none".to_owned() } else { list }
}

pub(super) fn no_fit(
    tensors: &[TensorView<'_>],
    wanted: Option<&'static Decoder>,
    errors: &[LayoutError],
) -> ChoiceError {
    // An error with a specificity, or the only error, is more specific than the list of all tensors.
    let specificity = |error: &&LayoutError| match wanted {
        Some(_) => error.specificity(),
        None => error.specificity().filter(|_| error.problem == LayoutProblem::Batch),
    };
    let specific =
        errors.iter().filter(|error| specificity(error).is_some()).min_by_key(specificity);
    let is_element_type = |error: &LayoutError| error.problem == LayoutProblem::ElementType;
    let only = errors.first().filter(|_| errors.len() == 1 || errors.iter().all(is_element_type));
    if let Some(error) = specific.or(only) {
        return error.clone().into();
    }
    let wanted = match wanted {
        Some(decoder) => format!("decoder {}, which expects {}", decoder.name(), decoder.expects),
        None => format!("any decoder of the {} families", decoders().len()),
    };
    let most = MAX_LIST.saturating_sub(wanted.len());
    ChoiceError::NoFit { wanted, tensors: list_within(tensors, most) }
}

/// The error for a tensor with an id of a decoder, if there is no tensor for another role of that decoder.
pub(super) fn incomplete(tensors: &[TensorView<'_>]) -> Option<ChoiceError> {
    let found = |role: &Role<'_>| tensors.iter().find(|tensor| role.has_id(tensor.id));
    decoders().iter().find_map(|decoder| {
        // The form with the fewest tensors is the last one.
        let roles = &decoder.forms.last()?.roles;
        let tensor = roles.iter().find_map(found)?;
        let missing = roles.iter().find(|role| found(role).is_none())?;
        Some(ChoiceError::Incomplete {
            tensor: tensor.to_string(),
            decoder: decoder.name(),
            missing: missing.ids.join(" or "),
            tensors: list(tensors),
        })
    })
}

/// The error for readings that differ in the number of classes, or in which tensors have the scores.
pub(super) fn several_numbers_of_classes(
    tensors: &[TensorView<'_>],
    decoder: &Decoder,
    fits: &[Choice],
) -> ChoiceError {
    let mut numbers: Vec<usize> = fits.iter().map(|fit| fit.layout.classes).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let classes = if numbers == [1] { "class" } else { "classes" };
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    ChoiceError::SeveralNumbers {
        tensors: list(tensors),
        decoder: decoder.name(),
        classes: format!("{} {classes}", numbers.join(" or ")),
    }
}
