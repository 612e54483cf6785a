// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decoders: the meaning of a model's raw output.
//!
//! In: the ids, element types and shapes of tensors. Out: a [`Layout`], which describes the elements that
//! are the box, the scores and the objectness of each anchor; no element is read. [`choose`] finds the decoder for
//! the tensors of a buffer. Engines read tensors by the layout alone.
//!
//! There is one file per form of a model family's output: a [description] as text in the folder
//! families, or a Rust file where the shape alone does not determine how it is read. [`from_text`] makes the decoder
//! of a user's description.

mod boxes;
mod check;
mod choose;
pub mod classifier;
pub mod description;
mod families;
mod form;
mod groups;
pub mod layout;
pub mod model_family;

use std::borrow::Cow;

use arrayvec::ArrayVec;

pub use choose::ONNX_PREFIX;
pub use choose::is_known;
pub use choose::misread;
pub use choose::{Choice, ChoiceError, Reason, choose};
pub use description::DescriptionError;
pub use families::texts;
pub use families::{Family, decoders, from_text};
pub use form::Form;
use form::MAX_FORMS;
pub use groups::{GroupTensor, TensorGroup, tensor_groups};
pub use layout::{
    BoxFormat, Channels, Coordinates, Field, Layout, LayoutError, LayoutProblem, PlainLayout,
};

use crate::tensor::TensorView;

/// The greatest number of classes of a layout. A greater number is treated as a misread shape.
pub const MAX_CLASSES: usize = 65_536;

/// The greatest number of tensors that a decoder reads.
pub const MAX_INPUTS: usize = 32;

/// The greatest number of keypoints of a detection. A greater number is treated as a misread shape.
pub const MAX_KEYPOINTS: usize = 512;

/// The output of a model family.
pub struct Decoder {
    name: &'static str,
    /// The expected shapes, for messages.
    expects: &'static str,
    /// The meaning of the scores.
    pub scores: Scores,
    /// The name of class 0, if it is known without labels.
    label: Option<&'static str>,
    /// The forms of the output. The first that fits is used: forms with more tensors come first.
    pub forms: Vec<Form>,
    /// Further facts about the family.
    pub family: Family,
}

impl Decoder {
    /// The decoder's value of the property `decoder`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The name of a class that is known without labels.
    pub fn label(&self, class: u32) -> Option<&'static str> {
        self.label.filter(|_| class == 0)
    }

    /// True if it obeys [`Options::box_format`].
    pub(crate) fn has_box_format(&self) -> bool {
        self.forms.iter().all(|form| form.description.is_none())
    }

    /// The forms for these tensors, where levels follow from them.
    fn forms_for(
        &'static self,
        tensors: &[TensorView<'_>],
        options: Options,
    ) -> ArrayVec<&'static Form, MAX_FORMS> {
        let mut forms = ArrayVec::new();
        for form in &self.forms {
            match &form.any_strides {
                None => forms.push(form),
                Some(of) => forms.extend(of.forms(tensors, options)),
            }
        }
        forms
    }

    /// Returns true if the shape alone is enough to choose this decoder, because no other model family has an output
    /// of this layout: as exported, whose anchors are columns, with the known number of classes, or if that is unknown,
    /// with one of the family's numbers. A transposed tensor could be the output of RT-DETR, or boxes with score and class.
    fn is_unambiguous(&self, layout: &Layout, classes: Option<usize>) -> bool {
        let numbers = self.family.unambiguous;
        let is_known = classes.map_or(numbers.contains(&layout.classes), |it| it == layout.classes);
        !numbers.is_empty() && layout.groups[0].boxes.anchor_stride == 1 && is_known
    }
}

/// Two layout files can have one name.
impl PartialEq for Decoder {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

/// The task of a model other than the detection of upright boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelTask {
    /// The name in the metadata of Ultralytics' models.
    pub name: &'static str,
    /// True if the model selects the detections itself.
    pub is_end2end: bool,
}

/// The meaning of a decoder's scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scores {
    /// From 0 to 1. The greatest class score exceeds 1 only if the tensor is of another model family.
    Probabilities,
    /// Probabilities or logits: models with equal layouts differ.
    OfTheModel,
    /// Any number.
    Unbounded,
}

/// One of the tensors that a decoder reads.
#[derive(Clone, Debug, Default)]
pub struct Role<'a> {
    /// The name of the role.
    pub name: &'a str,
    /// The tensor ids that producers use for it.
    pub ids: Vec<Cow<'a, str>>,
    /// Names of outputs that models of other families also have. They are used only if the decoder is set.
    pub names: Vec<Cow<'a, str>>,
    /// The position among the buffer's tensors, which is used only if the decoder is set and neither names nor shapes
    /// determine the tensor.
    pub index: Option<usize>,
    /// The dimensions without the batch dimension; `None` for any number.
    pub dims: Vec<Option<usize>>,
}

impl Role<'_> {
    /// True if producers use this tensor id for it.
    pub fn has_id(&self, id: &str) -> bool {
        self.ids.iter().any(|known| known == id)
    }
}

/// Properties of the model's output that ids and shapes do not determine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// The box format of the decoder `boxes`; other decoders have a fixed one.
    pub box_format: BoxFormat,
    /// The unit of coordinates.
    pub coordinates: Coordinates,
    /// The order of dimensions, where shapes leave it open.
    pub channels: Channels,
    /// The number of classes of the model; 0 if unknown. Tensors with another number of classes are an error.
    pub num_classes: usize,
    /// The number of labels of the label file or the tensors' model; 0 if there are none. If
    /// [`num_classes`](Self::num_classes) is 0, it replaces it when a decoder is chosen by shape; tensors with
    /// another number of classes are accepted.
    pub labels: usize,
    /// True if the first of three dimensions can be other than 1, for a batch of images. If not,
    /// such a shape is an error.
    pub batch: bool,
    /// Width and height of the model's input in pixels; `None` if unknown. Decoders of grids need it.
    pub model_size: Option<[f32; 2]>,
    /// The function that turns scores into probabilities; `None` for the decoder's.
    pub score_activation: Option<layout::Activation>,
    /// Which of an anchor's scores is the background's; `None` for the decoder's. With the decoder `detr`, scores
    /// beside a background are softmax unless [`score_activation`](Self::score_activation) is set.
    pub background: Option<layout::Background>,
    /// The keypoints of a detection; `None` if they are unknown.
    pub keypoints: Option<KeypointShape>,
}

/// The number of keypoints of a detection and of the components of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeypointShape {
    /// The number of keypoints, at least one.
    pub count: usize,
    /// 2 for x and y, 3 with a visibility.
    pub components: usize,
}

impl Options {
    /// The number of classes by [`num_classes`](Self::num_classes), else by
    /// [`labels`](Self::labels); `None` if both are 0.
    pub fn known_classes(&self) -> Option<usize> {
        [self.num_classes, self.labels].into_iter().find(|&number| number > 0)
    }
}

/// The decoder with this name.
pub fn by_name(name: &str) -> Option<&'static Decoder> {
    decoders().iter().copied().find(|decoder| decoder.name() == name)
}
