// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the corners of a box from its components.
//!
//! With the components `t`, and the point `p` and the size `s` of the anchor's [`Reference`], a box is, along
//! each axis:
//!
//! ```text
//! v = t * variance                        the factor of positions for positions, of sizes for sizes
//! f(v) = v, exp(v), (2 sigmoid(v))^2,     exp(v)                              BoxTransform, of sizes
//! g(v) = v, v,      2 sigmoid(v) - 0.5,   scale sigmoid(v) - 0.5 (scale - 1)  of positions
//!
//! corners     low = p + g(v0) s           high = p + g(v1) s
//! center      center = p + g(v0) s        size = f(v1) s
//! distances   low = p - v0 s              high = p + v1 s
//! ```
//!
//! With [`BoxTransform::Sigmoid`] and [`BoxTransform::SigmoidExp`], positions are relative to the size of the grid's
//! cell in place of `s`, as in YOLOv5, whose anchors have separate sizes; `scale` is [`Grid::scale_xy`]. Without a
//! reference, `p` is 0, and `s` and `scale` are 1. The documentation of the [engines](crate::engine) states these
//! formulas with the order of operations.

use crate::named::named;
use arrayvec::ArrayVec;

use super::Field;

named! {
    /// The components of a box.
    #[non_exhaustive]
    pub enum BoxFormat {
        /// Left, upper, right and lower edge.
        #[default]
        Corners = 0 "corners",
        /// Center x, center y, width, height.
        Center = 1 "center",
        /// Left edge, upper edge, side; a side of zero marks an empty slot.
        Square = 2 "square",
        /// Distances from a point to the left, upper, right and lower edge.
        Distances = 3 "distances",
    }
}

impl BoxFormat {
    /// The number of components of a box.
    pub fn components(self) -> usize {
        match self {
            Self::Corners | Self::Center | Self::Distances => 4,
            Self::Square => 3,
        }
    }
}

named! {
    /// The function applied to the components of a box before they are related to the reference.
    pub enum BoxTransform {
        /// Nothing.
        #[default]
        None = 0 "none",
        /// Sizes are logarithms: exp. Positions are not changed.
        Exp = 1 "exp",
        /// YOLOv5 to v7: positions are 2 sigmoid(v) - 0.5, sizes (2 sigmoid(v))^2.
        Sigmoid = 2 "sigmoid",
        /// YOLOv3 and v4: positions are sigmoids, scaled around the middle of the cell by [`Grid::scale_xy`]; sizes are
        /// logarithms.
        SigmoidExp = 4 "sigmoid-exp",
        /// Each component is the expectation of a distribution over `bins` integers from 0 on, whose logits are the
        /// tensor's numbers: [`BoxRule::bins`] for the first component, then for the second, and so on
        /// (Generalized Focal Loss, Li et al. 2020).
        Expectation = 3 "expectation",
    }
}

named! {
    /// The order of the components of the two axes.
    pub enum Axes {
        /// x before y, width before height.
        #[default]
        Xy = 0 "xy",
        /// y before x, height before width.
        Yx = 1 "yx",
    }
}

/// How corners are computed from the components of a box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoxRule {
    /// The meaning of the components.
    pub format: BoxFormat,
    /// The order of the axes, also in priors.
    pub axes: Axes,
    /// The function applied to the components first.
    pub transform: BoxTransform,
    /// The numbers per component with [`BoxTransform::Expectation`], else 1.
    pub bins: usize,
    /// The factors of positions (or distances) and of sizes, before the transform.
    pub variances: [f32; 2],
    /// The factor that converts the angle, if boxes have one, to radians clockwise: 1 for radians clockwise, -1 for
    /// radians counterclockwise. The side `width` lies along (cos, sin) of the angle, with y downwards.
    pub angle_factor: f32,
}

impl BoxRule {
    /// The rule of boxes that are decoded already.
    pub fn decoded(format: BoxFormat) -> Self {
        Self {
            format,
            axes: Axes::Xy,
            transform: BoxTransform::None,
            bins: 1,
            variances: [1.0; 2],
            angle_factor: 1.0,
        }
    }

    /// The numbers of a box in the tensor.
    pub fn components(&self) -> usize {
        self.format.components().saturating_mul(self.bins)
    }

    /// The numbers of a box in the field of boxes: without its sizes if these have another field.
    pub(crate) fn field_components(&self, has_sizes: bool) -> usize {
        if has_sizes { 2 } else { self.components() }
    }
}

/// The greatest number of anchors per grid cell with listed sizes.
pub const MAX_SIZES: usize = 6;

/// The points and sizes that the boxes of a group's anchors are relative to.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Reference {
    /// Nothing: boxes are absolute.
    #[default]
    None,
    /// The cells of a grid.
    Grid(Grid),
    /// Boxes of center and size, of the unit of the boxes: four components per anchor in the order of
    /// [`BoxRule::axes`].
    Priors(Field),
    /// Boxes in [`Layout::priors`](super::Layout::priors), from this index on, x before y.
    Table(usize),
}

impl Reference {
    /// The field of [`Reference::Priors`].
    pub fn priors(&self) -> Option<&Field> {
        match self {
            Self::Priors(field) => Some(field),
            Self::None | Self::Grid(_) | Self::Table(_) => None,
        }
    }
}

/// A grid of cells, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// The number of cells in a row.
    pub columns: usize,
    /// The number of anchors of a cell.
    pub per_cell: usize,
    /// True if the anchors of a cell follow one another. If not, the first anchors of all cells come first, then
    /// the second ones.
    pub by_cell: bool,
    /// The size of a cell.
    pub stride: [f32; 2],
    /// The point of a cell from its upper left corner, in cells: 0, or 0.5 for the center.
    pub offset: f32,
    /// With [`BoxTransform::SigmoidExp`], the factor of positions around the middle of a cell; 1 for YOLOv3.
    pub scale_xy: f32,
    /// The size of each anchor of a cell; empty if anchors have the size of the cell.
    pub sizes: ArrayVec<[f32; 2], MAX_SIZES>,
}
