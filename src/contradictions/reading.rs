// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes how tensors are read.
//!
//! In: the chosen decoder, and parameters. Out: a [`Reading`], with which results are compared.

use std::fmt;

use super::numbers::ReadBoxes;
use crate::decoder::{Choice, Decoder};
use crate::engine::Params;
use crate::geometry::Bounds;

/// Describes how the tensors are read.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    pub decoder: &'static dyn Decoder,
    /// True if rows are anchors, and have no objectness.
    pub rows_without_objectness: bool,
    /// The number of classes.
    pub classes: usize,
    /// The number of the first class in the tensors.
    pub first_class: u32,
    /// The lowest score threshold of any class.
    pub threshold: f32,
    pub boxes: ReadBoxes,
}

impl Reading {
    /// Creates the reading for `choice` with these parameters. `model` is the width and height of the model's
    /// input, if they are known.
    pub fn new(choice: &Choice, params: &Params, model: Option<[f32; 2]>) -> Self {
        let layout = &choice.layout;
        Self {
            decoder: choice.decoder,
            rows_without_objectness: layout.has_rows_without_objectness(),
            classes: layout.classes,
            first_class: layout.first_label(),
            threshold: params.thresholds.lowest(layout.classes),
            boxes: ReadBoxes {
                normalized: layout.normalized,
                model,
                in_frame: params.visible != Bounds::ANY,
                class_field: layout.has_class_field(),
            },
        }
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Self { classes, threshold, boxes, .. } = self;
        let decoder = self.decoder.name();
        write!(f, "{decoder}, {classes} classes, threshold {threshold}, {boxes:?}")
    }
}

impl PartialEq for Reading {
    fn eq(&self, other: &Self) -> bool {
        let key =
            |it: &Self| (it.decoder.name(), it.classes, it.first_class, it.threshold, it.boxes);
        key(self) == key(other)
    }
}
