// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a description and the shapes of tensors to a [`Layout`].

use std::ops::Range;

use arrayvec::ArrayVec;

use super::shape::{Known, Pattern, Placed};
use super::{ColumnRule, Description, FewerAnchors, FieldRule, Levels, TensorRule};
use crate::decoder::layout::{
    Activation, Column, ColumnKind, Field, Grid, Group, Layout, LayoutError, MAX_GROUPS, PointRule,
    Reference, ScoreRule,
};
use crate::decoder::matrix::{check_classes, check_element_type, wrong_batch};
use crate::decoder::{MAX_CLASSES, MAX_INPUTS, Options};
use crate::tensor::{ElementType, TensorView};

/// The grid of a level.
#[derive(Clone, Copy, Debug)]
struct Level {
    columns: usize,
    rows: usize,
    anchors: usize,
    stride: [f32; 2],
}

/// The greatest number of cells in a row or column, far more than a model has.
const MAX_CELLS: f32 = 65_535.0;

impl Description<'_> {
    /// The grids; `None` if they depend on the size of the model's input and that is not known, and if there is
    /// none.
    fn grids(&self, options: Options) -> Option<ArrayVec<Level, MAX_GROUPS>> {
        let level = |index: usize, [columns, rows]: [f32; 2], stride| {
            let (columns, rows) = (columns as usize, rows as usize);
            let anchors = columns.saturating_mul(rows).saturating_mul(self.anchors.per_cell[index]);
            Level { columns, rows, anchors, stride }
        };
        match &self.anchors.levels {
            Levels::None => None,
            Levels::Cells(cells) => {
                let of = |(index, &cells): (usize, &u32)| {
                    let cells = cells as f32;
                    level(index, [cells; 2], [1.0 / cells; 2])
                };
                Some(cells.iter().enumerate().map(of).collect())
            }
            Levels::Strides(strides) => {
                let size = options.model_size?;
                let of = |(index, &stride): (usize, &u32)| {
                    let stride = stride as f32;
                    let cells = size.map(|side| {
                        let cells = side / stride;
                        let cells =
                            if self.anchors.rounds_up { cells.ceil() } else { cells.floor() };
                        cells.clamp(0.0, MAX_CELLS)
                    });
                    level(index, cells, [stride; 2])
                };
                Some(strides.iter().enumerate().map(of).collect())
            }
        }
    }
}

/// What the shapes of tensors determine.
struct Fitted {
    images: usize,
    classes: Option<usize>,
    placed: ArrayVec<Placed, MAX_INPUTS>,
}

/// The number of anchors that a tensor determined.
struct Found<'t, 'v> {
    tensor: &'t TensorView<'v>,
    anchors: usize,
}

