// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outputs of a model that become tensors.
//!
//! In: the outputs that ONNX Runtime reports, the `.modelinfo` file and metadata. Out: an [`OutputSpec`] for
//! each of floating-point numbers. Others are not attached.

use ort::value::{Outlet, TensorElementType, ValueType};

use super::{InfoFile, Metadata, ModelError, type_text};
use crate::inference::debug_category::CAT;
use crate::tensor::{ElementType, MAX_DIMENSIONS};

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
            _ => TensorElementType::Float32,
        }
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
        let (element, dims) = match dtype {
            ValueType::Tensor { ty: TensorElementType::Float32, shape, .. } => {
                (ElementType::F32, shape)
            }
            ValueType::Tensor { ty: TensorElementType::Float16, shape, .. } => {
                (ElementType::F16, shape)
            }
            _ => {
                gst::info!(CAT, "output {name} is not attached: it is {}", type_text(dtype));
                continue;
            }
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
