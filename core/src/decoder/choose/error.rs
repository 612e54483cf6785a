// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reason why no decoder was chosen, and the remedy.

use super::refusal::list;
use crate::decoder::model_family::ModelFamily;
use crate::decoder::{LayoutError, classifier};
use crate::names::{Interface, Name};
use crate::tensor::TensorView;

/// The reason why no decoder was chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChoiceError {
    /// The tensors do not fit the decoder, which was set or determined by ids.
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
    #[error("{}", self.text(Interface::Element))]
    NoBoxes {
        /// The tensors, as displayed.
        tensors: String,
    },
    /// No tensor has one score for each class.
    #[error("{}", self.text(Interface::Element))]
    NoClassifier {
        /// The tensors, as displayed.
        tensors: String,
    },
    /// The tensors fit several decoders, or a decoder whose shapes other model families have, too.
    #[error("{}", self.text(Interface::Element))]
    Ambiguous {
        /// The tensors, as displayed.
        tensors: String,
        /// The decoders, with numbers of classes.
        readings: String,
        /// The decoders that also fit if the size of the model's input is known.
        with_model_size: Vec<&'static str>,
        /// How to select one of them.
        advice: Advice,
    },
    /// A tensor has an id of a decoder with several roles, and another role has no tensor.
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
    /// The tensors are of a model of another family than the decoder's.
    #[error("{}", self.text(Interface::Element))]
    Family {
        /// The tensors, as displayed.
        tensors: String,
        /// The model's family.
        family: ModelFamily,
    },
    /// Two tensors have ids of one role.
    #[error("two tensors have the id {id}; expected one: give each output an id of its own")]
    Duplicate {
        /// The id.
        id: String,
    },
}

/// The advice in an error about tensors that can be read in several ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// One decoder fits several tensors: give the tensor with the detections an id.
    SetId,
    /// One decoder fits with tensors of scores and with others: set the number of classes.
    SetNumClasses,
    /// Several decoders fit: set one.
    SetDecoder {
        /// True if `yolov8` is one of the decoders.
        yolov8: bool,
        /// True if the number of classes is known.
        is_known: bool,
        /// The number of classes that `yolov8` would have, if it is not the known one, and the numbers of classes and of
        /// labels that are known (0 if they are not).
        contradicted: Option<(usize, [usize; 2])>,
        /// True if `yolox` is one of the decoders.
        yolox: bool,
    },
}

impl Advice {
    fn text(self, interface: Interface) -> String {
        let num_classes = interface.name(Name::NumClasses);
        let (yolov8, is_known, contradicted, yolox) = match self {
            Self::SetId => {
                return "give the tensor that holds the detections an id that the decoder knows"
                    .to_owned();
            }
            Self::SetNumClasses => {
                return format!(
                    "set {num_classes} to the model's number of classes, by which tensors of scores are distinguished \
                     from tensors with their sums, as RKNN's exports have"
                );
            }
            Self::SetDecoder { yolov8, is_known, contradicted, yolox } => {
                (yolov8, is_known, contradicted, yolox)
            }
        };
        let mut advice = format!("set {} to the right one", interface.name(Name::DecoderChoice));
        if yolov8 && !is_known {
            advice += &format!(", and for yolov8 {num_classes} to the model's number of classes");
        }
        if let Some((classes, known)) = contradicted {
            advice += &format!("; or for yolov8 with {classes} classes ");
            advice += &match known {
                [0, labels] => format!("set {num_classes} (there are {labels} labels)"),
                [number, _] => format!("correct {num_classes}, which is {number}"),
            };
        }
        if yolov8 || contradicted.is_some() {
            advice += "; models of poses, masks and oriented boxes have rows beyond 4+C: yolov8-pose, \
                       yolov8-seg, yolov8-obb";
        }
        if yolox {
            advice += "; yolov5 and yolox are for decoded boxes (YOLOX exported with \
                       --decode_in_inference), yolov5-raw and yolox-raw for others";
        }
        advice
    }
}

impl ChoiceError {
    pub(crate) fn family(tensors: &[TensorView<'_>], family: ModelFamily) -> Self {
        Self::Family { tensors: list(tensors), family }
    }

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
                format!(
                    "no tensor fits {wanted}; {carries} {tensors}; if these are the model's raw outputs, describe them \
                     in a layout file"
                )
            }
            Self::NoBoxes { tensors } => {
                let all = interface.name(Name::Tensors);
                let classifier = match interface {
                    Interface::Element => "set decoder=classifier for the classes of images, or ",
                    Interface::Rust | Interface::C | Interface::Python => "",
                };
                format!(
                    "{all} ({tensors}) have one row of numbers each, as a classifier's output has, and no boxes; \
                     {classifier}choose a model that detects objects"
                )
            }
            Self::NoClassifier { tensors } => {
                let (all, [(logits, _), (probabilities, _)]) =
                    (interface.name(Name::Tensors), classifier::IDS);
                format!(
                    "{all} ({tensors}): decoder {} expects tensors of [C], [1,C] or [1,C,1,1], a score for each \
                     class; give such a tensor the id {logits} (logits) or {probabilities} (probabilities), or set the \
                     decoder of the detector",
                    classifier::NAME
                )
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
            Self::Family { tensors, family } => {
                let all = interface.name(Name::Tensors);
                format!("{all} ({tensors}) cannot be decoded: {family}")
            }
            // Others name no setting.
            error => error.to_string(),
        }
    }
}
