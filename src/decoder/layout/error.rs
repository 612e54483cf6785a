// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why tensors do not fit a decoder.

use super::BoxFormat;
use crate::decoder::MAX_CLASSES;

/// Why tensors do not fit a decoder.
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
    /// The number of anchors is not that of the grids of the model's input.
    #[error(
        "tensor {tensor}: it has {found} anchors, but decoder {decoder} expects {expected}: grids of \
         stride {strides} on a model input of {model}; set model-width and model-height to the \
         model's input"
    )]
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
    /// The decoder needs the size of the model's input, which is not known.
    #[error(
        "tensor {tensor}: decoder {decoder} needs the size of the model's input; \
         set model-width and model-height"
    )]
    ModelSize {
        /// A tensor, as displayed.
        tensor: String,
        /// The decoder's name.
        decoder: &'static str,
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
    #[error(
        "tensor {tensor}: expected a batch dimension of 1, got {batch}; \
         export the model with a batch size of 1"
    )]
    Batch {
        /// The tensor, as displayed.
        tensor: String,
        /// The first dimension.
        batch: usize,
    },
    /// The number of components of a box is not that of `box-format`.
    #[error(
        "tensor {tensor}: box-format={} needs [N,{}], got {numbers} numbers per box; \
         set box-format to {}",
        format.name(),
        format.components(),
        if *numbers == 3 { "square" } else { "corners or center" }
    )]
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
        /// The number of boxes that there are scores for.
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
    /// The element type is not one that boxes and scores can have.
    #[error(
        "tensor {tensor}: expected elements of type f32 or f16, or i8 or u8 with a scale; convert it upstream"
    )]
    ElementType {
        /// The tensor, as displayed.
        tensor: String,
    },
    /// The elements are quantized numbers, but their scale is not known.
    #[error(
        "tensor {tensor}: its elements are quantized, but their scale and zero point are not known; \
         set the property quantization"
    )]
    NotQuantized {
        /// The tensor, as displayed.
        tensor: String,
    },
    /// The number of classes is not that of `num-classes`.
    #[error(
        "tensor {tensor}: read by decoder {decoder} it has {classes} classes, but num-classes is \
         {expected}; correct num-classes, or set it to 0 to take what the tensor has"
    )]
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
    /// There are more classes than 65536.
    #[error("tensor {tensor}: {classes} classes are more than the {MAX_CLASSES} supported")]
    Classes {
        /// The tensor, as displayed.
        tensor: String,
        /// The number of classes by the shape.
        classes: usize,
    },
}

impl LayoutError {
    /// How specific the error is among those of several decoders: the least is the most specific. `None` if the
    /// tensor is probably the output of another model family.
    pub(in crate::decoder) fn specificity(&self) -> Option<u8> {
        match self {
            Self::NoImages { .. } | Self::Batch { .. } | Self::NumClasses { .. } => Some(0),
            Self::Lengths { .. } | Self::Images { .. } => Some(1),
            Self::BoxFormat { .. } => Some(2),
            Self::Grid { .. } | Self::ModelSize { .. } => Some(0),
            Self::NotQuantized { .. } | Self::Anchors { .. } | Self::Priors { .. } => Some(1),
            Self::Shape { .. } | Self::ElementType { .. } | Self::Classes { .. } => None,
        }
    }
}
