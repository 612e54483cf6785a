// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reason why tensors do not fit a decoder.

/// The reason why tensors do not fit a decoder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct LayoutError {
    /// The kind of the error.
    pub problem: LayoutProblem,
    text: String,
}

/// The kind of a [`LayoutError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutProblem {
    /// The decoder does not support the shape.
    Shape,
    /// The number of anchors does not match the grids of the model's input.
    Grid,
    /// The decoder with this name needs the size of the model's input, which is unknown.
    ModelSize(&'static str),
    /// Two tensors have different numbers of anchors.
    Anchors,
    /// The layout file does not have a prior for each anchor.
    Priors,
    /// The first dimension is 0, or it is not 1 and [`Options::batch`](crate::nms::Options::batch) is not set.
    Batch,
    /// The number of components of a box does not match [`Options::box_format`](crate::nms::Options::box_format).
    BoxFormat,
    /// The numbers of boxes, and of boxes for which the other tensor has scores, differ.
    Lengths,
    /// The batch sizes of boxes and scores differ.
    Images,
    /// Boxes and scores cannot have this element type.
    ElementType,
    /// The elements are quantized numbers, but their scale is unknown.
    NotQuantized,
    /// The shape has this number of classes, which is not the number that is set.
    NumClasses(usize),
    /// The numbers of an anchor can be the first or the last dimension.
    Channels,
    /// The channels of the prototypes can be the first or the last dimension.
    Prototypes,
    /// The decoder with this name can divide an anchor's numbers into scores and keypoints in several ways.
    Keypoints(&'static str),
    /// An anchor has only one score, so its softmax is always 1.
    SingleSoftmax,
    /// The elements of a classifier's tensor are a sequence.
    Sequence,
    /// One of an anchor's scores is set to be the background's, but there is only one.
    NoBackground,
    /// There are more than [`MAX_CLASSES`](crate::nms::MAX_CLASSES) classes.
    Classes,
}

impl LayoutError {
    pub(crate) fn new(problem: LayoutProblem, text: String) -> Self {
        Self { problem, text }
    }

    /// The rank of the error among the errors of several decoders: the least is the most specific. `None` if the
    /// tensor is probably the output of another model family.
    pub(in crate::decoder) fn specificity(&self) -> Option<u8> {
        use LayoutProblem::{Anchors, Classes, ElementType, Sequence, Shape};
        use LayoutProblem::{BoxFormat, Images, Lengths, NotQuantized, Priors};
        match self.problem {
            Shape | ElementType | Classes | Sequence => None,
            BoxFormat => Some(2),
            Lengths | Images | NotQuantized | Anchors | Priors => Some(1),
            _ => Some(0),
        }
    }
}
