// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decoder `boxes`: boxes and scores in two tensors, as SSD, RetinaNet and most other detectors
//! export them after decoding anchors. The format of the boxes is [`Options::box_format`].

use super::layout::{Layout, LayoutError, PlainLayout};
use super::matrix::{
    Matrix, check_batch, check_classes, check_element_type, check_images, check_lengths,
    shape_error,
};
use super::{Decoder, Options, Role, Scores};
use crate::tensor::TensorView;

/// Reads boxes `[N,4]` or `[N,3]` and scores `[N]` or `[N,C]`.
pub struct Boxes;

impl Decoder for Boxes {
    fn name(&self) -> &'static str {
        "boxes"
    }

    fn expects(&self) -> &'static str {
        "boxes [N,4] ([N,3] with box-format=square) and scores [N] or [N,C]"
    }

    fn roles(&self) -> &'static [Role] {
        &[Role { name: "boxes", ids: &["boxes"] }, Role { name: "scores", ids: &["scores"] }]
    }

    fn layout(&self, tensors: &[&TensorView<'_>], options: Options) -> Result<Layout, LayoutError> {
        let (boxes, scores) = (tensors[0], tensors[1]);
        let box_matrix = Matrix::of(boxes, self, options)?;
        let Matrix { images, rows: anchors, columns } = box_matrix;
        match (columns, options.box_format) {
            (numbers, format) if numbers == format.components() => {}
            (numbers @ 3..=4, format) => {
                return Err(LayoutError::BoxFormat { tensor: boxes.to_string(), format, numbers });
            }
            _ => return Err(shape_error(boxes, self)),
        }
        check_element_type(scores)?;
        let (score_images, rows, columns) = match *scores.shape {
            [n, m] if n == images && m == anchors && boxes.shape.len() == 3 => (n, m, 1),
            [1, n] if n == anchors => (1, n, 1),
            [n] => (1, n, 1),
            [n, classes] => (1, n, classes),
            [batch, n, classes] => (batch, n, classes),
            _ => return Err(shape_error(scores, self)),
        };
        check_batch(scores, score_images, options)?;
        if columns == 0 {
            return Err(shape_error(scores, self));
        }
        check_images((boxes, images), (scores, score_images))?;
        check_lengths((boxes, anchors), (scores, rows))?;
        let (score_matrix, classes) = (Matrix { images, rows, columns }, columns);
        check_classes(scores, classes)?;
        Ok(PlainLayout {
            decoder: self.name(),
            images,
            anchors,
            classes,
            boxes: box_matrix.anchors_in_rows(0, 0),
            box_format: options.box_format,
            scores: score_matrix.anchors_in_rows(1, 0),
            objectness: None,
            normalized: options.coordinates.normalized(boxes),
        }
        .into())
    }

    fn scores(&self) -> Scores {
        Scores::OfTheModel
    }
}
