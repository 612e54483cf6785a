use super::layout::{BoxFormat, Layout, LayoutError, Matrix, check_classes, shape_error};
use super::{Decoder, Options, Role};
use crate::tensor::TensorView;

/// YOLOv8 (also v9 and 11): center x, center y, width, height and one score per class, without
/// objectness. As exported, each of these is a row over all anchors (`[1,4+C,N]`); some
/// converters transpose it (`[1,N,4+C]`). Where the number of classes is known and one dimension
/// is `4+C`, that one holds the numbers. A model has more anchors than numbers per anchor, so the
/// larger dimension is otherwise taken for the anchors.
pub struct Yolov8;

impl Decoder for Yolov8 {
    fn name(&self) -> &'static str {
        "yolov8"
    }

    fn expects(&self) -> &'static str {
        "one tensor [1,4+C,N] or [1,N,4+C] of cx, cy, w, h, C class scores"
    }

    fn roles(&self) -> &'static [Role] {
        &[Role { name: "output", ids: &["yolo-v8-out", "yolo-v8-out-normalized"] }]
    }

    fn layout(&self, tensors: &[&TensorView<'_>], options: Options) -> Result<Layout, LayoutError> {
        let matrix = Matrix::of(tensors[0], self, options)?;
        let Matrix { images, rows, columns } = matrix;
        let transposed = is_transposed(rows, columns, options.known_classes());
        let (anchors, numbers) = if transposed { (rows, columns) } else { (columns, rows) };
        if numbers < 5 {
            return Err(shape_error(tensors[0], self));
        }
        check_classes(tensors[0], numbers - 4)?;
        let field = |number| match transposed {
            true => matrix.anchors_in_rows(0, number),
            false => matrix.anchors_in_columns(0, number),
        };
        Ok(Layout {
            decoder: self.name(),
            images,
            anchors,
            classes: numbers - 4,
            boxes: field(0),
            box_format: BoxFormat::Center,
            scores: field(4),
            objectness: None,
            normalized: options.coordinates.normalized(tensors[0]),
        })
    }

    /// As exported, with the known number of classes, or else 1 (no other family has five rows) or
    /// COCO's 80. Transposed it could be RT-DETR's, or boxes with score and class.
    fn is_unambiguous(&self, layout: &Layout, classes: Option<usize>) -> bool {
        let as_exported = layout.boxes.anchor_stride == 1;
        as_exported && classes.map_or([1, 80].contains(&layout.classes), |c| c == layout.classes)
    }
}

/// Whether each anchor is a row of `rows` x `columns`, rather than each number.
fn is_transposed(rows: usize, columns: usize, classes: Option<usize>) -> bool {
    let is_numbers = |side: usize| classes.is_some_and(|classes| side == 4 + classes);
    match (is_numbers(rows), is_numbers(columns)) {
        (true, _) => false,
        (false, true) => true,
        // No anchors at all: the dimension that is not zero holds the numbers.
        (false, false) => columns > 0 && (rows == 0 || rows > columns),
    }
}
