// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tensors of a suppression of boxes.
//!
//! In: tensors of boxes, scores, groups and a column. Out: the tensors with checked types and shapes.

use arrayvec::ArrayVec;

use super::NmsError;
use crate::decoder::layout::{ColumnKind, MAX_COLUMN_COMPONENTS};
use crate::engine::Method;
use crate::tensor::{ElementType, TensorView};

/// The tensors of a call, whose element types and shapes were checked.
#[derive(Clone, Copy)]
pub(super) struct BoxInput<'t, 'a> {
    pub boxes: &'t TensorView<'a>,
    pub scores: &'t TensorView<'a>,
    pub groups: Option<&'t TensorView<'a>>,
    /// The column that a method reads.
    pub column: Option<&'t TensorView<'a>>,
    pub count: usize,
    pub is_oriented: bool,
}

impl<'t, 'a> BoxInput<'t, 'a> {
    /// True if a tensor is in device memory.
    pub fn is_on_device(&self) -> bool {
        self.tensors().iter().any(TensorView::is_on_device)
    }

    /// Boxes, scores and groups.
    pub fn tensors(&self) -> ArrayVec<TensorView<'a>, 3> {
        [Some(self.boxes), Some(self.scores), self.groups].into_iter().flatten().cloned().collect()
    }

    pub fn new(
        boxes: &'t TensorView<'a>,
        scores: &'t TensorView<'a>,
        groups: Option<&'t TensorView<'a>>,
    ) -> Result<Self, NmsError> {
        let error = |tensor: &TensorView<'_>, what: &str| NmsError::input(what, tensor);
        let (count, numbers) = match *boxes.shape {
            [count, numbers @ (4 | 5)] if boxes.element.is_float() => (count, numbers),
            _ => return Err(error(boxes, "boxes [N,4] or [N,5] of type f32 or f16")),
        };
        if *scores.shape != [count] || !scores.element.is_float() {
            return Err(error(scores, &format!("scores [{count}] of type f32 or f16")));
        }
        if let Some(groups) = groups
            && (*groups.shape != [count]
                || !matches!(groups.element, ElementType::I32 | ElementType::I64))
        {
            return Err(error(groups, &format!("groups [{count}] of type i32 or i64")));
        }
        Ok(Self { boxes, scores, groups, column: None, count, is_oriented: numbers == 5 })
    }

    /// Checks that there is the column that the method reads, and no other.
    pub fn check_column(&self, method: Method) -> Result<(), NmsError> {
        let count = self.count;
        let shape = self.column.filter(|column| column.element.is_float()).map(|it| &it.shape[..]);
        let (is_valid, expected) = match method.column() {
            None => (self.column.is_none(), "no densities and no embeddings".to_owned()),
            Some(ColumnKind::Density) => {
                (shape == Some(&[count]), format!("densities [{count}] of type f32 or f16"))
            }
            Some(_) => {
                const MOST: usize = MAX_COLUMN_COMPONENTS;
                let is_embedding = matches!(shape, Some(&[of, 1..=MOST]) if of == count);
                (is_embedding, format!("embeddings [{count}, 1 to {MOST}] of type f32 or f16"))
            }
        };
        if is_valid {
            return Ok(());
        }
        let expected = format_args!("{expected} for the method {}", method.name());
        Err(match self.column {
            Some(column) => NmsError::input(expected, column),
            None => NmsError::input(expected, "none"),
        })
    }

    /// The numbers of a box.
    pub fn numbers(&self) -> usize {
        if self.is_oriented { 5 } else { 4 }
    }
}
