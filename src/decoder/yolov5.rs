use super::layout::{BoxFormat, Field, Layout, LayoutError, Matrix, check_classes};
use super::{Decoder, Options, Role};
use crate::tensor::TensorView;

/// YOLOv5 (also v6 and v7): a row is center x, center y, width, height, objectness and one score
/// per class. A row whose objectness is below the threshold is dropped, then one whose
/// objectness x best class is.
///
/// A model has at least as many anchors as numbers per anchor; what has fewer is a YOLOv8 output
/// or something else on its side, and read by rows it would give boxes of nonsense.
pub struct Yolov5;

impl Decoder for Yolov5 {
    fn name(&self) -> &'static str {
        "yolov5"
    }

    fn expects(&self) -> &'static str {
        "one tensor [1,N,5+C], N >= 5+C, of rows cx, cy, w, h, objectness, C class scores"
    }

    fn roles(&self) -> &'static [Role] {
        &[Role { name: "output", ids: &["yolo-v5-out", "yolo-v5-out-normalized"] }]
    }

    fn layout(&self, tensors: &[&TensorView<'_>], options: Options) -> Result<Layout, LayoutError> {
        let Matrix { rows: anchors, columns } =
            Matrix::of(tensors[0], self.name(), self.expects())?;
        if columns < 6 || (anchors < columns && anchors > 0) {
            return Err(LayoutError::Shape {
                tensor: tensors[0].to_string(),
                decoder: self.name(),
                expected: self.expects(),
            });
        }
        check_classes(tensors[0], columns - 5)?;
        Ok(Layout {
            decoder: self.name(),
            anchors,
            classes: columns - 5,
            boxes: Field::rows(0, 0, columns),
            box_format: BoxFormat::Center,
            scores: Field::rows(0, 5, columns),
            objectness: Some(Field::rows(0, 4, columns)),
            normalized: options.coordinates.normalized(tensors[0]),
        })
    }
}
