// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptions: layouts of model families as text.
//!
//! In: a text such as the files in core/src/decoder/families, or a user's file. Out: a [`Description`], which finds the
//! [`Layout`](super::Layout) for tensors of given shapes. No element is read.
//!
//! docs/layout-files.md specifies the format. Beside it, `{NAME}` in `about` stands for the shape of this tensor, and
//! `names` are also found with `onnx/` before them. `open.rs` has the rules for `C`, `K` and `M`.
//!
//! The [module of layouts](super::layout) has the formulas.

mod apply;
mod error;
mod fit;
mod keypoints;
mod levels;
mod open;
mod order;
mod parse;
mod prototypes;
mod sections;
mod shape;

use std::sync::Arc;

use arrayvec::ArrayVec;

pub use error::DescriptionError;
pub(super) use levels::STRIDES;
pub(super) use levels::Strides;
pub use sections::MAX_LENGTH;

use self::parse::Columns;
use self::shape::{Count, Pattern};
use super::layout::{Background, BoxRule, ColumnKind, MAX_GROUPS, MAX_SIZES, ScoreRule};
use super::{MAX_INPUTS, Role, Scores};

/// A layout in words of a text: everything but the dimensions that the shapes of tensors leave open.
#[derive(Clone, Debug)]
pub struct Description<'a> {
    /// The name in messages.
    pub name: &'a str,
    /// The expected shapes, for errors.
    pub(super) expected: &'a str,
    about: Option<&'a str>,
    /// The name of class 0, if the text has it.
    pub(super) label: Option<&'a str>,
    /// The meaning of the scores.
    pub(super) values: Scores,
    tensors: Vec<TensorRule<'a>>,
    anchors: AnchorRule,
    /// True if the strides follow from the tensors.
    pub(super) has_any_strides: bool,
    /// True if it is a description of one of two orders that anchors in rows and columns can have.
    has_order: bool,
    score: ScoreFields,
    boxes: BoxFields,
    columns: Vec<ColumnRule<'a>>,
    priors: Option<Arc<[[f32; 4]]>>,
}

/// A section `tensor`.
#[derive(Clone, Debug)]
struct TensorRule<'a> {
    name: &'a str,
    line: usize,
    shapes: Vec<Pattern>,
    /// True if there is one for each level.
    per_level: bool,
    /// True if further dimensions of 1 are an error.
    is_exact: bool,
    fewer_anchors: FewerAnchors,
    /// True if it must be there, but is not read.
    is_ignored: bool,
    /// The columns that are not read.
    ignored: Vec<Columns>,
    /// For each tensor: its ids, other names, and position.
    roles: Vec<Role<'a>>,
}

/// Says if a tensor can have fewer anchors than numbers of an anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FewerAnchors {
    Yes,
    No,
    /// If the number of classes is the known one.
    KnownClasses,
}

/// Columns of a tensor.
#[derive(Clone, Copy, Debug)]
struct FieldRule {
    /// The index of the section `tensor`.
    tensor: usize,
    column: Count,
}

/// The section `anchors`.
#[derive(Clone, Debug)]
struct AnchorRule {
    levels: Levels,
    rounding: CellRounding,
    offset: f32,
    /// The factor of positions around the middle of a cell, for each level; empty if it is 1.
    scale_xy: ArrayVec<f32, MAX_GROUPS>,
    /// Anchors per cell, for each level.
    per_cell: ArrayVec<usize, MAX_GROUPS>,
    by_cell: bool,
    /// Sizes of a cell's anchors, for each level; empty if anchors have the size of the cell.
    sizes: ArrayVec<ArrayVec<[f32; 2], MAX_SIZES>, MAX_GROUPS>,
    priors: Option<FieldRule>,
    count: Option<FieldRule>,
    pairs: Option<FieldRule>,
    image: Option<FieldRule>,
}

/// The number of cells where a stride does not divide the model's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellRounding {
    Down,
    Up,
    /// Like `Up`, but nothing reaches beyond the model's input: the cells are smaller than the stride, and the sizes of
    /// anchors are limited.
    Fit,
}

/// The grids.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Levels {
    None,
    /// By the size of cells, in pixels.
    Strides(ArrayVec<u32, MAX_GROUPS>),
    /// By the number of cells in a row and in a column.
    Cells(ArrayVec<u32, MAX_GROUPS>),
}

