// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs of exporters beside the picture, whose numbers are equal in every run.

use super::ModelTensor;
use crate::tensor::ElementType;

/// The numbers of a constant input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstantNumbers {
    /// Width and height of the model's input.
    WidthHeight,
    /// Height and width of the model's input.
    HeightWidth,
    /// Ones: no scaling, or no pixel that is padding.
    Ones,
}

/// A dimension of a constant input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dim {
    /// The number of pictures, or dynamic.
    Batch,
    /// The height of the picture, or dynamic.
    Height,
    /// The width of the picture, or dynamic.
    Width,
    /// This length.
    Fixed(i64),
}

const PAIR: &[Dim] = &[Dim::Batch, Dim::Fixed(2)];
/// The types of sizes: integers, and floating-point numbers.
const SIZES: &[ElementType] =
    &[ElementType::I64, ElementType::I32, ElementType::F32, ElementType::F16];
const INTEGERS: &[ElementType] = SIZES.split_at(2).0;
const FLOATS: &[ElementType] = SIZES.split_at(2).1;

/// Inputs of exporters, which are known by name, element type and dimensions together.
const KNOWN: [(&str, &[ElementType], &[Dim], ConstantNumbers); 5] = [
    // RT-DETR, D-FINE and DEIM, from their authors' scripts.
    ("orig_target_sizes", SIZES, PAIR, ConstantNumbers::WidthHeight),
    // YOLOv3 of the ONNX model zoo, which undoes a letterbox of the original picture.
    ("image_shape", FLOATS, PAIR, ConstantNumbers::HeightWidth),
    // PaddleDetection divides boxes by the scale.
    ("im_shape", FLOATS, PAIR, ConstantNumbers::HeightWidth),
    ("scale_factor", FLOATS, PAIR, ConstantNumbers::Ones),
    // Transformers: DETR.
    ("pixel_mask", INTEGERS, &[Dim::Batch, Dim::Height, Dim::Width], ConstantNumbers::Ones),
];

/// Returns the dimensions and the numbers of an input that is known.
pub fn constant(
    (name, element, shape): ModelTensor<'_>,
) -> Option<(&'static [Dim], ConstantNumbers)> {
    let is_length = |(&length, dim): (&i64, &Dim)| match dim {
        Dim::Fixed(fixed) => length == *fixed,
        Dim::Batch | Dim::Height | Dim::Width => true,
    };
    let is_of = |&&(known, types, dims, _): &&(&str, &[ElementType], &[Dim], ConstantNumbers)| {
        name == known
            && types.contains(&element)
            && shape.len() == dims.len()
            && shape.iter().zip(dims).all(is_length)
    };
    KNOWN.iter().find(is_of).map(|&(_, _, dims, numbers)| (dims, numbers))
}
