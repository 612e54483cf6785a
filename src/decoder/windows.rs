use super::layout::{BoxFormat, Field, Layout, LayoutError, Matrix};
use super::{Decoder, Options, Role};
use crate::tensor::TensorView;

/// The paper's input: square windows with a score and one class. A row is left, top, side,
/// score; a side of zero marks an empty slot.
pub struct Windows;

impl Decoder for Windows {
    fn name(&self) -> &'static str {
        "windows"
    }

    fn expects(&self) -> &'static str {
        "one tensor [N,4] of rows x, y, side, score"
    }

    fn roles(&self) -> &'static [Role] {
        &[Role { name: "windows", ids: &["windows"] }]
    }

    fn layout(&self, tensors: &[&TensorView<'_>], options: Options) -> Result<Layout, LayoutError> {
        let matrix = Matrix::of(tensors[0], self.name(), self.expects())?;
        if matrix.columns != 4 {
            return Err(LayoutError::Shape {
                tensor: tensors[0].to_string(),
                decoder: self.name(),
                expected: self.expects(),
            });
        }
        Ok(Layout {
            decoder: self.name(),
            anchors: matrix.rows,
            classes: 1,
            boxes: Field::rows(0, 0, 4),
            box_format: BoxFormat::Square,
            scores: Field::rows(0, 3, 4),
            objectness: None,
            normalized: options.coordinates.normalized(tensors[0]),
        })
    }

    fn label(&self, class: u32) -> Option<&'static str> {
        (class == 0).then_some("object")
    }
}
