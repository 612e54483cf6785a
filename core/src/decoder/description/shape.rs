// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shapes in descriptions, such as `N,5+C`, and how they fit the dimensions of a tensor.
//!
//! In: the text of a shape; the dimensions of a tensor. Out: where the tensor's anchors and numbers are.

use std::fmt;

use arrayvec::ArrayVec;

use super::prototypes::PrototypeImages;

/// The greatest number of dimensions of a shape.
const MAX_AXES: usize = 4;

/// The greatest constant of a dimension or a column.
const MAX_CONSTANT: usize = 1 << 20;

/// A number that can depend on the shapes of tensors: a constant, plus `C` for the classes, plus an open number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub constant: usize,
    pub has_classes: bool,
    pub open: Option<Open>,
}

/// How many numbers a shape leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    /// `M`: one for each prototype of the masks.
    Coefficients,
    /// `2K` or `3K`: the components of K keypoints, with as many components each.
    Keypoints(usize),
}

/// The texts of open numbers in counts.
const OPEN: [(&str, Open); 3] =
    [("M", Open::Coefficients), ("2K", Open::Keypoints(2)), ("3K", Open::Keypoints(3))];

impl Open {
    /// Returns true if both are coefficients, or both keypoints.
    pub fn has_kind_of(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

impl Count {
    /// A number that does not depend on shapes.
    pub fn constant(constant: usize) -> Self {
        Self { constant, ..Self::default() }
    }

    /// From text such as `5`, `C`, `5+C`, `C+32` or `4+C+3K`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut count = Self::default();
        for (index, term) in text.split('+').map(str::trim).enumerate() {
            let open = OPEN.iter().find(|(text, _)| *text == term).map(|(_, open)| *open);
            match term {
                "C" if !count.has_classes => count.has_classes = true,
                _ if open.is_some() && count.open.is_none() => count.open = open,
                _ if index < 3 && count.constant == 0 => {
                    let is_number = term.bytes().all(|byte| byte.is_ascii_digit());
                    count.constant = term.parse().ok().filter(|_| is_number)?;
                }
                _ => return None,
            }
        }
        (count.constant <= MAX_CONSTANT).then_some(count)
    }

    /// The number with this number of classes, without the open one.
    pub fn with_classes(self, classes: usize) -> usize {
        self.constant.saturating_add(if self.has_classes { classes } else { 0 })
    }

    /// The least possible number.
    fn least(self) -> usize {
        self.with_classes(1).saturating_add(usize::from(self.open.is_some()))
    }
}

/// Writes the text form, the constant first.
impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let constant = self.constant.to_string();
        let has_other = self.has_classes || self.open.is_some();
        let text = |open| OPEN.iter().find(|(_, known)| *known == open).map_or("K", |it| it.0);
        let terms = [
            (self.constant > 0 || !has_other).then_some(constant.as_str()),
            self.has_classes.then_some("C"),
            self.open.map(text),
        ];
        for (index, term) in terms.into_iter().flatten().enumerate() {
            write!(f, "{}{term}", if index > 0 { "+" } else { "" })?;
        }
        Ok(())
    }
}

/// A dimension of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    /// `N`: all anchors.
    Anchors,
    /// `A`: the anchors of a cell.
    PerCell,
    /// `H`: rows of cells.
    Rows,
    /// `W`: columns of cells.
    Columns,
    /// `K`: the keypoints of an anchor. The next axis is the numbers of each.
    Points,
    /// The numbers of an anchor, or of each of its keypoints.
    Numbers(Count),
}

/// The texts of axes other than numbers.
const AXES: [(&str, Axis); 5] = [
    ("N", Axis::Anchors),
    ("A", Axis::PerCell),
    ("H", Axis::Rows),
    ("W", Axis::Columns),
    ("K", Axis::Points),
];

impl Axis {
    /// Returns false if it counts the numbers of an anchor.
    fn counts_anchors(self) -> bool {
        !matches!(self, Self::Points | Self::Numbers(_))
    }
}

/// The shape of a tensor, without the dimension of the batch and dimensions of 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    axes: ArrayVec<Axis, MAX_AXES>,
    /// True if there is a tensor for each level.
    per_level: bool,
}

