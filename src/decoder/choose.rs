//! Which decoder reads the tensors of a buffer.
//!
//! 1. *By id.* The first decoder of which all roles are found by tensor id; with `decoder` set, that
//!    decoder alone is looked at. Ids of a decoder with several roles count together only: a tensor
//!    `boxes` without `scores` is no reason to choose `boxes`.
//! 2. *By decoder.* Where `decoder` is set and the ids are others: the only way in which the
//!    tensors fit that decoder.
//! 3. *By shape alone.* Where `decoder` is `auto` and the ids are unknown, only what no other
//!    family of models has is accepted ([`Decoder::is_unambiguous`]): a YOLOv8 output as exported,
//!    `[1,4+C,N]`, whose `C` is the known number of classes, or with no number known, 1 or 80
//!    (COCO's). It must be the only such tensor, and no two tensors may fit `boxes` or
//!    `ultraface`. Everything else that some decoder could read is an error that lists the readings
//!    and says what to set. So:
//!    - `[1,N,4]` alone is never read as `windows`;
//!    - `[1,N,4]` with `[1,N,C]` is not read: DETR's normalized center boxes with logits,
//!      YOLO-NAS's corners and UltraFace's outputs have these shapes;
//!    - `[1,N,5+C]` is not read as `yolov5`: YOLOX's raw output has the same shape and another
//!      formula;
//!    - `[1,N,4+C]` is not read as a transposed `yolov8`: RT-DETR (`[1,300,84]`, normalized),
//!      MMDetection (`[1,N,5]` of corners and score) and end-to-end models (`[1,300,6]`) have it;
//!    - `[1,K,N]` with other rows than `4+C` is not read: pose, segmentation and oriented-box
//!      models add rows of another meaning.
//!
//! The known number of classes is [`Options::num_classes`], or the number of labels of the label
//! file where that is 0. `num_classes` also holds for the other two ways: tensors of another
//! number of classes are an error. A label file of another length is not.

use std::fmt;

use arrayvec::ArrayVec;

use super::{DECODERS, Decoder, Layout, LayoutError, MAX_INPUTS, Options};
use crate::tensor::TensorView;

/// A decoder and where in the buffer's tensors its numbers lie.
#[derive(Clone)]
pub struct Choice {
    /// The decoder.
    pub decoder: &'static dyn Decoder,
    /// Its layout; fields point at the tensors given to [`choose`].
    pub layout: Layout,
    /// What spoke for it.
    pub reason: Reason,
}

/// What spoke for a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The tensors bear its ids.
    Id,
    /// No known ids, but the shapes fit this decoder, and no other or it is the wanted one.
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

/// Why there is no decoder for a buffer's tensors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// A decoder is right by id or by `decoder`, but the tensor does not fit it.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Nothing fits.
    #[error("no tensor fits {wanted}; the buffer carries {tensors}")]
    NoFit {
        /// What was looked for.
        wanted: String,
        /// What there is.
        tensors: String,
    },
    /// More than one reading fits, or one that other models' outputs fit too.
    #[error("the buffer's tensors ({tensors}) can be read as {readings}; {advice}")]
    Ambiguous {
        /// What there is.
        tensors: String,
        /// The readings.
        readings: String,
        /// How to decide.
        advice: String,
    },
    /// A tensor has an id of a decoder that reads several, and another of these is not there.
    #[error(
        "tensor {tensor} has an id of decoder {decoder}, which also needs a tensor with the id \
         {missing}; the buffer carries {tensors}: set the ids, or the property decoder"
    )]
    Incomplete {
        /// The tensor with the id.
        tensor: String,
        /// The decoder's name.
        decoder: &'static str,
        /// The ids of which one is missing.
        missing: String,
        /// What there is.
        tensors: String,
    },
    /// Two tensors bear the id that a decoder looks for.
    #[error("two tensors have the id {id}; expected one: give each output an id of its own")]
    Duplicate {
        /// The id.
        id: String,
    },
}

/// Which tensor plays each role of a decoder.
type Assignment = ArrayVec<usize, MAX_INPUTS>;

/// Finds the decoder for `tensors`: `wanted`, or where that is `None` the one whose ids they have, or
/// else the one that their shapes tell for unambiguous, as said in the module's source.
///
/// # Errors
/// Where no decoder fits, the shapes leave it open which one does, the right one finds a shape or
/// type it cannot read, or another number of classes than `options` says.
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

/// The only way in which `tensors`, whatever their ids, fit `decoder`.
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

/// The only reading of the tensors of unknown ids that their shapes tell for unambiguous.
fn by_shape(tensors: &[TensorView<'_>], options: Options) -> Result<Choice, ChoiceError> {
    let unknown: Vec<usize> = (0..tensors.len()).filter(|&i| !is_known(tensors[i].id)).collect();
    // Readings of another number of classes are listed, too.
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

/// Whether any decoder knows the id.
fn is_known(id: &str) -> bool {
    DECODERS.iter().flat_map(|decoder| decoder.roles()).any(|role| role.ids.contains(&id))
}

/// The ways in which decoders can and cannot read tensors.
struct Readings {
    fits: Vec<Choice>,
    errors: Vec<LayoutError>,
}

/// Every way in which one of `decoders` reads those of `tensors` that `among` names.
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

/// The tensor for each role by its ids, or `None` where one is not there.
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

/// Every way to give `roles` different ones of `tensors`.
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
        let tensor = tensors[layout.scores.tensor].to_string();
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
    // These say more than the list of what fits nothing; so does the only reading there was.
    let rank = |error: &&LayoutError| match wanted {
        Some(_) => error.rank(),
        None => error.rank().filter(|_| matches!(error, LayoutError::Batch { .. })),
    };
    let specific = errors.iter().filter(|error| rank(error).is_some()).min_by_key(rank);
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

/// The error for ids of a decoder of which a role is missing, if there are any.
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

/// The error for one decoder that can read the tensors in several ways.
fn several_readings(tensors: &[TensorView<'_>], fits: &[Choice]) -> ChoiceError {
    ChoiceError::Ambiguous {
        tensors: list(tensors),
        readings: format!("{} in {} ways", fits[0].decoder.name(), fits.len()),
        advice: "give the tensor that holds the detections an id that the decoder knows".to_owned(),
    }
}

/// The error for shapes that do not tell which model they come from.
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
                format!(", and for yolov8 num-classes (the label file has {labels} labels)")
            }
            (number, _) => format!(", and for yolov8 correct num-classes, which is {number}"),
        }
        .as_str();
        advice += "; outputs of pose, segmentation and oriented-box models (rows beyond 4+C) are \
                   not read";
    }
    ChoiceError::Ambiguous { tensors: list(tensors), readings: readings.join(" or "), advice }
}
