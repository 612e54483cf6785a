// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choice of a decoder.
//!
//! In: the tensors of a buffer, the property `decoder` if it is set, and [`Options`]. Out: a
//! [`Choice`], or an error with what to set.
//!
//! 1. *By id.* The first decoder for all of whose roles there is a tensor with a known id. If
//!    `decoder` is set, only that decoder is considered. A tensor `boxes` without a tensor `scores`
//!    does not select `boxes`.
//! 2. *By decoder.* If `decoder` is set and the ids are unknown: the only assignment of tensors to
//!    roles that fits that decoder. Several are an error.
//! 3. *By shape.* If `decoder` is `auto` and the ids are unknown, a decoder is chosen only if no
//!    other model family has such an output ([`Decoder::is_unambiguous`]): a YOLOv8 output as
//!    exported, `[1,4+C,N]`, whose `C` is the known number of classes, or, if that is unknown, 1 or
//!    80 (COCO). It must be the only such tensor, and no two tensors may fit `boxes` or
//!    `ultraface`. Everything else that some decoder could read is an error that lists the
//!    decoders. Therefore:
//!    - `[1,N,4]` alone is not read as `windows`;
//!    - `[1,N,4]` with `[1,N,C]` is not read: normalized center boxes with logits of DETR, corners
//!      of YOLO-NAS, and the outputs of UltraFace have these shapes;
//!    - `[1,N,5+C]` is not read as `yolov5` or `yolox`: the raw output of YOLOX has the same shape and
//!      another formula;
//!    - `[1,N,4+C]` is not read as a transposed `yolov8`: RT-DETR (`[1,300,84]`, normalized),
//!      MMDetection (`[1,N,5]` of corners and score) and end-to-end models (`[1,300,6]`) have that
//!      shape;
//!    - `[1,K,N]` with `K` other than `4+C` is not read: pose, segmentation and oriented-box models
//!      add rows with another meaning.
//!
//! The known number of classes is [`Options::num_classes`], or the number of labels if that is 0. In all three
//! ways, tensors with another number of classes than `num_classes` are an error; another number of labels is
//! not.

use std::fmt;

use arrayvec::ArrayVec;

use super::{DECODERS, Decoder, Layout, LayoutError, MAX_INPUTS, Options};
use crate::tensor::TensorView;

/// A decoder and its layout of the buffer's tensors.
#[derive(Clone)]
pub struct Choice {
    /// The decoder.
    pub decoder: &'static dyn Decoder,
    /// The layout. [`Field::tensor`](super::Field::tensor) is an index of the tensors passed to [`choose`].
    pub layout: Layout,
    /// How the decoder was chosen.
    #[cfg_attr(
        not(any(feature = "gstreamer", feature = "internals")),
        expect(dead_code, reason = "for the element")
    )]
    pub reason: Reason,
}

/// How a decoder was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The tensors have ids of this decoder.
    Id,
    /// The ids are unknown; the shapes fit this decoder, which either was set or is the only possible one.
    Shape,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Id => "by tensor id",
            Self::Shape => "by tensor shape",
        })
    }
}

/// Why no decoder was chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChoiceError {
    /// The decoder was determined by id or set, but the tensors do not fit it.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// No tensor fits.
    #[error("no tensor fits {wanted}; the buffer carries {tensors}")]
    NoFit {
        /// The decoders that were considered.
        wanted: String,
        /// The tensors, as displayed.
        tensors: String,
    },
    /// The tensors fit several decoders, or one whose shapes other model families have too.
    #[error("the buffer's tensors ({tensors}) can be read as {readings}; {advice}")]
    Ambiguous {
        /// The tensors, as displayed.
        tensors: String,
        /// The decoders, with numbers of classes.
        readings: String,
        /// Which properties to set.
        advice: String,
    },
    /// A tensor has an id of a decoder with several roles, and there is no tensor for another role.
    #[error(
        "tensor {tensor} has an id of decoder {decoder}, which also needs a tensor with the id \
         {missing}; the buffer carries {tensors}: set the ids, or the property decoder"
    )]
    Incomplete {
        /// The tensor with the id.
        tensor: String,
        /// The decoder's name.
        decoder: &'static str,
        /// The ids of the missing role.
        missing: String,
        /// The tensors, as displayed.
        tensors: String,
    },
    /// Two tensors have ids of the same role.
    #[error("two tensors have the id {id}; expected one: give each output an id of its own")]
    Duplicate {
        /// The id.
        id: String,
    },
}