impl Pattern {
    /// From text such as `N,5+C`, `4,N`, `A,H,W,85` or `1`, the shape of one tensor or of one for each level.
    ///
    /// # Errors
    /// Returns what was expected, if the text is not a shape.
    pub fn parse(text: &str, per_level: bool) -> Result<Self, &'static str> {
        let mut axes = ArrayVec::<Axis, MAX_AXES>::new();
        for part in text.split(',').map(str::trim) {
            let axis = match AXES.iter().find(|(text, _)| *text == part) {
                Some((_, axis)) => *axis,
                None if part == "1" => continue,
                None => {
                    let count = Count::parse(part).filter(|count| count.least() > 0);
                    Axis::Numbers(count.ok_or(EXPECTED)?)
                }
            };
            axes.try_push(axis).map_err(|_| EXPECTED)?;
        }
        type Axes = ArrayVec<Axis, MAX_AXES>;
        let (anchor_axes, numbers): (Axes, Axes) =
            axes.iter().copied().partition(|axis| axis.counts_anchors());
        use Axis::{Anchors, Columns, PerCell, Rows};
        let is_known = matches!(
            anchor_axes.as_slice(),
            [] | [Anchors] | [Rows, Columns] | [PerCell, Rows, Columns] | [Rows, Columns, PerCell]
        );
        if !is_known {
            return Err("the anchors as N, as H,W, as A,H,W or as H,W,A");
        }
        // Both ends of the dimensions of anchors: the numbers of an anchor are before or after them.
        let is_beside = axes.starts_with(&anchor_axes) || axes.ends_with(&anchor_axes);
        let is_known = match numbers.as_slice() {
            [] | [Axis::Numbers(_)] => true,
            [Axis::Points, Axis::Numbers(count)] => [2, 3].map(Count::constant).contains(count),
            _ => false,
        };
        if !is_known || !is_beside {
            return Err(
                "one dimension of numbers, or K,3 or K,2, before or after those of the anchors",
            );
        }
        Ok(Self { axes, per_level })
    }

    /// The numbers of an anchor.
    pub fn numbers(&self) -> Count {
        let numbers = self.axes.iter().find_map(|axis| match axis {
            Axis::Numbers(count) => Some(*count),
            _ => None,
        });
        let numbers = numbers.unwrap_or(Count::constant(1));
        match self.axes.contains(&Axis::Points) {
            true => Count { open: Some(Open::Keypoints(numbers.constant)), ..Count::default() },
            false => numbers,
        }
    }

    /// Returns true if it has any anchors, as opposed to one number for the image, or images.
    pub fn has_anchors(&self) -> bool {
        !self.is_images() && self.axes.iter().any(|axis| axis.counts_anchors())
    }

    /// True if the anchors of a cell follow one another, as in `H,W,A` and `H,W`, and false for `A,H,W`; `None` if
    /// anchors are not in rows and columns.
    pub fn by_cell(&self) -> Option<bool> {
        let is_map = self.axes.contains(&Axis::Rows) && !self.is_images();
        is_map.then(|| !self.axes.windows(2).any(|pair| pair == [Axis::PerCell, Axis::Rows]))
    }

    /// Returns true if it is `M,H,W` or `H,W,M` of one tensor, the shapes of prototypes. A tensor of this shape for each
    /// level has the coefficients of cells.
    pub fn is_images(&self) -> bool {
        let images = Count { open: Some(Open::Coefficients), ..Count::default() };
        let is_image = self.numbers() == images && self.len() == 3;
        is_image && self.axes.contains(&Axis::Rows) && !self.per_level
    }

    /// Returns true if the last dimension counts an anchor's numbers.
    pub fn has_numbers_last(&self) -> bool {
        matches!(self.axes.last(), Some(Axis::Numbers(_)))
    }

    /// Returns true if a dimension counts the numbers of an anchor or pixel.
    pub fn has_channels(&self) -> bool {
        self.axes.iter().any(|axis| matches!(axis, Axis::Numbers(_)))
    }

    /// Returns true if it has `A`.
    pub fn has_per_cell(&self) -> bool {
        self.axes.contains(&Axis::PerCell)
    }

    /// The dimensions; `None` for those that are not constant.
    pub fn dims(&self) -> Vec<Option<usize>> {
        let dim = |axis: &Axis| match axis {
            Axis::Numbers(Count { constant, has_classes: false, open: None }) => Some(*constant),
            _ => None,
        };
        self.axes.iter().map(dim).collect()
    }

    /// The number of dimensions.
    pub fn len(&self) -> usize {
        self.axes.len()
    }

    /// Fits `dimensions`, without the batch dimension. Dimensions of 1 that the shape does not have are skipped,
    /// the first ones before others: `[1,6400,1]` is 6400 rows of one number.
    pub fn fit(&self, dimensions: &[usize], known: Known) -> Option<Placed> {
        let mut positions = ArrayVec::new();
        let excess = dimensions.len().checked_sub(self.axes.len())?;
        let leading = dimensions.iter().take(excess).take_while(|&&dimension| dimension == 1);
        let from = leading.count();
        known
            .place(&self.axes, dimensions, from, &mut positions)
            .then(|| self.placed(dimensions, &positions))
    }

    fn placed(&self, dimensions: &[usize], positions: &[usize]) -> Placed {
        let strides = Placed { anchor_stride: 1, component_stride: 1, ..Placed::default() };
        let elements = product(dimensions);
        let mut placed = Placed { anchors: 1, numbers: 1, elements, ..strides };
        for (axis, &position) in self.axes.iter().zip(positions) {
            let stride = product(&dimensions[position + 1..]);
            match axis {
                Axis::Points => placed.numbers = dimensions[position],
                Axis::Numbers(count) => {
                    placed.numbers = placed.numbers.saturating_mul(dimensions[position]);
                    placed.component_stride = stride;
                    placed.classes = match count.open {
                        None if count.has_classes => Some(placed.numbers - count.constant),
                        _ => None,
                    };
                }
                // The last dimension of anchors is the one whose elements are nearest to each other.
                _ => {
                    placed.anchors = placed.anchors.saturating_mul(dimensions[position]);
                    placed.anchor_stride = stride;
                }
            }
        }
        placed
    }
}

