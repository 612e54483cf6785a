// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fits tensors to the shapes of a description.
//!
//! In: the shapes of tensors, one for each section and level. Out: where the anchors and numbers of each
//! are, or the error of the first that does not fit.

use std::ops::Range;

use arrayvec::ArrayVec;

use super::apply::Level;
use super::prototypes::PrototypeImages;
use super::shape::{Known, OpenNumber, Pattern, Placed};
use super::{Description, FewerAnchors, FieldRule, Levels, TensorRule};
use crate::decoder::check::{check_element_type, check_num_classes, other_images, wrong_batch};
use crate::decoder::layout::{Background, LayoutError, LayoutProblem, MAX_GROUPS};
use crate::decoder::{MAX_INPUTS, Options};
use crate::tensor::TensorView;
use crate::wording::Setting::ModelSize;

/// The numbers that follow from the shapes of tensors.
#[derive(Default)]
pub(in crate::decoder) struct Fitted {
    /// The grids of the levels; `None` without grids, or without the size of the model's input on which they depend.
    pub(super) grids: Option<ArrayVec<Level, MAX_GROUPS>>,
    pub(super) images: usize,
    pub(super) classes: Option<usize>,
    pub(super) placed: ArrayVec<Placed, MAX_INPUTS>,
    /// Another number that the shapes leave open, in the only section that leaves one open.
    pub(super) open: Option<OpenNumber>,
    pub(super) prototypes: Option<PrototypeImages>,
}