impl Levels {
    /// The number of groups of anchors.
    fn groups(&self) -> usize {
        match self {
            Self::None => 1,
            Self::Strides(levels) | Self::Cells(levels) => levels.len(),
        }
    }
}

/// The section `score`.
#[derive(Clone, Debug)]
struct ScoreFields {
    scores: FieldRule,
    class: Option<FieldRule>,
    objectness: Option<FieldRule>,
    /// Which score is the background's; `None` for the last if there is one score more than classes, which then are softmax.
    background: Option<Background>,
    /// The rule, without the number of scores and the background.
    rule: ScoreRule,
}

/// The section `box`.
#[derive(Clone, Debug)]
struct BoxFields {
    field: FieldRule,
    sizes: Option<FieldRule>,
    angle: Option<FieldRule>,
    rule: BoxRule,
    normalized: bool,
}

/// A section `column`.
#[derive(Clone, Debug)]
struct ColumnRule<'a> {
    name: &'a str,
    field: FieldRule,
    /// The number of numbers: a constant, `K` or `M`.
    count: Count,
    /// Their meaning. Of points, the shapes or the boxes can have the components and the unit.
    kind: ColumnKind,
    /// True if points are normalized; `None` if they have the unit of the boxes.
    normalized: Option<bool>,
    /// The index of the tensor of the prototypes, if the numbers are coefficients of masks.
    prototypes: Option<usize>,
}

impl<'a> Description<'a> {
    /// Returns true if a shape leaves a number open other than the number of classes.
    fn has_open_number(&self) -> bool {
        self.tensors.iter().any(TensorRule::has_open_number)
    }

    /// The index of the tensor of the prototypes.
    fn prototypes(&self) -> Option<usize> {
        self.columns.iter().find_map(|column| column.prototypes)
    }

    /// The tensors.
    pub(super) fn roles(&self) -> Vec<Role<'a>> {
        let of = |tensor: &TensorRule<'a>| {
            let dims = tensor.dims();
            tensor.roles.clone().into_iter().map(move |role| Role { dims: dims.clone(), ..role })
        };
        self.tensors.iter().flat_map(of).collect()
    }

    /// The section and the level of each tensor.
    fn sources(&self) -> ArrayVec<(usize, usize), MAX_INPUTS> {
        let sections = self.tensors.iter().map(|tensor| tensor.roles.len()).enumerate();
        sections.flat_map(|(index, levels)| (0..levels).map(move |level| (index, level))).collect()
    }

    /// The tensors, for messages, such as `boxes [1,N,4] and scores [1,N,C]`.
    pub fn expects(&self) -> String {
        let with_shapes = |text: String, tensor: &TensorRule<'_>| {
            text.replace(&format!("{{{}}}", tensor.name), &tensor.shapes_text())
        };
        let about = self.about.map(|about| self.tensors.iter().fold(about.to_owned(), with_shapes));
        if let Some(text) = about.filter(|text| Some(&**text) != self.about) {
            return text;
        }
        let expects = |tensor: &TensorRule<'_>| format!("{} {}", tensor.name, tensor.shapes_text());
        let tensors: Vec<String> = self.tensors.iter().map(expects).collect();
        let tensors = match tensors.split_last() {
            Some((last, [_, ..])) => {
                format!("{} and {last}", tensors[..tensors.len() - 1].join(", "))
            }
            _ => tensors.join(""),
        };
        match self.about {
            Some(about) => format!("{tensors} ({about})"),
            None => tensors,
        }
    }
}

impl TensorRule<'_> {
    /// Returns true if the shapes leave a number of an anchor open other than the number of classes.
    fn has_open_number(&self) -> bool {
        let is_open = |shape: &Pattern| shape.numbers().open.is_some() && !shape.is_images();
        self.shapes.iter().any(is_open)
    }

    /// The dimensions that are constants, equal in all shapes.
    fn dims(&self) -> Vec<Option<usize>> {
        let mut shapes = self.shapes.iter().map(Pattern::dims);
        let first = shapes.next().unwrap_or_default();
        shapes.fold(first, |dims, other| {
            let both = dims.iter().zip(&other);
            both.map(|(dim, other)| dim.filter(|_| dim == other)).collect()
        })
    }

    /// The shapes, such as `[1,4+C,N] or [1,N,4+C]`.
    fn shapes_text(&self) -> String {
        let shapes: Vec<String> = self.shapes.iter().map(|shape| format!("[1,{shape}]")).collect();
        let number = if self.per_level { " for each stride" } else { "" };
        shapes.join(" or ") + number
    }
}