/// Writes the text form.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.axes.is_empty() {
            return f.write_str("1");
        }
        for (index, axis) in self.axes.iter().enumerate() {
            f.write_str(if index > 0 { "," } else { "" })?;
            match (axis, AXES.iter().find(|(_, known)| known == axis)) {
                (Axis::Numbers(count), _) => write!(f, "{count}")?,
                (_, known) => f.write_str(known.map_or("", |it| it.0))?,
            }
        }
        Ok(())
    }
}

const EXPECTED: &str =
    "up to 4 dimensions such as N,5+C: of N, A, H, W, K, and a number, C, or both";

/// The product, or the greatest number if it is greater: the shape has not been checked against the memory yet.
fn product(dimensions: &[usize]) -> usize {
    dimensions.iter().fold(1, |product: usize, &dimension| product.saturating_mul(dimension))
}

/// Known dimensions of a tensor; `None` if any number fits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    pub anchors: Option<usize>,
    pub per_cell: Option<usize>,
    /// Rows and columns of cells.
    pub cells: Option<[usize; 2]>,
    pub classes: Option<usize>,
}

/// Where the anchors and numbers of an image are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Placed {
    pub anchors: usize,
    /// The numbers of an anchor.
    pub numbers: usize,
    /// `C`, if the shape has it. Where the shape leaves another number open, [`Fitting::divide`](super::fit::Fitting::divide) finds both.
    pub classes: Option<usize>,
    /// The number that the shape leaves open.
    pub open: Option<OpenNumber>,
    /// The prototypes that the coefficients are of.
    pub prototypes: Option<PrototypeImages>,
    pub anchor_stride: usize,
    pub component_stride: usize,
    /// The number of elements of an image.
    pub elements: usize,
}

/// A number that a shape leaves open, once it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenNumber {
    pub kind: Open,
    pub number: usize,
}

impl Known {
    /// Finds a dimension for each of `axes` among those from `at` on. A tensor has at most 8 dimensions.
    fn place(
        self,
        axes: &[Axis],
        dimensions: &[usize],
        at: usize,
        positions: &mut ArrayVec<usize, MAX_AXES>,
    ) -> bool {
        let rest = &dimensions[at..];
        let Some((&axis, later)) = axes.split_first() else {
            return rest.iter().all(|&dimension| dimension == 1);
        };
        if rest.len() < axes.len() {
            return false;
        }
        if self.is(axis, rest[0]) {
            positions.push(at);
            if self.place(later, dimensions, at + 1, positions) {
                return true;
            }
            positions.pop();
        }
        rest[0] == 1 && self.place(axes, dimensions, at + 1, positions)
    }

