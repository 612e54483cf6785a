// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of a model by its signature, for `nmsfilter.signature`.
//!
//! In: names, element types and dimensions of a model's inputs and outputs. Out: the fields of `nmsfilter.Signature`.

use std::collections::HashMap;

use nmsfilter_core::cuda::{Device, Stream};
use nmsfilter_core::geometry::{Fit, FitRule};
use nmsfilter_core::nms::FrameFit;
use nmsfilter_core::signature::{
    self, ConstantNumbers, Description, InputLayout, Metadata, ModelTensor, Normalization, Pattern,
};
use nmsfilter_core::tensor::{ElementType, Storage, TensorView};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::{exceeds_memory, zeros};
use crate::device::foreign;
use crate::error::{Error, Result};
use crate::input::{Input, Place};
use crate::options;
use crate::source::{Order, Source};
use crate::stream::LEGACY;
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
    found.map(|found| fields(py, &found, &inputs)).transpose()
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

/// The id of the tensor of an output with this name, by its numbers. `form` names the signature's pattern.
#[pyfunction]
pub fn output_id(
    signature: &str,
    form: &str,
    name: &str,
    output: &Bound<'_, PyAny>,
) -> PyResult<&'static str> {
    let known = signature::all().iter().find(|it| it.name == signature);
    let pattern = known.and_then(|it| it.outputs.iter().find(|it| it.form == form));
    let pattern =
        pattern.ok_or_else(|| Error::Input(format!("there is no signature {signature}")))?;
    Ok(id(pattern, name, output)?)
}

fn id(pattern: &Pattern, name: &str, output: &Bound<'_, PyAny>) -> Result<&'static str> {
    let of = |tensor: &TensorView<'_>| {
        pattern.id(tensor).map_err(|error| Error::Input(in_python(&error)))
    };
    let input = Input::contiguous_on_device(output, name, None)?;
    let source = Source::of_tensor(&input, name, Order::After(LEGACY))?;
    let tensor = source.view(name);
    let Place::Device { ordinal, writer } = input.place else { return of(&tensor) };
    let device = Device::open(ordinal.unwrap_or(0) as u32)?;
    let stream = Stream::of_other_code(&device, foreign(input.stream(None)?));
    if let Some(writer) = writer {
        stream.wait_for_stream(foreign(writer))?;
    }
    let exceeds = || exceeds_memory(&input.shape, input.dtype);
    let mut words = zeros(input.byte_len()).ok_or_else(exceeds)?;
    let bytes = &mut bytemuck::cast_slice_mut(&mut words)[..input.byte_len()];
    // SAFETY: the object's library guarantees that its elements are there, and the object is held.
    unsafe { stream.download(input.address(), bytes) }?;
    of(&TensorView::new(name, tensor.element, tensor.shape, Storage::Host(bytes)))
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
) -> PyResult<Bound<'py, PyDict>> {
    let [dict, decoder, ids, constants] = [(); 4].map(|()| PyDict::new(py));
    let facts = found.facts;
    if facts.is_suppressed {
        decoder.set_item("method", "none")?;
    }
    if let Some(size) = facts.size {
        decoder.set_item("model_size", <(u32, u32)>::from(size))?;
    }
    if facts.selects_pairs {
        decoder.set_item("multi_label", "queries")?;
    }
    if !found.labels.is_empty() {
        decoder.set_item("labels", &found.labels)?;
    }
    if let Some(shape) = found.keypoints {
        decoder.set_item("keypoint_shape", <(u32, u32)>::from(shape))?;
    }
    for output in &found.outputs {
        let form = output.pattern.filter(|it| it.depends_on_numbers()).map(|it| it.form);
        if let Some(id) = &output.id {
            ids.set_item(&output.name, (id, form))?;
        }
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
    let layout = match facts.layout {
        Some(InputLayout::Nhwc) => "nhwc",
        _ => "nchw",
    };
    let Normalization { range, mean, std } =
        facts.normalization.expect("the description is complete");
    dict.set_item("name", found.name)?;
    dict.set_item("decoder", decoder)?;
    dict.set_item("letterbox", facts.letterbox.name())?;
    dict.set_item("size", facts.size.map(<(u32, u32)>::from))?;
    dict.set_item("layout", layout)?;
    dict.set_item("range", <(f64, f64)>::from(range))?;
    dict.set_item("mean", <(f64, f64, f64)>::from(mean))?;
    dict.set_item("std", <(f64, f64, f64)>::from(std))?;
    dict.set_item("channels", if facts.is_bgr { "bgr" } else { "rgb" })?;
    dict.set_item("pixels_vary", facts.pixels_vary)?;
    dict.set_item("unread", found.unread())?;
    dict.set_item("_outputs", found.outputs.iter().map(|it| &*it.name).collect::<Vec<_>>())?;
    dict.set_item("_ids", ids)?;
    dict.set_item("_constants", constants)?;
    Ok(dict)
}
