// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layouts, and what decoders need to make them.
//!
//! In: the shapes of tensors, as matrices. Out: a [`Layout`] of [`Field`]s, or the [`LayoutError`]
//! with the reason why the shape does not fit.

use super::{Decoder, MAX_CLASSES, Options};
use crate::tensor::{ElementType, TensorView};

/// The components of a box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
#[cfg_attr(not(feature = "internals"), non_exhaustive)]
pub enum BoxFormat {
    /// Left, upper, right and lower edge.
    #[default]
    Corners = 0,
    /// Center x, center y, width, height.
    Center = 1,
    /// Left edge, upper edge, side; a side of zero marks an empty slot.
    Square = 2,
}

impl BoxFormat {
    /// The number of components of a box.
    pub fn components(self) -> usize {
        match self {
            Self::Corners | Self::Center => 4,
            Self::Square => 3,
        }
    }

    /// The value of the property `box-format`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Corners => "corners",
            Self::Center => "center",
            Self::Square => "square",
        }
    }
}

/// The unit of a tensor's coordinates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
#[cfg_attr(not(feature = "internals"), non_exhaustive)]
pub enum Coordinates {
    /// As the decoder defines it. If it does not: normalized if the tensor's id ends in `-normalized`, pixels
    /// otherwise.
    #[default]
    Auto = 0,
    /// Pixels of the model's input.
    Pixels = 1,
    /// Fractions of the width and height of the model's input, 0 to 1.
    Normalized = 2,
}

impl Coordinates {
    /// Whether the coordinates of `tensor` are normalized, if its decoder does not define it.
    pub(super) fn normalized(self, tensor: &TensorView<'_>) -> bool {
        match self {
            Self::Auto => tensor.id.ends_with("-normalized"),
            Self::Pixels => false,
            Self::Normalized => true,
        }
    }
}

/// The elements of a tensor for one kind of value (boxes, scores, objectness): component `c` of anchor `a` of
/// image `i` is element `offset + i * image_stride + a * anchor_stride + c * component_stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The index of the tensor.
    pub tensor: usize,
    /// The index of the first element.
    pub offset: usize,
    /// Elements between corresponding components of consecutive images.
    pub image_stride: usize,
    /// Elements between corresponding components of consecutive anchors.
    pub anchor_stride: usize,
    /// Elements between consecutive components of an anchor.
    pub component_stride: usize,
}

impl Field {
    /// The field of image `image`, as a batch of one image, in the memory of all images.
    fn of_image(self, image: usize) -> Self {
        // Without anchors no element is read and any offset and stride is valid: both can overflow.
        Self { offset: self.offset.wrapping_add(image.wrapping_mul(self.image_stride)), ..self }
    }

    /// The index of the element for `component` of `anchor` of the first image.
    pub fn index(&self, anchor: usize, component: usize) -> usize {
        self.offset + anchor * self.anchor_stride + component * self.component_stride
    }
}

/// The elements for each anchor's box, scores and objectness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
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
    /// Whether coordinates are normalized (0 to 1). If not, they are pixels of the model's input.
    pub normalized: bool,
}

impl Layout {
    /// Whether parameters and labels are the same for both layouts.
    pub fn has_same_params(&self, other: &Self) -> bool {
        (self.decoder, self.classes, self.normalized)
            == (other.decoder, other.classes, other.normalized)
    }

    /// The indices of the tensors that the layout reads, without duplicates.
    pub fn tensors(&self) -> impl Iterator<Item = usize> {
        let second = (self.scores.tensor != self.boxes.tensor).then_some(self.scores.tensor);
        std::iter::once(self.boxes.tensor).chain(second)
    }