/// The index of the tensor for each role of a decoder.
type Assignment = ArrayVec<usize, MAX_INPUTS>;

/// Chooses the decoder for `tensors`: `wanted`, or if that is `None`, the one whose ids the tensors
/// have, or else the only one that the shapes allow (see the documentation of this module).
///
/// # Errors
/// If no decoder fits, if several fit, if the chosen decoder does not support a shape or an element
/// type, or if the number of classes is not [`Options::num_classes`].
pub fn choose(
    tensors: &[TensorView<'_>],
    wanted: Option<&'static dyn Decoder>,
    options: Options,
) -> Result<Choice, ChoiceError> {
    let decoders =
        DECODERS.into_iter().filter(|decoder| wanted.is_none_or(|w| w.name() == decoder.name()));
    for decoder in decoders {
        if let Some(assignment) = assignment_by_id(tensors, decoder)? {
            let layout = layout(tensors, decoder, &assignment, options)?;
            return Ok(Choice { decoder, layout, reason: Reason::Id });
        }
    }
    match wanted {
        Some(decoder) => by_decoder(tensors, decoder, options),
        None => by_shape(tensors, options),
    }
}

/// A tensor that `choice` reads although its id is that of another decoder, with that decoder; `None` also if
/// that decoder reads the tensors in the same way, as `yolov5` does for `yolox`. The decoder was set then, since
/// a choice by id has no such tensor.
///
/// The ids of `boxes` do not count: many models have outputs of these names.
#[cfg(any(feature = "gstreamer", feature = "internals"))]
pub fn contradicting_id<'t, 'm>(
    tensors: &'t [TensorView<'m>],
    choice: &Choice,
    options: Options,
) -> Option<(&'t TensorView<'m>, &'static dyn Decoder)> {
    let has_id =
        |decoder: &dyn Decoder, id: &str| decoder.roles().iter().any(|role| role.ids.contains(&id));
    let (tensor, other) = choice.layout.tensors().into_iter().find_map(|index| {
        let tensor = &tensors[index];
        let mut others = DECODERS.into_iter().filter(|decoder| decoder.name() != "boxes");
        let other = others.find(|decoder| has_id(*decoder, tensor.id))?;
        (!has_id(choice.decoder, tensor.id)).then_some((tensor, other))
    })?;
    let is_same = choose(tensors, Some(other), options).is_ok_and(|by_id| {
        Layout { decoder: choice.layout.decoder, ..by_id.layout } == choice.layout
    });
    (!is_same).then_some((tensor, other))
}

