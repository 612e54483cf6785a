use super::{Decoder, MAX_CLASSES, Options};
use crate::tensor::{ElementType, TensorView};

/// How numbers make a box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum BoxFormat {
    /// left, top, right, bottom
    #[default]
    Corners = 0,
    /// center x, center y, width, height
    Center = 1,
    /// left, top, side; a side of zero marks an empty slot
    Square = 2,
}

impl BoxFormat {
    /// How many numbers there are to a box.
    pub fn components(self) -> usize {
        match self {
            Self::Corners | Self::Center => 4,
            Self::Square => 3,
        }
    }

    /// Its value of the property `box-format`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Corners => "corners",
            Self::Center => "center",
            Self::Square => "square",
        }
    }
}

/// What a tensor's coordinates are measured in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Coordinates {
    /// As the decoder knows; by an id that ends in `-normalized`; else pixels.
    #[default]
    Auto = 0,
    /// Pixels of the model's input.
    Pixels = 1,
    /// 0 to 1 across the model's input.
    Normalized = 2,
}

impl Coordinates {
    /// Whether the coordinates of `tensor` are normalized, where its decoder does not know.
    pub(super) fn normalized(self, tensor: &TensorView<'_>) -> bool {
        match self {
            Self::Auto => tensor.id.ends_with("-normalized"),
            Self::Pixels => false,
            Self::Normalized => true,
        }
    }
}

/// Which elements of a tensor hold the numbers of one kind: number `c` of anchor `a` of image `i` is
/// element `offset + i * image_stride + a * anchor_stride + c * component_stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Index of the tensor among those of the buffer.
    pub tensor: usize,
    /// Elements before the first number.
    pub offset: usize,
    /// Elements from one image's numbers to the next image's.
    pub image_stride: usize,
    /// Elements from one anchor's numbers to the next anchor's.
    pub anchor_stride: usize,
    /// Elements from one of an anchor's numbers to the next.
    pub component_stride: usize,
}

impl Field {
    /// The field of image `image` as that of a batch of one.
    pub(crate) fn of_image(self, image: usize) -> Self {
        Self { offset: self.offset + image * self.image_stride, ..self }
    }

    /// The element that holds number `component` of `anchor` of the first image.
    pub fn index(&self, anchor: usize, component: usize) -> usize {
        self.offset + anchor * self.anchor_stride + component * self.component_stride
    }
}

/// Which elements hold each anchor's box, scores and objectness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The name of the decoder that laid it out.
    pub decoder: &'static str,
    /// How many images the tensors hold; each is decoded and suppressed by itself.
    pub images: usize,
    /// How many anchors an image has; each gives at most one candidate.
    pub anchors: usize,
    /// How many class scores there are to a row, at least one.
    pub classes: usize,
    /// The numbers that make the box.
    pub boxes: Field,
    /// How they make it.
    pub box_format: BoxFormat,
    /// The class scores.
    pub scores: Field,
    /// The score for there being any object, by which class scores are multiplied.
    pub objectness: Option<Field>,
    /// Whether coordinates run from 0 to 1; they are pixels of the model's input otherwise.
    pub normalized: bool,
}

impl Layout {
    /// Whether the other differs in nothing that parameters or labels depend on.
    pub fn has_same_params(&self, other: &Self) -> bool {
        (self.decoder, self.classes, self.normalized)
            == (other.decoder, other.classes, other.normalized)
    }

    /// The indices of the tensors that it reads, each once.
    pub fn tensors(&self) -> impl Iterator<Item = usize> {
        let second = (self.scores.tensor != self.boxes.tensor).then_some(self.scores.tensor);
        std::iter::once(self.boxes.tensor).chain(second)
    }

    /// The layout of image `image` as that of a batch of one.
    pub(crate) fn of_image(&self, image: usize) -> Self {
        Self {
            images: 1,
            boxes: self.boxes.of_image(image),
            scores: self.scores.of_image(image),
            objectness: self.objectness.map(|field| field.of_image(image)),
            ..self.clone()
        }
    }

