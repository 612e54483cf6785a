// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choice of a decoder.
//!
//! In: the tensors of a buffer, the property `decoder` if it is set, and [`Options`]. Out: a
//! [`Choice`], or an error with what to set.
//!
//! 1. *By id.* The first decoder for all of whose roles there is a tensor with a known id. If
//!    `decoder` is set, only that decoder is considered. A tensor `boxes` without a tensor `scores`
//!    does not select `boxes`.
//! 2. *By decoder*, if `decoder` is set and the ids are unknown, in this order: the tensors with names that outputs of
//!    this decoder usually have, with or without [`ONNX_PREFIX`](super::assign::ONNX_PREFIX); the only assignment of tensors to roles that fits
//!    that decoder; the tensors at the positions that outputs of this decoder have. Several assignments are an error.
//! 3. *By shape.* If `decoder` is `auto` and the ids are unknown, a decoder is chosen only if no
//!    other model family has such an output ([`Form::is_unambiguous`]): a YOLOv8 output as
//!    exported, `[1,4+C,N]`, whose `C` is the known number of classes, or, if that is unknown, 1 or
//!    80 (COCO). It must be the only such tensor, and no two tensors may fit another decoder.
//!    Everything else that some decoder could read is an error that lists the
//!    decoders. Tensors of one row each are named as a classifier's, and two tensors of which one has boxes and the
//!    other has scores of another number are named as these. Therefore:
//!    - `[1,N,4]` alone is not read as `windows`;
//!    - `[1,N,4]` with `[1,N,C]` is not read: normalized center boxes with logits of DETR, corners
//!      of YOLO-NAS, offsets of SSD and RetinaFace, and the outputs of UltraFace have these shapes;
//!    - `[1,N,5+C]` is not read as `yolov5` or `yolox`: the outputs of both before their decode step have the same
//!      shape and another formula;
//!    - `[1,N,4+C]` is not read as a transposed `yolov8`: RT-DETR (`[1,300,84]`, normalized),
//!      MMDetection (`[1,N,5]` of corners and score) and end-to-end models (`[1,300,6]`) have that
//!      shape;
//!    - `[1,K,N]` with `K` other than `4+C` is not read: pose, segmentation and oriented-box models
//!      add rows with another meaning;
//!    - tensors for each stride are not read: decoders differ in half a cell.
//!
//! A decoder can have several [forms](Form), of which the first that fits is used.
//!
//! The known number of classes is [`Options::num_classes`], or the number of labels if that is 0. In all three
//! ways, tensors with another number of classes than `num_classes` are an error; another number of labels is
//! not.

use std::fmt;

use super::assign::{
    MAX_FITS, Readings, assignment_by_id, assignment_by_index, assignment_by_name, layout,
};
use super::{Decoder, Form, Layout, LayoutError, Options, decoders};
use crate::names::{Interface, Name};
use crate::tensor::TensorView;

/// A decoder and its layout of the buffer's tensors.
#[derive(Clone)]
pub struct Choice {
    /// The decoder.
    pub decoder: &'static dyn Decoder,
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

/// Why no decoder was chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChoiceError {
    /// The decoder was determined by id or set, but the tensors do not fit it.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// No tensor fits.
    #[error("{}", self.text(Interface::Element))]
    NoFit {
        /// The decoders that were considered.
        wanted: String,
        /// The tensors, as displayed.
        tensors: String,
    },
    /// Each tensor is one row of numbers.
    #[error(
        "the buffer's tensors ({tensors}) have one row of numbers each, as a classifier's output has, and no boxes; \
         choose a model that detects objects"
    )]
    NoBoxes {
        /// The tensors, as displayed.
        tensors: String,
    },
    /// The tensors fit several decoders, or one whose shapes other model families have too.
    #[error("{}", self.text(Interface::Element))]
    Ambiguous {
        /// The tensors, as displayed.
        tensors: String,
        /// The decoders, with numbers of classes.
        readings: String,
        /// The decoders that also fit if the size of the model's input is known.
        with_model_size: Vec<&'static str>,
        /// What selects one of them.
        advice: Advice,
    },
    /// A tensor has an id of a decoder with several roles, and there is no tensor for another role.
    #[error("{}", self.text(Interface::Element))]
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

