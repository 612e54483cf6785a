// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choice of a decoder.
//!
//! In: the tensors of a buffer, the property `decoder` if it is set, and [`Options`]. Out: a
//! [`Choice`], or an error that names the setting.
//!
//! 1. *By id.* The first decoder whose roles all have a tensor with a known id. If
//!    `decoder` is set, only that decoder is considered. A tensor `boxes` without a tensor `scores`
//!    does not select `boxes`.
//! 2. *By decoder*, if `decoder` is set and the ids are unknown, in this order: the tensors with names that outputs of
//!    this decoder usually have, with or without [`ONNX_PREFIX`](assign::ONNX_PREFIX); the only assignment of tensors to roles that fits
//!    that decoder; the tensors at the positions that outputs of this decoder have. Several assignments are an error.
//! 3. *By shape.* If `decoder` is `auto` and the ids are unknown, a decoder is chosen only if no
//!    other model family has such an output ([`Decoder::is_unambiguous`]): a YOLOv8 output as
//!    exported, `[1,4+C,N]`, whose `C` is the known number of classes, or, if that is unknown, 1 or
//!    80 (COCO). It must be the only such tensor, and no two tensors may fit another decoder.
//!    All other tensors that some decoder could read are an error that lists the
//!    decoders. Tensors of one row each are named as a classifier's, and two tensors of which one has boxes and the
//!    other has scores of another number are named as these. Therefore:
//!    - `[1,N,4]` alone is not read as `windows`;
//!    - `[1,N,4]` with `[1,N,C]` is not read: normalized center boxes with logits of DETR, corners
//!      of YOLO-NAS, offsets of SSD and RetinaFace, and the outputs of UltraFace have these shapes;
//!    - `[1,N,5+C]` is not read as `yolov5` or `yolox`: the outputs of both before their decode step have this
//!      shape and another formula;
//!    - `[1,N,4+C]` is not read as a transposed `yolov8`: RT-DETR (`[1,300,84]`, normalized),
//!      MMDetection (`[1,N,5]` of corners and score) and end-to-end models (`[1,300,6]`) have that
//!      shape;
//!    - `[1,K,N]` with `K` other than `4+C` is not read: pose, segmentation and oriented-box models
//!      add rows with another meaning;
//!    - tensors for each stride are not read: decoders differ in half a cell.
//!
//! A decoder can have several [forms](super::Form), of which the first that fits is used.
//!
//! The known number of classes is [`Options::num_classes`], or the number of labels if that is 0. In all three
//! ways, tensors with another number of classes than `num_classes` are an error; another number of labels is
//! not.

mod assign;
mod error;
pub mod misread;
mod offer;
mod refusal;

use std::fmt;

pub use self::assign::ONNX_PREFIX;
pub(super) use self::assign::chosen;
use self::assign::{
    Assignment, Readings, assignment_by_id, assignment_by_index, assignment_by_name, layout,
};
pub use self::error::ChoiceError;
use self::offer::offers;
pub(super) use self::refusal::list;
use self::refusal::{incomplete, no_fit, several_numbers_of_classes};
use super::layout::LayoutProblem;
use super::{BoxFormat, Decoder, Form, Layout, LayoutError, Options, decoders};
use crate::tensor::TensorView;

/// A decoder and its layout of the buffer's tensors.
#[derive(Clone)]
pub struct Choice {
    /// The decoder.
    pub decoder: &'static Decoder,
    /// The layout. [`Field::tensor`](super::Field::tensor) is an index of the tensors passed to [`choose`].
    pub layout: Layout,
    /// How the decoder was chosen.
    pub reason: Reason,
}

