// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reason why tensors do not fit a decoder.

use super::{Background, BoxFormat};
use crate::decoder::MAX_CLASSES;
use crate::names::{Interface, Name};
use crate::tensor::TensorView;

/// The reason why tensors do not fit a decoder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The decoder does not support the shape.
    #[error("tensor {tensor}: decoder {decoder} expects {expected}")]
    Shape {
        /// The tensor, as displayed.
        tensor: String,
        /// The decoder's name.
        decoder: &'static str,
        /// The expected shapes.
        expected: String,
    },
    /// The number of anchors does not match the grids of the model's input.
    #[error("{}", self.text(Interface::Element))]
    Grid {
        /// The tensor, as displayed.
        tensor: String,
        /// The decoder's name.
        decoder: &'static str,
        /// The number of anchors by the shape.
        found: usize,
        /// The number of anchors by the grids.
        expected: usize,
        /// The strides, as displayed.
        strides: String,
        /// The size of the model's input, as displayed.
        model: String,
    },
    /// The decoder needs the size of the model's input, which is unknown.
    #[error("{}", self.text(Interface::Element))]
    ModelSize {
        /// A tensor, as displayed.
        tensor: String,
        /// The decoder's name.
        decoder: &'static str,
        /// The number of classes by the shapes; `None` if they do not tell.
        classes: Option<usize>,
    },
    /// Two tensors have different numbers of anchors.
    #[error(
        "tensor {first} has {first_anchors} anchors, tensor {second} has {second_anchors}; \
         expected the same number"
    )]
    Anchors {
        /// A tensor, as displayed.
        first: String,
        /// The number of anchors by its shape.
        first_anchors: usize,
        /// Another tensor, as displayed.
        second: String,
        /// The number of anchors by its shape.
        second_anchors: usize,
    },
    /// The layout file does not have a prior for each anchor.
    #[error(
        "tensor {tensor}: it has {found} anchors, but the layout file has {priors} priors; \
         expected one for each anchor"
    )]
    Priors {
        /// The tensor, as displayed.
        tensor: String,
        /// The number of anchors by the shape.
        found: usize,
        /// The number of priors.
        priors: usize,
    },
    /// The first dimension is 0.
    #[error(
        "tensor {tensor}: expected a batch of at least one image, got none; leave out empty batches"
    )]
    NoImages {
        /// The tensor, as displayed.
        tensor: String,
    },
    /// The first of three dimensions is not 1, and [`Options::batch`](crate::nms::Options::batch) is not set.
    #[error("{}", self.text(Interface::Element))]
    Batch {
        /// The tensor, as displayed.
        tensor: String,
        /// The first dimension.
        batch: usize,
    },
    /// The number of components of a box does not match `box-format`.
    #[error("{}", self.text(Interface::Element))]
    BoxFormat {
        /// The tensor, as displayed.
        tensor: String,
        /// The value of `box-format`.
        format: BoxFormat,
        /// The number of components per box.
        numbers: usize,
    },
    /// The numbers of boxes and scores differ.
    #[error(
        "tensor {boxes} has {box_count} boxes, tensor {scores} has scores for {score_count}; \
         expected one row of scores for each box"
    )]
    Lengths {
        /// The tensor with the boxes, as displayed.
        boxes: String,
        /// The number of boxes.
        box_count: usize,
        /// The tensor with the scores, as displayed.
        scores: String,
        /// The number of boxes for which the tensor has scores.
        score_count: usize,
    },
    /// The batch sizes of boxes and scores differ.
    #[error(
        "tensor {boxes} is a batch of {box_images}, tensor {scores} one of {score_images}; \
         expected the same number of images"
    )]
    Images {
        /// The tensor with the boxes, as displayed.
        boxes: String,
        /// The number of images of the boxes.
        box_images: usize,
        /// The tensor with the scores, as displayed.
        scores: String,
        /// The number of images of the scores.
        score_images: usize,
    },
    /// Boxes and scores cannot have this element type.
    #[error(
        "tensor {tensor}: expected elements of type f32 or f16, or i8 or u8 with a scale; convert it upstream"
    )]
    ElementType {
        /// The tensor, as displayed.
        tensor: String,
    },
    /// The elements are quantized numbers, but their scale is unknown.
    #[error("{}", self.text(Interface::Element))]
    NotQuantized {
        /// The tensor, as displayed.
        tensor: String,
    },
    /// The number of classes differs from `num-classes`.
    #[error("{}", self.text(Interface::Element))]
    NumClasses {
        /// The tensor with the scores, as displayed.
        tensor: String,
        /// The decoder's name.
        decoder: &'static str,
        /// The number of classes by the shape.
        classes: usize,
        /// The value of `num-classes`.
        expected: usize,
    },
    /// The numbers of an anchor can be the first or the last dimension, and the setting `channels` does not decide.
    #[error("{}", self.text(Interface::Element))]
    Channels {
        /// The tensor, as displayed.
        tensor: String,
        /// The decoder's name.
        decoder: &'static str,
    },
    /// The channels of the prototypes can be the first or the last dimension.
    #[error("{}", self.text(Interface::Element))]
    Prototypes {
        /// The tensor, as displayed.
        tensor: String,
        /// The decoder's name.
        decoder: &'static str,
        /// Both readings, as displayed.
        readings: String,
        /// True if the number of classes is known.
        has_num_classes: bool,
    },
    /// An anchor's numbers can be divided into scores and keypoints in several ways.
    #[error("{}", self.text(Interface::Element))]
    Keypoints {
        /// The tensor, as displayed.
        tensor: String,
        /// The decoder's name.
        decoder: &'static str,
        /// Examples of the ways, as displayed.
        readings: String,
        /// True if the number of classes is known, or none of the numbers are scores of classes.
        has_num_classes: bool,
    },
    /// An anchor has only one score, so its softmax is always 1.
    #[error("{}", self.text(Interface::Element))]
    SingleSoftmax {
        /// The tensor with the scores, as displayed.
        tensor: String,
        /// The decoder's name.
        decoder: &'static str,
    },
    /// The elements of a classifier's tensor are a sequence.
    #[error(
        "tensor {tensor} is no score for each class: it has whole numbers ({length}), then -1 up to the end, which is a \
         sequence, as of the characters of a license plate; decoder classifier expects scores: read such tensors in the \
         application"
    )]
    Sequence {
        /// The tensor, as displayed.
        tensor: String,
        /// The number of elements before the first -1.
        length: usize,
    },
    /// One of an anchor's scores is set to be the background's, but there is only one.
    #[error("{}", self.text(Interface::Element))]
    NoBackground {
        /// The tensor with the scores, as displayed.
        tensor: String,
        /// The decoder's name.
        decoder: &'static str,
        /// The score that is set.
        background: Background,
    },
    /// There are more than 65536 classes.
    #[error("tensor {tensor}: {classes} classes are more than the {MAX_CLASSES} supported")]
    Classes {
        /// The tensor, as displayed.
        tensor: String,
        /// The number of classes by the shape.
        classes: usize,
    },
}

