// SPDX-License-Identifier: MIT OR Apache-2.0
//! The meaning of tensors.
//!
//! In: the chosen decoder, and parameters. Out: an [`Interpretation`], with which results are compared.

use std::fmt;

use super::notice::ReadBoxes;
use crate::decoder::layout::Group;
use crate::decoder::{Choice, Coordinates, Decoder, MAX_CLASSES, Options};
use crate::engine::Params;

/// The meaning of the tensors. The evidence against one counts for readings with an equal one.
#[derive(Clone, Copy)]
pub(super) struct Interpretation {
    /// The decoder.
    pub decoder: &'static dyn Decoder,
    /// True if rows are anchors, and have no objectness.
    pub rows_without_objectness: bool,
    /// The number of classes.
    pub classes: usize,
    /// The number of the first class in the tensors.
    pub first_class: u32,
    /// The number of labels, if classes are numbers in a tensor and any number of classes is possible. Otherwise the
    /// numbers of classes and of labels are compared before a run.
    pub labels: Option<usize>,
    /// The lowest score threshold of any class.
    pub threshold: f32,
    /// How boxes are read.
    pub boxes: ReadBoxes,
}

impl Interpretation {
    /// The interpretation of `choice` with these parameters and options. `in_frame` is whether boxes outside of a frame
    /// are rejected.
    pub fn new(choice: &Choice, params: &Params, options: &Options, in_frame: bool) -> Self {
        let layout = &choice.layout;
        let is_row = |Group { boxes, class, .. }: &Group| {
            class.is_some()
                && (boxes.offset, boxes.anchor_stride, boxes.component_stride) == (0, 6, 1)
        };
        let is_of_six = layout.groups.iter().all(is_row);
        let has_any_class = layout.has_class_field() && layout.classes == MAX_CLASSES;
        Self {
            decoder: choice.decoder,
            rows_without_objectness: layout.has_rows_without_objectness(),
            classes: layout.classes,
            first_class: layout.first_label(),
            labels: Some(options.labels).filter(|&labels| labels > 0 && has_any_class),
            threshold: params.thresholds.lowest(layout.classes),
            boxes: ReadBoxes {
                normalized: layout.normalized,
                is_unit_set: options.coordinates != Coordinates::Auto,
                model: options.model_size,
                in_frame,
                of_six: is_of_six.then_some(layout.boxes.format),
                class_field: layout.has_class_field(),
            },
        }
    }
}

impl fmt::Debug for Interpretation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Self { classes, threshold, boxes, .. } = self;
        let decoder = self.decoder.name();
        write!(f, "{decoder}, {classes} classes, threshold {threshold}, {boxes:?}")
    }
}

impl PartialEq for Interpretation {
    fn eq(&self, other: &Self) -> bool {
        let key = |it: &Self| {
            (it.decoder.name(), it.classes, it.first_class, it.labels, it.threshold, it.boxes)
        };
        key(self) == key(other)
    }
}
