// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reason why tensors do not fit a decoder.

use super::{Background, BoxFormat};
use crate::decoder::MAX_CLASSES;
use crate::tensor::TensorView;
use crate::wording::Setting::{
    self, Batch, Channels, KeypointShape, ModelSize, NumClasses, Quantization, ScoreActivation,
};

/// A tensor, as displayed, and a number that follows from its shape.
type Counted = (String, usize);

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
    #[error(
        "tensor {tensor}: it has {found} anchors, but decoder {decoder} expects {expected}: grids of stride {strides} on a \
         model input of {model}; set {ModelSize} to the model's input"
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
    /// The decoder needs the size of the model's input, which is unknown.
    #[error(
        "tensor {tensor}: decoder {decoder} needs the size of the model's input; set {ModelSize}"
    )]
    ModelSize {
        /// A tensor, as displayed.
        tensor: String,
        /// The decoder's name.
        decoder: &'static str,
        /// The number of classes by the shapes; `None` if they do not tell.
        classes: Option<usize>,
    },
    /// Two tensors have different numbers of anchors.
    #[error("tensor {} has {} anchors, tensor {} has {}; expected the same number", .0.0, .0.1, .1.0, .1.1)]
    Anchors(Counted, Counted),
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
        "tensor {tensor}: expected a batch dimension of 1, got {batch}; export the model with a batch size of 1, or use \
         {Batch}"
    )]
    Batch {
        /// The tensor, as displayed.
        tensor: String,
        /// The first dimension.
        batch: usize,
    },
    /// The number of components of a box does not match `box-format`.
    #[error(
        "tensor {tensor}: {} needs [N,{}], got {numbers} numbers per box; set {} to {}",
        Setting::BoxFormat.to(format.name()), format.components(), Setting::BoxFormat,
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
    /// The numbers of boxes, and of boxes for which the other tensor has scores, differ.
    #[error(
        "tensor {} has {} boxes, tensor {} has scores for {}; expected one row of scores for each box",
        .0.0, .0.1, .1.0, .1.1
    )]
    Lengths(Counted, Counted),
    /// The batch sizes of boxes and scores differ.
    #[error(
        "tensor {} is a batch of {}, tensor {} one of {}; expected the same number of images",
        .0.0, .0.1, .1.0, .1.1
    )]
    Images(Counted, Counted),
    /// Boxes and scores cannot have this element type.
    #[error(
        "tensor {tensor}: expected elements of type f32 or f16, or i8 or u8 with a scale; convert it upstream"
    )]
    ElementType {
        /// The tensor, as displayed.
        tensor: String,
    },
    /// The elements are quantized numbers, but their scale is unknown.
    #[error(
        "tensor {tensor}: its elements are quantized, but their scale and zero point are not known; set {Quantization}"
    )]
    NotQuantized {
        /// The tensor, as displayed.
        tensor: String,
    },
    /// The number of classes differs from `num-classes`.
    #[error(
        "tensor {tensor}: read by decoder {decoder} it has {classes} classes, but {NumClasses} is {expected}; correct \
         {NumClasses}, or set it to 0 to take what the tensor has{}",
        if *classes == expected.saturating_add(1) { OR_BACKGROUND } else { "" }
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
    /// The numbers of an anchor can be the first or the last dimension, and the setting `channels` does not decide.
    #[error(
        "tensor {tensor}: decoder {decoder} can read it with the channels (the numbers of an anchor) first or last; set \
         {Channels} to first or last"
    )]
    Channels {
        /// The tensor, as displayed.
        tensor: String,
        /// The decoder's name.
        decoder: &'static str,
    },
    /// The channels of the prototypes can be the first or the last dimension.
    #[error(
        "tensor {tensor}: decoder {decoder} can read it as {readings}; set {}{Channels} to first or last, or {ModelSize} \
         to the model's input",
        unless(*has_num_classes, ", ")
    )]
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
    #[error(
        "tensor {tensor}: decoder {decoder} can read an anchor's numbers in several ways, such as {readings}; set \
         {}{KeypointShape}",
        unless(*has_num_classes, " or ")
    )]
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
    #[error(
        "tensor {tensor}: decoder {decoder} reads one score for each anchor, and softmax of one score is always 1; set \
         {ScoreActivation} to sigmoid or none"
    )]
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
    #[error(
        "tensor {tensor}: decoder {decoder} reads one score for each anchor, so the {} is not the background's; unset {}",
        background.name(), Setting::Background
    )]
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

/// The other meaning of scores of one class too many.
const OR_BACKGROUND: &str =
    ", or if one score is the background's, set `options.background` to first or last";

/// Names the number of classes as what decides, unless it is known.
fn unless(is_known: bool, separator: &str) -> String {
    if is_known { String::new() } else { format!("{NumClasses}{separator}") }
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
