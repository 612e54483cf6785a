// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes how tensors are read.
//!
//! In: the chosen decoder, and parameters. Out: a [`Reading`], with which results are compared.

use std::fmt;

use super::numbers::ReadBoxes;
use crate::decoder::{Choice, Decoder};
use crate::engine::Params;

/// Describes how the tensors are read.
#[derive(Clone, Copy)]
pub struct Reading {
    /// The decoder.
    pub decoder: &'static dyn Decoder,
    /// True if rows are anchors, and have no objectness.
    pub rows_without_objectness: bool,
    /// The number of classes.
    pub classes: usize,
    /// The number of the first class in the tensors.
    pub first_class: u32,
    /// The lowest score threshold of any class.
    pub threshold: f32,
    /// How boxes are read.
    pub boxes: ReadBoxes,
}

impl Reading {
    /// The reading of `choice` with these parameters, on a model's input of this width and height, if they are known.
    /// `in_frame` is whether boxes outside of a frame are rejected.
    pub fn new(choice: &Choice, params: &Params, model: Option<[f32; 2]>, in_frame: bool) -> Self {
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
                in_frame,
                format: layout.boxes.format,
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
