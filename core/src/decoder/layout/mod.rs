// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layouts: where the numbers of a detector's output are, and what they mean.
//!
//! A [`Layout`] is data. It has four parts, which engines apply to each anchor in this order:
//!
//! | part | described by |
//! | --- | --- |
//! | which anchors | [`Group`]s, one for each level of a feature pyramid, and a field that counts the valid anchors |
//! | score | [`ScoreRule`], and the fields of scores, objectness and class |
//! | box | [`BoxRule`], the field of the box, and the [`Reference`] that it is relative to |
//! | columns | [`Column`]s: further numbers that survivors carry along |
//! | masks | [`Prototypes`], whose products with a survivor's coefficients are its mask |
//!
//! The documentation of the [engines](crate::engine) states the rules. Layouts without transforms are
//! [plain](PlainLayout): engines have faster code for them.

mod box_rule;
mod channels;
mod column;
mod coordinates;
mod error;
mod field;
mod plain;
mod score_rule;

use std::sync::Arc;

use arrayvec::ArrayVec;

pub use box_rule::{Axes, BoxFormat, BoxRule, BoxTransform, Grid, MAX_SIZES, Reference};
pub use channels::Channels;
pub use column::{Column, ColumnKind, PointRule, Prototypes};
pub use coordinates::Coordinates;
pub use error::{LayoutError, LayoutProblem};
pub use field::Field;
pub use plain::PlainLayout;
pub use score_rule::{Activation, Background, Combination, ScoreRule};

use super::MAX_INPUTS;

/// The greatest number of groups of a layout.
pub const MAX_GROUPS: usize = 8;

/// The greatest number of columns of a layout.
pub const MAX_COLUMNS: usize = 4;

/// The greatest number of components of all columns together.
pub const MAX_COLUMN_COMPONENTS: usize = 1024;

/// The greatest number of bins of [`BoxTransform::Expectation`].
pub const MAX_BINS: usize = 256;

/// Where a detector's numbers are and what they mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// The name of the decoder that made the layout.
    pub decoder: &'static str,
    /// The number of images in the tensors. Each image is decoded and suppressed separately.
    pub images: usize,
    /// The number of classes: every class is less than it.
    pub classes: usize,
    /// The anchors of an image. An anchor is one location for which the model predicts a box. Anchors are
    /// numbered through all groups.
    pub groups: ArrayVec<Group, MAX_GROUPS>,
    /// How scores are computed.
    pub score: ScoreRule,
    /// How boxes are computed.
    pub boxes: BoxRule,
    /// The number of valid anchors of an image, one component of anchor 0; further anchors are not read.
    /// `None` if all are valid.
    pub count: Option<Field>,
    /// The pairs of anchor and class that can be candidates; `None` if all can.
    pub pairs: Option<Pairs>,
    /// The number of an anchor's image, one component, if a tensor can have rows of other images, which are an error. A
    /// number below 0 is of no image.
    pub image: Option<Field>,
    /// Numbers that survivors carry along.
    pub columns: Vec<Column>,
    /// The images that masks are computed from.
    pub prototypes: Option<Prototypes>,
    /// The table of [`Reference::Table`]: center x, center y, width, height.
    pub priors: Option<Arc<[[f32; 4]]>>,
    /// True if coordinates are normalized (0 to 1). If not, they are pixels of the model's input.
    pub normalized: bool,
}

/// Rows of image, class and anchor, as ONNX's NonMaxSuppression selects them. A class is the number of its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pairs {
    /// The three components. With an image stride of 0 all images share the rows, which name their images;
    /// otherwise the image of an image's rows is 0.
    pub field: Field,
    /// The number of rows.
    pub rows: usize,
}

/// Anchors whose numbers share fields, such as the anchors of one level of a feature pyramid.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The number of anchors of an image.
    pub anchors: usize,
    /// The components of the box: [`BoxRule::components`] of them.
    pub boxes: Field,
    /// Width and height of boxes of center form, if they are not beside the center, whose field then has two components.
    pub sizes: Option<Field>,
    /// The angle of the box: one component. `None` if boxes are upright.
    pub angle: Option<Field>,
    /// The scores: [`ScoreRule::columns`] components.
    pub scores: Field,
    /// The score that there is any object: one component.
    pub objectness: Option<Field>,
    /// The class of the anchor's only score: one component, a whole number. `None` if each class has a score.
    pub class: Option<Field>,
    /// The points and sizes that boxes are relative to.
    pub reference: Reference,
    /// The field of each of [`Layout::columns`].
    pub columns: Vec<Field>,
}

impl Layout {
    /// The number of anchors of an image.
    pub fn anchors(&self) -> usize {
        self.groups.iter().fold(0, |sum, group| sum.saturating_add(group.anchors))
    }

    /// The group of an anchor of an image, and the anchor's number in it; `None` if there are not as many anchors.
    pub(crate) fn locate(&self, mut anchor: usize) -> Option<(&Group, usize)> {
        for group in &self.groups {
            if anchor < group.anchors {
                return Some((group, anchor));
            }
            anchor -= group.anchors;
        }
        None
    }

    /// The number of columns' components that each survivor carries along.
    pub fn column_components(&self) -> usize {
        self.columns.iter().fold(0, |sum, column| sum.saturating_add(column.components))
    }