    /// The layout of image `image`, as a batch of one image: of the memory of that image in those of `tensors`
    /// whose images are in separate allocations, of the memory of all images in the others.
    pub(crate) fn of_image(&self, image: usize, tensors: &[TensorView<'_>]) -> Self {
        let of = |field: Field| match tensors[field.tensor].has_separate_images() {
            true => field,
            false => field.of_image(image),
        };
        Self {
            images: 1,
            boxes: of(self.boxes),
            scores: of(self.scores),
            objectness: self.objectness.map(of),
            ..self.clone()
        }
    }

    /// Replaces the number of the role in each field by the index of the tensor for that role.
    pub(super) fn with_tensors(mut self, tensors: &[usize]) -> Self {
        for field in [Some(&mut self.boxes), Some(&mut self.scores), self.objectness.as_mut()]
            .into_iter()
            .flatten()
        {
            field.tensor = tensors[field.tensor];
        }
        self
    }
}

/// Why tensors do not fit a decoder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The decoder does not support the shape.
    #[error("tensor {tensor}: decoder {decoder} expects {expected}")]
    Shape {
        /// The tensor, as displayed.
        tensor: String,
        /// The decoder's name.
        decoder: &'static str,
        /// The expected shapes.
        expected: &'static str,
    },
    /// The first of three dimensions is not 1, and [`Options::batch`] is not set.
    #[error(
        "tensor {tensor}: expected a batch dimension of 1, got {batch}; \
         export the model with a batch size of 1"
    )]
    Batch {
        /// The tensor, as displayed.
        tensor: String,
        /// The first dimension.
        batch: usize,
    },
    /// The number of components of a box is not that of `box-format`.
    #[error(
        "tensor {tensor}: box-format={} needs [N,{}], got {numbers} numbers per box; \
         set box-format to {}",
        format.name(),
        format.components(),
        if *numbers == 3 { "square" } else { "corners or center" }
    )]
    BoxFormat {
        /// The tensor, as displayed.
        tensor: String,
        /// The value of `box-format`.
        format: BoxFormat,
        /// The number of components per box.
        numbers: usize,
    },
    /// The numbers of boxes and scores differ.
    #[error(
        "tensor {boxes} has {box_count} boxes, tensor {scores} has scores for {score_count}; \
         expected one row of scores for each box"
    )]
    Lengths {
        /// The tensor with the boxes, as displayed.
        boxes: String,
        /// The number of boxes.
        box_count: usize,
        /// The tensor with the scores, as displayed.
        scores: String,
        /// The number of boxes that there are scores for.
        score_count: usize,
    },
    /// The batch sizes of boxes and scores differ.
    #[error(
        "tensor {boxes} is a batch of {box_images}, tensor {scores} one of {score_images}; \
         expected the same number of images"
    )]
    Images {
        /// The tensor with the boxes, as displayed.
        boxes: String,
        /// The number of images of the boxes.
        box_images: usize,
        /// The tensor with the scores, as displayed.
        scores: String,
        /// The number of images of the scores.
        score_images: usize,
    },
    /// The element type is neither f16 nor f32.
    #[error("tensor {tensor}: expected elements of type f16 or f32; dequantize it upstream")]
    ElementType {
        /// The tensor, as displayed.
        tensor: String,
    },
    /// The number of classes is not that of `num-classes`.
    #[error(
        "tensor {tensor}: read by decoder {decoder} it has {classes} classes, but num-classes is \
         {expected}; correct num-classes, or set it to 0 to take what the tensor has"
    )]
    NumClasses {
        /// The tensor with the scores, as displayed.
        tensor: String,
        /// The decoder's name.
        decoder: &'static str,
        /// The number of classes by the shape.
        classes: usize,
        /// The value of `num-classes`.
        expected: usize,
    },
    /// There are more classes than 65536.
    #[error("tensor {tensor}: {classes} classes are more than the {MAX_CLASSES} supported")]
    Classes {
        /// The tensor, as displayed.
        tensor: String,
        /// The number of classes by the shape.
        classes: usize,
    },
}

impl LayoutError {
    /// How specific the error is among those of several decoders: the least is the most specific. `None` if the
    /// tensor is probably the output of another model family.
    pub(super) fn specificity(&self) -> Option<u8> {
        match self {
            Self::Batch { .. } | Self::NumClasses { .. } => Some(0),
            Self::Lengths { .. } | Self::Images { .. } => Some(1),
            Self::BoxFormat { .. } => Some(2),
            Self::Shape { .. } | Self::ElementType { .. } | Self::Classes { .. } => None,
        }
    }
}

