use super::layout::{
    Field, Layout, LayoutError, Matrix, check_classes, check_element_type, check_lengths,
};
use super::{Decoder, Options, Role};
use crate::tensor::TensorView;

/// Boxes and scores in two tensors, as SSD, RetinaNet and most detectors export them once decoded.
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
        let shape_error = |tensor: &TensorView<'_>| LayoutError::Shape {
            tensor: tensor.to_string(),
            decoder: self.name(),
            expected: self.expects(),
        };
        let Matrix { rows: anchors, columns } = Matrix::of(boxes, self.name(), self.expects())?;
        match (columns, options.box_format) {
            (numbers, format) if numbers == format.components() => {}
            (numbers @ 3..=4, format) => {
                return Err(LayoutError::BoxFormat { tensor: boxes.to_string(), format, numbers });
            }
            _ => return Err(shape_error(boxes)),
        }
        check_element_type(scores)?;
        let (rows, classes) = match *scores.shape {
            [1, n] if n == anchors => (n, 1),
            [n] => (n, 1),
            [n, classes] | [1, n, classes] => (n, classes),
            [batch, _, _] => {
                return Err(LayoutError::Batch { tensor: scores.to_string(), batch });
            }
            _ => return Err(shape_error(scores)),
        };
        if classes == 0 {
            return Err(shape_error(scores));
        }
        check_lengths((boxes, anchors), (scores, rows))?;
        check_classes(scores, classes)?;
        Ok(Layout {
            decoder: self.name(),
            anchors,
            classes,
            boxes: Field::rows(0, 0, columns),
            box_format: options.box_format,
            scores: Field::rows(1, 0, classes),
            objectness: None,
            normalized: options.coordinates.normalized(boxes),
        })
    }
}
