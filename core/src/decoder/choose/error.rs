// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reason why no decoder was chosen, and the remedy.

use super::refusal::list;
use crate::decoder::layout::LayoutProblem;
use crate::decoder::model_family::ModelFamily;
use crate::decoder::{LayoutError, classifier};
use crate::tensor::TensorView;
use crate::wording::Setting::{self, Ids, NumClasses};

/// The reason why no decoder was chosen. `tensors` are the tensors, as displayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say what the fields are")]
pub enum ChoiceError {
    /// The tensors do not fit the decoder, which was set or determined by ids.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// No tensor fits the decoders that were considered.
    #[error(
        "no tensor fits {wanted}; the tensors are {tensors}; if these are the model's raw outputs, describe them in a \
         layout file"
    )]
    NoFit { wanted: String, tensors: String },
    /// Each tensor is one row of numbers.
    #[error(
        "the tensors ({tensors}) have one row of numbers each, as a classifier's output has, and no boxes; choose a model \
         that detects objects"
    )]
    NoBoxes { tensors: String },
    /// No tensor has one score for each class.
    #[error(
        "the tensors ({tensors}): decoder {} expects tensors of [C], [1,C] or [1,C,1,1], a score for each class; give such \
         a tensor the id {} (logits) or {} (probabilities), or set the decoder of the detector",
        classifier::NAME, classifier::IDS[0].0, classifier::IDS[1].0
    )]
    NoClassifier { tensors: String },
    /// The tensors fit several decoders, or a decoder whose shapes other model families have, too.
    #[error("the tensors ({tensors}) can be read as {offers}")]
    Ambiguous { tensors: String, offers: String },
    /// The decoder fits several tensors.
    #[error(
        "the tensors ({tensors}) can be read as {decoder} in {} ways; give the tensor that holds the detections an id that \
         the decoder knows",
        number(*count)
    )]
    SeveralTensors { tensors: String, decoder: &'static str, count: usize },
    /// The decoder fits with several numbers of classes.
    #[error(
        "the tensors ({tensors}) can be read as {decoder} with {classes}; set {NumClasses} to the model's number of \
         classes, by which tensors of scores are distinguished from tensors with their sums, as RKNN's exports have"
    )]
    SeveralNumbers { tensors: String, decoder: &'static str, classes: String },
    /// A tensor has an id of a decoder with several roles, and another role has no tensor.
    #[error(
        "tensor {tensor} has an id of decoder {decoder}, which also needs a tensor with the id {missing}; the tensors are \
         {tensors}: set {Ids}, or {}",
        Setting::Decoder
    )]
    Incomplete { tensor: String, decoder: &'static str, missing: String, tensors: String },
    /// The tensors are of a model of another family than the decoder's.
    #[error("the tensors ({tensors}) cannot be decoded: {family}")]
    Family { tensors: String, family: ModelFamily },
    /// Two tensors have ids of one role.
    #[error("two tensors have the id {id}; expected one: give each output an id of its own")]
    Duplicate { id: String },
}

/// A number of ways, which were not all tried if there are none or very many.
fn number(count: usize) -> String {
    if (2..super::assign::MAX_FITS).contains(&count) { count.to_string() } else { "many".into() }
}

impl ChoiceError {
    /// The problem, if the tensors do not fit the decoder.
    pub(super) fn problem(&self) -> Option<LayoutProblem> {
        match self {
            Self::Layout(error) => Some(error.problem),
            _ => None,
        }
    }

    pub(crate) fn family(tensors: &[TensorView<'_>], family: ModelFamily) -> Self {
        Self::Family { tensors: list(tensors), family }
    }
}
