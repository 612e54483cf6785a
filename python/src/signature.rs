// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of a model by its signature, for `nmsfilter.signature`.
//!
//! In: names, element types and dimensions of a model's inputs and outputs. Out: the fields of `nmsfilter.Signature`.

use std::collections::HashMap;

use nmsfilter_core::geometry::{Fit, FitRule};
use nmsfilter_core::nms::FrameFit;
use nmsfilter_core::signature::{
    self, ConstantNumbers, Description, InputLayout, Metadata, ModelTensor, Pattern,
};
use nmsfilter_core::tensor::ElementType;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Error, Result};
use crate::options;
use crate::words::in_python;

/// A name, an element type such as `f32`, and dimensions, of which those below 0 are dynamic.
type Tensor = (String, String, Vec<i64>);

/// The fields; None if the exporter is unknown.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "an argument in Python")]
pub fn describe<'py>(
    py: Python<'py>,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    metadata: HashMap<String, String>,
    name: Option<&str>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let found = described(&inputs, &outputs, &Metadata::new(metadata), name)?;
    found.map(|found| fields(py, &found, &inputs, &outputs)).transpose()
}

/// The left and upper edge, width and height of a frame in the model's input.
#[pyfunction]
pub fn fit(
    #[pyo3(from_py_with = options::frame_size)] frame: Option<[u32; 2]>,
    model: [u32; 2],
    letterbox: &str,
) -> PyResult<(u32, u32, u32, u32)> {
    let (frame, letterbox) = (frame.unwrap_or_default(), options::letterbox(Some(letterbox))?);
    FrameFit { frame, model: Some(model.map(|side| side as f32)), letterbox }
        .mapping()
        .map_err(Error::from)?;
    let Fit { offset, size, .. } = FitRule::from(letterbox).fit(frame, model);
    Ok((offset[0], offset[1], size[0], size[1]))
}

fn described(
    inputs: &[Tensor],
    outputs: &[Tensor],
    metadata: &Metadata,
    name: Option<&str>,
) -> Result<Option<Description>> {
    let element = |name| ElementType::from_name(name).unwrap_or(ElementType::Other("another type"));
    let [inputs, outputs] = [inputs, outputs].map(|tensors| {
        let tensor = |(name, ty, dims)| -> ModelTensor<'_> { (name, element(ty), dims) };
        tensors.iter().map(|(name, ty, dims)| tensor((&**name, &**ty, &**dims))).collect::<Vec<_>>()
    });
    signature::describe(&inputs, &outputs, metadata, name)
        .map_err(|error| Error::Input(in_python(&error)))
}

fn fields<'py>(
    py: Python<'py>,
    found: &Description,
    inputs: &[Tensor],
    outputs: &[Tensor],
) -> PyResult<Bound<'py, PyDict>> {
    let [dict, decoder, ids, constants] = [(); 4].map(|()| PyDict::new(py));
    let facts = found.facts;
    if found.is_suppressed {
        decoder.set_item("method", "none")?;
    }
    if let Some(size) = facts.size {
        decoder.set_item("model_size", <(u32, u32)>::from(size))?;
    }
    if found.selects_pairs {
        decoder.set_item("multi_label", "queries")?;
    }
    if !found.labels.is_empty() {
        decoder.set_item("labels", &found.labels)?;
    }
    if let Some(shape) = found.keypoints {
        decoder.set_item("keypoint_shape", <(u32, u32)>::from(shape))?;
    }
    for (output, id, pattern) in &found.ids {
        let of = |it: &Pattern| (it.logits, it.has_images, it.background);
        let (logits, has_images, background) = pattern.map_or((None, false, None), of);
        ids.set_item(output, (id, logits, has_images, background))?;
    }
    for ((name, element, dims), numbers) in inputs.iter().zip(&found.inputs) {
        let numbers = match numbers {
            Some(ConstantNumbers::WidthHeight) => "width-height",
            Some(ConstantNumbers::HeightWidth) => "height-width",
            Some(ConstantNumbers::Ones) => "ones",
            None => {
                dict.set_item("_picture", name)?;
                continue;
            }
        };
        constants.set_item(name, (numbers, element, dims.len()))?;
    }
    let layout = match found.layout {
        InputLayout::Nchw => "nchw",
        InputLayout::Nhwc => "nhwc",
    };
    dict.set_item("name", found.name)?;
    dict.set_item("decoder", decoder)?;
    dict.set_item("letterbox", facts.letterbox.name())?;
    dict.set_item("size", facts.size.map(<(u32, u32)>::from))?;
    dict.set_item("layout", layout)?;
    dict.set_item("range", <(f64, f64)>::from(found.normalization.range))?;
    dict.set_item("mean", <(f64, f64, f64)>::from(found.normalization.mean))?;
    dict.set_item("std", <(f64, f64, f64)>::from(found.normalization.std))?;
    dict.set_item("channels", if facts.is_bgr { "bgr" } else { "rgb" })?;
    dict.set_item("pixels_vary", facts.pixels_vary)?;
    dict.set_item("unread", &found.unread)?;
    dict.set_item("_outputs", outputs.iter().map(|(name, ..)| name).collect::<Vec<_>>())?;
    dict.set_item("_ids", ids)?;
    dict.set_item("_constants", constants)?;
    Ok(dict)
}
