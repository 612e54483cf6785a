// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order of dimensions where the shapes of a description leave it open: the numbers of an anchor or pixel, which are
//! called channels, before the anchors or after them.
//!
//! In: a description. Out: the description of one order. The order of all tensors with rows and columns of cells is the same,
//! so that no tensor is decided alone.

use super::shape::Pattern;
use super::{Description, TensorRule};

impl<'a> Description<'a> {
    /// The description with the channels last, or first. Of the shapes of anchors in rows and columns, only those of this
    /// order are left; of others, those of this order come first. The prototypes beside anchors in rows and columns have this
    /// order, too, unless their shape has only the other one.
    pub(in crate::decoder) fn with_order(&self, is_last: bool) -> Self {
        let mut description = self.clone();
        let is_map = |tensor: &TensorRule<'_>| {
            tensor.shapes.iter().all(|shape| shape.by_cell().is_some() && shape.has_channels())
        };
        let is_of_order = |shape: &Pattern| shape.has_numbers_last() == is_last;
        let is_open = |tensor: &TensorRule<'_>| {
            tensor.shapes.iter().any(is_of_order) && !tensor.shapes.iter().all(is_of_order)
        };
        description.has_order = self.tensors.iter().any(|tensor| is_map(tensor) && is_open(tensor));
        for tensor in description.tensors.iter_mut().filter(|tensor| is_open(tensor)) {
            match is_map(tensor) {
                true => tensor.shapes.retain(is_of_order),
                false if tensor.shapes.iter().any(Pattern::is_images) && !description.has_order => {
                }
                false => tensor.shapes.sort_by_key(|shape| !is_of_order(shape)),
            }
        }
        description
    }

    /// True if another description has these shapes of tensors.
    pub(in crate::decoder) fn has_shapes_of(&self, other: &Self) -> bool {
        let of_other = other.tensors.iter().map(|tensor| &tensor.shapes);
        self.tensors.iter().map(|tensor| &tensor.shapes).eq(of_other)
    }
}