/// The shape of a tensor as a batch of matrices, one per image.
pub(super) struct Matrix {
    pub images: usize,
    pub rows: usize,
    pub columns: usize,
}

impl Matrix {
    /// The matrices of a tensor `[rows, columns]`, `[1, rows, columns]`, or with [`Options::batch`]
    /// `[images, rows, columns]`.
    ///
    /// # Errors
    /// If the tensor has another number of dimensions, another batch dimension or another element type.
    pub fn of(
        tensor: &TensorView<'_>,
        decoder: &dyn Decoder,
        options: Options,
    ) -> Result<Self, LayoutError> {
        check_element_type(tensor)?;
        match *tensor.shape {
            [rows, columns] => Ok(Self { images: 1, rows, columns }),
            [images, rows, columns] => {
                check_batch(tensor, images, options)?;
                Ok(Self { images, rows, columns })
            }
            _ => Err(shape_error(tensor, decoder)),
        }
    }

    /// The field whose anchors are rows and whose components start at `column`. `tensor` is the number of the
    /// tensor's role.
    pub fn anchors_in_rows(&self, tensor: usize, column: usize) -> Field {
        Field {
            tensor,
            offset: column,
            image_stride: self.elements(),
            anchor_stride: self.columns,
            component_stride: 1,
        }
    }

    /// The field whose anchors are columns and whose components start at `row`. `tensor` is the number of the
    /// tensor's role.
    pub fn anchors_in_columns(&self, tensor: usize, row: usize) -> Field {
        Field {
            tensor,
            offset: row.saturating_mul(self.columns),
            image_stride: self.elements(),
            anchor_stride: 1,
            component_stride: self.columns,
        }
    }

    /// The number of elements of an image. The shape has not been checked against the memory yet,
    /// so the product can overflow; engines return an error for a field beyond the memory.
    fn elements(&self) -> usize {
        self.rows.saturating_mul(self.columns)
    }
}

/// The error for a shape that the decoder does not support.
pub(super) fn shape_error(tensor: &TensorView<'_>, decoder: &dyn Decoder) -> LayoutError {
    let (decoder, expected) = (decoder.name(), decoder.expects());
    LayoutError::Shape { tensor: tensor.to_string(), decoder, expected }
}

pub(super) fn check_batch(
    tensor: &TensorView<'_>,
    images: usize,
    options: Options,
) -> Result<(), LayoutError> {
    if images == 1 || (options.batch && images > 0) {
        return Ok(());
    }
    Err(LayoutError::Batch { tensor: tensor.to_string(), batch: images })
}

pub(super) fn check_element_type(tensor: &TensorView<'_>) -> Result<(), LayoutError> {
    match tensor.element {
        ElementType::F32 | ElementType::F16 => Ok(()),
        ElementType::Other(_) => Err(LayoutError::ElementType { tensor: tensor.to_string() }),
    }
}

/// Checks that both tensors have the same number of boxes.
pub(super) fn check_lengths(
    (boxes, box_count): (&TensorView<'_>, usize),
    (scores, score_count): (&TensorView<'_>, usize),
) -> Result<(), LayoutError> {
    if box_count == score_count {
        return Ok(());
    }
    let (boxes, scores) = (boxes.to_string(), scores.to_string());
    Err(LayoutError::Lengths { boxes, box_count, scores, score_count })
}

/// Checks that both tensors have the same number of images.
pub(super) fn check_images(
    (boxes, box_images): (&TensorView<'_>, usize),
    (scores, score_images): (&TensorView<'_>, usize),
) -> Result<(), LayoutError> {
    if box_images == score_images {
        return Ok(());
    }
    let (boxes, scores) = (boxes.to_string(), scores.to_string());
    Err(LayoutError::Images { boxes, box_images, scores, score_images })
}

pub(super) fn check_classes(tensor: &TensorView<'_>, classes: usize) -> Result<(), LayoutError> {
    if classes > MAX_CLASSES {
        return Err(LayoutError::Classes { tensor: tensor.to_string(), classes });
    }
    Ok(())
}
