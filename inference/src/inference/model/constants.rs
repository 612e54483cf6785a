// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs beside the picture, whose numbers are equal in every run.
//!
//! In: the inputs that ONNX Runtime reports, the property `inputs`, and the picture that the model takes. Out: a
//! [`ConstantInput`] for each input but the picture.
//!
//! Exporters add inputs with which the model itself converts boxes to pixels of the original picture. Here such a
//! picture is always the model's input, so that boxes are in its pixels, and `nmsfilter` maps them to the frame. An input
//! that has its numbers in the file (an initializer) keeps them; ONNX Runtime does not report it.

use std::path::Path;

use ort::memory::Allocator;
use ort::value::{DynTensor, Outlet, TensorElementType, ValueType};

use super::output::model_tensor;
use super::protobuf::{all, field, fields};
use super::{InputSpec, dims_text, numbers, type_text};
use crate::inference::error::InferenceError;
use nmsfilter_core::signature::{self, ConstantNumbers};

/// The name of an input whose numbers are equal in every run, and the numbers, in host memory.
pub type ConstantInput = (String, DynTensor);

/// The numbers that the user has set for an input: name and numbers.
pub type InputNumbers = (String, Vec<f64>);

/// Parses the property `inputs`: `name=640,640;other=1`.
///
/// # Errors
/// If `text` has another form.
pub fn parse(text: &str) -> Result<Vec<InputNumbers>, InferenceError> {
    let wrong = || {
        InferenceError::Settings(format!(
            "inputs: expected the name and the numbers of each input, as in \
             scale=1,1;size=640,640; got {text}"
        ))
    };
    let entries = text.split(';').map(str::trim).filter(|entry| !entry.is_empty());
    let entry = |entry: &str| {
        // A name can contain the character.
        let (name, values) = entry.rsplit_once('=').ok_or_else(wrong)?;
        let values = numbers::numbers(values).ok_or_else(wrong)?;
        Ok((name.trim().to_owned(), values))
    };
    entries.map(entry).collect()
}

/// Returns the only input that is not constant, the picture.
///
/// # Errors
/// If no input or several inputs can be the picture, or if the user has set numbers for an input that does not exist.
pub fn picture<'i>(
    inputs: &'i [Outlet],
    set: &[InputNumbers],
) -> Result<&'i Outlet, InferenceError> {
    let text = |input: &Outlet| match input.dtype() {
        ValueType::Tensor { shape, .. } => format!("{} {}", input.name(), dims_text(shape)),
        _ => input.name().to_owned(),
    };
    let list = |inputs: &[&Outlet]| inputs.iter().map(|input| text(input)).collect::<Vec<_>>();
    let all: Vec<&Outlet> = inputs.iter().collect();
    if let Some((name, _)) = set.iter().find(|(name, _)| inputs.iter().all(|i| i.name() != name)) {
        let inputs = list(&all).join(", ");
        return Err(InferenceError::Settings(format!(
            "inputs={name}=...: the model has no such input; its inputs are {inputs}"
        )));
    }
    let is_constant = |input: &&Outlet| {
        set.iter().any(|(name, _)| name == input.name())
            || signature::constant(model_tensor(input)).is_some()
    };
    let others: Vec<&Outlet> = all.iter().copied().filter(|input| !is_constant(input)).collect();
    match others[..] {
        [picture] => Ok(picture),
        // A model with a single input has no input beside the picture.
        [] if set.is_empty() && inputs.len() == 1 => Ok(&inputs[0]),
        _ => {
            let names = list(&all).join(", ");
            let names = if names.is_empty() { names } else { format!(" ({names})") };
            Err(InferenceError::Settings(format!(
                "the model has {} inputs{names}; expected one, the picture: set \
                 inputs=NAME=NUMBER,... for each other input, or export the model with the \
                 picture alone",
                inputs.len()
            )))
        }
    }
}

/// Describes the inputs beside the picture.
///
/// # Errors
/// If there are more or fewer numbers than the input has elements, or if its type has no numbers.
pub fn describe(
    inputs: &[Outlet],
    set: &[InputNumbers],
    picture: &InputSpec,
) -> Result<Vec<ConstantInput>, InferenceError> {
    let others = inputs.iter().filter(|input| input.name() != picture.name);
    others
        .map(|input| match set.iter().find(|(name, _)| name == input.name()) {
            Some((_, values)) => with_numbers(input, values, picture.batch),
            None => with_known(input, picture),
        })
        .collect()
}

/// The numbers for a picture of this size.
fn values(numbers: ConstantNumbers, [width, height]: [u32; 2]) -> Vec<f64> {
    match numbers {
        ConstantNumbers::WidthHeight => vec![f64::from(width), f64::from(height)],
        ConstantNumbers::HeightWidth => vec![f64::from(height), f64::from(width)],
        ConstantNumbers::Ones => vec![1.0],
    }
}

