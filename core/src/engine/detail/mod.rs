// SPDX-License-Identifier: MIT OR Apache-2.0
//! Details of a survivor besides its upright box: the oriented box and keypoints.
//!
//! In: the layout, and a survivor with its row of [columns](crate::decoder::layout::Column). Out:
//! [`Detail`], in pixels of the model's input. Engines only copy rows. Details of every engine are
//! computed here, with the formulas in `engine/formula.rs`, so their bits are identical.
//!
//! [`Details::prepare`] adds the required numbers to the columns of a layout, and removes columns
//! that nobody wants.

mod points;

use std::ops::Range;

use super::Detection;
use super::formula::{self, Prior};
use crate::decoder::Layout;
use crate::decoder::layout::{Column, ColumnKind, PointRule};
use crate::geometry::OrientedBox;

pub use points::{Point, Points};

/// The positions of the numbers for details in a row of columns.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// The positions of the points' components in a row, and their rule.
    points: Option<(Range<usize>, PointRule)>,
    /// True if survivors have masks. Engines compute the masks.
    has_masks: bool,
    /// The first number of the box, and the number of the angle.
    oriented: Option<[usize; 2]>,
    /// The first number of the prior.
    prior: Option<usize>,
}

impl Details {
    /// Adds the columns to `layout` that details are computed from. Removes the coefficients and
    /// the prototypes of masks unless `masks` is set.
    pub fn prepare(layout: &mut Layout, masks: bool) -> Self {
        if !masks {
            remove_masks(layout);
        }
        let mut details = Self { has_masks: layout.prototypes.is_some(), ..Self::default() };
        let mut first = 0;
        for column in &layout.columns {
            let end = first + column.components;
            if let (ColumnKind::Points(rule), None) = (column.kind, &details.points) {
                details.points = Some((first..end, rule));
            }
            first = end;
        }
        if layout.is_oriented() {
            let components = layout.boxes.components();
            layout.columns.push(Column::of_numbers("box", components));
            layout.columns.push(Column::of_numbers("angle", 1));
            for group in &mut layout.groups {
                let boxes = group.boxes;
                group.columns.push(boxes);
                group.columns.extend(group.angle);
            }
            details.oriented = Some([first, first + components]);
            first += components + 1;
        }
        if details.needs_prior()
            && layout.groups.iter().all(|group| group.reference.priors().is_some())
        {
            layout.columns.push(Column::of_numbers("prior", 4));
            for group in &mut layout.groups {
                group.columns.extend(group.reference.priors());
            }
            details.prior = Some(first);
        }
        details
    }

    /// Returns true if survivors have no details.
    pub fn is_empty(&self) -> bool {
        self.points.is_none() && self.oriented.is_none() && !self.has_masks
    }

    /// The number of points per survivor, or `None` if the model has no points.
    pub fn points(&self) -> Option<usize> {
        self.points.as_ref().map(|(numbers, rule)| numbers.len() / rule.components)
    }

    /// Returns true if survivors have oriented boxes.
    pub fn is_oriented(&self) -> bool {
        self.oriented.is_some()
    }

    /// The details of a survivor, whose columns are `row`. `layout` must be the prepared layout,
    /// and `unit` the number of pixels of the model's input per unit of the tensor.
    pub fn of<'a>(
        &self,
        layout: &Layout,
        unit: [f32; 2],
        survivor: &Detection,
        row: &'a [f32],
    ) -> Detail<'a> {
        let prior = self.needs_prior().then(|| self.prior(layout, survivor, row)).flatten();
        let oriented_box = self.oriented.map(|[first, angle]| {
            let components = formula::components(&layout.boxes, |index| row[first + index]);
            formula::oriented_box(&layout.boxes, prior, unit, components, row[angle])
        });
        let points = match &self.points {
            Some((numbers, rule)) => {
                Points { numbers: &row[numbers.clone()], rule: Some(*rule), prior, scale: unit }
            }
            None => Points::default(),
        };
        Detail { oriented_box, points }
    }

    /// Returns true if the details depend on the anchors' priors.
    fn needs_prior(&self) -> bool {
        let is_relative = self.points.as_ref().is_some_and(|(_, rule)| rule.relative.is_some());
        self.oriented.is_some() || is_relative
    }

    /// The reference that the survivor's anchor is relative to.
    fn prior(&self, layout: &Layout, survivor: &Detection, row: &[f32]) -> Option<Prior> {
        let (group, anchor) = layout.locate(survivor.anchor as usize % layout.anchors())?;
        Prior::of(layout, group, anchor, |_| {
            let first = self.prior.expect("`prepare` has added the column of priors");
            std::array::from_fn(|index| row[first + index])
        })
    }
}

/// The details of a survivor.
#[derive(Clone, Copy, Debug)]
pub struct Detail<'a> {
    /// The oriented box, in pixels of the model's input, or `None` if boxes are upright.
    pub oriented_box: Option<OrientedBox>,
    /// The points, in pixels of the model's input.
    pub points: Points<'a>,
}

/// Removes the prototypes and the coefficients.
fn remove_masks(layout: &mut Layout) {
    layout.prototypes = None;
    let is_kept = |column: &Column| column.kind != ColumnKind::MaskCoefficients;
    for group in &mut layout.groups {
        let mut columns = layout.columns.iter();
        group.columns.retain(|_| columns.next().is_none_or(is_kept));
    }
    layout.columns.retain(is_kept);
}