    /// The index of the column of this kind, the first if there are several.
    pub(crate) fn column_of(&self, kind: ColumnKind) -> Option<usize> {
        self.columns.iter().position(|column| column.kind == kind)
    }

    /// Returns true if the class is a number in a tensor, rather than the position of the best score.
    pub fn has_class_field(&self) -> bool {
        self.groups.iter().any(|group| group.class.is_some())
    }

    /// Returns true if boxes have an angle.
    pub fn is_oriented(&self) -> bool {
        self.groups.iter().any(|group| group.angle.is_some())
    }

    /// The class that the first label names: the number with which classes in a tensor begin, else 0.
    pub fn first_label(&self) -> u32 {
        if self.has_class_field() { self.score.first_class } else { 0 }
    }

    /// Takes one of the scores, which so far all belong to classes, for the background's. Without softmax it is not read
    /// at all. If `known_classes` counts the background, too, it keeps its number as a class, which no anchor has.
    /// Returns false, and changes nothing, if no score of a class would remain.
    pub(super) fn set_background(
        &mut self,
        background: Background,
        known_classes: Option<usize>,
    ) -> bool {
        if background == Background::None {
            return true;
        }
        let score = &mut self.score;
        if score.components < 2 {
            return false;
        }
        match known_classes == Some(score.components) {
            true => score.first_class += u32::from(background == Background::First),
            false => self.classes -= 1,
        }
        score.components -= 1;
        if score.activation == Activation::Softmax {
            score.background = background;
        } else if background == Background::First {
            for Group { scores, .. } in &mut self.groups {
                scores.offset = scores.offset.saturating_add(scores.component_stride);
            }
        }
        true
    }

    /// Returns true if anchors are rows of one tensor, and have no objectness.
    pub fn has_rows_without_objectness(&self) -> bool {
        let is_row = |group: &Group| {
            group.objectness.is_none()
                && group.boxes.tensor == group.scores.tensor
                && group.boxes.component_stride == 1
        };
        self.groups.iter().all(is_row)
    }

    /// The fields, with the name and the number of components of each, and the number of anchors that have them.
    pub(crate) fn fields(&self) -> impl Iterator<Item = NamedField<'_>> {
        let named =
            |name, field, components, anchors| NamedField { name, field, components, anchors };
        let count = self.count.as_ref().map(|field| named("count", field, 1, 1));
        let pairs = self.pairs.as_ref().map(|pairs| named("pairs", &pairs.field, 3, pairs.rows));
        let image = self.image.as_ref().map(|field| named("image", field, 1, self.anchors()));
        let prototypes = self.prototypes.as_ref().map(|prototypes| {
            let channels = self.columns.get(prototypes.column).map_or(0, |of| of.components);
            named("prototypes", &prototypes.field, channels, prototypes.pixels())
        });
        let of_groups = self.groups.iter().flat_map(|group| self.fields_of(group));
        of_groups.chain(count).chain(pairs).chain(image).chain(prototypes)
    }

    /// The fields of a group.
    fn fields_of<'a>(&'a self, group: &'a Group) -> impl Iterator<Item = NamedField<'a>> {
        let anchors = group.anchors;
        let field = move |name, field, components| NamedField { name, field, components, anchors };
        let columns = group.columns.iter().zip(&self.columns);
        [
            Some(field("boxes", &group.boxes, self.boxes.field_components(group.sizes.is_some()))),
            group.sizes.as_ref().map(|sizes| field("sizes", sizes, 2)),
            Some(field("scores", &group.scores, self.score.columns())),
            group.angle.as_ref().map(|angle| field("angle", angle, 1)),
            group.objectness.as_ref().map(|objectness| field("objectness", objectness, 1)),
            group.class.as_ref().map(|class| field("class", class, 1)),
            group.reference.priors().map(|priors| field("priors", priors, 4)),
        ]
        .into_iter()
        .flatten()
        .chain(columns.map(move |(of, column)| field("column", of, column.components)))
    }

    /// The indices of the tensors that the layout reads, without duplicates, in the order in which fields name
    /// them.
    pub fn tensors(&self) -> ArrayVec<usize, MAX_INPUTS> {
        let mut tensors = ArrayVec::new();
        // Faster than a loop over the chained iterators.
        self.fields().for_each(|NamedField { field, .. }| {
            if !tensors.contains(&field.tensor) && !tensors.is_full() {
                tensors.push(field.tensor);
            }
        });
        tensors
    }

    /// Calls `change` with each field.
    pub(crate) fn for_each_field(&mut self, mut change: impl FnMut(&mut Field)) {
        self.count.iter_mut().chain(&mut self.image).for_each(&mut change);
        self.pairs.iter_mut().for_each(|pairs| change(&mut pairs.field));
        self.prototypes.iter_mut().for_each(|prototypes| change(&mut prototypes.field));
        for group in &mut self.groups {
            change(&mut group.boxes);
            change(&mut group.scores);
            let optional =
                [&mut group.sizes, &mut group.angle, &mut group.objectness, &mut group.class];
            optional.into_iter().flatten().for_each(&mut change);
            group.columns.iter_mut().for_each(&mut change);
            if let Reference::Priors(priors) = &mut group.reference {
                change(priors);
            }
        }
    }
}

/// A field of a layout, with its name and size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedField<'a> {
    pub name: &'static str,
    pub field: &'a Field,
    pub components: usize,
    pub anchors: usize,
}
