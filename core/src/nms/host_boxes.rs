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
use crate::tensor::{DeviceSlice, Elements, Resident, Shape, Storage, TensorView};

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
        let boxes = on_host(input.boxes, of_boxes)?;
        let scores = on_host(input.scores, of_scores)?;
        let groups = input.groups.map(|groups| on_host(groups, of_groups)).transpose()?;
        let column = input.column.map(|column| on_host(column, of_column)).transpose()?;

        self.rows.clear();
        column.iter().for_each(|column| append(column, &mut self.rows));
        self.is_oriented = input.is_oriented;
        self.numbers.clear();
        self.scores.clear();
        self.classes.clear();
        self.indices.clear();
        self.always_kept.clear();
        append(&boxes, &mut self.numbers);
        append(&scores, &mut self.scores);
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
            let count = self.scores.len();
            number_groups(&groups, count, &mut self.classes, &mut self.group_numbers)?;
        }
        let all = self.numbers.chunks_exact(input.numbers()).zip(&self.scores);
        for (index, (numbers, &score)) in (0..).zip(all) {
            match can_overlap(numbers) {
                Ok(true) if self.always_kept.is_empty() => {}
                Ok(true) => self.indices.push(index),
                Ok(false) => {
                    if self.always_kept.is_empty() {
                        self.indices.extend(0..index);
                    }
                    self.always_kept.push(Ranked { score, index });
                }
                Err(expected) => {
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

/// Fills `classes` with the number of the group of each of `count` boxes, from 0.
fn number_groups(
    groups: &Elements<'_>,
    count: usize,
    classes: &mut Vec<i32>,
    numbers: &mut HashMap<i64, i32>,
) -> Result<(), NmsError> {
    let is_class = |value: i64| (0..MAX_CLASSES as i64).contains(&value);
    if (0..count).all(|index| is_class(integer(groups, index))) {
        classes.extend((0..count).map(|index| integer(groups, index) as i32));
        return Ok(());
    }
    numbers.clear();
    for index in 0..count {
        let next = numbers.len() as i32;
        classes.push(*numbers.entry(integer(groups, index)).or_insert(next));
    }
    match numbers.len() {
        0..=MAX_CLASSES => Ok(()),
        got => {
            let expected = format_args!("at most {MAX_CLASSES} different groups");
            Err(NmsError::input(expected, got))
        }
    }
}

/// Returns true if engines make a candidate of a box of these numbers: corners, or center, size and angle. They drop or
/// reject others, whose overlap with any box is zero or undefined.
///
/// # Errors
/// If engines reject the box, though it can overlap. The text says what was expected.
fn can_overlap(numbers: &[f32]) -> Result<bool, &'static str> {
    let (size, oriented) = match *numbers {
        [x, y, width, height, angle] => {
            let size = [width, height];
            (size, Some(OrientedBox { center: [x, y], size, angle }))
        }
        _ => ([numbers[2] - numbers[0], numbers[3] - numbers[1]], None),
    };
    // Overlaps with infinite numbers are not defined; the side of a box with two of them is NaN.
    if numbers.iter().any(|number| number.is_infinite()) {
        return Err("boxes with sides of at most 10^9");
    }
    if numbers.iter().any(|number| number.is_nan()) || size.iter().any(|side| *side <= 0.0) {
        return Ok(false);
    }
    if !size.iter().all(|side| *side <= MAX_BOX_SIDE) {
        return Err("boxes with sides of at most 10^9");
    }
    let Some(oriented) = oriented else { return Ok(true) };
    if oriented.angle.abs() > MAX_ANGLE {
        return Err("angles in radians of at most 10^4 in magnitude");
    }
    // Oriented boxes conflict only if their bounds intersect.
    let Corners { x1, y1, x2, y2 } = oriented.bounds();
    let is_finite = [x1, y1, x2, y2].iter().all(|edge| edge.is_finite());
    Ok(is_finite && x2 > x1 && y2 > y1)
}

/// The elements of `tensor`; those in device memory are copied to `copy`.
pub(super) fn on_host<'a>(
    tensor: &TensorView<'a>,
    copy: &'a mut Vec<u64>,
) -> Result<Elements<'a>, EngineError> {
    let slice = match tensor.resident()? {
        Resident::Host(_) => return Ok(tensor.elements()?),
        Resident::Device(slice) => slice,
    };
    copy.clear();
    copy.resize(slice.len().div_ceil(size_of::<u64>()), 0);
    let bytes = &mut bytemuck::cast_slice_mut(copy)[..slice.len()];
    download(tensor, slice, bytes)?;
    let shape = Shape::new(&tensor.shape).expect("it is the shape of a tensor");
    Ok(TensorView::new(tensor.id, tensor.element, shape, Storage::Host(bytes)).elements()?)
}

/// Appends the numbers of boxes, scores or a column to `to`.
fn append(elements: &Elements<'_>, to: &mut Vec<f32>) {
    match elements {
        Elements::F32(elements) => to.extend_from_slice(elements),
        Elements::F16(elements) => to.extend(elements.iter().map(|element| element.to_f32())),
        _ => unreachable!("boxes and scores are floating-point numbers"),
    }
}

/// A box's group or class.
pub(super) fn integer(elements: &Elements<'_>, index: usize) -> i64 {
    match elements {
        Elements::I32(elements) => elements[index].into(),
        Elements::I64(elements) => elements[index],
        _ => unreachable!("groups are integers"),
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
