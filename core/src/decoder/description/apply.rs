// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a [`Layout`] from a description and the shapes of tensors.

use arrayvec::ArrayVec;

use super::fit::Fitted;
use super::shape::{Open, OpenNumber};
use super::{AnchorRule, CellRounding, ColumnRule, Description, FieldRule, Levels};
use crate::decoder::check::{self, check_classes, check_images, no_background};
use crate::decoder::layout::{
    Activation, Background, Column, ColumnKind, Field, Grid, Group, Layout, LayoutError,
    LayoutProblem, MAX_GROUPS, MAX_SIZES, Pairs, Reference, ScoreRule,
};
use crate::decoder::{MAX_CLASSES, Options};
use crate::tensor::TensorView;
use crate::wording::Setting::ModelSize;

/// The grid of a level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    pub columns: usize,
    pub rows: usize,
    pub anchors: usize,
    pub stride: [f32; 2],
}

/// The greatest number of cells in a row or column, far more than a model has.
const MAX_CELLS: f32 = 65_535.0;

impl Description<'_> {
    /// The grids; `None` if they depend on the size of the model's input, which is unknown, and if the description
    /// has no grids.
    pub(super) fn grids(&self, options: Options) -> Option<ArrayVec<Level, MAX_GROUPS>> {
        let rounding = self.anchors.rounding;
        let level = |index: usize, [columns, rows]: [f32; 2], stride| {
            let (columns, rows) = (columns as usize, rows as usize);
            let anchors = columns.saturating_mul(rows).saturating_mul(self.anchors.per_cell[index]);
            Level { columns, rows, anchors, stride }
        };
        let of_cells = |(index, &cells): (usize, &u32)| {
            level(index, [cells as f32; 2], [1.0 / cells as f32; 2])
        };
        let of_stride = |(index, &stride): (usize, &u32), size: [f32; 2]| {
            let stride = stride as f32;
            let cells = size.map(|side| {
                let cells = side / stride;
                let is_down = rounding == CellRounding::Down;
                (if is_down { cells.floor() } else { cells.ceil() }).clamp(0.0, MAX_CELLS)
            });
            let is_fit = rounding == CellRounding::Fit;
            let fitted = [size[0] / cells[0], size[1] / cells[1]];
            level(index, cells, if is_fit { fitted } else { [stride; 2] })
        };
        match &self.anchors.levels {
            Levels::None => None,
            Levels::Cells(cells) => Some(cells.iter().enumerate().map(of_cells).collect()),
            Levels::Strides(strides) => {
                let size = options.model_size?;
                Some(strides.iter().enumerate().map(|it| of_stride(it, size)).collect())
            }
        }
    }
}

impl AnchorRule {
    /// The sizes of the anchors of a level.
    fn sizes(&self, level: usize, options: Options) -> ArrayVec<[f32; 2], MAX_SIZES> {
        let mut sizes = self.sizes.get(level).cloned().unwrap_or_default();
        if let (CellRounding::Fit, Some([width, height])) = (self.rounding, options.model_size) {
            for size in &mut sizes {
                *size = [size[0].min(width), size[1].min(height)];
            }
        }
        sizes
    }
}

