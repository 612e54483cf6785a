// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decoder `yolox`: YOLOX, exported with its boxes decoded. The row of an anchor is that of
//! `yolov5`: center x, center y, width, height in pixels of the model's input, objectness and one
//! score per class, which is multiplied by objectness.
//!
//! YOLOX without the decode step (`export_onnx.py` without `--decode_in_inference`) has an output of
//! the same shape, whose boxes are offsets from the cells of three grids and logarithms of sides.
//! The shape does not show which of the two it is. No producer may therefore use the id of this
//! decoder for such an output.

use super::layout::{Layout, LayoutError};
use super::yolov5::rows_with_objectness;
use super::{Decoder, Form, Options, Role};
use crate::tensor::TensorView;

/// Reads one tensor `[1,N,5+C]`, `N >= 5+C`.
pub struct Yolox;

impl Decoder for Yolox {
    fn name(&self) -> &'static str {
        "yolox"
    }

    fn expects(&self) -> &str {
        "one tensor [1,N,5+C], N >= 5+C, of rows cx, cy, w, h (decoded), objectness, C class scores"
    }

    fn forms(&self) -> &[&'static dyn Form] {
        &[&Yolox]
    }
}

impl Form for Yolox {
    fn roles(&self) -> &[Role] {
        const { &[Role::of_ids("output", &["yolox-out"])] }
    }

    fn layout(&self, tensors: &[&TensorView<'_>], options: Options) -> Result<Layout, LayoutError> {
        rows_with_objectness(self, tensors[0], options)
    }
}