    fn is(self, axis: Axis, dimension: usize) -> bool {
        let is = |known: Option<usize>| known.is_none_or(|known| known == dimension);
        let Known { anchors, per_cell, cells, classes } = self;
        match axis {
            Axis::Anchors => is(anchors),
            Axis::PerCell => is(per_cell),
            Axis::Rows => is(cells.map(|[rows, _]| rows)),
            Axis::Columns => is(cells.map(|[_, columns]| columns)),
            Axis::Points => dimension > 0,
            Axis::Numbers(count) if count.open.is_some() => dimension >= count.least(),
            Axis::Numbers(Count { constant, has_classes: false, .. }) => dimension == constant,
            Axis::Numbers(Count { constant, has_classes: true, .. }) => {
                dimension > constant
                    && classes.is_none_or(|classes| dimension - constant == classes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(pattern: &str, dimensions: &[usize]) -> Option<[usize; 5]> {
        let pattern = Pattern::parse(pattern, false).unwrap();
        let placed = pattern.fit(dimensions, Known::default())?;
        let Placed { anchors, numbers, anchor_stride, component_stride, elements, .. } = placed;
        Some([anchors, numbers, anchor_stride, component_stride, elements])
    }

    #[test]
    fn dimensions_of_1_are_skipped_where_the_shape_has_none() {
        assert_eq!(placed("N,4", &[1917, 1, 4]), Some([1917, 4, 4, 1, 7668]));
        assert_eq!(placed("4,N", &[4, 1917]), Some([1917, 4, 1, 1917, 7668]));
        assert_eq!(placed("N,1", &[8, 1]), Some([8, 1, 1, 1, 8]));
        assert_eq!(placed("N", &[1, 8]), Some([8, 1, 1, 1, 8]));
        assert_eq!(placed("1", &[1, 1]), Some([1, 1, 1, 1, 1]));
        assert_eq!(placed("N,1", &[1, 8, 1]), Some([8, 1, 1, 1, 8]));
        assert_eq!(placed("N,4+C", &[1, 8, 1]), None, "one row of 8 numbers");
        assert_eq!(placed("N,4", &[8, 2, 4]), None);
        assert_eq!(placed("N,5+C", &[8, 5]), None, "at least one class");
    }

    #[test]
    fn anchors_of_cells_are_numbered_through_their_dimensions() {
        assert_eq!(placed("A,H,W,5+C", &[3, 2, 4, 7]), Some([24, 7, 7, 1, 168]));
        assert_eq!(placed("64+C,H,W", &[65, 2, 4]), Some([8, 65, 1, 8, 520]));
    }

    #[test]
    fn keypoints_and_their_numbers_can_be_two_dimensions() {
        assert_eq!(placed("K,3,N", &[17, 3, 84]), Some([84, 51, 1, 84, 4284]));
        assert_eq!(placed("K,3,N", &[1, 3, 84]), Some([84, 3, 1, 84, 252]), "one keypoint");
        assert_eq!(placed("N,K,2", &[84, 5, 2]), Some([84, 10, 10, 1, 840]));
        assert_eq!(placed("K,3,N", &[17, 2, 84]), None);
    }

    #[test]
    fn m_for_each_level_is_coefficients_of_cells() {
        let [prototypes, coefficients] =
            [false, true].map(|per_level| Pattern::parse("M,H,W", per_level).unwrap());
        assert!(prototypes.is_images() && !prototypes.has_anchors());
        assert!(!coefficients.is_images() && coefficients.has_anchors());
    }

    #[test]
    fn shapes_without_one_order_of_anchors_are_errors() {
        for text in [
            "", "N,N", "A,5,H,W", "N,4,4", "4,N,C", "H", "C+C", "N,4+4", "N,-1", "N,+4", "N,0",
            "B", "N,K", "K,N,3", "3,K,N", "K,4,N", "K,C,N", "K,K,3",
        ] {
            assert!(Pattern::parse(text, false).is_err(), "{text}");
        }
    }
}
