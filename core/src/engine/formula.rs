// SPDX-License-Identifier: MIT OR Apache-2.0
//! The formulas of rules 3 and 5 of the [engines](super) for one anchor, i.e. for its score and its
//! corners, and the formulas for the points of a survivor.
//!
//! In: the anchor's numbers, and the rules of the layout. Out: numbers in single precision. Each
//! operation is rounded separately, in the order written here. kernels/layout.cuh repeats these
//! formulas.

use crate::decoder::layout::{
    Activation, Axes, BoxFormat, BoxRule, BoxTransform, Combination, Field, Grid, Group, Layout,
    Pairs, PointRule, Reference, ScoreRule,
};
use crate::functions::{exp, sigmoid};
use crate::geometry::OrientedBox;

/// The score of a candidate from objectness and the best score `best`, which is an element of
/// `scores`.
///
/// `scores` are all scores of the anchor, including the background's score. They are only read for
/// softmax.
#[inline(always)]
pub(super) fn score(
    rule: &ScoreRule,
    objectness: Option<f32>,
    best: f32,
    scores: impl Iterator<Item = f32> + Clone,
) -> f32 {
    let probability = match rule.activation {
        Activation::None => best,
        Activation::Sigmoid => sigmoid(best),
        Activation::Softmax => softmax(best, scores),
    };
    let combined = match (objectness, rule.combination) {
        (None, _) => probability,
        (Some(objectness), Combination::Product) => objectness * probability,
        (Some(objectness), Combination::SquareRoot) => {
            (limited(objectness) * limited(probability)).sqrt()
        }
    };
    // Adding zero turns minus zero into zero.
    combined + 0.0
}

/// Returns true if no cell beside `anchor`'s, in a grid of `anchors` cells in rows of `columns`, has a score greater
/// than `of`. `score` reads the score of this class of an anchor.
#[inline(always)]
pub(super) fn is_peak(
    [columns, anchors]: [usize; 2],
    anchor: usize,
    of: f32,
    score: impl Fn(usize) -> f32,
) -> bool {
    let (column, row) = (anchor % columns, anchor / columns);
    let rows = row.saturating_sub(1)..(row + 2).min(anchors.div_ceil(columns));
    rows.flat_map(|row| {
        let cells = column.saturating_sub(1)..(column + 2).min(columns);
        cells.map(move |column| row * columns + column)
    })
    .filter(|&other| other < anchors)
    .all(|other| {
        let is_greater = score(other) > of;
        !is_greater
    })
}

/// The numbers of a row of a group's grid and of its anchors, for [`is_peak`].
pub(super) fn grid_of(group: &Group) -> [usize; 2] {
    let columns = match &group.reference {
        Reference::Grid(grid) => grid.columns,
        // `validate` has found a grid where scores are peaks.
        Reference::None | Reference::Priors(_) | Reference::Table(_) => 1,
    };
    [columns.max(1), group.anchors]
}

/// Rule 0: the pairs of anchor and score of the image with this index, and how many rows are of none. `number` reads a
/// component of a row. `found` becomes the pairs, each once, in ascending order.
pub(super) fn pairs(
    layout: &Layout,
    Pairs { field, rows }: &Pairs,
    image: usize,
    number: impl Fn(usize, usize) -> f32,
    found: &mut Vec<(usize, usize)>,
) -> usize {
    let image = if field.image_stride == 0 { image as f32 } else { 0.0 };
    let index = |number: f32, count: usize| {
        let index = number as usize;
        (index as f32 == number && index < count).then_some(index)
    };
    let mut rejected = 0;
    found.clear();
    for row in (0..*rows).filter(|&row| number(row, 0) == image) {
        let score = index(number(row, 1), layout.score.components);
        match index(number(row, 2), layout.anchors()).zip(score) {
            Some(pair) => found.push(pair),
            None => rejected += 1,
        }
    }
    found.sort_unstable();
    found.dedup();
    rejected
}

/// The activation of a number that has no other numbers beside it: objectness, in the form that enters the score, or the
/// visibility of a point.
#[inline(always)]
pub(super) fn activated(activation: Activation, stored: f32) -> f32 {
    match activation {
        Activation::Sigmoid => sigmoid(stored),
        Activation::None | Activation::Softmax => stored,
    }
}

/// `number`, clamped to the range 0 to 1. NaN becomes 0.
#[inline(always)]
pub(super) fn limited(number: f32) -> f32 {
    let above = if number > 0.0 { number } else { 0.0 };
    if above < 1.0 { above } else { 1.0 }
}

