// SPDX-License-Identifier: MIT OR Apache-2.0
//! The meaning of tensors.
//!
//! In: the chosen decoder, and parameters. Out: an [`Interpretation`], with which results are compared.

use std::fmt;

use crate::decoder::layout::Group;
use crate::decoder::{BoxFormat, Choice, Coordinates, Decoder, MAX_CLASSES, Options};
use crate::engine::Params;
use crate::wording::Setting;

/// The meaning of the tensors. The evidence against one counts for readings with an equal one.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Interpretation {
    /// The decoder.
    pub decoder: &'static Decoder,
    /// True if rows are anchors, and have no objectness.
    pub rows_without_objectness: bool,
    /// The number of classes.
    pub classes: usize,
    /// The number of the first class in the tensors.
    pub first_class: u32,
    /// The number of labels, if classes are numbers in a tensor and any number of classes is possible. Otherwise the
    /// numbers of classes and of labels are compared before a run.
    pub labels: Option<usize>,
    /// The number of pairs with a class that each anchor counts for.
    pub pairs: usize,
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
            pairs: match params.multi_label && !layout.has_class_field() {
                true => layout.score.components.max(1),
                false => 1,
            },
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

/// How boxes and classes are read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ReadBoxes {
    /// True if coordinates are read as normalized.
    pub normalized: bool,
    /// True if the user has set that, perhaps because a notice has said so.
    pub is_unit_set: bool,
    /// Width and height of the model's input in pixels; `None` if unknown.
    pub model: Option<[f32; 2]>,
    /// True if boxes outside a frame are rejected.
    pub in_frame: bool,
    /// The meaning of a box's numbers, if anchors are rows of a box, a score and a class.
    pub of_six: Option<BoxFormat>,
    /// True if classes are numbers in a tensor. An anchor is rejected if its number is negative or not whole.
    pub class_field: bool,
}

impl ReadBoxes {
    /// Says for which boxes and classes anchors are rejected.
    pub fn fault(self) -> String {
        let boxes = if self.in_frame { "are outside the frame" } else { "have negative sides" };
        let classes = if self.class_field {
            ", or the class column has numbers that are negative or not whole, so it does not contain classes"
        } else {
            ""
        };
        let mut fault = boxes.to_owned() + classes;
        // RT-DETR has centers and sizes beside a class, other end-to-end models have corners.
        if self.of_six == Some(BoxFormat::Corners) {
            let centers = Setting::Decoder.to("detr-end2end");
            fault += &format!("; if boxes are center and size, set {centers}");
        }
        fault
    }
}

/// Says how coordinates are read, and what to check.
impl fmt::Display for ReadBoxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (decoder, format) = (Setting::Decoder, Setting::BoxFormat);
        if self.normalized {
            let pixels = Setting::Coordinates.to("pixels");
            return write!(
                f,
                "coordinates are read as normalized: set {pixels} if they are pixels, or correct {decoder} or {format}"
            );
        }
        f.write_str("coordinates are read as pixels")?;
        if let Some([width, height]) = self.model {
            write!(f, " of an input of {width}x{height}")?;
        }
        f.write_str(": ")?;
        if !self.is_unit_set {
            let normalized = Setting::Coordinates.to("normalized");
            write!(f, "set {normalized} if they are from 0 to 1, or ")?;
        }
        write!(f, "correct {decoder}, {format}, or {}", Setting::Place)
    }
}
