// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decoding and suppression: the rules, and the engines that implement them.
//!
//! In: tensors of one or more images; the [`Layout`], which describes the elements of each anchor;
//! [`Params`]; and the [`ImagePlace`] of each image. Out: an [`Outcome`], which has the surviving
//! detections of each group of images in descending rank.
//!
//! The rules below are the specification. Every engine returns identical survivors, in identical
//! order, with identical bits. [`Reference`] implements the rules one by one, without optimization,
//! and tests compare [`Cpu`] and [`Cuda`] with it. [`select`] creates the engine of a [`Backend`].
//!
//! # Images, places and groups
//! A run has one or more images, and each image has a place: its position in a frame, and the
//! number of its group. Candidates are suppressed only within their group. A frame that is scaled
//! to the model's input is one image in a separate group. Tiles of a frame, or regions of interest,
//! are images of one group, each with its position in the frame.
//!
//! The anchors of a group are the anchors of its images, one image after the other. With `n`
//! anchors per image, anchor `a` of image `i` of a group has the index `i * n + a`. Limits and
//! counts "per group" apply to the anchors of all images in the group.
//!
//! Boxes are in pixels of the model's input, or with [`BoxPixels::Frame`] in pixels of the frame,
//! so that boxes of different images can be compared. Each image has a *scale* and an *offset*. In
//! pixels of the model's input, the scale is `unit` and the offset is 0, where `unit` is
//! [`ImagePlace::model_size`] for normalized coordinates and 1 for others. In pixels of the frame,
//! the scale is `unit / ratio` and the offset is `-offset / ratio`, with the numbers of
//! [`ImagePlace::frame`], computed in double precision and rounded once. Size limits are in pixels
//! of the frame. If boxes are in pixels of the model's input and the image is in a frame, the
//! limits are multiplied by the ratio, in double precision and rounded once.
//!
//! # From anchor to candidate
//! An anchor either becomes a candidate, or is *rejected* (invalid, and counted) or *dropped* (not
//! counted). All arithmetic is IEEE 754 single precision, and each operation is rounded separately
//! (no fused multiply-add). Elements are first converted to single precision: f16 exactly, integers
//! to the nearest value, and quantized integers to `(element - zero_point) * scale`. The module
//! `functions` defines `exp` and `sigmoid`; the module `formula` defines the order of all other
//! operations.
//!
//! An anchor is dropped if its index is at or beyond [`Layout::count`], truncated to a whole
//! number. With [`Layout::pairs`], every pair that a row of the image names is an anchor with this class alone, once; a
//! row with another class or anchor than there are is rejected.
//!
//! 1. If the layout has objectness, an anchor whose objectness is not finite is rejected. With
//!    [`Activation::Sigmoid`](crate::decoder::layout::Activation), objectness is then replaced by
//!    its sigmoid. If objectness is a factor of the score
//!    ([`Combination::Product`](crate::decoder::layout::Combination)), the anchor is dropped if
//!    objectness is below the lowest threshold of any class.
//! 2. The best class is the first class with the greatest score in the tensor, before the
//!    activation. NaN is less than any other score. The background's score is not compared. The
//!    anchor is rejected if the greatest score is not finite.
//!    With [`ScoreRule::peaks`](crate::decoder::layout::ScoreRule::peaks), a class is not compared
//!    either if one of the up to 8 cells beside the anchor's, in the grid of its group, has a greater
//!    score of the class; the anchor is dropped if no score above minus infinity is compared.
//! 3. The candidate's score is the activation of the greatest score, combined with objectness if
//!    the layout has it. The combination is either the product of both, or the square root of the
//!    product after limiting both to the range 0 to 1. Softmax is `exp(x - m) / sum(exp(x_i - m))`
//!    over all scores in their order, including the background's score; `m` is the greatest of
//!    them. The anchor is rejected if the score is not finite. Minus zero is replaced by zero.
//! 4. The anchor is dropped if its score is below the lowest threshold. If the class has a field,
//!    the anchor is rejected unless the class is a whole number from 0 to [`Layout::classes`] - 1.
//!    The anchor is dropped if its score is below the threshold of the class, or if objectness is a
//!    factor of the score and is below that threshold.
//! 5. The box is computed from its components ([`BoxRule`](crate::decoder::layout::BoxRule)).
//!    Positions and sizes are multiplied by the image's scale, then converted to corners; with
//!    [`BoxFormat::Distances`](crate::decoder::BoxFormat::Distances), the corners are multiplied.
//!    The image's offset is added to each corner, unless the offset is zero. The anchor is rejected
//!    if a corner is not finite, or if a side is negative or longer than [`MAX_BOX_SIDE`]. The
//!    anchor is dropped if a side is zero (an empty slot) or outside [`Params::sizes`], or the
//!    [sizes of its class](ClassRule::sizes).
//!
//!    If boxes have an angle, the box is oriented. Center and size are computed like an upright box
//!    of [`BoxFormat::Center`](crate::decoder::BoxFormat::Center), and the angle is the number in
//!    its field times [`BoxRule::angle_factor`](crate::decoder::layout::BoxRule::angle_factor). The
//!    anchor is rejected if the angle is not finite or more than [`MAX_ANGLE`] in magnitude. The
//!    offset is added to the center. "A side" in the rule means a side of the oriented box. The
//!    corners are the corners of the oriented box's bounds, and the bounds replace the box in rule
//!    6. The anchor is rejected if a corner is not finite, and dropped if the bounds are empty.
//! 6. The anchor is rejected if its box does not intersect [`ImagePlace::visible`], that is, if the
//!    right edge is not to the right of the left bound, the left edge is not to the left of the
//!    right bound, the lower edge is not below the upper bound, or the upper edge is not above the
//!    lower bound. A box outside the visible part therefore suppresses no other box and does not
//!    count toward [`Params::max_candidates`].
//! 7. If the box touches an inner edge of the image's region, the anchor is dropped, or its score is
//!    lowered, according to [`Params::region_edges`]. The module `edges` has the rule.
//!
//! With [`Params::multi_label`] these rules apply to each pair of anchor and class, as if the
//! anchor had that class alone: the lowest threshold in rules 1 and 4 is the threshold of the
//! class, softmax is still over all scores, and the counts are counts of pairs. The parameter has
//! no effect if the class has a field.
//!
//! Each survivor also carries the components of the layout's
//! [columns](crate::decoder::layout::Column).
//!
//! # Masks
//! If the layout has [`Prototypes`](crate::decoder::layout::Prototypes), each survivor has a
//! [`Mask`]. The *logit* of a pixel of the prototypes is a sum that starts at 0 and adds the
//! products of coefficient and prototype over all channels in their order. Each product and each
//! sum is rounded separately.
//!
//! With [`MaskSize::Prototypes`] the mask has the pixels of the prototypes from the edge `x1` to
//! before the edge `x2`: `x1 * f <= column < x2 * f`, with `f` the width of the prototypes divided
//! by the width of [`ImagePlace::model_size`]. Rows follow an equivalent rule. Edges in pixels of
//! the frame are first mapped to the model's input, in double precision and rounded once. For
//! coordinates that are not normalized, a model size of 1 by 1 means unknown: the model's input
//! then has 4 pixels per pixel of the prototypes. A pixel is set if its logit is greater than 0
//! (NaN is not).
//!
//! With [`MaskSize::Frame`] the mask has the pixels of the frame from the rounded left edge of the
//! box to before its rounded right edge, at least one pixel. Edges are mapped to the frame by
//! [`ImagePlace::frame`] and limited to the frame. Rows follow an equivalent rule. The logit of a
//! pixel of the frame is interpolated between the four nearest pixels of the prototypes, from
//! center to center. The position along an axis is `(pixel + 0.5) * step + origin`, limited to the
//! first and the last pixel; `step` is `ratio * n / m` and `origin` is `offset * n / m - 0.5` in
//! double precision, rounded once, with `n` prototype pixels and a model's input of `m`. Let `a`
//! and `b` be the logits of the upper row, `c` and `d` the logits of the lower row, and `u` and `v`
//! the fractions of the position. The logit is then `p + (q - p) * v` with `p = a + (b - a) * u`
//! and `q = c + (d - c) * u`.
//!
//! The masks of a group have at most [`MAX_MASK_BYTES`], with each mask padded to 4 bytes. The
//! first survivor whose mask would exceed the limit has no mask, and neither do the survivors that
//! it outranks. Survivors that [`ClassRule::max_detections`] does not keep count toward the limit,
//! too.
//!
//! # Order and suppression
//! A candidate *outranks* another candidate if its score is higher, or if the scores are equal and
//! its anchor comes first. With [`Params::multi_label`], if scores and anchors are equal, the
//! candidate whose class comes first outranks the other. [`Params::max_candidates`] keeps the
//! highest-ranked candidates. Two candidates *conflict* if their classes are equal (or
//! [`Params::class_agnostic`] is set), their boxes intersect, and the measure [`Overlap`] exceeds
//! the threshold. The threshold belongs to the class of the candidate of lower rank
//! ([`ClassRule::iou_threshold`], else [`Params::iou_threshold`]). Oriented candidates conflict if
//! their classes are equal, their *bounds* intersect, and the measure of the oriented boxes exceeds
//! the threshold. For them, areas are width x height, the intersection is the intersection of the
//! rectangles, and [`Params::pixel_offset`] has no effect.
//!
//! - [`Method::Greedy`] keeps a candidate if it conflicts with no survivor that outranks it.
//! - [`Method::MapReduce`] keeps a candidate if it conflicts with no candidate that outranks it
//!   (Oro et al. 2020). The paper compares scores strictly, so that two equal scores do not
//!   suppress each other; this implementation ranks equal scores by anchor.
//! - [`Method::None`] keeps all candidates.
//! - [`Method::Adaptive`] is greedy suppression in which the threshold of two candidates is the
//!   greater of their threshold and the *density* of the candidate of higher rank (Liu et al. 2019).
//!   A density above 1 counts as 1, and NaN has no effect. The density is the number in the layout's
//!   column of the kind [`ColumnKind::Density`](crate::decoder::layout::ColumnKind::Density).
//! - [`Method::Feature`] is greedy suppression in which a conflict has no effect if the *embeddings*
//!   of both candidates differ and their overlap does not exceed
//!   [`Params::embedding_iou_threshold`] (Salscheider 2020). The squares of the differences of the
//!   components are added in the order of the components, starting at 0, in single precision;
//!   embeddings differ unless the sum is at most the square of [`Params::embedding_distance`]. The
//!   embedding is the layout's column of the kind
//!   [`ColumnKind::Embedding`](crate::decoder::layout::ColumnKind::Embedding).
//!
//! The other methods change boxes or scores, as the next section says.
//! [`Params::threshold_inclusive`] applies to every threshold above. Adaptive-NMS and FeatureNMS are
//! not defined for oriented boxes.
//!
//! Afterwards, [`ClassRule::max_detections`] keeps the highest-ranked survivors of a class, and
//! [`Params::max_detections`] keeps the highest-ranked of the remaining survivors. A survivor that
//! is not kept has still suppressed other candidates.
//!
//! # Merging and rescoring
//! Boxes of these methods are upright; the methods are not defined for oriented boxes. Candidates
//! are ordered and limited as above, by their original scores. A survivor has the class, the
//! anchor and the columns of a candidate, its *keeper*. Its mask has the keeper's coefficients and
//! prototypes, and the area of the survivor's box. A survivor is dropped if its score is below the
//! threshold of its class. The others are ordered by their final scores; of equal scores, the
//! survivor whose keeper outranks the other keeper comes first. Limits on detections apply in this
//! order.
//!
//! The *overlap* of two candidates is a number in single precision: 0 if their classes differ
//! (unless [`Params::class_agnostic`] is set) or their boxes do not intersect, and otherwise the
//! intersection divided by the union, by the area of the box of higher rank, or by the smaller
//! area, with the pixel offset, according to the measure. For DIoU it is the quotient minus the
//! penalty. NaN (areas of zero) is replaced by 0, and the number is limited to the range 0 to 1.
//!
//! ## Claims
//! With [`Method::Merge`] and [`Method::WeightedAverage`], the survivors of [`Method::Greedy`] are
//! keepers. Each other candidate is claimed by the keeper of the highest rank that conflicts with
//! it and outranks it. With [`Method::MergeTransitive`], each candidate belongs to the claim of
//! the candidate of the highest rank that conflicts with it and outranks it. A candidate without
//! such a candidate is a keeper.
//!
//! [`Method::Merge`] and [`Method::MergeTransitive`] then grow the keeper's box. The members of a
//! claim are tested in descending rank: a member joins if the grown box, as the box of higher
//! rank, conflicts with it; the grown box is then replaced by the union of both. An edge of the
//! union is the member's if it is beyond the grown box's edge, and otherwise the grown box's.
//! Members that do not join are *released*: they are a claim in turn, whose keeper is the first of
//! them, until no member is left. The score is the keeper's, which is the greatest. With
//! [`Params::lose_released`], released members are lost, and an overlap equal to the threshold
//! does not join (SAHI's second test is strict).
//!
//! With [`Method::WeightedAverage`], the box is the *weighted mean* of the boxes of keeper and
//! members, and the score is the keeper's. The weight of a box is its score, or 0 if the score is
//! negative. For each edge, products of weight and edge are added in descending rank, starting at
//! 0, and the sum is divided by the sum of the weights. All operations are in double precision,
//! and the quotient is rounded to single precision. If the mean is not finite or has no area, the
//! keeper's box is used.
//!
//! ## Weighted fusion
//! [`Method::WeightedFusion`] has *clusters*. Each candidate, in descending rank, joins a cluster
//! whose box conflicts with it, as the box of higher rank and of the class of the cluster's first
//! candidate, the keeper. Of several such clusters, it joins the one with the greatest overlap,
//! and of equal overlaps the one whose keeper has the highest rank. The cluster's box is then
//! replaced by the weighted mean of its candidates, in the order in which they joined. A candidate
//! that joins no cluster is the keeper of a new one. The score is the mean of the scores: the sum
//! in the order of joining, divided by the number, in double precision and rounded once.
//!
//! ## Rescoring
//! Scores are in single precision. A factor is applied to scores above 0 only, and only if it is
//! below 1, so that no score rises.
//!
//! - [`Method::SoftLinear`] and [`Method::SoftGaussian`] take the remaining candidate of the
//!   highest score, of equal scores the one of the highest rank. If its score is below the
//!   threshold of its class, it is dropped. Otherwise it survives with this score, and the scores
//!   of the remaining candidates are multiplied by a factor; the box of the survivor counts as the
//!   box of higher rank. The linear factor is `1 - overlap` for candidates that conflict with the
//!   survivor, and 1 for others. The Gaussian factor is `exp(-(overlap * overlap) / sigma)`.
//! - [`Method::MatrixLinear`] and [`Method::MatrixGaussian`] multiply each score once. The
//!   *compensation* of a candidate is its greatest overlap with a candidate that outranks it, or
//!   0. The factor is the least *decay* by any candidate that outranks it, at most 1. The linear
//!   decay is `(1 - overlap) / (1 - compensation)`, and the Gaussian decay is `exp((compensation *
//!   compensation - overlap * overlap) / sigma)`, with the compensation of the candidate that
//!   outranks. Candidates with a compensation of 1 have no linear decay. The overlap threshold has
//!   no effect. SOLOv2's sigma is the reciprocal.

