// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decoder `yolov8`: YOLOv8, v9 and 11. The values of an anchor are center x, center y, width,
//! height and one score per class, without objectness.

use super::layout::{BoxFormat, Layout, LayoutError, PlainLayout};
use super::matrix::{Matrix, check_classes, shape_error};
use super::{Decoder, Form, Options, Role};
use crate::tensor::TensorView;

/// Reads one tensor: `[1,4+C,N]` as exported, or `[1,N,4+C]` as some converters transpose it.
///
/// If the number of classes is known and one dimension is `4+C`, the other one is the number of
/// anchors. If not, the larger dimension is: a model has more anchors than values per anchor.
pub struct Yolov8;

impl Decoder for Yolov8 {
    fn name(&self) -> &'static str {
        "yolov8"
    }

    fn expects(&self) -> &str {
        "one tensor [1,4+C,N] or [1,N,4+C] of cx, cy, w, h, C class scores"
    }

    fn forms(&self) -> &[&'static dyn Form] {
        &[&Yolov8]
    }
}

impl Form for Yolov8 {
    fn roles(&self) -> &[Role] {
        const { &[Role::of_ids("output", &["yolo-v8-out", "yolo-v8-out-normalized"])] }
    }

    fn layout(&self, tensors: &[&TensorView<'_>], options: Options) -> Result<Layout, LayoutError> {
        let matrix = Matrix::of(tensors[0], self, options)?;
        let Matrix { images, rows, columns } = matrix;
        let transposed = is_transposed(rows, columns, options.known_classes());
        let (anchors, values) = if transposed { (rows, columns) } else { (columns, rows) };
        if values < 5 {
            return Err(shape_error(tensors[0], self));
        }
        check_classes(tensors[0], values - 4)?;
        let field = |value| match transposed {
            true => matrix.anchors_in_rows(0, value),
            false => matrix.anchors_in_columns(0, value),
        };
        Ok(PlainLayout {
            decoder: self.name(),
            images,
            anchors,
            classes: values - 4,
            boxes: field(0),
            box_format: BoxFormat::Center,
            scores: field(4),
            objectness: None,
            normalized: options.coordinates.normalized(tensors[0]),
        }
        .into())
    }

    /// True as exported, with the known number of classes, or if that is unknown, with 1 class (no
    /// other model family has five rows) or with the 80 classes of COCO. A transposed tensor could
    /// be the output of RT-DETR, or boxes with score and class.
    fn is_unambiguous(&self, layout: &Layout, classes: Option<usize>) -> bool {
        let as_exported = layout.groups[0].boxes.anchor_stride == 1;
        as_exported && classes.map_or([1, 80].contains(&layout.classes), |c| c == layout.classes)
    }
}

/// Whether the rows of a `rows` x `columns` matrix are anchors, rather than values.
fn is_transposed(rows: usize, columns: usize, classes: Option<usize>) -> bool {
    let is_values = |side: usize| classes.is_some_and(|classes| side == 4 + classes);
    match (is_values(rows), is_values(columns)) {
        (true, _) => false,
        (false, true) => true,
        // Without anchors, the dimension that is not zero is the number of values.
        (false, false) => columns > 0 && (rows == 0 || rows > columns),
    }
}
