use super::layout::{BoxFormat, Field, Layout, LayoutError, Matrix, check_classes};
use super::{Head, Options, Role};
use crate::tensor::Tensor;

/// YOLOv8 (also v9 and 11): centre x, centre y, width, height and one score per class, without
/// objectness. As exported, each of these is a row over all anchors (`[1,4+C,N]`); some
/// converters transpose it (`[1,N,4+C]`). A model has more anchors than numbers per anchor, so
/// the larger dimension is taken for the anchors.
pub struct Yolov8;

impl Head for Yolov8 {
    fn name(&self) -> &'static str {
        "yolov8"
    }

    fn expects(&self) -> &'static str {
        "one tensor [1,4+C,N] or [1,N,4+C] of cx, cy, w, h, C class scores"
    }

    fn roles(&self) -> &'static [Role] {
        &[Role { name: "output", ids: &["yolo-v8-out", "yolo-v8-out-normalized"] }]
    }

    fn layout(&self, tensors: &[&Tensor<'_>], options: Options) -> Result<Layout, LayoutError> {
        let Matrix { rows, columns } = Matrix::of(tensors[0], self.name(), self.expects())?;
        // No anchors at all: the dimension that is not zero holds the numbers.
        let transposed = if columns == 0 { false } else { rows == 0 || rows > columns };
        let (anchors, numbers) = if transposed { (rows, columns) } else { (columns, rows) };
        if numbers < 5 {
            return Err(LayoutError::Shape {
                tensor: tensors[0].to_string(),
                head: self.name(),
                expected: self.expects(),
            });
        }
        check_classes(tensors[0], numbers - 4)?;
        let field = |number| {
            if transposed {
                Field::rows(0, number, numbers)
            } else {
                Field::columns(0, number, anchors)
            }
        };
        Ok(Layout {
            head: self.name(),
            anchors,
            classes: numbers - 4,
            boxes: field(0),
            box_format: BoxFormat::Centre,
            scores: field(4),
            objectness: None,
            normalised: options.coordinates.normalised(tensors[0]),
        })
    }
}
