// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes the outputs of a model that are attached as tensors.
//!
//! In: the outputs that ONNX Runtime reports, and what is known of them. Out: an [`OutputSpec`] for each
//! output that `nmsfilter` can read, and the texts of the others, which are not attached.
//!
//! ONNX does not state the scale and zero point of an output. In a quantized model they are constants of the graph,
//! which ONNX Runtime does not make available. Users set them with the property `quantization` of `nmsfilter`.

use ort::value::{Outlet, TensorElementType, ValueType};

use super::{dims_text, type_text};
use crate::inference::error::InferenceError;
use nmsfilter_core::signature::{Description, ModelTensor, Pattern};
use nmsfilter_core::tensor::{ElementType, MAX_DIMENSIONS};

/// Prefix of the tensor id if no source provides an id: the output's name follows. The bare name would not do,
/// because a name like `boxes` is the tensor id of another model, whose numbers have another meaning.
const UNKNOWN: &str = "onnx/";

/// An output that is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSpec {
    /// The name of the output in the model.
    pub name: String,
    /// The id of the tensor, from which a decoder is chosen.
    pub id: String,
    /// The type of the output's elements.
    pub element: ElementType,
    /// The dimensions that the model states; -1 for a dynamic dimension.
    pub dims: Vec<i64>,
    /// The dimensions of the tensors, which are equal in every run. The first one is the number of pictures per batch,
    /// unless this number is 1. Empty before the first run.
    pub shape: Vec<usize>,
    /// The index of the dimension whose length depends on the picture, the number of rows. The tensors then have the rows
    /// of a run, and after them rows of zeros, which are boxes without a size and with a score of 0.
    pub rows: Option<usize>,
    /// What the signature says about it.
    pub pattern: Option<&'static Pattern>,
    /// True if the first number of a row is the number of its picture in the batch.
    pub has_images: bool,
    /// True if a run has the rows of all pictures of a batch after each other.
    pub mixes_images: bool,
}

impl OutputSpec {
    /// Creates the error for an output of which more than one dimension depends on the picture.
    pub fn varies(&self) -> InferenceError {
        InferenceError::Settings(format!(
            "the model's output {} has the dimensions {}, of which more than the number of rows \
             depends on the picture; export the model without suppression (nms=False) and with \
             fixed sizes",
            self.name,
            dims_text(&self.dims)
        ))
    }
}

/// Describes the outputs to attach, by what is known of each. Also returns the names and types of the others.
///
/// # Errors
/// If the model has no output that can be attached.
pub fn describe(
    outlets: &[Outlet],
    description: &Description,
) -> Result<(Vec<OutputSpec>, Vec<String>), InferenceError> {
    let (mut outputs, mut others) = (Vec::new(), Vec::new());
    for (outlet, known) in outlets.iter().zip(&description.outputs) {
        let (name, element, dims) = model_tensor(outlet);
        if element.size().is_none() {
            others.push(format!("{name}: {}", type_text(outlet.dtype())));
            continue;
        }
        if dims.len() > MAX_DIMENSIONS {
            others.push(format!("{name}: {} dimensions", dims.len()));
            continue;
        }
        outputs.push(OutputSpec {
            name: name.to_owned(),
            id: known.id.clone().unwrap_or_else(|| format!("{UNKNOWN}{name}")),
            element,
            dims: dims.to_vec(),
            shape: Vec::new(),
            rows: None,
            pattern: known.pattern,
            has_images: known.pattern.is_some_and(|it| it.has_images),
            mixes_images: false,
        });
    }
    if outputs.is_empty() {
        return Err(InferenceError::Settings(format!(
            "the model has no output of type f32, f16, i8, u8, i32 or i64; its outputs are {}: \
             export the model with its raw outputs",
            others.join(", ")
        )));
    }
    Ok((outputs, others))
}

/// Returns the name, element type and dimensions of an input or output. What is not a tensor has no known type.
pub(super) fn model_tensor(outlet: &Outlet) -> ModelTensor<'_> {
    match outlet.dtype() {
        ValueType::Tensor { ty, shape, .. } => (outlet.name(), element_type(*ty), shape),
        _ => (outlet.name(), ElementType::Other("no tensor"), &[]),
    }
}

/// ONNX Runtime's names of the types that can be read.
const TYPES: [(TensorElementType, ElementType); 6] = [
    (TensorElementType::Float32, ElementType::F32),
    (TensorElementType::Float16, ElementType::F16),
    (TensorElementType::Int8, ElementType::I8),
    (TensorElementType::Uint8, ElementType::U8),
    (TensorElementType::Int32, ElementType::I32),
    (TensorElementType::Int64, ElementType::I64),
];

/// Returns the type with this name of ONNX Runtime.
pub(super) fn element_type(name: TensorElementType) -> ElementType {
    let found = TYPES.iter().find(|(other, _)| *other == name);
    found.map_or(ElementType::Other("another type"), |&(_, element)| element)
}

/// Returns ONNX Runtime's name of a type that can be read.
pub fn onnx_type(element: ElementType) -> TensorElementType {
    let found = TYPES.iter().find(|(_, other)| *other == element);
    found.expect("the type can be read").0
}
