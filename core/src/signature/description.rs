// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a program that runs a model itself must know of it.
//!
//! In: the names, element types and dimensions of a model's inputs and outputs. Out: the [`Description`] by its only signature.

use super::{ConstantNumbers, InputLayout, ModelTensor, Normalization, Signature, constant, find};
use crate::tensor::{ElementType, TensorError, TensorView};

/// A model with one signature.
#[derive(Clone, Debug)]
pub struct Description {
    /// The signature.
    pub signature: &'static Signature,
    /// For each input, the numbers that it takes; `None` for the picture.
    pub inputs: Vec<Option<ConstantNumbers>>,
    /// The order of the picture's dimensions.
    pub layout: InputLayout,
    /// The picture's width and height; `None` if they are dynamic and the signature has none.
    pub size: Option<[u32; 2]>,
    /// How pixels become numbers.
    pub normalization: Normalization,
    /// The number of detections, if they are the best pairs of box and class; 0 if it is dynamic, or if they are not.
    pub pairs: usize,
}

/// The reason why a model has no one signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// Several exporters have its inputs and outputs.
    #[error("the model has the signatures of several exporters: {}; pass the name of the right one", .0.join(", "))]
    Several(Vec<&'static str>),
    /// It does not have the one of this name.
    #[error("the model does not have the signature {name}; it has {}", if .found.is_empty() { "none".to_owned() } else { .found.join(", ") })]
    Other {
        /// The name.
        name: String,
        /// The names of those that it has.
        found: Vec<&'static str>,
    },
}

/// Describes a model by its signature of this name, or its only one; `None` if it has none.
///
/// # Errors
/// If it has several, or others.
pub fn describe(
    inputs: &[ModelTensor<'_>],
    outputs: &[ModelTensor<'_>],
    name: Option<&str>,
) -> Result<Option<Description>, SignatureError> {
    let all = find(inputs, outputs);
    let names = || all.iter().map(|it| it.name).collect();
    let signature = match (name, &all[..]) {
        (Some(name), all) => all
            .iter()
            .find(|it| it.name == name)
            .copied()
            .ok_or_else(|| SignatureError::Other { name: name.to_owned(), found: names() })?,
        (None, []) => return Ok(None),
        (None, [signature]) => signature,
        (None, _) => return Err(SignatureError::Several(names())),
    };
    let facts = signature.facts;
    let numbers: Vec<_> =
        inputs.iter().map(|&input| constant(input).map(|(_, numbers)| numbers)).collect();
    let picture = numbers.iter().position(Option::is_none).expect("each signature has a picture");
    let (_, element, dims) = inputs[picture];
    let &[.., first, second, last] = dims else { unreachable!("pictures have three dimensions") };
    let is_nhwc = matches!(last, 1 | 3) && !matches!(first, 1 | 3);
    let layout =
        facts.layout.unwrap_or(if is_nhwc { InputLayout::Nhwc } else { InputLayout::Nchw });
    let sides = match layout {
        InputLayout::Nchw => [last, second],
        InputLayout::Nhwc => [second, first],
    };
    let [width, height] = sides.map(|side| u32::try_from(side).ok().filter(|&side| side > 0));
    let white = if element == ElementType::U8 { 255.0 } else { 1.0 };
    let usual = Normalization { range: [0.0, white], mean: [0.0; 3], std: [1.0; 3] };
    // Both outputs, of boxes and of scores, have a row for each query.
    let rows = outputs.first().and_then(|(.., dims)| usize::try_from(*dims.get(1)?).ok());
    Ok(Some(Description {
        signature,
        inputs: numbers,
        layout,
        size: width.zip(height).map(<[u32; 2]>::from).or(facts.size),
        normalization: facts.normalization.unwrap_or(usual),
        pairs: rows.filter(|_| signature.selects_pairs).unwrap_or(0),
    }))
}

/// The tensor of an output cannot be read by the signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    /// The memory cannot be read.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The host cannot read it.
    #[error(
        "tensor {tensor} is in device memory, but its numbers decide how it is read; pass it in host memory"
    )]
    OnDevice {
        /// The tensor, as displayed.
        tensor: String,
    },
    /// Its rows are of several pictures.
    #[error(
        "tensor {tensor} has rows of several pictures; run the model with one picture at a time"
    )]
    Pictures {
        /// The tensor, as displayed.
        tensor: String,
    },
}

impl Signature {
    /// The id by which the decoder is chosen, of a tensor with the name of an output as its id; `None` if the output is not
    /// read. Some ids depend on whether scores are probabilities or logits.
    ///
    /// # Errors
    /// If an id depends on numbers in device memory, or if rows are of several pictures.
    pub fn tensor_id(&self, tensor: &TensorView<'_>) -> Result<Option<&'static str>, OutputError> {
        let dims: Vec<i64> = tensor.shape.iter().map(|&length| length as i64).collect();
        let output = self.output((tensor.id, tensor.element, &dims));
        let Some(pattern) = output.filter(|it| !it.meaning.is_empty()) else {
            return Ok(None);
        };
        if pattern.logits.is_none() && !pattern.has_images {
            return Ok(Some(pattern.meaning));
        }
        if tensor.is_on_device() {
            return Err(OutputError::OnDevice { tensor: tensor.to_string() });
        }
        let (elements, len) = (tensor.elements()?, tensor.shape.elements().unwrap_or(0));
        let columns = tensor.shape.last().map_or(1, |&columns| columns.max(1));
        let mut numbers = (0..len).map(|index| (index % columns, elements.to_f32(index)));
        if pattern.has_images {
            return match numbers.all(|(column, number)| column > 0 || number <= 0.0) {
                true => Ok(Some(pattern.meaning)),
                false => Err(OutputError::Pictures { tensor: tensor.to_string() }),
            };
        }
        let (logits, first) = pattern.logits.unwrap_or((pattern.meaning, 0));
        let is_probability =
            numbers.all(|(column, number)| column < first || (0.0..=1.0).contains(&number));
        Ok(Some(if is_probability { pattern.meaning } else { logits }))
    }
}