/// The softmax of `of`, one of `logits`.
#[inline(always)]
fn softmax(of: f32, logits: impl Iterator<Item = f32> + Clone) -> f32 {
    let greatest =
        logits.clone().fold(f32::NEG_INFINITY, |max, logit| if logit > max { logit } else { max });
    let sum = logits.fold(0.0, |sum, logit| sum + exp(logit - greatest));
    exp(of - greatest) / sum
}

/// The expectation of the distribution over 0, 1, 2 and so on with these logits.
#[inline(always)]
fn expectation(bins: usize, logit: impl Fn(usize) -> f32) -> f32 {
    let logits = (0..bins).map(&logit);
    let greatest =
        logits.clone().fold(f32::NEG_INFINITY, |max, logit| if logit > max { logit } else { max });
    let (mut sum, mut weighted) = (0.0, 0.0);
    for (bin, logit) in logits.enumerate() {
        let weight = exp(logit - greatest);
        sum += weight;
        weighted += weight * bin as f32;
    }
    weighted / sum
}

/// The reference that an anchor's box is relative to: a point and a size, along x and y.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prior {
    pub point: [f32; 2],
    pub size: [f32; 2],
    /// With [`BoxTransform::Sigmoid`] and [`BoxTransform::SigmoidExp`], the factor for positions: the size of the cell.
    pub cell: [f32; 2],
    /// With [`BoxTransform::SigmoidExp`], the factor of positions around the middle of the cell.
    pub scale_xy: f32,
}

impl Prior {
    /// The prior of anchor `anchor` of `group`, from the group's reference, or `None` if the group
    /// has no reference. `numbers` reads the four numbers of a prior in a tensor.
    #[inline(always)]
    pub fn of(
        layout: &Layout,
        group: &Group,
        anchor: usize,
        numbers: impl FnOnce(&Field) -> [f32; 4],
    ) -> Option<Self> {
        match &group.reference {
            Reference::None => None,
            Reference::Grid(grid) => Some(Self::of_cell(grid, anchor, group.anchors)),
            Reference::Priors(field) => Some(Self::of_numbers(layout.boxes.axes, numbers(field))),
            Reference::Table(first) => {
                let table = layout.priors.as_ref()?;
                Some(Self::of_numbers(Axes::Xy, table[first + anchor]))
            }
        }
    }

    /// The prior of an anchor in a grid of `anchors`.
    #[inline(always)]
    fn of_cell(grid: &Grid, anchor: usize, anchors: usize) -> Self {
        let per_cell = grid.per_cell.max(1);
        let (cell, index) = if grid.by_cell {
            (anchor / per_cell, anchor % per_cell)
        } else {
            let cells = (anchors / per_cell).max(1);
            (anchor % cells, anchor / cells)
        };
        let columns = grid.columns.max(1);
        let [x, y] = [cell % columns, cell / columns].map(|position| position as f32 + grid.offset);
        let size = grid.sizes.get(index).copied().unwrap_or(grid.stride);
        let point = [x * grid.stride[0], y * grid.stride[1]];
        Self { point, size, cell: grid.stride, scale_xy: grid.scale_xy }
    }

    /// The prior from its four numbers in the order of `axes`.
    #[inline(always)]
    fn of_numbers(axes: Axes, numbers: [f32; 4]) -> Self {
        let [a, b, c, d] = numbers;
        let (point, size) = match axes {
            Axes::Xy => ([a, b], [c, d]),
            Axes::Yx => ([b, a], [d, c]),
        };
        Self { point, size, cell: size, scale_xy: 1.0 }
    }
}

/// The components of a box; those that its format lacks are zero. `number` reads the box's numbers in the tensor.
#[inline(always)]
pub(crate) fn components(rule: &BoxRule, number: impl Fn(usize) -> f32) -> [f32; 4] {
    let mut components = [0.0; 4];
    let count = rule.format.components();
    for (index, component) in components[..count].iter_mut().enumerate() {
        *component = match rule.transform {
            BoxTransform::Expectation => {
                expectation(rule.bins, |bin| number(index * rule.bins + bin))
            }
            BoxTransform::None
            | BoxTransform::Exp
            | BoxTransform::Sigmoid
            | BoxTransform::SigmoidExp => number(index),
        };
    }
    components
}

/// The components of a box, and the rules for interpreting them.
struct BoxNumbers<'r> {
    rule: &'r BoxRule,
    prior: Option<Prior>,
    components: [f32; 4],
}

