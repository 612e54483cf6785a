//! What a model's raw output means.
//!
//! One file per family of output says which tensor ids and shapes it takes and where in them a
//! row's box, scores and objectness lie: a [`Layout`]. Engines read rows through the layout, so
//! that a decoder says it once. [`choose`] finds the decoder for the tensors of a buffer.

mod boxes;
mod choose;
mod layout;
mod ultraface;
mod windows;
mod yolov5;
mod yolov8;

#[cfg(feature = "internals")]
pub use choose::Reason;
pub use choose::{Choice, ChoiceError, choose};
pub use layout::{BoxFormat, Coordinates, Field, Layout, LayoutError};

use crate::tensor::TensorView;

/// The most classes a layout can have; more is taken for a misread shape.
pub const MAX_CLASSES: usize = 65_536;

/// The most tensors that one decoder reads.
pub const MAX_INPUTS: usize = 2;

/// A family of model output.
pub trait Decoder: Send + Sync {
    /// The name by which `decoder` selects it.
    fn name(&self) -> &'static str;

    /// What it takes, for messages.
    fn expects(&self) -> &'static str;

    /// The tensors it reads, in the order in which [`layout`](Self::layout) wants them.
    fn roles(&self) -> &'static [Role];

    /// Where box, scores and objectness lie in `tensors`, one per role.
    ///
    /// # Errors
    /// Where a shape or element type does not fit.
    fn layout(&self, tensors: &[&TensorView<'_>], options: Options) -> Result<Layout, LayoutError>;

    /// Whether no other family of models has an output of this layout, given the number of classes
    /// where it is known, so that a shape alone decides.
    fn is_unambiguous(&self, _layout: &Layout, _classes: Option<usize>) -> bool {
        false
    }

    /// What the model's classes are called, where that is known without a label file.
    fn label(&self, _class: u32) -> Option<&'static str> {
        None
    }
}

/// One of the tensors that a decoder reads.
#[derive(Debug)]
pub struct Role {
    /// What it holds, for messages.
    pub name: &'static str,
    /// The ids under which producers are known to write it.
    pub ids: &'static [&'static str],
}

/// What tensors do not say of themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How the `boxes` decoder's four numbers make a box.
    pub box_format: BoxFormat,
    /// What coordinates are measured in.
    pub coordinates: Coordinates,
    /// How many classes the model has; 0 where that is unknown. Tensors of another number of
    /// classes are refused.
    pub num_classes: usize,
    /// How many labels the label file has; 0 without one. It stands in for
    /// [`num_classes`](Self::num_classes) where a shape alone must tell the model, and refuses
    /// nothing.
    pub labels: usize,
    /// Whether a first of three dimensions other than 1 is a batch of images; an error otherwise.
    pub batch: bool,
}

impl Options {
    /// The number of classes, from whatever tells it.
    pub fn known_classes(&self) -> Option<usize> {
        [self.num_classes, self.labels].into_iter().find(|&number| number > 0)
    }
}

/// Every decoder; a new one is a line here.
pub const DECODERS: [&dyn Decoder; 5] =
    [&windows::Windows, &boxes::Boxes, &yolov5::Yolov5, &yolov8::Yolov8, &ultraface::UltraFace];

/// The decoder of that name.
pub fn by_name(name: &str) -> Option<&'static dyn Decoder> {
    DECODERS.into_iter().find(|decoder| decoder.name() == name)
}
