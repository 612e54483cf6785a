// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boxes in host memory, as engines take them.
//!
//! In: tensors in host or device memory. Out: boxes, scores and classes for an engine, and the boxes that are kept
//! without it.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::NmsError;
use super::box_input::BoxInput;
use crate::decoder::MAX_CLASSES;
use crate::device::{Device, Stream};
use crate::engine::{Detection, EngineError, MAX_ANGLE, MAX_BOX_SIDE};
use crate::geometry::{Corners, OrientedBox};
use crate::tensor::{DeviceSlice, Elements, Resident, Shape, Storage, TensorView, with_elements};

/// The rank of a box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ranked {
    pub score: f32,
    pub index: u32,
}

impl Ranked {
    /// Descending rank.
    fn order(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.index.cmp(&other.index))
    }
}

/// The boxes of a call in host memory, those that engines take apart from the others.
#[derive(Debug, Default)]
pub(super) struct HostBoxes {
    /// True if the boxes are oriented.
    pub is_oriented: bool,
    /// Boxes as engines take them: corners, or center, size and angle.
    pub numbers: Vec<f32>,
    pub scores: Vec<f32>,
    pub classes: Vec<i32>,
    /// The rows of the method's column.
    pub rows: Vec<f32>,
    /// Their indices; empty if they are all boxes.
    indices: Vec<u32>,
    /// The other boxes, best first.
    always_kept: Vec<Ranked>,
    /// The number of each group.
    group_numbers: HashMap<i64, i32>,
}

/// Copies of tensors that are in device memory: of boxes, scores, groups and the column.
pub(super) type Downloads = [Vec<u64>; 4];

impl HostBoxes {
    pub fn fill(
        &mut self,
        input: &BoxInput<'_, '_>,
        [of_boxes, of_scores, of_groups, of_column]: &mut Downloads,
    ) -> Result<(), NmsError> {
        let boxes = HostNumbers::new(input.boxes, of_boxes)?;
        let scores = HostNumbers::new(input.scores, of_scores)?;
        let groups = input.groups.map(|groups| HostNumbers::new(groups, of_groups)).transpose()?;
        let column = input.column.map(|column| HostNumbers::new(column, of_column)).transpose()?;

        self.rows.clear();
        column.iter().for_each(|column| column.append_to(&mut self.rows));
        self.is_oriented = input.is_oriented;
        self.numbers.clear();
        self.scores.clear();
        self.classes.clear();
        self.indices.clear();
        self.always_kept.clear();
        boxes.append_to(&mut self.numbers);
        scores.append_to(&mut self.scores);
        for (index, score) in self.scores.iter_mut().enumerate() {
            if score.is_nan() {
                let got = format_args!("NaN as the score of box {index}");
                return Err(NmsError::input("scores that are numbers", got));
            }
            // Engines take finite scores. No other score is between the greatest of them and infinity.
            // Minus zero equals zero.
            *score = score.clamp(f32::MIN, f32::MAX) + 0.0;
        }
        if let Some(groups) = groups {
            number_groups(&groups, &mut self.classes, &mut self.group_numbers)?;
        }
        let all = self.numbers.chunks_exact(input.numbers()).zip(&self.scores);
        for (index, (numbers, &score)) in (0..).zip(all) {
            match kind(numbers) {
                Kind::Regular if self.always_kept.is_empty() => {}
                Kind::Regular => self.indices.push(index),
                Kind::NeverOverlaps => {
                    if self.always_kept.is_empty() {
                        self.indices.extend(0..index);
                    }
                    self.always_kept.push(Ranked { score, index });
                }
                Kind::Unsupported(expected) => {
                    let got = format_args!("{numbers:?} as box {index}");
                    return Err(NmsError::input(expected, got));
                }
            }
        }
        if !self.always_kept.is_empty() {
            let Self { numbers, scores, classes, rows, indices, always_kept, .. } = self;
            let count = scores.len();
            keep(numbers, count, indices);
            keep(scores, count, indices);
            keep(classes, count, indices);
            keep(rows, count, indices);
            always_kept.sort_unstable_by(Ranked::order);
        }
        Ok(())
    }

    /// The index among all boxes of one that an engine took.
    pub fn index(&self, anchor: u32) -> u32 {
        self.indices.get(anchor as usize).copied().unwrap_or(anchor)
    }

    /// Calls `add` with the survivors of an engine, each with its position, and with the boxes that it did not take whose
    /// scores are at least `least`, best first.
    pub fn in_order(
        &self,
        survivors: &[Detection],
        least: f32,
        mut add: impl FnMut(Ranked, Option<usize>),
    ) {
        let mut rest = self.always_kept.iter().filter(|it| it.score >= least).peekable();
        for (position, survivor) in survivors.iter().enumerate() {
            let ranked = Ranked { score: survivor.score, index: self.index(survivor.anchor) };
            while let Some(other) = rest.next_if(|it| it.order(&ranked).is_lt()) {
                add(*other, None);
            }
            add(ranked, Some(position));
        }
        rest.for_each(|other| add(*other, None));
    }
}