/// How a decoder was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The tensors have ids of this decoder.
    Id,
    /// The decoder was set, and the tensors have names that its outputs usually have.
    Name,
    /// The ids are unknown; the shapes fit this decoder, which either was set or is the only possible one. If it was
    /// set, the positions of the tensors count, too.
    Shape,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Id => "by tensor id",
            Self::Name => "by the names of tensors",
            Self::Shape => "by tensor shape",
        })
    }
}
/// Chooses the decoder for `tensors`: `wanted`, or if that is `None`, the one whose ids the tensors
/// have, or else the only one that the shapes allow (see the documentation of this module).
///
/// # Errors
/// If no decoder fits, if several fit, if the chosen decoder does not support a shape or an element
/// type, or if the number of classes is not [`Options::num_classes`].
pub fn choose(
    tensors: &[TensorView<'_>],
    wanted: Option<&'static Decoder>,
    options: Options,
) -> Result<Choice, ChoiceError> {
    for decoder in wanted.as_ref().map_or(decoders(), std::slice::from_ref) {
        if let Some(choice) = by_id(tensors, decoder, options)? {
            return Ok(choice);
        }
    }
    match wanted {
        Some(decoder) => by_decoder(tensors, decoder, options),
        None => by_shape(tensors, options),
    }
}

/// Chooses the first form of `decoder` whose roles all have a tensor with a known id.
fn by_id(
    tensors: &[TensorView<'_>],
    decoder: &'static Decoder,
    options: Options,
) -> Result<Option<Choice>, ChoiceError> {
    // The strides of a model need not be known for ids of other models.
    if !tensors.iter().any(|tensor| has_id(decoder, tensor.id)) {
        return Ok(None);
    }
    let forms = decoder.forms_for(tensors, options);
    let by_id = |form: &Form| assignment_by_id(tensors, form, options);
    let (choice, errors) = by_assignment(tensors, (decoder, &forms), options, Reason::Id, by_id)?;
    match errors.into_iter().next() {
        Some(error) if choice.is_none() => Err(error.into()),
        _ => Ok(choice),
    }
}

/// Chooses the first form whose tensors, by their ids or names, fit. Also returns the errors of shapes for which another
/// form is tried: it can have these ids and names, too, and many models have names such as `output`.
fn by_assignment(
    tensors: &[TensorView<'_>],
    (decoder, forms): (&'static Decoder, &[&'static Form]),
    options: Options,
    reason: Reason,
    assignment: impl Fn(&Form) -> Result<Option<Assignment>, ChoiceError>,
) -> Result<(Option<Choice>, Vec<LayoutError>), ChoiceError> {
    let mut errors = Vec::new();
    for &form in forms {
        let Some(assignment) = assignment(form)? else { continue };
        match layout(tensors, decoder, form, &assignment, options) {
            Ok(layout) => return Ok((Some(Choice { decoder, layout, reason }), errors)),
            Err(error) if matches!(error.problem, LayoutProblem::Shape | LayoutProblem::Grid) => {
                errors.push(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok((None, errors))
}

/// Chooses tensors for the roles of `decoder`, whose ids they do not have.
fn by_decoder(
    tensors: &[TensorView<'_>],
    decoder: &'static Decoder,
    options: Options,
) -> Result<Choice, ChoiceError> {
    let forms = decoder.forms_for(tensors, options);
    let by_name = |form: &Form| Ok(assignment_by_name(tensors, form, options));
    let (choice, misnamed) =
        by_assignment(tensors, (decoder, &forms), options, Reason::Name, by_name)?;
    if let Some(choice) = choice {
        return Ok(choice);
    }
    if let Some(error) = misnamed.iter().find(|error| error.problem == LayoutProblem::Grid) {
        return Err(error.clone().into());
    }
    let all: Vec<usize> = (0..tensors.len()).collect();
    let mut errors = Vec::new();
    for &form in &forms {
        let mut readings = Readings::default();
        readings.add(tensors, (decoder, form), &all, options);
        readings.check_order(decoder)?;
        keep_known_classes(&mut readings.fits, options);
        // These errors mean that the tensors are of this form. One of them must not be read as another form.
        let is_of_form = |error: &&LayoutError| {
            use LayoutProblem::{Anchors, Images, ModelSize};
            matches!(error.problem, Anchors | Images | ModelSize(_))
        };
        if let Some(error) = readings.errors.iter().find(is_of_form)
            && readings.fits.is_empty()
        {
            return Err(error.clone().into());
        }
        errors.append(&mut readings.errors);
        let fits = &mut readings.fits;
        if fits.is_empty() && !readings.is_incomplete {
            continue;
        }
        let differ_in_scores = differ_in_scores(fits);
        // The sum of one score is the score.
        if (fits.len() == 1 && !readings.is_incomplete)
            || (differ_in_scores && options.known_classes() == Some(1))
        {
            return Ok(fits.remove(0));
        }
        let by_index = forms.iter().find_map(|form| {
            let assignment = assignment_by_index(tensors, form)?;
            layout(tensors, decoder, form, &assignment, options).ok()
        });
        return match by_index {
            Some(layout) => Ok(Choice { decoder, layout, reason: Reason::Shape }),
            None if differ_in_scores && options.known_classes().is_none() => {
                Err(several_numbers_of_classes(tensors, decoder, fits))
            }
            None => {
                let (tensors, decoder, count) = (list(tensors), decoder.name(), fits.len());
                Err(ChoiceError::SeveralTensors { tensors, decoder, count })
            }
        };
    }
    if are_of_classifier(tensors, &all) {
        return Err(ChoiceError::NoBoxes { tensors: list(tensors) });
    }
    let misnamed = misnamed.into_iter().next();
    Err(misnamed.map_or_else(|| no_fit(tensors, Some(decoder), &errors), ChoiceError::from))
}

/// Chooses the only unambiguous decoder for the tensors with unknown ids.
fn by_shape(tensors: &[TensorView<'_>], options: Options) -> Result<Choice, ChoiceError> {
    let unknown: Vec<usize> = (0..tensors.len()).filter(|&i| !is_known(tensors[i].id)).collect();
    // The error lists readings with any number of classes.
    let any_number =
        Options { num_classes: 0, labels: options.known_classes().unwrap_or(0), ..options };
    let mut readings = Readings::default();
    let is_whole = |of: &usize| !is_single_row(&tensors[*of]) && !is_part(tensors, &unknown, *of);
    let whole: Vec<usize> = unknown.iter().copied().filter(is_whole).collect();
    for &decoder in decoders() {
        for &form in &decoder.forms_for(tensors, any_number) {
            let among = match form.roles[..] {
                [_] if decoder.family.is_alone && unknown.len() > 1 => &[],
                [_] if !decoder.family.is_alone => &whole[..],
                _ => &unknown,
            };
            readings.add(tensors, (decoder, form), among, any_number);
        }
    }
    let Readings { fits, errors, .. } = &readings;
    let pair = fits.iter().any(|fit| fit.layout.tensors().len() > 1);
    let is_unambiguous =
        |it: &&Choice| !pair && it.decoder.is_unambiguous(&it.layout, options.known_classes());
    let mut unambiguous = fits.iter().filter(is_unambiguous);
    if let Some(choice) = unambiguous.next() {
        let count = 1 + unambiguous.count();
        if count > 1 {
            let (tensors, decoder) = (list(tensors), choice.decoder.name());
            return Err(ChoiceError::SeveralTensors { tensors, decoder, count });
        }
        readings.check_order(choice.decoder)?;
        return Ok(choice.clone());
    }
    if let Some(incomplete) = incomplete(tensors) {
        return Err(incomplete);
    }
    if are_of_classifier(tensors, &unknown) {
        return Err(ChoiceError::NoBoxes { tensors: list(tensors) });
    }
    // Two tensors of which one has boxes are boxes and scores of different lengths.
    let lengths = errors.iter().find(|error| error.problem == LayoutProblem::Lengths);
    if let Some(error) = lengths.filter(|_| unknown.len() == 2 && !pair) {
        return Err(error.clone().into());
    }
    let can_fit = |decoder: &&'static Decoder| {
        use LayoutProblem::{Keypoints, ModelSize};
        let name = decoder.name();
        // These read the tensors if a setting is made.
        let needs_setting =
            |error: &LayoutError| [ModelSize(name), Keypoints(name)].contains(&error.problem);
        fits.iter().any(|fit| fit.decoder.name() == name) || errors.iter().any(needs_setting)
    };
    match offers(tensors, decoders().iter().copied().filter(can_fit), options) {
        Some(offers) if !fits.is_empty() => {
            Err(ChoiceError::Ambiguous { tensors: list(tensors), offers })
        }
        _ => Err(no_fit(tensors, None, errors)),
    }
}

/// Leaves out readings with another number of classes than the known one, if any has it.
fn keep_known_classes(fits: &mut Vec<Choice>, options: Options) {
    let Some(known) = options.known_classes() else { return };
    let has_known = |fit: &Choice| fit.layout.classes == known;
    if fits.iter().any(has_known) {
        fits.retain(has_known);
    }
}

/// True if readings of one form differ only in the tensors of the scores. RKNN's exports have the sum of the scores beside
/// them.
fn differ_in_scores(fits: &[Choice]) -> bool {
    let without_scores = |fit: &Choice| {
        let (mut layout, first) = (fit.layout.clone(), fits[0].layout.clone());
        (layout.classes, layout.score) = (first.classes, first.score);
        for (group, first) in layout.groups.iter_mut().zip(&first.groups) {
            group.scores = first.scores;
        }
        layout == first
    };
    fits.len() > 1 && fits.iter().all(without_scores)
}

/// True if another tensor has the longest dimension, too, and for each index of it as many numbers as a box: the numbers of a
/// detection are in both.
fn is_part(tensors: &[TensorView<'_>], among: &[usize], of: usize) -> bool {
    let shape = &tensors[of].shape;
    let longest = shape.iter().max().copied().unwrap_or(0);
    let has_more = |other: &TensorView<'_>| {
        other.shape != *shape
            && other.shape.contains(&longest)
            && other.shape.elements().unwrap_or(0) / longest.max(1)
                >= BoxFormat::Corners.components()
    };
    among.iter().any(|&index| index != of && has_more(&tensors[index]))
}

/// True if these tensors have one row of numbers each, as the outputs of classifiers have.
fn are_of_classifier(tensors: &[TensorView<'_>], indices: &[usize]) -> bool {
    !indices.is_empty() && indices.iter().all(|&index| is_single_row(&tensors[index]))
}

/// A box, a score, a class and an angle together are 7 numbers.
const MIN_CLASSIFIER: usize = 8;

/// Returns true if the tensor has one row of many numbers: a box for each class would be another row.
fn is_single_row(tensor: &TensorView<'_>) -> bool {
    let count = tensor.shape.elements();
    count >= Some(MIN_CLASSIFIER) && tensor.shape.iter().any(|&side| Some(side) == count)
}

/// Returns true if the id is an id of the decoder.
fn has_id(decoder: &Decoder, id: &str) -> bool {
    decoder.forms.iter().flat_map(|form| &form.roles).any(|role| role.has_id(id))
}

/// Returns true if the id is an id of any decoder.
pub fn is_known(id: &str) -> bool {
    decoders().iter().any(|decoder| has_id(decoder, id))
}