    /// Points each field at the buffer's tensors, `tensors[role]` being that of a role.
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
    /// The shape is another decoder's, or nobody's.
    #[error("tensor {tensor}: decoder {decoder} expects {expected}")]
    Shape {
        /// The tensor, as displayed.
        tensor: String,
        /// The decoder's name.
        decoder: &'static str,
        /// The shape it takes.
        expected: &'static str,
    },
    /// The first of three dimensions is not 1.
    #[error(
        "tensor {tensor}: expected a batch dimension of 1, got {batch}; \
         nmsfilter reads one frame's output per buffer"
    )]
    Batch {
        /// The tensor, as displayed.
        tensor: String,
        /// Its first dimension.
        batch: usize,
    },
    /// Boxes of another format than `box-format` says.
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
        /// What the property says.
        format: BoxFormat,
        /// How many numbers there are to a box.
        numbers: usize,
    },
    /// Boxes and scores differ in number.
    #[error(
        "tensor {boxes} has {box_count} boxes, tensor {scores} has scores for {score_count}; \
         expected one row of scores for each box"
    )]
    Lengths {
        /// The tensor with the boxes, as displayed.
        boxes: String,
        /// How many it has.
        box_count: usize,
        /// The tensor with the scores, as displayed.
        scores: String,
        /// How many boxes it has scores for.
        score_count: usize,
    },
    /// Boxes and scores are of batches of different size.
    #[error(
        "tensor {boxes} is a batch of {box_images}, tensor {scores} one of {score_images}; \
         expected the same number of images"
    )]
    Images {
        /// The tensor with the boxes, as displayed.
        boxes: String,
        /// How many images it has.
        box_images: usize,
        /// The tensor with the scores, as displayed.
        scores: String,
        /// How many images it has.
        score_images: usize,
    },
    /// Neither f16 nor f32.
    #[error("tensor {tensor}: expected elements of type f16 or f32; dequantize it upstream")]
    ElementType {
        /// The tensor, as displayed.
        tensor: String,
    },
    /// Another number than `num-classes` says.
    #[error(
        "tensor {tensor}: read by decoder {decoder} it has {classes} classes, but num-classes is \
         {expected}; correct num-classes, or set it to 0 to take what the tensor has"
    )]
    NumClasses {
        /// The tensor with the scores, as displayed.
        tensor: String,
        /// The decoder's name.
        decoder: &'static str,
        /// What the shape gives.
        classes: usize,
        /// What the property says.
        expected: usize,
    },
    /// More than [`MAX_CLASSES`].
    #[error("tensor {tensor}: {classes} classes are more than the {MAX_CLASSES} supported")]
    Classes {
        /// The tensor, as displayed.
        tensor: String,
        /// What its shape makes of it.
        classes: usize,
    },
}

impl LayoutError {
    /// How little it says beyond that the tensor looks like another decoder's, which is `None`. Of
    /// several errors the one of least rank tells most.
    pub(super) fn rank(&self) -> Option<u8> {
        match self {
            Self::Batch { .. } | Self::NumClasses { .. } => Some(0),
            Self::Lengths { .. } | Self::Images { .. } => Some(1),
            Self::BoxFormat { .. } => Some(2),
            Self::Shape { .. } | Self::ElementType { .. } | Self::Classes { .. } => None,
        }
    }
}

/// A tensor as a batch of matrices, one per image.
pub(super) struct Matrix {
    pub images: usize,
    pub rows: usize,
    pub columns: usize,
}

impl Matrix {
    /// Takes `[rows, columns]`, `[1, rows, columns]`, and with [`Options::batch`] any number of images.
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

    /// The field whose anchors are rows; its numbers begin at `column`. `tensor` is the tensor's index.
    pub fn anchors_in_rows(&self, tensor: usize, column: usize) -> Field {
        Field {
            tensor,
            offset: column,
            image_stride: self.elements(),
            anchor_stride: self.columns,
            component_stride: 1,
        }
    }

    /// The field whose anchors are columns; its numbers begin at `row`. `tensor` is the tensor's index.
    pub fn anchors_in_columns(&self, tensor: usize, row: usize) -> Field {
        Field {
            tensor,
            offset: row.saturating_mul(self.columns),
            image_stride: self.elements(),
            anchor_stride: 1,
            component_stride: self.columns,
        }
    }

    /// The elements of an image. The shape is a claim that was not compared with memory yet, so the
    /// product can overflow; engines refuse a field beyond the memory.
    fn elements(&self) -> usize {
        self.rows.saturating_mul(self.columns)
    }
}

/// The error for a shape that the decoder does not take.
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

/// Both tensors with the boxes that they are for.
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

/// Both tensors with the images that they are for.
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