/// What to do where tensors can be read in several ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// One decoder fits several tensors: give the tensor with the detections an id.
    SetId,
    /// Several decoders fit: set one.
    SetDecoder {
        /// The numbers of classes and of labels that are known (0 if they are not), if `yolov8` is one of the decoders.
        yolov8: Option<[usize; 2]>,
        /// Whether `yolox` is one of the decoders.
        yolox: bool,
    },
}

impl Advice {
    fn text(self, interface: Interface) -> String {
        let Self::SetDecoder { yolov8, yolox } = self else {
            return "give the tensor that holds the detections an id that the decoder knows"
                .to_owned();
        };
        let num_classes = interface.name(Name::NumClasses);
        let mut advice = format!("set {} to the right one", interface.name(Name::DecoderChoice));
        if let Some([classes, labels]) = yolov8 {
            advice += &match (classes, labels) {
                (0, 0) => {
                    format!(", and for yolov8 {num_classes} to the model's number of classes")
                }
                (0, labels) => {
                    format!(", and for yolov8 {num_classes} (there are {labels} labels)")
                }
                (number, _) => format!(", and for yolov8 correct {num_classes}, which is {number}"),
            };
            advice += "; outputs of pose, segmentation and oriented-box models have rows beyond 4+C: \
                       yolov8-pose, yolov8-seg, yolov8-obb";
        }
        if yolox {
            advice += "; yolov5 and yolox are for decoded boxes (YOLOX exported with \
                       --decode_in_inference), yolov5-raw and yolox-raw for others";
        }
        advice
    }
}

