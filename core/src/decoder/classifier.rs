// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classifiers: models with outputs of one score for each class of an image.
//!
//! In: the tensors of an image. Out: for each output (color and type of a vehicle), its tensor and the function of its
//! numbers.

use super::check::{
    check_classes, check_element_type, check_num_classes, shape_error, single_softmax,
};
use super::layout::Activation;
use super::{ChoiceError, Options};
use crate::engine::Params;
use crate::tensor::TensorView;

/// The name of the decoder.
pub const NAME: &str = "classifier";

/// The tensor ids, as in GStreamer's `classifiertensordecoder`, with the activation of each.
pub const IDS: [(&str, Activation); 2] = [
    ("classification-generic-out", Activation::Softmax),
    ("classification-generic-softmaxed-out", Activation::None),
];

/// Which classes of an image are wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassLimits {
    /// The least score.
    pub threshold: f32,
    /// The greatest number of classes; 0 for no limit.
    pub max: usize,
}

impl ClassLimits {
    /// The limits by these parameters: without multi-label, only the best class is wanted.
    pub fn new(params: &Params) -> Self {
        let max = if params.multi_label { params.max_detections } else { 1 };
        Self { threshold: params.thresholds.default, max }
    }
}

/// A class of an image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassScore {
    /// The index of the class.
    pub class: u32,
    /// The score.
    pub score: f32,
}

/// A tensor with scores, and how it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassOutput {
    /// The index of the tensor.
    pub tensor: usize,
    /// The number of classes.
    pub classes: usize,
    /// The function that turns numbers into scores.
    pub activation: Activation,
}

/// Finds the tensors with scores: those with an id of [`IDS`] or, if none has one, those of their shape. Of several
/// without an id, those with one number are left out if that has no score
/// ([`LayoutProblem::SingleSoftmax`](super::layout::LayoutProblem::SingleSoftmax)), and those with another number of
/// classes than is expected. Returns at least one, in the order of the tensors, and the indices of the tensors that could
/// be read as scores, and are not.
///
/// The function of the scores is that of the options, else of the id, else none if `is_softmaxed` (the model is known to
/// end with softmax), else softmax.
///
/// # Errors
/// If there is no such tensor, or if the shape, element type or number of classes of one does not fit.
pub fn choose(
    tensors: &[TensorView<'_>],
    options: &Options,
    is_softmaxed: bool,
) -> Result<(Vec<ClassOutput>, Vec<usize>), ChoiceError> {
    let is_row = |&index: &usize| classes(&tensors[index]).is_some();
    let mut chosen: Vec<usize> =
        (0..tensors.len()).filter(|&index| is_id(tensors[index].id)).collect();
    let has_ids = !chosen.is_empty();
    if !has_ids {
        chosen = (0..tensors.len()).filter(is_row).collect();
    }
    if chosen.is_empty() && tensors.len() == 1 {
        chosen.push(0);
    }
    let mut outputs = Vec::with_capacity(chosen.len());
    let (is_one, mut first_error) = (chosen.len() == 1 || has_ids, None);
    for tensor in chosen {
        match ClassOutput::of(tensors, tensor, options, is_softmaxed) {
            Ok(output) => outputs.push(output),
            Err(error) if is_one => return Err(error),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    if outputs.is_empty() {
        let none = ChoiceError::NoClassifier { tensors: super::choose::list(tensors) };
        return Err(first_error.unwrap_or(none));
    }
    let is_read = |index: &usize| outputs.iter().any(|output| output.tensor == *index);
    let ignored = (0..tensors.len()).filter(|index| is_row(index) && !is_read(index)).collect();
    Ok((outputs, ignored))
}

impl ClassOutput {
    /// The reading of a tensor.
    fn of(
        tensors: &[TensorView<'_>],
        index: usize,
        options: &Options,
        is_softmaxed: bool,
    ) -> Result<Self, ChoiceError> {
        let tensor = &tensors[index];
        let expected = "[C], [1,C] or [1,C,1,1]: one score for each class and no boxes; export the model with a batch \
                        size of 1, or set the decoder of the detector";
        let classes = classes(tensor).ok_or_else(|| shape_error(tensor, NAME, expected))?;
        check_classes(tensor, classes)?;
        check_element_type(tensor)?;
        check_num_classes(tensor, NAME, classes, *options)?;
        let of_model = if is_softmaxed { Activation::None } else { Activation::Softmax };
        let activation =
            options.score_activation.or_else(|| activation_of(tensor.id)).unwrap_or(of_model);
        if activation == Activation::Softmax && classes == 1 {
            return Err(single_softmax(tensor, NAME).into());
        }
        Ok(Self { tensor: index, classes, activation })
    }
}

/// Returns whether a tensor with this id has the scores of classes.
pub fn is_id(id: &str) -> bool {
    activation_of(id).is_some()
}

fn activation_of(id: &str) -> Option<Activation> {
    IDS.iter().find(|(known, _)| *known == id).map(|&(_, activation)| activation)
}

/// The number of classes, if all dimensions but one are 1.
fn classes(tensor: &TensorView<'_>) -> Option<usize> {
    let count = tensor.shape.elements().filter(|&count| count > 0)?;
    tensor.shape.contains(&count).then_some(count)
}
