// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of a detection besides its box: columns, and the prototypes of masks.
//!
//! Engines read the columns of survivors, and for some methods one column of all candidates. They
//! change them for quantization only. Points and angles are
//! computed from them afterwards, with equal operations for every engine.

use super::{Activation, Field};

/// Numbers that a survivor carries along.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    /// The name.
    pub name: &'static str,
    /// The number of components.
    pub components: usize,
    /// Their meaning.
    pub kind: ColumnKind,
}

impl Column {
    /// Creates a column of numbers without a meaning.
    pub fn of_numbers(name: &'static str, components: usize) -> Self {
        Self { name, components, kind: ColumnKind::Numbers }
    }
}

/// The meaning of a column's components.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ColumnKind {
    /// Numbers that are passed on as they are.
    Numbers,
    /// Points such as keypoints: x, y, and if there are three components per point, its visibility.
    Points(PointRule),
    /// The coefficients of the mask, one for each channel of [`Prototypes`].
    MaskCoefficients,
    /// One component: how crowded the surroundings of the object are, for
    /// [`Method::Adaptive`](crate::engine::Method::Adaptive).
    Density,
    /// A vector whose distance to the vector of another box tells whether both are of one object,
    /// for [`Method::Feature`](crate::engine::Method::Feature).
    Embedding,
}

impl ColumnKind {
    /// The value of `kind` in a layout file; coefficients of masks have none.
    pub fn name(self) -> &'static str {
        match self {
            Self::Numbers => "numbers",
            Self::Points(PointRule { components: 3, .. }) => "points-with-visibility",
            Self::Points(_) => "points",
            Self::MaskCoefficients => "mask coefficients",
            Self::Density => "density",
            Self::Embedding => "embedding",
        }
    }
}

/// How the points of a column are computed.
///
/// With the point `p` and the size `s` of the anchor's [`Reference`](super::Reference), a coordinate is
/// `p + (v * factor + shift) * s` if the rule is relative, else `v`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PointRule {
    /// The components of a point: 2, or 3 with a visibility.
    pub components: usize,
    /// The factor of coordinates relative to the anchor's reference; `None` if points are absolute.
    pub relative: Option<f32>,
    /// The number that is added to a relative coordinate after the factor.
    pub shift: f32,
    /// The function of the visibility: none or the sigmoid.
    pub visibility: Activation,
    /// True if coordinates are normalized (0 to 1). If not, they are pixels of the model's input.
    pub normalized: bool,
}

/// The prototypes of masks: images, of which each mask is a linear combination.
///
/// The mask of a detection is set where the sum over all channels of coefficient x prototype is greater than 0
/// (Bolya et al. 2019, "YOLACT: Real-time Instance Segmentation").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prototypes {
    /// The field whose anchor `row * width + column` is a pixel, and whose components are the channels.
    pub field: Field,
    /// The number of pixels in a row. A row has the width of the model's input.
    pub width: usize,
    /// The number of rows.
    pub height: usize,
    /// The index of the column with the coefficients.
    pub column: usize,
}

impl Prototypes {
    /// The number of pixels of an image.
    pub fn pixels(&self) -> usize {
        self.width.saturating_mul(self.height)
    }
}