impl ChoiceError {
    /// The text with the names that `interface` has for settings.
    pub fn text(&self, interface: Interface) -> String {
        let carries = match interface {
            Interface::Element => "the buffer carries",
            Interface::Rust | Interface::C => "the tensors are",
            Interface::Python => "outputs has",
        };
        match self {
            Self::Layout(error) => error.text(interface),
            Self::NoFit { wanted, tensors } => {
                format!("no tensor fits {wanted}; {carries} {tensors}")
            }
            Self::Ambiguous { tensors, readings, with_model_size, advice } => {
                let mut readings = readings.clone();
                if !with_model_size.is_empty() {
                    let separator = if readings.is_empty() { "" } else { " or " };
                    let names = with_model_size.join(", ");
                    let model_size = interface.name(Name::ModelSize);
                    readings += &format!("{separator}one of {names} (with {model_size})");
                }
                let (all, advice) = (interface.name(Name::Tensors), advice.text(interface));
                format!("{all} ({tensors}) can be read as {readings}; {advice}")
            }
            Self::Incomplete { tensor, decoder, missing, tensors } => {
                let ids = match interface {
                    Interface::Python => "pass a dictionary with these names",
                    _ => "set the ids",
                };
                let choice = interface.name(Name::DecoderChoice);
                format!(
                    "tensor {tensor} has an id of decoder {decoder}, which also needs a tensor with the id \
                     {missing}; {carries} {tensors}: {ids}, or {choice}"
                )
            }
            // Others name no setting.
            error => error.to_string(),
        }
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
    wanted: Option<&'static dyn Decoder>,
    options: Options,
) -> Result<Choice, ChoiceError> {
    match &wanted {
        Some(decoder) => {
            if let Some(choice) = by_id(tensors, *decoder, options)? {
                return Ok(choice);
            }
            by_decoder(tensors, *decoder, options)
        }
        None => {
            for &decoder in decoders() {
                if let Some(choice) = by_id(tensors, decoder, options)? {
                    return Ok(choice);
                }
            }
            by_shape(tensors, options)
        }
    }
}

/// Chooses the first form of `decoder` for all of whose roles there is a tensor with a known id.
fn by_id(
    tensors: &[TensorView<'_>],
    decoder: &'static dyn Decoder,
    options: Options,
) -> Result<Option<Choice>, ChoiceError> {
    let mut other_shape = None;
    for &form in decoder.forms() {
        let Some(assignment) = assignment_by_id(tensors, form)? else { continue };
        match layout(tensors, decoder, form, &assignment, options) {
            Ok(layout) => return Ok(Some(Choice { decoder, layout, reason: Reason::Id })),
            // Another form can have the same ids.
            Err(error @ LayoutError::Shape { .. }) => {
                other_shape.get_or_insert(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    other_shape.map_or(Ok(None), |error| Err(error.into()))
}

/// A tensor that `choice` reads although its id is that of another decoder, with that decoder; `None` also if
/// that decoder reads the tensors in the same way, as `yolov5` does for `yolox`. The decoder was set then, since
/// a choice by id has no such tensor.
///
/// The ids of `boxes` do not count: many models have outputs of these names.
pub fn contradicting_id<'t, 'm>(
    tensors: &'t [TensorView<'m>],
    choice: &Choice,
    options: Options,
) -> Option<(&'t TensorView<'m>, &'static dyn Decoder)> {
    let has_name = |decoder: &dyn Decoder, id: &str| {
        decoder.forms().iter().flat_map(|form| form.roles()).any(|role| role.names.contains(&id))
    };
    let (tensor, other) = choice.layout.tensors().into_iter().find_map(|index| {
        let tensor = &tensors[index];
        let mut others = decoders().iter().copied().filter(|decoder| decoder.name() != "boxes");
        let other = others.find(|decoder| has_id(*decoder, tensor.id))?;
        let is_expected = has_id(choice.decoder, tensor.id) || has_name(choice.decoder, tensor.id);
        (!is_expected).then_some((tensor, other))
    })?;
    let is_same = choose(tensors, Some(other), options).is_ok_and(|by_id| {
        Layout { decoder: choice.layout.decoder, ..by_id.layout } == choice.layout
    });
    (!is_same).then_some((tensor, other))
}

/// Whether `choice` reads rows of six numbers as boxes of center form with the scores of one or two classes, and the
/// number of classes is not set. Such rows are usually corners, score and class: the decoder `end2end`.
pub fn may_be_end_to_end(choice: &Choice, options: Options) -> bool {
    let is_row = |group: &super::layout::Group| {
        (group.boxes.anchor_stride, group.boxes.component_stride) == (6, 1)
            && group.boxes.tensor == group.scores.tensor
            && group.class.is_none()
    };
    options.num_classes == 0
        && choice.layout.boxes.format == super::BoxFormat::Center
        && choice.layout.groups.iter().all(is_row)
}

/// Chooses tensors for the roles of `decoder`, whose ids they do not have.
fn by_decoder(
    tensors: &[TensorView<'_>],
    decoder: &'static dyn Decoder,
    options: Options,
) -> Result<Choice, ChoiceError> {
    let mut misnamed = None;
    for &form in decoder.forms() {
        let Some(assignment) = assignment_by_name(tensors, form) else { continue };
        match layout(tensors, decoder, form, &assignment, options) {
            Ok(layout) => return Ok(Choice { decoder, layout, reason: Reason::Name }),
            // Names such as `output` are those of many models.
            Err(error @ LayoutError::Shape { .. }) => {
                misnamed.get_or_insert(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    let all: Vec<usize> = (0..tensors.len()).collect();
    let mut errors = Vec::new();
    for &form in decoder.forms() {
        let mut readings = Readings::default();
        readings.add(tensors, (decoder, form), &all, options);
        // Such tensors are those of this form. One of them must not be read as another form.
        let is_of_form = |error: &&LayoutError| {
            use LayoutError::{Anchors, Images, ModelSize};
            matches!(error, Anchors { .. } | Images { .. } | ModelSize { .. })
        };
        if let Some(error) = readings.errors.iter().find(is_of_form)
            && readings.fits.is_empty()
        {
            return Err(error.clone().into());
        }
        errors.append(&mut readings.errors);
        match readings.fits.len() {
            1 if !readings.is_incomplete => return Ok(readings.fits.remove(0).0),
            0 if !readings.is_incomplete => {}
            fits => {
                let by_index = decoder.forms().iter().find_map(|form| {
                    let assignment = assignment_by_index(tensors, *form)?;
                    layout(tensors, decoder, *form, &assignment, options).ok()
                });
                return match by_index {
                    Some(layout) => Ok(Choice { decoder, layout, reason: Reason::Shape }),
                    None => Err(several_readings(tensors, decoder, fits)),
                };
            }
        }
    }
    Err(misnamed.map_or_else(|| no_fit(tensors, Some(decoder), errors), ChoiceError::from))
}

/// Chooses the only unambiguous decoder for the tensors with unknown ids.
fn by_shape(tensors: &[TensorView<'_>], options: Options) -> Result<Choice, ChoiceError> {
    let unknown: Vec<usize> = (0..tensors.len()).filter(|&i| !is_known(tensors[i].id)).collect();
    // The error lists readings with any number of classes.
    let any_number =
        Options { num_classes: 0, labels: options.known_classes().unwrap_or(0), ..options };
    let mut readings = Readings::default();
    for &decoder in decoders() {
        for &form in decoder.forms() {
            readings.add(tensors, (decoder, form), &unknown, any_number);
        }
    }
    let Readings { mut fits, errors, .. } = readings;
    let can_be_right = |(fit, form): &(Choice, &'static dyn Form)| match form.roles() {
        // Windows have their scores in the same tensor: beside another tensor they are boxes.
        [_] if fit.decoder.name() == "windows" => unknown.len() == 1,
        [_] => !is_single_row(&tensors[fit.layout.groups[0].boxes.tensor]),
        _ => true,
    };
    fits.retain(can_be_right);

    let pair = fits.iter().any(|(_, form)| form.roles().len() > 1);
    let mut unambiguous: Vec<&Choice> = fits
        .iter()
        .filter(|(fit, form)| !pair && form.is_unambiguous(&fit.layout, options.known_classes()))
        .map(|(fit, _)| fit)
        .collect();
    match unambiguous.len() {
        1 => return Ok(unambiguous.remove(0).clone()),
        0 => {}
        count => return Err(several_readings(tensors, unambiguous[0].decoder, count)),
    }
    if let Some(incomplete) = incomplete(tensors) {
        return Err(incomplete);
    }
    let is_row = |index: &usize| is_single_row(&tensors[*index]);
    if !unknown.is_empty() && unknown.iter().all(is_row) {
        return Err(ChoiceError::NoBoxes { tensors: list(tensors) });
    }
    // One of two tensors has boxes.
    let lengths = errors.iter().find(|error| matches!(error, LayoutError::Lengths { .. }));
    match lengths.filter(|_| unknown.len() == 2 && !pair) {
        Some(error) => Err(error.clone().into()),
        None if fits.is_empty() => Err(no_fit(tensors, None, errors)),
        None => Err(ambiguous(tensors, &fits, &errors, options)),
    }
}

/// A box, a score, a class and an angle are fewer numbers.
const MIN_CLASSIFIER: usize = 8;

/// Whether the tensor has one row of many numbers: a box for each class would be another row.
fn is_single_row(tensor: &TensorView<'_>) -> bool {
    let count = tensor.shape.elements();
    count >= Some(MIN_CLASSIFIER) && tensor.shape.iter().any(|&side| Some(side) == count)
}

/// Whether the id is an id of the decoder.
fn has_id(decoder: &dyn Decoder, id: &str) -> bool {
    decoder.forms().iter().flat_map(|form| form.roles()).any(|role| role.ids.contains(&id))
}

/// Whether the id is an id of any decoder.
pub fn is_known(id: &str) -> bool {
    decoders().iter().any(|decoder| has_id(*decoder, id))
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
        None => {
            let all: Vec<String> = decoders()
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
fn several_readings(
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

/// Removes items that are equal to an earlier one.
fn retain_first<T: PartialEq + Clone>(items: &mut Vec<T>) {
    let all = items.clone();
    let mut index = 0;
    items.retain(|item| {
        index += 1;
        !all[..index - 1].contains(item)
    });
}

/// The error for shapes that several model families have. `errors` are those of readings that do not fit.
fn ambiguous(
    tensors: &[TensorView<'_>],
    fits: &[(Choice, &'static dyn Form)],
    errors: &[LayoutError],
    options: Options,
) -> ChoiceError {
    let mut readings: Vec<String> = fits
        .iter()
        .map(|(fit, form)| match form.roles() {
            [_] if fit.decoder.name() != "windows" && !fit.layout.has_class_field() => {
                format!("{} with {} classes", fit.decoder.name(), fit.layout.classes)
            }
            _ => fit.decoder.name().to_owned(),
        })
        .collect();
    retain_first(&mut readings);
    let mut with_model_size: Vec<&'static str> = errors
        .iter()
        .filter_map(|error| match error {
            LayoutError::ModelSize { decoder, .. } => Some(*decoder),
            _ => None,
        })
        .collect();
    retain_first(&mut with_model_size);
    let fits_decoder = |name| fits.iter().any(|(fit, _)| fit.decoder.name() == name);
    let advice = Advice::SetDecoder {
        yolov8: fits_decoder("yolov8").then_some([options.num_classes, options.labels]),
        yolox: fits_decoder("yolox"),
    };
    ChoiceError::Ambiguous {
        tensors: list(tensors),
        readings: readings.join(" or "),
        with_model_size,
        advice,
    }
}
