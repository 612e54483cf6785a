// SPDX-License-Identifier: MIT OR Apache-2.0
//! The errors for tensors without a decoder.
//!
//! In: the tensors, their readings that fit, and the errors of the others. Out: the [`ChoiceError`].

use super::Choice;
use super::assign::MAX_FITS;
use super::error::{Advice, ChoiceError};
use crate::decoder::{Decoder, Form, LayoutError, Options, decoders};
use crate::tensor::TensorView;

pub(in crate::decoder) fn list(tensors: &[TensorView<'_>]) -> String {
    if tensors.is_empty() {
        return "none".to_owned();
    }
    let all: Vec<String> = tensors.iter().map(ToString::to_string).collect();
    all.join(", ")
}

pub(super) fn no_fit(
    tensors: &[TensorView<'_>],
    wanted: Option<&'static dyn Decoder>,
    errors: Vec<LayoutError>,
) -> ChoiceError {
    // An error with a specificity, or the only error, is more specific than the list of all tensors.
    let specificity = |error: &&LayoutError| match wanted {
        Some(_) => error.specificity(),
        None => {
            let is_of_batch =
                matches!(error, LayoutError::Batch { .. } | LayoutError::NoImages { .. });
            error.specificity().filter(|_| is_of_batch)
        }
    };
    let specific =
        errors.iter().filter(|error| specificity(error).is_some()).min_by_key(specificity);
    let is_element_type = |error: &LayoutError| matches!(error, LayoutError::ElementType { .. });
    let only = errors.first().filter(|_| errors.len() == 1 || errors.iter().all(is_element_type));
    if let Some(error) = specific.or(only) {
        return error.clone().into();
    }
    let wanted = match wanted {
        Some(decoder) => format!("decoder {}, which expects {}", decoder.name(), decoder.expects()),
        None => format!("any decoder of the {} families", decoders().len()),
    };
    ChoiceError::NoFit { wanted, tensors: list(tensors) }
}

/// The error for a tensor with an id of a decoder, if there is no tensor for another role of that decoder.
pub(super) fn incomplete(tensors: &[TensorView<'_>]) -> Option<ChoiceError> {
    let found = |ids: &[&str]| tensors.iter().find(|tensor| ids.contains(&tensor.id));
    decoders().iter().find_map(|decoder| {
        // The form with the fewest tensors is the last one.
        let roles = decoder.forms().last()?.roles();
        let tensor = roles.iter().find_map(|role| found(role.ids))?;
        let missing = roles.iter().find(|role| found(role.ids).is_none())?;
        Some(ChoiceError::Incomplete {
            tensor: tensor.to_string(),
            decoder: decoder.name(),
            missing: missing.ids.join(" or "),
            tensors: list(tensors),
        })
    })
}

/// The error for one decoder that fits several assignments of tensors to roles.
pub(super) fn several_readings(
    tensors: &[TensorView<'_>],
    decoder: &dyn Decoder,
    count: usize,
) -> ChoiceError {
    let name = decoder.name();
    ChoiceError::Ambiguous {
        tensors: list(tensors),
        readings: match count {
            ..=1 | MAX_FITS.. => format!("{name} in many ways"),
            _ => format!("{name} in {count} ways"),
        },
        with_model_size: Vec::new(),
        advice: Advice::SetId,
    }
}

/// The error for readings that differ in the number of classes, or in which tensors have the scores.
pub(super) fn several_numbers_of_classes(
    tensors: &[TensorView<'_>],
    decoder: &dyn Decoder,
    fits: &[(Choice, &'static dyn Form)],
) -> ChoiceError {
    let mut numbers: Vec<String> =
        fits.iter().map(|(fit, _)| fit.layout.classes.to_string()).collect();
    retain_first(&mut numbers);
    let classes = if numbers == ["1"] { "class" } else { "classes" };
    ChoiceError::Ambiguous {
        tensors: list(tensors),
        readings: format!("{} with {} {classes}", decoder.name(), numbers.join(" or ")),
        with_model_size: Vec::new(),
        advice: Advice::SetNumClasses,
    }
}

/// Removes items that are equal to an earlier one.
fn retain_first<T: PartialEq + Clone>(items: &mut Vec<T>) {
    let all = items.clone();
    let mut index = 0;
    items.retain(|item| {
        index += 1;
        !all[..index - 1].contains(item)
    });
}

/// The error for shapes that several model families have. `errors` are the errors of readings that do not fit. Readings
/// with another number of classes than the known one are left out, unless there is no other.
pub(super) fn ambiguous(
    tensors: &[TensorView<'_>],
    fits: &[(Choice, &'static dyn Form)],
    errors: &[LayoutError],
    options: Options,
) -> ChoiceError {
    let known = options.known_classes();
    let is_allowed = |classes: Option<usize>| {
        known.is_none_or(|known| classes.is_none_or(|classes| classes == known))
    };
    let classes_of = |fit: &Choice| (!fit.layout.has_class_field()).then_some(fit.layout.classes);
    let mut allowed: Vec<&(Choice, &'static dyn Form)> =
        fits.iter().filter(|(fit, _)| is_allowed(classes_of(fit))).collect();
    let is_undivided = |error: &LayoutError| matches!(error, LayoutError::Keypoints { .. });
    if allowed.is_empty() && !errors.iter().any(is_undivided) {
        allowed = fits.iter().collect();
    }
    // An output as yolov8 exports it, whose number of classes is not the known one: the setting can be wrong.
    let contradicted = fits
        .iter()
        .map(|(fit, _)| fit)
        .filter(|fit| fit.decoder.name() == "yolov8" && !is_allowed(classes_of(fit)))
        .find(|fit| fit.layout.groups[0].boxes.anchor_stride == 1);
    let contradicted = contradicted.map(|fit| fit.layout.classes);
    let fits = allowed;
    let mut readings: Vec<String> = fits
        .iter()
        .map(|(fit, form)| match form.roles() {
            // A decoder that names its class has no other.
            [_] if fit.decoder.label(0).is_none() && !fit.layout.has_class_field() => {
                format!("{} with {} classes", fit.decoder.name(), fit.layout.classes)
            }
            _ => fit.decoder.name().to_owned(),
        })
        .collect();
    let undivided = errors.iter().filter_map(|error| match error {
        LayoutError::Keypoints { decoder, .. } => Some((*decoder).to_owned()),
        _ => None,
    });
    readings.extend(undivided);
    retain_first(&mut readings);
    let mut with_model_size: Vec<&'static str> = errors
        .iter()
        .filter_map(|error| match error {
            LayoutError::ModelSize { decoder, classes, .. } if is_allowed(*classes) => {
                Some(*decoder)
            }
            _ => None,
        })
        .collect();
    retain_first(&mut with_model_size);
    let fits_decoder = |name| fits.iter().any(|(fit, _)| fit.decoder.name() == name);
    let advice = Advice::SetDecoder {
        yolov8: fits_decoder("yolov8"),
        is_known: known.is_some(),
        contradicted: contradicted.map(|classes| (classes, [options.num_classes, options.labels])),
        yolox: fits_decoder("yolox"),
    };
    ChoiceError::Ambiguous {
        tensors: list(tensors),
        readings: readings.join(" or "),
        with_model_size,
        advice,
    }
}