mod auto;
mod class_limits;
mod cpu;
pub mod cuda;
pub mod detail;
mod device_outcome;
mod edges;
mod error;
mod formula;
mod masks;
mod merging;
mod outcome;
mod pair_rules;
mod param_check;
mod params;
mod place;
mod reference;
mod scalar;
mod select;
mod validate;

pub use crate::geometry::Overlap;
pub use auto::Auto;
pub(crate) use cpu::Boxes;
pub use cpu::Cpu;
pub use cuda::Cuda;
pub use cuda::RunKernels;
pub use device_outcome::{DeviceCounts, DeviceOutcome, ResultMemory};
pub use error::EngineError;
pub(crate) use masks::{MAX_FRAME_SIDE, MAX_PROTOTYPE_SIDE, MaskPlace};
pub use masks::{MAX_MASK_BYTES, Mask, Masks};
pub(crate) use outcome::GroupCounts;
pub use outcome::{DeviceWork, GroupOutcome, Outcome};
pub use param_check::{
    ParamError, check_embedding, check_iou_threshold, check_model_size, check_sigma,
};
pub use params::{ClassRule, ClassThresholds, MaskSize, Method, Params, RegionEdges, SizeLimits};
pub(crate) use place::DecodePlace;
pub use place::{BoxPixels, ImagePlace, image_groups};
pub use reference::Reference;
pub use scalar::{Scalar, ScalarField, ScalarKind};
pub use select::{Backend, select};
use validate::check_methods;
pub(crate) use validate::{check_method, check_overlap};