impl Description<'static> {
    /// Makes the layout of `tensors`, one for each of [`roles`](Self::roles).
    ///
    /// # Errors
    /// If a shape or an element type does not fit.
    pub(in crate::decoder) fn layout(
        &self,
        tensors: &[&TensorView<'_>],
        options: Options,
    ) -> Result<Layout, LayoutError> {
        let fitted = self.fit(tensors, options)?;
        let grids = &fitted.grids;
        if grids.is_none() && matches!(self.anchors.levels, Levels::Strides(_)) {
            let (tensor, decoder) = (tensors[0], self.name);
            let text = format!(
                "tensor {tensor}: decoder {decoder} needs the size of the model's input; set {ModelSize}"
            );
            return Err(LayoutError::new(LayoutProblem::ModelSize(decoder), text));
        }
        let shape_error = |tensor: usize| self.shape_error(tensors[tensor]);
        let score = self.score_rule(&fitted, options).ok_or_else(|| shape_error(0))?;
        let classes = match self.score.class {
            // The limit is the most classes of any model, since the tensor's classes are checked one by one.
            Some(_) if options.num_classes == 0 => MAX_CLASSES,
            Some(_) => options.num_classes.saturating_add(score.first_class as usize),
            None => score.components.saturating_add(score.first_class as usize),
        };
        let mut prototypes = None;
        if let Some((section, images)) = self.prototypes().zip(fitted.prototypes) {
            let column = self.columns.iter().position(|column| column.prototypes.is_some());
            let column = column.expect("it has the prototypes");
            let input = self.first_input(section);
            let boxes = tensors[self.input(self.columns[column].field, 0)];
            check_images((boxes, fitted.images), (tensors[input], images.images))?;
            prototypes = Some(images.prototypes(input, column));
        }

        let normalized = match self.anchors.levels {
            Levels::None => {
                let tensor = tensors[self.input(self.boxes.field, 0)];
                options.coordinates.normalized(self.boxes.normalized, tensor)
            }
            // Boxes have the unit of the grid.
            _ => self.boxes.normalized,
        };
        let columns: Vec<Column> =
            self.columns.iter().map(|column| column.column(fitted.open, normalized)).collect();
        let rule = &self.anchors;
        let mut groups = ArrayVec::new();
        let mut first = 0;
        for level in 0..rule.levels.groups() {
            let grid = grids.as_ref().map(|grids| grids[level]);
            let boxes = self.boxes.field;
            let anchors =
                grid.map_or(fitted.placed[self.input(boxes, level)].anchors, |grid| grid.anchors);
            let field = |field: FieldRule, components: usize| {
                self.field(field, level, first, components, &fitted)
                    .ok_or_else(|| shape_error(self.input(field, level)))
            };
            let optional = |of: Option<FieldRule>| of.map(|of| field(of, 1)).transpose();
            let reference = match (grid, rule.priors, &self.priors) {
                (Some(grid), ..) => Reference::Grid(Grid {
                    columns: grid.columns.max(1),
                    per_cell: rule.per_cell[level],
                    by_cell: rule.by_cell,
                    stride: grid.stride,
                    offset: rule.offset,
                    scale_xy: rule.scale_xy.get(level).copied().unwrap_or(1.0),
                    sizes: rule.sizes(level, options),
                }),
                (None, Some(priors), _) => Reference::Priors(field(priors, 4)?),
                (None, None, Some(_)) => Reference::Table(0),
                (None, None, None) => Reference::None,
            };
            groups.push(Group {
                anchors,
                boxes: field(boxes, self.boxes.rule.field_components(self.boxes.sizes.is_some()))?,
                sizes: self.boxes.sizes.map(|sizes| field(sizes, 2)).transpose()?,
                angle: optional(self.boxes.angle)?,
                scores: field(self.score.scores, score.components)?,
                objectness: optional(self.score.objectness)?,
                class: optional(self.score.class)?,
                reference,
                columns: self
                    .columns
                    .iter()
                    .zip(&columns)
                    .map(|(rule, column)| field(rule.field, column.components))
                    .collect::<Result<_, _>>()?,
            });
            first += anchors;
        }
        if let Some(priors) = self.priors.as_ref().filter(|priors| priors.len() != first) {
            let text = format!(
                "tensor {}: it has {first} anchors, but the layout file has {} priors; expected one for each anchor",
                tensors[self.input(self.boxes.field, 0)],
                priors.len()
            );
            return Err(LayoutError::new(LayoutProblem::Priors, text));
        }
        let of_image = |of: Option<FieldRule>, numbers| {
            of.and_then(|field| self.field(field, 0, 0, numbers, &fitted))
        };
        let pairs = of_image(rule.pairs, 3).map(|mut field| {
            // The rows of several images name theirs.
            field.image_stride = if fitted.images > 1 { 0 } else { field.image_stride };
            Pairs { field, rows: fitted.placed[field.tensor].anchors }
        });
        let mut layout = Layout {
            decoder: self.name,
            images: fitted.images,
            classes,
            groups,
            score,
            boxes: self.boxes.rule,
            count: of_image(rule.count, 1),
            pairs,
            image: of_image(rule.image, 1),
            columns,
            prototypes,
            priors: self.priors.clone(),
            normalized,
        };
        let background = self.background(&fitted, options);
        // The numbers of a family's classes are known.
        let known_classes =
            options.known_classes().filter(|_| self.score.background != Some(background));
        if !layout.set_background(background, known_classes) {
            let tensor = tensors[self.input(self.score.scores, 0)];
            return Err(match options.background {
                Some(background) => no_background(tensor, self.name, background),
                None => self.shape_error(tensor),
            });
        }
        let classes_of = self.score.class.unwrap_or(self.score.scores);
        check_classes(tensors[self.input(classes_of, 0)], layout.classes)?;
        Ok(layout)
    }

    pub(super) fn shape_error(&self, tensor: &TensorView<'_>) -> LayoutError {
        check::shape_error(tensor, self.name, self.expected)
    }

    /// The index of the tensor of a field for a level.
    pub(super) fn input(&self, field: FieldRule, level: usize) -> usize {
        self.first_input(field.tensor)
            + if self.tensors[field.tensor].per_level { level } else { 0 }
    }

    /// The index of the first tensor of a section.
    pub(super) fn first_input(&self, section: usize) -> usize {
        self.tensors[..section].iter().map(|tensor| tensor.roles.len()).sum()
    }

    /// The field of a level, whose first anchor is `first` among all levels' anchors; `None` if it is not within
    /// the tensor's numbers.
    fn field(
        &self,
        rule: FieldRule,
        level: usize,
        first: usize,
        components: usize,
        fitted: &Fitted,
    ) -> Option<Field> {
        let tensor = self.input(rule, level);
        let placed = fitted.placed[tensor];
        let column = rule.column.with_classes(fitted.classes.unwrap_or(0));
        if column.saturating_add(components) > placed.numbers {
            return None;
        }
        let first = if self.tensors[rule.tensor].per_level { 0 } else { first };
        let offset = column
            .saturating_mul(placed.component_stride)
            .saturating_add(first.saturating_mul(placed.anchor_stride));
        Some(Field {
            tensor,
            offset,
            image_stride: placed.elements,
            anchor_stride: placed.anchor_stride,
            component_stride: placed.component_stride,
        })
    }

    /// The rule of scores, as if all belonged to classes; `None` if there are none.
    fn score_rule(&self, fitted: &Fitted, options: Options) -> Option<ScoreRule> {
        let rule = &self.score;
        let shapes = &self.tensors[rule.scores.tensor].shapes;
        let is_by_class =
            rule.class.is_none() && shapes.iter().any(|shape| shape.numbers().has_classes);
        let fixed = rule.background.map_or(0, Background::columns);
        let components = if is_by_class { fitted.classes? } else { 1 + fixed };
        let background = self.background(fitted, options);
        let has_softmax = rule.background.is_none() && background != Background::None;
        let by_rule = if has_softmax { Activation::Softmax } else { rule.rule.activation };
        // The first score's number precedes the first class's.
        let is_moved =
            rule.background == Some(Background::First) && background != Background::First;
        (components > 0).then_some(ScoreRule {
            components,
            first_class: rule.rule.first_class.saturating_sub(is_moved.into()),
            activation: options.score_activation.unwrap_or(by_rule),
            ..rule.rule
        })
    }

    /// Which score is the background's.
    fn background(&self, fitted: &Fitted, options: Options) -> Background {
        options.background.or(self.score.background).unwrap_or_else(|| {
            let (scores, known) = (fitted.classes.unwrap_or(0), options.known_classes());
            // A model with softmax has a score for no object, unless all scores are known to belong to classes.
            let has_softmax = options.score_activation == Some(Activation::Softmax);
            let has_other = known.is_some_and(|known| known.checked_add(1) == Some(scores));
            match has_other || (has_softmax && scores > 1 && known != Some(scores)) {
                true => Background::Last,
                false => Background::None,
            }
        })
    }
}

impl ColumnRule<'static> {
    /// The column, where the shapes have left `open` open and boxes are normalized if `normalized` is set.
    fn column(&self, open: Option<OpenNumber>, normalized: bool) -> Column {
        let open = open.filter(|_| self.count.open.is_some());
        let mut kind = self.kind;
        if let ColumnKind::Points(rule) = &mut kind {
            rule.normalized = self.normalized.unwrap_or(normalized);
            if let Some(OpenNumber { kind: Open::Keypoints(components), .. }) = open {
                rule.components = components;
            }
        }
        let components = open.map_or(self.count.constant, |open| open.number);
        Column { name: self.name, components, kind }
    }
}