impl LayoutError {
    /// The error of scores of which none is left for a class beside the background's.
    pub(in crate::decoder) fn no_background(
        tensor: &TensorView<'_>,
        decoder: &'static str,
        background: Background,
    ) -> Self {
        Self::NoBackground { tensor: tensor.to_string(), decoder, background }
    }

    /// The text with the names that `interface` has for settings.
    pub fn text(&self, interface: Interface) -> String {
        let model_size = interface.name(Name::ModelSize);
        match self {
            Self::Grid { tensor, decoder, found, expected, strides, model } => format!(
                "tensor {tensor}: it has {found} anchors, but decoder {decoder} expects {expected}: grids of \
                 stride {strides} on a model input of {model}; set {model_size} to the model's input"
            ),
            Self::ModelSize { tensor, decoder, .. } => format!(
                "tensor {tensor}: decoder {decoder} needs the size of the model's input; set {model_size}"
            ),
            Self::Batch { tensor, batch } => {
                let option = match interface {
                    Interface::Rust => ", or set Options::batch",
                    Interface::C => ", or set batch to 1",
                    // Here the number of images follows from metadata, or is always read.
                    Interface::Element | Interface::Python => "",
                };
                format!(
                    "tensor {tensor}: expected a batch dimension of 1, got {batch}; export the model with a batch \
                     size of 1{option}"
                )
            }
            Self::BoxFormat { tensor, format, numbers } => {
                let option = interface.name(Name::BoxFormat);
                let is = if interface == Interface::Element { "=" } else { " " };
                let (format, components) = (format.name(), format.components());
                let other = if *numbers == 3 { "square" } else { "corners or center" };
                format!(
                    "tensor {tensor}: {option}{is}{format} needs [N,{components}], got {numbers} numbers per box; \
                     set {option} to {other}"
                )
            }
            Self::NotQuantized { tensor } => {
                let property = if interface == Interface::Element { "the property " } else { "" };
                let quantization = interface.name(Name::Quantization);
                format!(
                    "tensor {tensor}: its elements are quantized, but their scale and zero point are not known; \
                     set {property}{quantization}"
                )
            }
            Self::NumClasses { tensor, decoder, classes, expected } => {
                let num_classes = interface.name(Name::NumClasses);
                format!(
                    "tensor {tensor}: read by decoder {decoder} it has {classes} classes, but {num_classes} is \
                     {expected}; correct {num_classes}, or set it to 0 to take what the tensor has{}",
                    match *classes == expected.saturating_add(1) {
                        true => format!(
                            ", or if one score is the background's, set {} to first or last",
                            interface.name(Name::Background)
                        ),
                        false => String::new(),
                    }
                )
            }
            Self::Prototypes { tensor, decoder, readings, has_num_classes } => {
                let num_classes = match has_num_classes {
                    true => String::new(),
                    false => format!("{}, ", interface.name(Name::NumClasses)),
                };
                format!(
                    "tensor {tensor}: decoder {decoder} can read it as {readings}; set {num_classes}{} to first or \
                     last, or {model_size} to the model's input",
                    interface.name(Name::Channels)
                )
            }
            Self::Keypoints { tensor, decoder, readings, has_num_classes } => {
                let num_classes = match has_num_classes {
                    true => String::new(),
                    false => format!("{} or ", interface.name(Name::NumClasses)),
                };
                format!(
                    "tensor {tensor}: decoder {decoder} can read an anchor's numbers in several ways, such as {readings}; \
                     set {num_classes}{}",
                    interface.name(Name::KeypointShape)
                )
            }
            Self::Channels { tensor, decoder } => format!(
                "tensor {tensor}: decoder {decoder} can read it with the channels (the numbers of an anchor) first or \
                 last; set {} to first or last",
                interface.name(Name::Channels)
            ),
            Self::SingleSoftmax { tensor, decoder } => format!(
                "tensor {tensor}: decoder {decoder} reads one score for each anchor, and softmax of one score is \
                 always 1; set {} to sigmoid or none",
                interface.name(Name::ScoreActivation)
            ),
            Self::NoBackground { tensor, decoder, background } => format!(
                "tensor {tensor}: decoder {decoder} reads one score for each anchor, so the {} is not the \
                 background's; unset {}",
                background.name(),
                interface.name(Name::Background)
            ),
            // Others name no setting.
            error => error.to_string(),
        }
    }

    /// The rank of the error among the errors of several decoders: the least is the most specific. `None` if the
    /// tensor is probably the output of another model family.
    pub(in crate::decoder) fn specificity(&self) -> Option<u8> {
        match self {
            Self::NoImages { .. } | Self::Batch { .. } | Self::NumClasses { .. } => Some(0),
            Self::SingleSoftmax { .. } | Self::NoBackground { .. } => Some(0),
            Self::Channels { .. } | Self::Keypoints { .. } => Some(0),
            Self::Lengths { .. } | Self::Images { .. } => Some(1),
            Self::BoxFormat { .. } => Some(2),
            Self::Grid { .. } | Self::ModelSize { .. } | Self::Prototypes { .. } => Some(0),
            Self::NotQuantized { .. } | Self::Anchors { .. } | Self::Priors { .. } => Some(1),
            Self::Shape { .. } | Self::ElementType { .. } => None,
            Self::Classes { .. } | Self::Sequence { .. } => None,
        }
    }
}