use crate::decoder::Layout;
use crate::geometry::Corners;
use crate::tensor::TensorView;

/// The greatest length of a box's side, in pixels. Areas, and sums of two areas, do not overflow below it.
pub const MAX_BOX_SIDE: f32 = 1.0e9;

pub use crate::functions::MAX_ANGLE;

/// The greatest number of images in a batch: the greatest y dimension of a CUDA grid.
pub const MAX_IMAGES: usize = 65_535;

/// A candidate or survivor.
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Detection {
    /// Left edge, in the pixels of [`ImagePlace::boxes`].
    pub x1: f32,
    /// Upper edge, in the pixels of [`ImagePlace::boxes`].
    pub y1: f32,
    /// Right edge; `x2 > x1`.
    pub x2: f32,
    /// Lower edge; `y2 > y1`.
    pub y2: f32,
    /// Score; finite, never minus zero.
    pub score: f32,
    /// Index of the class, from 0.
    pub class: u32,
    /// Index of the anchor, from 0, within the image. In a group of several images, an image's
    /// anchors follow the anchors of the preceding image.
    pub anchor: u32,
}

impl Detection {
    /// The box.
    #[inline(always)]
    pub fn corners(&self) -> Corners {
        let &Self { x1, y1, x2, y2, .. } = self;
        Corners { x1, y1, x2, y2 }
    }
}

