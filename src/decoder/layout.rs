use super::MAX_CLASSES;
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

/// Where the numbers of one kind lie: number `c` of anchor `a` is element
/// `offset + a * anchor_stride + c * component_stride` of the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Index of the tensor among those of the buffer.
    pub tensor: usize,
    /// Elements before the first number.
    pub offset: usize,
    /// Elements from one anchor's numbers to the next anchor's.
    pub anchor_stride: usize,
    /// Elements from one of an anchor's numbers to the next.
    pub component_stride: usize,
}

impl Field {
    /// Numbers of one anchor side by side, `row` elements from anchor to anchor.
    pub(super) fn rows(tensor: usize, offset: usize, row: usize) -> Self {
        Self { tensor, offset, anchor_stride: row, component_stride: 1 }
    }

    /// The same number of all anchors side by side, `anchors` elements from number to number.
    pub(super) fn columns(tensor: usize, component: usize, anchors: usize) -> Self {
        // The shape is a claim, and its memory not looked at yet; engines refuse so many anchors.
        let offset = component.saturating_mul(anchors);
        Self { tensor, offset, anchor_stride: 1, component_stride: anchors }
    }

    /// The element that holds number `component` of `anchor`.
    pub fn index(&self, anchor: usize, component: usize) -> usize {
        self.offset + anchor * self.anchor_stride + component * self.component_stride
    }
}

/// Where each row's box, scores and objectness lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The name of the decoder that laid it out.
    pub decoder: &'static str,
    /// How many rows there are; each gives at most one candidate.
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

    /// Points each field at the buffer's tensors, `places[role]` being that of a role.
    pub(super) fn place(mut self, places: &[usize]) -> Self {
        for field in [Some(&mut self.boxes), Some(&mut self.scores), self.objectness.as_mut()]
            .into_iter()
            .flatten()
        {
            field.tensor = places[field.tensor];
        }
        self
    }
}

/// Why tensors do not fit a decoder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
            Self::Lengths { .. } => Some(1),
            Self::BoxFormat { .. } => Some(2),
            Self::Shape { .. } | Self::ElementType { .. } | Self::Classes { .. } => None,
        }
    }
}

/// A tensor seen as rows and columns, for decoders to take apart.
pub(super) struct Matrix {
    pub rows: usize,
    pub columns: usize,
}

impl Matrix {
    /// Takes `[rows, columns]`, also behind a batch dimension of 1.
    pub fn of(
        tensor: &TensorView<'_>,
        decoder: &'static str,
        expected: &'static str,
    ) -> Result<Self, LayoutError> {
        check_element_type(tensor)?;
        match *tensor.shape {
            [rows, columns] | [1, rows, columns] => Ok(Self { rows, columns }),
            [batch, _, _] => Err(LayoutError::Batch { tensor: tensor.to_string(), batch }),
            _ => Err(LayoutError::Shape { tensor: tensor.to_string(), decoder, expected }),
        }
    }
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

pub(super) fn check_classes(tensor: &TensorView<'_>, classes: usize) -> Result<(), LayoutError> {
    if classes > MAX_CLASSES {
        return Err(LayoutError::Classes { tensor: tensor.to_string(), classes });
    }
    Ok(())
}
