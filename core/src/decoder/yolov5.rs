// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decoder `yolov5`: YOLOv5, v6 and v7. The row of an anchor is center x, center y, width,
//! height, objectness and one score per class, which is multiplied by objectness.

use super::layout::{BoxFormat, Layout, LayoutError, PlainLayout};
use super::matrix::{Matrix, check_classes, shape_error};
use super::{Decoder, Form, Options, Role};
use crate::tensor::TensorView;

/// Reads one tensor `[1,N,5+C]`.
///
/// A model has at least as many anchors as values per anchor (`N >= 5+C`). A tensor with fewer is
/// the output of another model family or is transposed, and is an error.
pub struct Yolov5;

impl Decoder for Yolov5 {
    fn name(&self) -> &'static str {
        "yolov5"
    }

    fn expects(&self) -> &str {
        "one tensor [1,N,5+C], N >= 5+C, of rows cx, cy, w, h, objectness, C class scores"
    }

    fn forms(&self) -> &[&'static dyn Form] {
        &[&Yolov5]
    }
}

impl Form for Yolov5 {
    fn roles(&self) -> &[Role] {
        const { &[Role::of_ids("output", &["yolo-v5-out", "yolo-v5-out-normalized"])] }
    }

    fn layout(&self, tensors: &[&TensorView<'_>], options: Options) -> Result<Layout, LayoutError> {
        rows_with_objectness(self, tensors[0], options)
    }
}

/// The layout of `decoder` for one tensor `[1,N,5+C]` whose rows are anchors as described above.
pub(super) fn rows_with_objectness(
    decoder: &dyn Decoder,
    tensor: &TensorView<'_>,
    options: Options,
) -> Result<Layout, LayoutError> {
    let matrix = Matrix::of(tensor, decoder, options)?;
    let Matrix { images, rows: anchors, columns } = matrix;
    if columns < 6 || (anchors < columns && anchors > 0) {
        return Err(shape_error(tensor, decoder));
    }
    check_classes(tensor, columns - 5)?;
    Ok(PlainLayout {
        decoder: decoder.name(),
        images,
        anchors,
        classes: columns - 5,
        boxes: matrix.anchors_in_rows(0, 0),
        box_format: BoxFormat::Center,
        scores: matrix.anchors_in_rows(0, 5),
        objectness: Some(matrix.anchors_in_rows(0, 4)),
        normalized: options.coordinates.normalized(tensor),
    }
    .into())
}
