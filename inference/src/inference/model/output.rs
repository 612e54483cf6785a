// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outputs of a model that become tensors.
//!
//! In: the outputs that ONNX Runtime reports, the `.modelinfo` file and metadata. Out: an [`OutputSpec`] for
//! each that `nmsfilter` can read. Others are not attached.
//!
//! ONNX has no scale and zero point of outputs: those of a quantized model are constants of its graph, which ONNX
//! Runtime does not give. The property `quantization` of `nmsfilter` sets them.

use ort::value::{Outlet, TensorElementType, ValueType};

use super::{InfoFile, Metadata, ModelError, type_text};
use crate::inference::debug_category::CAT;
use nmsfilter_core::tensor::{ElementType, MAX_DIMENSIONS};

/// What precedes the name of an output in the id of its tensor, if no source has an id. Names like `boxes` are
/// ids of other models' tensors, whose numbers have another meaning.
const UNKNOWN: &str = "onnx/";

/// An output that is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSpec {
    /// The name of the model's output.
    pub name: String,
    /// The id of the tensor, by which a decoder is chosen.
    pub id: String,
    /// The type of its elements.
    pub element: ElementType,
    /// Its dimensions; -1 where the model does not have one.
    pub dims: Vec<i64>,
}

impl OutputSpec {
    /// The element type of ONNX Runtime.
    pub fn onnx(&self) -> TensorElementType {
        match self.element {
            ElementType::F16 => TensorElementType::Float16,
            ElementType::I8 => TensorElementType::Int8,
            ElementType::U8 => TensorElementType::Uint8,
            ElementType::I32 => TensorElementType::Int32,
            ElementType::I64 => TensorElementType::Int64,
            // Also the types that no decoder reads.
            _ => TensorElementType::Float32,
        }
    }

    /// Whether the output can be left out if its dimensions are not the same for all pictures, as those of indices
    /// that an operator for suppression selects: decoders can do without integers, and not without numbers.
    pub fn is_optional(&self) -> bool {
        !self.element.is_float()
    }
}

/// Describes the outputs to attach.
///
/// # Errors
/// If there is none.
pub fn describe(
    outlets: &[Outlet],
    info: Option<&InfoFile>,
    metadata: &Metadata,
) -> Result<Vec<OutputSpec>, ModelError> {
    let mut outputs = Vec::new();
    for outlet in outlets {
        let (name, dtype) = (outlet.name(), outlet.dtype());
        let (ValueType::Tensor { shape: dims, .. }, Some(element)) = (dtype, element_type(dtype))
        else {
            gst::info!(CAT, "output {name} is not attached: it is {}", type_text(dtype));
            continue;
        };
        if dims.len() > MAX_DIMENSIONS {
            gst::info!(CAT, "output {name} is not attached: it has {} dimensions", dims.len());
            continue;
        }
        let id = info.and_then(|info| info.id(name));
        let id = id.or_else(|| metadata.id(name, dims).map(ToOwned::to_owned));
        outputs.push(OutputSpec {
            name: name.to_owned(),
            id: id.unwrap_or_else(|| format!("{UNKNOWN}{name}")),
            element,
            dims: dims.to_vec(),
        });
    }
    if outputs.is_empty() {
        let text = |outlet: &Outlet| format!("{}: {}", outlet.name(), type_text(outlet.dtype()));
        let outputs = outlets.iter().map(text).collect::<Vec<_>>().join(", ");
        return Err(ModelError::Outputs { outputs });
    }
    Ok(outputs)
}

/// The element type of an output; `None` if it cannot be read.
fn element_type(output: &ValueType) -> Option<ElementType> {
    let ValueType::Tensor { ty, .. } = output else { return None };
    match ty {
        TensorElementType::Float32 => Some(ElementType::F32),
        TensorElementType::Float16 => Some(ElementType::F16),
        TensorElementType::Int8 => Some(ElementType::I8),
        TensorElementType::Uint8 => Some(ElementType::U8),
        TensorElementType::Int32 => Some(ElementType::I32),
        TensorElementType::Int64 => Some(ElementType::I64),
        _ => None,
    }
}