/// The input of an engine's run.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The tensors that the layout's fields address.
    pub tensors: &'a [TensorView<'a>],
    /// The elements of each anchor.
    pub layout: &'a Layout,
    /// The parameters of decoding and suppression.
    pub params: &'a Params,
    /// The place of each image of the layout; candidates in a group of images are suppressed together.
    pub images: &'a [ImagePlace],
}

impl<'a> Job<'a> {
    /// A job of these parts.
    pub fn new(
        tensors: &'a [TensorView<'a>],
        layout: &'a Layout,
        params: &'a Params,
        images: &'a [ImagePlace],
    ) -> Self {
        Self { tensors, layout, params, images }
    }
}

/// An implementation of decoding and suppression.
pub trait Engine: Send {
    /// The engine's name, also found in the property `stats`.
    fn name(&self) -> &'static str;

    /// Checks that the engine can run this layout with these parameters. [`run`](Self::run) returns
    /// equal errors.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] if it cannot, and [`EngineError::Overlap`] or [`EngineError::Method`] if
    /// the measure of overlap or the method is not defined for the layout.
    fn supports(&self, layout: &Layout, params: &Params) -> Result<(), EngineError> {
        check_methods(layout, params)
    }

    /// Decodes the tensors by the layout and suppresses by the parameters.
    ///
    /// # Errors
    /// Fails if a tensor's memory cannot be read, if the layout addresses a tensor or an element that
    /// does not exist, if the engine does not support the layout, the parameters or the places, or
    /// if the GPU fails.
    fn run(&mut self, job: Job<'_>) -> Result<Outcome<'_>, EngineError>;

    /// The engine on the GPU, for runs in the order of a stream.
    ///
    /// # Errors
    /// [`EngineError::NeedsHost`] if the engine does not use a GPU, and the reason why the GPU cannot be used.
    fn cuda(&mut self) -> Result<&mut Cuda, EngineError> {
        Err(EngineError::NEEDS_GPU)
    }

    /// The GPU failure that made the engine continue on the CPU. The failure is returned once;
    /// later calls return `None`.
    fn take_failure(&mut self) -> Option<&EngineError> {
        None
    }

    /// The processor that the engine runs on, for a log.
    fn description(&self) -> String {
        "the CPU".to_owned()
    }

    /// The [description](Self::description) if it has changed since the last call.
    fn take_description(&mut self) -> Option<String> {
        None
    }
}