impl Description<'static> {
    /// The layout of `tensors`, of which there is one for each of [`roles`](Self::roles). `expects` is the text of
    /// errors.
    ///
    /// # Errors
    /// If a shape or an element type does not fit.
    pub(in crate::decoder) fn layout(
        &self,
        tensors: &[&TensorView<'_>],
        expects: &str,
        options: Options,
    ) -> Result<Layout, LayoutError> {
        let fitted = self.fit(tensors, expects, options)?;
        let grids = self.grids(options);
        if grids.is_none() && matches!(self.anchors.levels, Levels::Strides(_)) {
            let tensor = tensors[0].to_string();
            return Err(LayoutError::ModelSize { tensor, decoder: self.name });
        }
        let shape_error = |tensor: usize| self.shape_error(tensors[tensor], expects);
        let score = self.score_rule(&fitted, options).ok_or_else(|| shape_error(0))?;
        let scores_tensor = self.input(self.score.scores, 0);
        let (classes, classes_of) = match self.score.class {
            // Any class that a model can have: the tensor's classes are checked one by one.
            Some(field) if options.num_classes == 0 => (MAX_CLASSES, self.input(field, 0)),
            Some(field) => {
                let classes = options.num_classes.saturating_add(score.first_class as usize);
                (classes, self.input(field, 0))
            }
            None => {
                let classes = score.components.saturating_add(score.first_class as usize);
                (classes, scores_tensor)
            }
        };
        check_classes(tensors[classes_of], classes)?;

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
            // Without softmax, the score of the background is not read.
            let skipped = usize::from(self.score.background && !score.background);
            let mut scores = field(self.score.scores, score.columns().saturating_add(skipped))?;
            scores.offset =
                scores.offset.saturating_add(skipped.saturating_mul(scores.component_stride));
            let reference = match (grid, rule.priors, &self.priors) {
                (Some(grid), ..) => Reference::Grid(Grid {
                    columns: grid.columns.max(1),
                    per_cell: rule.per_cell[level],
                    by_cell: rule.by_cell,
                    stride: grid.stride,
                    offset: rule.offset,
                    sizes: rule.sizes.get(level).cloned().unwrap_or_default(),
                }),
                (None, Some(priors), _) => Reference::Priors(field(priors, 4)?),
                (None, None, Some(_)) => Reference::Table(0),
                (None, None, None) => Reference::None,
            };
            groups.push(Group {
                anchors,
                boxes: field(boxes, self.boxes.rule.components())?,
                angle: optional(self.boxes.angle)?,
                scores,
                objectness: optional(self.score.objectness)?,
                class: optional(self.score.class)?,
                reference,
                columns: self
                    .columns
                    .iter()
                    .map(|column| field(column.field, column.components))
                    .collect::<Result<_, _>>()?,
            });
            first += anchors;
        }
        if let Some(priors) = self.priors.as_ref().filter(|priors| priors.len() != first) {
            let tensor = tensors[self.input(self.boxes.field, 0)].to_string();
            return Err(LayoutError::Priors { tensor, found: first, priors: priors.len() });
        }
        let count = rule.count.and_then(|count| self.field(count, 0, 0, 1, &fitted));
        let normalized = self.is_normalized(tensors[self.input(self.boxes.field, 0)], options);
        Ok(Layout {
            decoder: self.name,
            images: fitted.images,
            classes,
            groups,
            score,
            boxes: self.boxes.rule,
            count,
            columns: self.columns.iter().map(|column| self.column(column, normalized)).collect(),
            prototypes: None,
            priors: self.priors.clone(),
            normalized,
        })
    }

    /// A column, of a layout whose boxes are normalized if `normalized` is set.
    fn column(&self, rule: &ColumnRule<'static>, normalized: bool) -> Column {
        let &ColumnRule { name, components, mut kind, .. } = rule;
        if let ColumnKind::Points(PointRule { relative: Some(_), normalized: of_points, .. }) =
            &mut kind
        {
            *of_points = normalized;
        }
        Column { name, components, kind }
    }

    /// Checks the first tensors of those that [`layout`](Self::layout) takes.
    ///
    /// # Errors
    /// If a shape or an element type does not fit.
    pub(in crate::decoder) fn check(
        &self,
        tensors: &[&TensorView<'_>],
        expects: &str,
        options: Options,
    ) -> Result<(), LayoutError> {
        self.fit(tensors, expects, options).map(|_| ())
    }

    /// How the first tensors fit their shapes.
    fn fit(
        &self,
        tensors: &[&TensorView<'_>],
        expects: &str,
        options: Options,
    ) -> Result<Fitted, LayoutError> {
        let grids = self.grids(options);
        let total = grids.as_ref().map(|grids| {
            grids.iter().fold(0, |sum: usize, level| sum.saturating_add(level.anchors))
        });
        let mut fitted = Fitted { images: 0, classes: None, placed: ArrayVec::new() };
        // The tensor that determined the number of images, and those that determined the number of anchors of each
        // level, or of all.
        let mut first: Option<&TensorView<'_>> = None;
        let mut found: [Option<Found<'_, '_>>; MAX_GROUPS] = [const { None }; MAX_GROUPS];
        for (&(section, level), &tensor) in self.sources().iter().zip(tensors) {
            let rule = &self.tensors[section];
            self.check_element(section, tensor)?;
            let grid = grids.as_ref().map(|grids| grids[level]);
            let is_level = rule.per_level || self.anchors.levels.groups() == 1;
            let expected = match grid {
                Some(grid) if is_level => Some(grid.anchors),
                Some(_) => total,
                None => found[level].as_ref().map(|found| found.anchors),
            };
            let known = Known {
                anchors: expected,
                per_cell: Some(self.anchors.per_cell[level]),
                cells: grid.map(|grid| [grid.rows, grid.columns]),
                classes: fitted.classes,
            };
            let images = first.map(|_| fitted.images);
            let (images, placed) = match fit(tensor, rule, known, images, options) {
                Ok(fit) => fit,
                Err(Misfit::Batch(batch)) => {
                    return Err(wrong_batch(tensor, batch));
                }
                Err(Misfit::Images(score_images)) => {
                    return Err(LayoutError::Images {
                        boxes: first.unwrap_or(tensor).to_string(),
                        box_images: fitted.images,
                        scores: tensor.to_string(),
                        score_images,
                    });
                }
                Err(Misfit::Anchors(anchors)) => {
                    let levels = if is_level { level..level + 1 } else { 0..MAX_GROUPS };
                    let grid =
                        self.grid_error(tensor, [anchors, expected.unwrap_or(0)], levels, options);
                    let other = found[level].as_ref().map(|first| LayoutError::Anchors {
                        first: first.tensor.to_string(),
                        first_anchors: first.anchors,
                        second: tensor.to_string(),
                        second_anchors: anchors,
                    });
                    return Err(grid
                        .or(other)
                        .unwrap_or_else(|| self.shape_error(tensor, expects)));
                }
                Err(Misfit::Shape) => return Err(self.shape_error(tensor, expects)),
            };
            if rule.shapes.iter().all(Pattern::has_anchors) && found[level].is_none() {
                found[level] = Some(Found { tensor, anchors: placed.anchors });
            }
            fitted.classes = fitted.classes.or(placed.classes);
            fitted.images = images;
            first = first.or(Some(tensor));
            fitted.placed.push(placed);
        }
        Ok(fitted)
    }

    fn shape_error(&self, tensor: &TensorView<'_>, expects: &str) -> LayoutError {
        let (tensor, expected) = (tensor.to_string(), expects.to_owned());
        LayoutError::Shape { tensor, decoder: self.name, expected }
    }

    /// The error of a tensor that does not have the number of anchors of these levels' grids; `None` without strides.
    fn grid_error(
        &self,
        tensor: &TensorView<'_>,
        [found, expected]: [usize; 2],
        levels: Range<usize>,
        options: Options,
    ) -> Option<LayoutError> {
        let (Levels::Strides(strides), Some([width, height])) =
            (&self.anchors.levels, options.model_size)
        else {
            return None;
        };
        let strides: Vec<String> =
            strides.iter().take(levels.end).skip(levels.start).map(u32::to_string).collect();
        Some(LayoutError::Grid {
            tensor: tensor.to_string(),
            decoder: self.name,
            found,
            expected,
            strides: strides.join(", "),
            model: format!("{width}x{height}"),
        })
    }

    /// Checks the element type of the tensor of a section: classes and counts can be integers.
    fn check_element(&self, section: usize, tensor: &TensorView<'_>) -> Result<(), LayoutError> {
        let is_of = |field: &FieldRule| field.tensor == section;
        let numbers = [
            Some(self.boxes.field),
            self.boxes.angle,
            Some(self.score.scores),
            self.score.objectness,
            self.anchors.priors,
        ];
        let has_numbers = numbers.iter().flatten().any(is_of)
            || self.columns.iter().any(|column| is_of(&column.field));
        let is_integer = matches!(
            tensor.element,
            ElementType::I8 | ElementType::U8 | ElementType::I32 | ElementType::I64
        );
        if has_numbers || !is_integer { check_element_type(tensor) } else { Ok(()) }
    }

    /// The index of the tensor of a field for a level.
    fn input(&self, field: FieldRule, level: usize) -> usize {
        let before: usize =
            self.tensors[..field.tensor].iter().map(|tensor| tensor.names.len()).sum();
        before + if self.tensors[field.tensor].per_level { level } else { 0 }
    }

    /// The field of a level, whose first anchor is `first` among those of all levels; `None` if it is not within
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
        let column = rule.column.of(fitted.classes.unwrap_or(0));
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

    /// The rule of scores; `None` if no score of a class is left.
    fn score_rule(&self, fitted: &Fitted, options: Options) -> Option<ScoreRule> {
        let rule = &self.score;
        let shapes = &self.tensors[rule.scores.tensor].shapes;
        let is_by_class =
            rule.class.is_none() && shapes.iter().any(|shape| shape.numbers().has_classes);
        let components = match is_by_class {
            true => fitted.classes?.checked_sub(usize::from(rule.background))?,
            false => 1,
        };
        let activation = options.score_activation.unwrap_or(rule.activation);
        (components > 0).then_some(ScoreRule {
            components,
            first_class: rule.first_class,
            background: rule.background && activation == Activation::Softmax,
            activation,
            combination: rule.combination,
        })
    }

    /// Whether the boxes of `tensor` are normalized.
    fn is_normalized(&self, tensor: &TensorView<'_>, options: Options) -> bool {
        match self.anchors.levels {
            Levels::None => options.coordinates.normalized_or(self.boxes.normalized, tensor),
            // Boxes have the unit of the grid.
            Levels::Strides(_) | Levels::Cells(_) => self.boxes.normalized,
        }
    }
}

/// Why a tensor does not fit.
enum Misfit {
    /// A batch dimension other than 1.
    Batch(usize),
    /// Another number of images.
    Images(usize),
    /// Another number of anchors.
    Anchors(usize),
    /// Another shape.
    Shape,
}

/// The number of images, and where an image's numbers are.
fn fit(
    tensor: &TensorView<'_>,
    rule: &TensorRule<'_>,
    known: Known,
    images: Option<usize>,
    options: Options,
) -> Result<(usize, Placed), Misfit> {
    if let (FewerAnchors::KnownClasses, Some(classes)) =
        (rule.fewer_anchors, options.known_classes())
    {
        let known = Known { classes: Some(classes), ..known };
        let fit = first_fit(tensor, rule, (known, images, true), options);
        if fit.is_ok() {
            return fit;
        }
    }
    let can_be_fewer = rule.fewer_anchors == FewerAnchors::Yes;
    first_fit(tensor, rule, (known, images, can_be_fewer), options)
}

/// The number of images, and where an image's numbers are, by the first of the shapes that fits.
fn first_fit(
    tensor: &TensorView<'_>,
    rule: &TensorRule<'_>,
    (known, images, can_be_fewer): (Known, Option<usize>, bool),
    options: Options,
) -> Result<(usize, Placed), Misfit> {
    let dimensions: &[usize] = &tensor.shape;
    let mut misfit = Misfit::Shape;
    for shape in &rule.shapes {
        // With a dimension more than the shape has, the first one is the batch; if that does not fit, there is none.
        let batch = match dimensions.split_first() {
            Some((&batch, rest)) if dimensions.len() > shape.len() => Some((batch, rest)),
            _ => None,
        };
        let is_exact = |dimensions: &[usize]| dimensions.len() == shape.len();
        for (count, dimensions) in batch.into_iter().chain([(1, dimensions)]) {
            let is_batch = count == 1 || (options.batch && count > 0);
            if rule.is_exact && !(is_batch && is_exact(dimensions)) {
                // Where no dimension can be skipped, the first one is the batch whatever the others are.
                if is_exact(dimensions) {
                    misfit = Misfit::Batch(count);
                }
                continue;
            }
            let placed = shape.fit(dimensions, known).filter(|placed| {
                can_be_fewer || placed.anchors >= placed.numbers || placed.anchors == 0
            });
            let Some(placed) = placed else {
                let any = Known { anchors: None, cells: None, ..known };
                match shape.fit(dimensions, any) {
                    Some(placed) if is_batch => misfit = Misfit::Anchors(placed.anchors),
                    _ => {}
                }
                continue;
            };
            match images {
                _ if !is_batch => misfit = Misfit::Batch(count),
                Some(images) if images != count => misfit = Misfit::Images(count),
                _ => return Ok((count, placed)),
            }
        }
    }
    Err(misfit)
}