impl BoxNumbers<'_> {
    /// Component `index` as a position along an axis.
    #[inline(always)]
    fn position(&self, index: usize, axis: usize) -> f32 {
        let value = self.components[index] * self.rule.variances[0];
        match self.rule.transform {
            BoxTransform::Sigmoid => {
                let value = 2.0 * sigmoid(value) - 0.5;
                self.prior.map_or(value, |prior| prior.point[axis] + value * prior.cell[axis])
            }
            BoxTransform::SigmoidExp => {
                let scale = self.prior.map_or(1.0, |prior| prior.scale_xy);
                let value = sigmoid(value) * scale - 0.5 * (scale - 1.0);
                self.prior.map_or(value, |prior| prior.point[axis] + value * prior.cell[axis])
            }
            BoxTransform::None | BoxTransform::Exp | BoxTransform::Expectation => {
                self.prior.map_or(value, |prior| prior.point[axis] + value * prior.size[axis])
            }
        }
    }

    /// Component `index` as a size along an axis.
    #[inline(always)]
    fn size(&self, index: usize, axis: usize) -> f32 {
        let value = self.components[index] * self.rule.variances[1];
        let value = match self.rule.transform {
            BoxTransform::Exp | BoxTransform::SigmoidExp => exp(value),
            BoxTransform::Sigmoid => {
                let twice = 2.0 * sigmoid(value);
                twice * twice
            }
            BoxTransform::None | BoxTransform::Expectation => value,
        };
        self.prior.map_or(value, |prior| value * prior.size[axis])
    }
}

/// The indices of the components of x and of y.
#[inline(always)]
fn axes(rule: &BoxRule) -> [usize; 2] {
    match rule.axes {
        Axes::Xy => [0, 1],
        Axes::Yx => [1, 0],
    }
}

/// The corners of a box from its [`components`]: x1, y1, x2, y2.
#[inline(always)]
pub(super) fn corners(
    rule: &BoxRule,
    prior: Option<Prior>,
    [sx, sy]: [f32; 2],
    components: [f32; 4],
) -> [f32; 4] {
    let numbers = BoxNumbers { rule, prior, components };
    let [first, second] = axes(rule);
    match rule.format {
        BoxFormat::Corners => [
            numbers.position(first, 0) * sx,
            numbers.position(second, 1) * sy,
            numbers.position(2 + first, 0) * sx,
            numbers.position(2 + second, 1) * sy,
        ],
        BoxFormat::Center => {
            let (x, y) = (numbers.position(first, 0) * sx, numbers.position(second, 1) * sy);
            let half_width = numbers.size(2 + first, 0) * sx * 0.5;
            let half_height = numbers.size(2 + second, 1) * sy * 0.5;
            [x - half_width, y - half_height, x + half_width, y + half_height]
        }
        BoxFormat::Square => {
            let (x, y) = (numbers.position(first, 0) * sx, numbers.position(second, 1) * sy);
            [x, y, x + numbers.size(2, 0) * sx, y + numbers.size(2, 1) * sy]
        }
        BoxFormat::Distances => {
            let (point, size) =
                prior.map_or(([0.0; 2], [1.0; 2]), |prior| (prior.point, prior.size));
            let distance = |index: usize, axis: usize| {
                numbers.components[index] * rule.variances[0] * size[axis]
            };
            [
                (point[0] - distance(first, 0)) * sx,
                (point[1] - distance(second, 1)) * sy,
                (point[0] + distance(2 + first, 0)) * sx,
                (point[1] + distance(2 + second, 1)) * sy,
            ]
        }
    }
}

/// The oriented box of an anchor, from its [`components`] in center form. `angle` is the number in its angle field.
#[inline(always)]
pub(crate) fn oriented_box(
    rule: &BoxRule,
    prior: Option<Prior>,
    [sx, sy]: [f32; 2],
    components: [f32; 4],
    angle: f32,
) -> OrientedBox {
    let numbers = BoxNumbers { rule, prior, components };
    let [first, second] = axes(rule);
    OrientedBox {
        center: [numbers.position(first, 0) * sx, numbers.position(second, 1) * sy],
        size: [numbers.size(2 + first, 0) * sx, numbers.size(2 + second, 1) * sy],
        angle: angle * rule.angle_factor,
    }
}

/// The point from a column's coordinates `numbers`.
#[inline(always)]
pub(crate) fn point(
    rule: &PointRule,
    prior: Option<Prior>,
    scale: [f32; 2],
    numbers: [f32; 2],
) -> [f32; 2] {
    [0, 1].map(|axis| {
        let value = match (rule.relative, prior) {
            (Some(factor), Some(prior)) => {
                prior.point[axis] + (numbers[axis] * factor + rule.shift) * prior.size[axis]
            }
            _ => numbers[axis],
        };
        value * scale[axis]
    })
}
