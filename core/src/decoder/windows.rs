// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decoder `windows`: square windows with a score and one class, the input of Oro et al. 2020.
//! The row of an anchor is left, top, side, score; a side of zero marks an empty slot.

use super::layout::{BoxFormat, Layout, LayoutError, PlainLayout};
use super::matrix::{Matrix, shape_error};
use super::{Decoder, Form, Options, Role, Scores};
use crate::tensor::TensorView;

/// Reads one tensor `[N,4]`.
pub struct Windows;

impl Decoder for Windows {
    fn name(&self) -> &'static str {
        "windows"
    }

    fn expects(&self) -> &str {
        "one tensor [N,4] of rows x, y, side, score"
    }

    fn forms(&self) -> &[&'static dyn Form] {
        &[&Windows]
    }

    /// Those of the paper's detector exceed 1.
    fn scores(&self) -> Scores {
        Scores::Unbounded
    }

    fn label(&self, class: u32) -> Option<&'static str> {
        (class == 0).then_some("object")
    }
}

impl Form for Windows {
    fn roles(&self) -> &[Role] {
        const { &[Role::of_ids("windows", &["windows"])] }
    }

    fn layout(&self, tensors: &[&TensorView<'_>], options: Options) -> Result<Layout, LayoutError> {
        let matrix = Matrix::of(tensors[0], self, options)?;
        if matrix.columns != 4 {
            return Err(shape_error(tensors[0], self));
        }
        Ok(PlainLayout {
            decoder: self.name(),
            images: matrix.images,
            anchors: matrix.rows,
            classes: 1,
            boxes: matrix.anchors_in_rows(0, 0),
            box_format: BoxFormat::Square,
            scores: matrix.anchors_in_rows(0, 3),
            objectness: None,
            normalized: options.coordinates.normalized(tensors[0]),
        }
        .into())
    }
}
