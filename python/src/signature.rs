// SPDX-License-Identifier: MIT OR Apache-2.0
//! The signatures of known exporters, for `nmsfilter.signature`.
//!
//! In: names, element types and dimensions of a model's inputs and outputs. Out: a dictionary for each signature.

use nmsfilter_core::signature::{self, ConstantNumbers, InputLayout, ModelTensor};
use nmsfilter_core::tensor::ElementType;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A name, an element type such as `f32`, and dimensions, of which those below 0 are dynamic.
type Tensor = (String, String, Vec<i64>);

/// The facts of each signature that a model has.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "an argument in Python")]
pub fn signatures<'py>(
    py: Python<'py>,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let found = signature::find(&model_tensors(&inputs), &model_tensors(&outputs));
    let facts = |signature: &signature::Signature| {
        let (dict, facts) = (PyDict::new(py), signature.facts);
        dict.set_item("name", signature.name)?;
        let ids = PyDict::new(py);
        for (output, ..) in &outputs {
            if let Some(id) = signature.id(output) {
                let logits = signature.output(output).and_then(|pattern| pattern.logits);
                ids.set_item(output, (id, logits))?;
            }
        }
        dict.set_item("ids", ids)?;
        dict.set_item("letterbox", facts.letterbox.name())?;
        dict.set_item("size", facts.size.map(<(u32, u32)>::from))?;
        let layout = facts.layout.map(|layout| match layout {
            InputLayout::Nchw => "nchw",
            InputLayout::Nhwc => "nhwc",
        });
        dict.set_item("layout", layout)?;
        let normalization = facts.normalization.map(|it| {
            (
                <(f64, f64)>::from(it.range),
                <(f64, f64, f64)>::from(it.mean),
                <(f64, f64, f64)>::from(it.std),
            )
        });
        dict.set_item("normalization", normalization)?;
        let constants = PyDict::new(py);
        for tensor in model_tensors(&inputs) {
            let numbers = signature::constant(tensor).map(|(_, numbers)| match numbers {
                ConstantNumbers::WidthHeight => "width-height",
                ConstantNumbers::HeightWidth => "height-width",
                ConstantNumbers::Ones => "ones",
            });
            if let Some(numbers) = numbers {
                constants.set_item(tensor.0, numbers)?;
            }
        }
        dict.set_item("is_suppressed", signature.is_suppressed)?;
        dict.set_item("selects_pairs", signature.selects_pairs)?;
        dict.set_item("is_bgr", facts.is_bgr)?;
        dict.set_item("pixels_vary", facts.pixels_vary)?;
        dict.set_item("constants", constants)?;
        Ok(dict)
    };
    found.into_iter().map(facts).collect()
}

fn model_tensors(tensors: &[Tensor]) -> Vec<ModelTensor<'_>> {
    let element = |name| ElementType::from_name(name).unwrap_or(ElementType::Other("another type"));
    tensors.iter().map(|(name, ty, dims)| (&**name, element(ty), &**dims)).collect()
}