/// Chooses the only assignment of `tensors`, regardless of their ids, to the roles of `decoder`.
fn by_decoder(
    tensors: &[TensorView<'_>],
    decoder: &'static dyn Decoder,
    options: Options,
) -> Result<Choice, ChoiceError> {
    let all: Vec<usize> = (0..tensors.len()).collect();
    let Readings { mut fits, errors } = readings(tensors, &[decoder], &all, options);
    match fits.len() {
        1 => Ok(fits.remove(0)),
        0 => Err(no_fit(tensors, Some(decoder), errors)),
        _ => Err(several_readings(tensors, &fits)),
    }
}

/// Chooses the only unambiguous decoder for the tensors with unknown ids.
fn by_shape(tensors: &[TensorView<'_>], options: Options) -> Result<Choice, ChoiceError> {
    let unknown: Vec<usize> = (0..tensors.len()).filter(|&i| !is_known(tensors[i].id)).collect();
    // The error lists readings with any number of classes.
    let any_number =
        Options { num_classes: 0, labels: options.known_classes().unwrap_or(0), ..options };
    let Readings { fits, errors } = readings(tensors, &DECODERS, &unknown, any_number);

    let pair = fits.iter().any(|fit| fit.decoder.roles().len() > 1);
    let is_unambiguous =
        |fit: &&Choice| !pair && fit.decoder.is_unambiguous(&fit.layout, options.known_classes());
    let mut unambiguous: Vec<Choice> = fits.iter().filter(is_unambiguous).cloned().collect();
    match unambiguous.len() {
        1 => return Ok(unambiguous.remove(0)),
        0 => {}
        _ => return Err(several_readings(tensors, &unambiguous)),
    }
    if let Some(incomplete) = incomplete(tensors) {
        return Err(incomplete);
    }
    match fits.is_empty() {
        true => Err(no_fit(tensors, None, errors)),
        false => Err(ambiguous(tensors, &fits, options)),
    }
}

/// Whether the id is an id of any decoder.
fn is_known(id: &str) -> bool {
    DECODERS.iter().flat_map(|decoder| decoder.roles()).any(|role| role.ids.contains(&id))
}

/// The assignments of tensors to roles that fit, and the errors of those that do not.
struct Readings {
    fits: Vec<Choice>,
    errors: Vec<LayoutError>,
}

/// Tries every assignment of the tensors with indices `among` to the roles of each of `decoders`.
fn readings(
    tensors: &[TensorView<'_>],
    decoders: &[&'static dyn Decoder],
    among: &[usize],
    options: Options,
) -> Readings {
    let mut readings = Readings { fits: Vec::new(), errors: Vec::new() };
    for &decoder in decoders {
        for assignment in assignments(among, decoder.roles().len()) {
            match layout(tensors, decoder, &assignment, options) {
                Ok(layout) => readings.fits.push(Choice { decoder, layout, reason: Reason::Shape }),
                Err(error) => readings.errors.push(error),
            }
        }
    }
    readings
}

/// The assignment of tensors to roles by id; `None` if there is no tensor for a role.
fn assignment_by_id(
    tensors: &[TensorView<'_>],
    decoder: &'static dyn Decoder,
) -> Result<Option<Assignment>, ChoiceError> {
    let mut assignment = Assignment::new();
    for role in decoder.roles() {
        let mut named = (0..tensors.len()).filter(|&i| role.ids.contains(&tensors[i].id));
        let Some(index) = named.next() else {
            return Ok(None);
        };
        if let Some(other) = named.next() {
            return Err(ChoiceError::Duplicate { id: tensors[other].id.to_owned() });
        }
        assignment.push(index);
    }
    Ok(Some(assignment))
}

/// All assignments of different elements of `tensors` to `roles` roles.
fn assignments(tensors: &[usize], roles: usize) -> Vec<Assignment> {
    let mut all = vec![Assignment::new()];
    for _ in 0..roles {
        all = all
            .iter()
            .flat_map(|assignment| {
                tensors.iter().filter(|i| !assignment.contains(i)).map(|&i| {
                    let mut longer = assignment.clone();
                    longer.push(i);
                    longer
                })
            })
            .collect();
    }
    all
}

fn layout(
    tensors: &[TensorView<'_>],
    decoder: &'static dyn Decoder,
    assignment: &[usize],
    options: Options,
) -> Result<Layout, LayoutError> {
    let chosen: ArrayVec<&TensorView<'_>, MAX_INPUTS> =
        assignment.iter().map(|&i| &tensors[i]).collect();
    let layout = decoder.layout(&chosen, options)?.with_tensors(assignment);
    let (classes, expected) = (layout.classes, options.num_classes);
    if expected > 0 && classes != expected {
        let tensor = tensors[layout.groups[0].scores.tensor].to_string();
        return Err(LayoutError::NumClasses { tensor, decoder: decoder.name(), classes, expected });
    }
    Ok(layout)
}

fn list(tensors: &[TensorView<'_>]) -> String {
    if tensors.is_empty() {
        return "none".to_owned();
    }
    let all: Vec<String> = tensors.iter().map(ToString::to_string).collect();
    all.join(", ")
}

fn no_fit(
    tensors: &[TensorView<'_>],
    wanted: Option<&'static dyn Decoder>,
    errors: Vec<LayoutError>,
) -> ChoiceError {
    // An error with a specificity, or the only error, is more specific than the list of all tensors.
    let specificity = |error: &&LayoutError| match wanted {
        Some(_) => error.specificity(),
        None => error.specificity().filter(|_| matches!(error, LayoutError::Batch { .. })),
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
        None => {
            let all: Vec<String> = DECODERS
                .iter()
                .map(|decoder| format!("{} ({})", decoder.name(), decoder.expects()))
                .collect();
            format!("any decoder: {}", all.join("; "))
        }
    };
    ChoiceError::NoFit { wanted, tensors: list(tensors) }
}

/// The error for a tensor with an id of a decoder, if there is no tensor for another role of that decoder.
fn incomplete(tensors: &[TensorView<'_>]) -> Option<ChoiceError> {
    let found = |ids: &[&str]| tensors.iter().find(|tensor| ids.contains(&tensor.id));
    DECODERS.iter().find_map(|decoder| {
        let tensor = decoder.roles().iter().find_map(|role| found(role.ids))?;
        let missing = decoder.roles().iter().find(|role| found(role.ids).is_none())?;
        Some(ChoiceError::Incomplete {
            tensor: tensor.to_string(),
            decoder: decoder.name(),
            missing: missing.ids.join(" or "),
            tensors: list(tensors),
        })
    })
}

/// The error for one decoder that fits several assignments of tensors to roles.
fn several_readings(tensors: &[TensorView<'_>], fits: &[Choice]) -> ChoiceError {
    ChoiceError::Ambiguous {
        tensors: list(tensors),
        readings: format!("{} in {} ways", fits[0].decoder.name(), fits.len()),
        advice: "give the tensor that holds the detections an id that the decoder knows".to_owned(),
    }
}

/// The error for shapes that several model families have.
fn ambiguous(tensors: &[TensorView<'_>], fits: &[Choice], options: Options) -> ChoiceError {
    let mut readings: Vec<String> = fits
        .iter()
        .map(|fit| match fit.decoder.roles() {
            [_] if fit.decoder.name() != "windows" => {
                format!("{} with {} classes", fit.decoder.name(), fit.layout.classes)
            }
            _ => fit.decoder.name().to_owned(),
        })
        .collect();
    readings.dedup();

    let mut advice = "set the property decoder to the right one".to_owned();
    if fits.iter().any(|fit| fit.decoder.name() == "yolov8") {
        advice += match (options.num_classes, options.labels) {
            (0, 0) => ", and for yolov8 num-classes to the model's number of classes".to_owned(),
            (0, labels) => {
                format!(", and for yolov8 num-classes (there are {labels} labels)")
            }
            (number, _) => format!(", and for yolov8 correct num-classes, which is {number}"),
        }
        .as_str();
        advice += "; outputs of pose, segmentation and oriented-box models (rows beyond 4+C) are \
                   not read";
    }
    if fits.iter().any(|fit| fit.decoder.name() == "yolox") {
        advice += "; an output of YOLOX is read only if its boxes are decoded (exported with \
                   --decode_in_inference)";
    }
    ChoiceError::Ambiguous { tensors: list(tensors), readings: readings.join(" or "), advice }
}