impl Description<'static> {
    /// Fits the first tensors to their shapes.
    ///
    /// # Errors
    /// If a shape or an element type does not fit.
    pub(in crate::decoder) fn fit(
        &self,
        tensors: &[&TensorView<'_>],
        options: Options,
    ) -> Result<Fitted, LayoutError> {
        // From here on, the background counts as a class, as in the shapes.
        let background = options.background.or(self.score.background);
        let background = background.map_or(0, Background::columns);
        let with_background = |classes: usize| match classes {
            0 => 0,
            classes => classes.saturating_add(background),
        };
        let options = Options {
            num_classes: with_background(options.num_classes),
            labels: with_background(options.labels),
            ..options
        };
        let known = options.known_classes().filter(|_| self.has_open_number());
        match self.fit_with(tensors, known, options) {
            Err(error) if error.problem == LayoutProblem::Shape && known.is_some() => {}
            result => return result,
        }
        let fitted = self.fit_with(tensors, None, options)?;
        // Another number of labels is accepted.
        if let Some(classes) = fitted.classes.filter(|_| options.num_classes > 0) {
            let (tensor, classes) =
                (tensors[self.input(self.score.scores, 0)], classes.saturating_sub(background));
            let num_classes = options.num_classes - background;
            check_num_classes(tensor, self.name, classes, Options { num_classes, ..options })?;
        }
        Ok(fitted)
    }

    /// Fits the first tensors to their shapes, with the number of classes in `known`, or any number.
    fn fit_with(
        &self,
        tensors: &[&TensorView<'_>],
        known_classes: Option<usize>,
        options: Options,
    ) -> Result<Fitted, LayoutError> {
        let grids = self.grids(options);
        let total = grids.as_ref().map(|grids| {
            grids.iter().fold(0, |sum: usize, level| sum.saturating_add(level.anchors))
        });
        let mut fitted = Fitted { grids, ..Fitted::default() };
        let prototypes = self.prototypes().and_then(|section| {
            let tensor = tensors.get(self.first_input(section))?;
            Some((*tensor, self.tensors[section].shapes.as_slice()))
        });
        // The tensor that determined the number of images, and those that determined the number of anchors of each
        // level, or of all.
        let mut first: Option<(&TensorView<'_>, usize)> = None;
        let mut found = [first; MAX_GROUPS];
        for (&(section, level), &tensor) in self.sources().iter().zip(tensors) {
            let rule = &self.tensors[section];
            if self.prototypes() == Some(section) {
                // Their shape is read together with the shape of the coefficients.
                fitted.placed.push(Placed::default());
                continue;
            }
            let has_pairs = self.anchors.pairs.is_some_and(|pairs| pairs.tensor == section);
            if !rule.is_ignored {
                self.check_element(section, tensor)?;
            }
            if rule.is_ignored || has_pairs {
                // Their rows are no anchors, and belong to several images.
                let fit = |shape: &Pattern| shape.fit(&tensor.shape, Known::default());
                let placed = rule.shapes.iter().find_map(fit);
                fitted.placed.push(placed.ok_or_else(|| self.shape_error(tensor))?);
                continue;
            }
            let grid = fitted.grids.as_ref().map(|grids| grids[level]);
            let is_level = rule.per_level || self.anchors.levels.groups() == 1;
            let expected = match grid {
                Some(grid) if is_level => Some(grid.anchors),
                Some(_) => total,
                None => found[level].map(|(_, anchors)| anchors),
            };
            let known = Known {
                anchors: expected,
                per_cell: Some(self.anchors.per_cell[level]),
                cells: grid.map(|grid| [grid.rows, grid.columns]),
                classes: fitted.classes,
            };
            let classes = fitted.classes.or(known_classes);
            let images = first.map(|(_, images)| images);
            let fitting =
                Fitting { of: self, rule, tensor, known, images, classes, prototypes, options };
            let (images, placed) = match fitting.fit() {
                Ok(fit) => fit,
                Err(Misfit::Ambiguity(error)) => return Err(error),
                Err(Misfit::Batch(batch)) => return Err(wrong_batch(tensor, batch)),
                Err(Misfit::Images(images)) => {
                    let boxes = first.unwrap_or((tensor, 0));
                    return Err(other_images(boxes, (tensor, images)));
                }
                Err(Misfit::Anchors(anchors)) => {
                    let levels = if is_level { level..level + 1 } else { 0..MAX_GROUPS };
                    let grid =
                        self.grid_error(tensor, [anchors, expected.unwrap_or(0)], levels, options);
                    let other = found[level].map(|(of, count)| {
                        let text = format!(
                            "tensor {of} has {count} anchors, tensor {tensor} has {anchors}; expected the same number"
                        );
                        LayoutError::new(LayoutProblem::Anchors, text)
                    });
                    return Err(grid.or(other).unwrap_or_else(|| self.shape_error(tensor)));
                }
                Err(Misfit::Shape) => return Err(self.shape_error(tensor)),
            };
            if rule.shapes.iter().all(Pattern::has_anchors) && found[level].is_none() {
                found[level] = Some((tensor, placed.anchors));
            }
            fitted.classes = fitted.classes.or(placed.classes);
            let is_other = |open: OpenNumber| placed.open.is_some_and(|other| other != open);
            if fitted.open.is_some_and(is_other) {
                return Err(self.shape_error(tensor));
            }
            fitted.open = fitted.open.or(placed.open);
            fitted.prototypes = fitted.prototypes.or(placed.prototypes);
            fitted.images = images;
            first = first.or(Some((tensor, images)));
            fitted.placed.push(placed);
        }
        Ok(fitted)
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
        let text = format!(
            "tensor {tensor}: it has {found} anchors, but decoder {} expects {expected}: grids of stride {} on a model \
             input of {width}x{height}; set {ModelSize} to the model's input",
            self.name,
            strides.join(", ")
        );
        Some(LayoutError::new(LayoutProblem::Grid, text))
    }

    /// Checks the element type of the tensor of a section: classes and counts can be integers.
    fn check_element(&self, section: usize, tensor: &TensorView<'_>) -> Result<(), LayoutError> {
        let is_of = |field: &FieldRule| field.tensor == section;
        let numbers = [
            Some(self.boxes.field),
            self.boxes.sizes,
            self.boxes.angle,
            Some(self.score.scores),
            self.score.objectness,
            self.anchors.priors,
        ];
        let has_numbers = numbers.iter().flatten().any(is_of)
            || self.columns.iter().any(|column| is_of(&column.field));
        if !has_numbers && tensor.element.is_integer() {
            Ok(())
        } else {
            check_element_type(tensor)
        }
    }
}

/// The reason why a tensor does not fit.
enum Misfit {
    /// Numbers that can be divided in several ways.
    Ambiguity(LayoutError),
    /// A batch dimension other than 1.
    Batch(usize),
    /// Another number of images.
    Images(usize),
    /// Another number of anchors.
    Anchors(usize),
    /// Another shape.
    Shape,
}

/// A tensor, and what is known before it is fitted.
#[derive(Clone, Copy)]
pub(super) struct Fitting<'t> {
    pub of: &'t Description<'static>,
    pub rule: &'t TensorRule<'static>,
    pub tensor: &'t TensorView<'t>,
    known: Known,
    /// The number of images of the tensors before.
    images: Option<usize>,
    /// The number of classes; `None` if any number fits.
    pub classes: Option<usize>,
    /// The tensor of the prototypes and its shapes; `None` without prototypes, or before their tensor.
    pub prototypes: Option<(&'t TensorView<'t>, &'t [Pattern])>,
    pub options: Options,
}

impl Fitting<'_> {
    /// The number of images, and where an image's numbers are.
    fn fit(self) -> Result<(usize, Placed), Misfit> {
        let Self { rule, known, options, .. } = self;
        if let (FewerAnchors::KnownClasses, Some(classes)) =
            (rule.fewer_anchors, options.known_classes())
        {
            let known = Known { classes: Some(classes), ..known };
            let fit = Self { known, ..self }.first_fit(true);
            if fit.is_ok() {
                return fit;
            }
        }
        self.first_fit(rule.fewer_anchors == FewerAnchors::Yes)
    }

    /// The number of images, and where an image's numbers are, by the first of the shapes that fits.
    fn first_fit(self, can_be_fewer: bool) -> Result<(usize, Placed), Misfit> {
        let Self { rule, tensor, known, images, options, .. } = self;
        let dimensions: &[usize] = &tensor.shape;
        let mut misfit = Misfit::Shape;
        for shape in &rule.shapes {
            // A dimension more than the shape has can be the batch; if this does not fit, there is no batch dimension.
            let batch = match dimensions.split_first() {
                Some((&batch, rest)) if dimensions.len() > shape.len() => Some((batch, rest)),
                _ => None,
            };
            let is_exact = |dimensions: &[usize]| dimensions.len() == shape.len();
            for (count, dimensions) in batch.into_iter().chain([(1, dimensions)]) {
                let is_batch = count == 1 || (options.batch && count > 0);
                if rule.is_exact && !(is_batch && is_exact(dimensions)) {
                    // If no dimension can be skipped, the first one is the batch, whatever the others are.
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
                let divided = self.divide(placed, shape).map_err(Misfit::Ambiguity)?;
                let Some(placed) = divided else { continue };
                match images {
                    _ if !is_batch => misfit = Misfit::Batch(count),
                    Some(images) if images != count => misfit = Misfit::Images(count),
                    _ => return Ok((count, placed)),
                }
            }
        }
        Err(misfit)
    }
}
