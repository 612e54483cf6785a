// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plain layouts, for which engines have faster code.

use arrayvec::ArrayVec;

use super::{
    Activation, Background, BoxFormat, BoxRule, BoxTransform, Combination, Field, Group, Layout,
    Reference, ScoreRule,
};
use crate::tensor::TensorView;

/// A layout whose boxes are decoded and whose scores are final: one group of anchors, scores by class, and
/// objectness, if there is any, in the tensor of the scores. All layouts of one tensor of floating-point numbers
/// that models decode themselves are plain.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainLayout {
    /// The name of the decoder that made the layout.
    pub decoder: &'static str,
    /// The number of images in the tensors. Each image is decoded and suppressed separately.
    pub images: usize,
    /// The number of anchors of an image. An anchor is one location for which the model predicts a box.
    pub anchors: usize,
    /// The number of class scores of an anchor, at least one.
    pub classes: usize,
    /// The components of the box: [`BoxFormat::components`] of them.
    pub boxes: Field,
    /// The meaning of the components of the box.
    pub box_format: BoxFormat,
    /// The class scores: [`classes`](Self::classes) components.
    pub scores: Field,
    /// The score that there is any object, by which class scores are multiplied: one component.
    pub objectness: Option<Field>,
    /// True if coordinates are normalized (0 to 1). If not, they are pixels of the model's input.
    pub normalized: bool,
}

impl From<PlainLayout> for Layout {
    fn from(plain: PlainLayout) -> Self {
        let PlainLayout { decoder, images, anchors, classes, boxes, .. } = plain;
        let PlainLayout { box_format, scores, objectness, normalized, .. } = plain;
        Self {
            decoder,
            images,
            classes,
            groups: ArrayVec::from_iter([Group {
                anchors,
                boxes,
                sizes: None,
                angle: None,
                scores,
                objectness,
                class: None,
                reference: Reference::None,
                columns: Vec::new(),
            }]),
            score: ScoreRule::of_classes(classes),
            boxes: BoxRule::decoded(box_format),
            count: None,
            columns: Vec::new(),
            pairs: None,
            image: None,
            prototypes: None,
            priors: None,
            normalized,
        }
    }
}

impl Layout {
    /// The plain layout with the candidates of this one, if there is any and its tensors have floating-point
    /// numbers. Columns and prototypes, which are read for survivors, are not part of it.
    pub fn plain(&self, tensors: &[TensorView<'_>]) -> Option<PlainLayout> {
        let [group] = self.groups.as_slice() else { return None };
        let Group {
            anchors,
            boxes,
            sizes: None,
            angle: None,
            scores,
            objectness,
            class: None,
            reference,
            columns: _,
        } = group
        else {
            return None;
        };
        let is_float = |field: &Field| tensors[field.tensor].element.is_float();
        let ScoreRule { components, first_class, background, activation, combination, peaks } =
            self.score;
        let is_plain = *reference == Reference::None
            && self.count.is_none()
            && self.pairs.is_none()
            && (first_class, background) == (0, Background::None)
            && components == self.classes
            && activation == Activation::None
            && !peaks
            && self.boxes == BoxRule::decoded(self.boxes.format)
            && self.boxes.format != BoxFormat::Distances
            && self.boxes.transform == BoxTransform::None
            && objectness.is_none_or(|field| {
                field.tensor == scores.tensor && combination == Combination::Product
            })
            && is_float(boxes)
            && is_float(scores);
        is_plain.then_some(PlainLayout {
            decoder: self.decoder,
            images: self.images,
            anchors: *anchors,
            classes: components,
            boxes: *boxes,
            box_format: self.boxes.format,
            scores: *scores,
            objectness: *objectness,
            normalized: self.normalized,
        })
    }
}