/// Returns whether the file has the numbers for a picture of this size as an initializer of this name, which somebody has
/// made of an input. Only raw elements are read ([onnx.proto](https://github.com/onnx/onnx/blob/main/onnx/onnx.proto)):
///
/// ```text
/// ModelProto: graph = 7 (GraphProto)
/// GraphProto: initializer = 5 (TensorProto)
/// TensorProto: data_type = 2, name = 8, raw_data = 9
/// ```
pub fn are_in_file(path: &Path, name: &str, numbers: ConstantNumbers, size: [u32; 2]) -> bool {
    let wanted = values(numbers, size);
    let is_wanted = |tensor: &[u8]| {
        let element = match fields(tensor)?.iter().find(|field| field.number == 2)?.whole {
            [_, 1] => TensorElementType::Float32,
            [_, 6] => TensorElementType::Int32,
            [_, 7] => TensorElementType::Int64,
            _ => return None,
        };
        let wanted: Option<Vec<Vec<u8>>> = wanted.iter().map(|&it| bytes(element, it)).collect();
        let (wanted, found) = (wanted?.concat(), field(tensor, 9)?);
        Some(!found.is_empty() && found.chunks(wanted.len()).all(|part| part == wanted))
    };
    let model = std::fs::read(path).unwrap_or_default();
    let parts = field(&model, 7).and_then(fields).unwrap_or_default();
    all(&parts, 5)
        .any(|tensor| field(tensor, 8) == Some(name.as_bytes()) && is_wanted(tensor) == Some(true))
}

fn with_known(input: &Outlet, picture: &InputSpec) -> Result<ConstantInput, InferenceError> {
    let problem = "a number for each picture, or for each of its pixels";
    let wrong = || wrong(input, problem);
    let pattern = signature::constant(model_tensor(input)).ok_or_else(wrong)?;
    let numbers = pattern.numbers().ok_or_else(wrong)?;
    let shape = pattern.shape(picture.batch, picture.size);
    let stated = input.dtype().tensor_shape().ok_or_else(wrong)?;
    let fits = |(&stated, &length): (&i64, &usize)| stated < 0 || stated == length as i64;
    if !stated.iter().zip(&shape).all(fits) {
        return Err(wrong());
    }
    constant(input, &shape, &values(numbers, picture.size), problem)
}

/// Describes an input whose numbers the user has set: for one picture, or for all.
fn with_numbers(
    input: &Outlet,
    values: &[f64],
    batch: usize,
) -> Result<ConstantInput, InferenceError> {
    let wrong = |problem: &str| wrong(input, problem);
    let stated = input.dtype().tensor_shape().ok_or_else(|| wrong("a tensor"))?;
    // The first dimension is usually the batch. Another dynamic one has as many elements as there are numbers.
    let mut shape: Vec<usize> =
        stated.iter().map(|&length| usize::try_from(length).unwrap_or(0)).collect();
    if shape.len() > 1 && shape[0] == 0 {
        shape[0] = batch;
    }
    let known: usize = shape.iter().filter(|&&length| length > 0).product();
    let mut dynamic = shape.iter_mut().filter(|length| **length == 0);
    if let Some(length) = dynamic.next() {
        *length = (values.len() / known).max(1);
    }
    if dynamic.next().is_some() {
        return Err(wrong("at most one dynamic dimension beside the batch"));
    }
    let elements: usize = shape.iter().product();
    let is_of_each = shape.first() == Some(&batch) && values.len() * batch == elements;
    if values.len() != elements && !is_of_each {
        return Err(wrong(&format!("{elements} numbers, got {}", values.len())));
    }
    constant(input, &shape, values, "numbers that its type has")
}

fn wrong(input: &Outlet, problem: &str) -> InferenceError {
    let (name, found) = (input.name(), type_text(input.dtype()));
    let dims = dims_text(input.dtype().tensor_shape().map_or(&[], |shape| &**shape));
    InferenceError::Settings(format!(
        "the model's input {name} is {found} with the dimensions {dims}; expected {problem}: \
         correct inputs={name}=NUMBER,..."
    ))
}

/// Returns the input with these numbers, which are repeated if it has more elements.
///
/// # Errors
/// If the type of the input does not have one of the numbers, for which `problem` says what is expected, or if memory
/// cannot be allocated.
fn constant(
    input: &Outlet,
    shape: &[usize],
    values: &[f64],
    problem: &str,
) -> Result<ConstantInput, InferenceError> {
    let element = input.dtype().tensor_type();
    let numbers: Option<Vec<_>> = values.iter().map(|&value| bytes(element?, value)).collect();
    let (Some(element), Some(numbers)) = (element, numbers) else {
        return Err(wrong(input, problem));
    };
    let elements = shape.iter().product();
    let bytes: Vec<u8> = numbers.iter().cycle().take(elements).flatten().copied().collect();
    let mut tensor = DynTensor::new(&Allocator::default(), element, shape)?;
    // SAFETY: the tensor is in host memory, and has this many elements of this type.
    unsafe { tensor.data_ptr_mut().cast::<u8>().copy_from(bytes.as_ptr(), bytes.len()) };
    Ok((input.name().to_owned(), tensor))
}

/// The bytes of a number.
fn bytes(element: TensorElementType, value: f64) -> Option<Vec<u8>> {
    use TensorElementType::{Bool, Float16, Float32, Float64, Int8, Int32, Int64, Uint8};
    let within = |least: f64, greatest: f64| {
        (value.fract() == 0.0 && (least..=greatest).contains(&value)).then_some(value)
    };
    Some(match element {
        Float32 => (value as f32).to_ne_bytes().to_vec(),
        Float64 => value.to_ne_bytes().to_vec(),
        Float16 => half::f16::from_f64(value).to_ne_bytes().to_vec(),
        Int64 => (within(-9e15, 9e15)? as i64).to_ne_bytes().to_vec(),
        Int32 => (within(i32::MIN.into(), i32::MAX.into())? as i32).to_ne_bytes().to_vec(),
        Int8 => (within(i8::MIN.into(), i8::MAX.into())? as i8).to_ne_bytes().to_vec(),
        Uint8 => vec![within(0.0, u8::MAX.into())? as u8],
        Bool => vec![within(0.0, 1.0)? as u8],
        _ => return None,
    })
}