/// Keeps the numbers of the boxes with these indices, which ascend, of `count` boxes with as many numbers each.
fn keep<T: Copy>(numbers: &mut Vec<T>, count: usize, indices: &[u32]) {
    let width = numbers.len() / count;
    for (to, &from) in indices.iter().enumerate() {
        let from = from as usize * width;
        numbers.copy_within(from..from + width, to * width);
    }
    numbers.truncate(indices.len() * width);
}

/// Fills `classes` with a number from 0 for each group.
fn number_groups(
    groups: &HostNumbers<'_>,
    classes: &mut Vec<i32>,
    numbers: &mut HashMap<i64, i32>,
) -> Result<(), NmsError> {
    let is_class = |value: i64| (0..MAX_CLASSES as i64).contains(&value);
    let indices = 0..groups.len();
    if indices.clone().all(|index| is_class(groups.integer(index))) {
        classes.extend(indices.map(|index| groups.integer(index) as i32));
        return Ok(());
    }
    numbers.clear();
    for index in indices {
        let next = numbers.len() as i32;
        classes.push(*numbers.entry(groups.integer(index)).or_insert(next));
    }
    match numbers.len() {
        0..=MAX_CLASSES => Ok(()),
        got => {
            let expected = format_args!("at most {MAX_CLASSES} different groups");
            Err(NmsError::input(expected, got))
        }
    }
}

/// The effect of a box in an engine.
enum Kind {
    /// It becomes a candidate.
    Regular,
    /// It is dropped or rejected, and its overlap with any box is zero or undefined.
    NeverOverlaps,
    /// It is rejected, though it can overlap. The text says what was expected.
    Unsupported(&'static str),
}

/// The effect of a box of these numbers: corners, or center, size and angle.
fn kind(numbers: &[f32]) -> Kind {
    let (size, oriented) = match *numbers {
        [x, y, width, height, angle] => {
            let size = [width, height];
            (size, Some(OrientedBox { center: [x, y], size, angle }))
        }
        _ => ([numbers[2] - numbers[0], numbers[3] - numbers[1]], None),
    };
    // Overlaps with infinite numbers are not defined; the side of a box with two of them is NaN.
    if numbers.iter().any(|number| number.is_infinite()) {
        return Kind::Unsupported("boxes with sides of at most 10^9");
    }
    if numbers.iter().any(|number| number.is_nan()) || size.iter().any(|side| *side <= 0.0) {
        return Kind::NeverOverlaps;
    }
    if !size.iter().all(|side| *side <= MAX_BOX_SIDE) {
        return Kind::Unsupported("boxes with sides of at most 10^9");
    }
    let Some(oriented) = oriented else { return Kind::Regular };
    if oriented.angle.abs() > MAX_ANGLE {
        return Kind::Unsupported("angles in radians of at most 10^4 in magnitude");
    }
    // Oriented boxes conflict only if their bounds intersect.
    let Corners { x1, y1, x2, y2 } = oriented.bounds();
    let is_finite = [x1, y1, x2, y2].iter().all(|edge| edge.is_finite());
    if is_finite && x2 > x1 && y2 > y1 { Kind::Regular } else { Kind::NeverOverlaps }
}

/// The elements of a tensor in host memory.
pub(super) struct HostNumbers<'a>(pub(super) Elements<'a>);

impl<'a> HostNumbers<'a> {
    /// The elements of `tensor`; those in device memory are copied to `copy`.
    pub fn new(tensor: &TensorView<'a>, copy: &'a mut Vec<u64>) -> Result<Self, NmsError> {
        let slice = match tensor.resident().map_err(EngineError::from)? {
            Resident::Host(_) => return Ok(Self(tensor.elements().map_err(EngineError::from)?)),
            Resident::Device(slice) => slice,
        };
        copy.clear();
        copy.resize(slice.len().div_ceil(size_of::<u64>()), 0);
        let bytes = &mut bytemuck::cast_slice_mut(copy)[..slice.len()];
        download(tensor, slice, bytes)?;
        let shape = Shape::new(&tensor.shape).expect("it is the shape of a tensor");
        let on_host = TensorView::new(tensor.id, tensor.element, shape, Storage::Host(bytes));
        Ok(Self(on_host.elements().map_err(EngineError::from)?))
    }

    fn len(&self) -> usize {
        with_elements!(self.0, elements => elements.len())
    }

    fn append_to(&self, to: &mut Vec<f32>) {
        match self.0 {
            Elements::F32(elements) => to.extend_from_slice(elements),
            Elements::F16(elements) => to.extend(elements.iter().map(|element| element.to_f32())),
            _ => unreachable!("boxes and scores are floating-point numbers"),
        }
    }

    pub fn integer(&self, index: usize) -> i64 {
        match self.0 {
            Elements::I32(elements) => elements[index].into(),
            Elements::I64(elements) => elements[index],
            _ => unreachable!("groups are integers"),
        }
    }
}

/// Copies the elements of `tensor` to the host.
fn download(
    tensor: &TensorView<'_>,
    slice: DeviceSlice,
    bytes: &mut [u8],
) -> Result<(), EngineError> {
    let stream = Stream::new(&Device::holding(slice.address())?)?;
    if !stream.wait_for_producer(slice.ready(), slice.address())? {
        return Err(EngineError::UnknownProducer { tensor: tensor.to_string() });
    }
    // SAFETY: a device slice exists, and is not written once it is ready.
    Ok(unsafe { stream.download(slice.address(), bytes) }?)
}
