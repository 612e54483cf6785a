// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suppression of boxes alone, without decoding.
//!
//! In: boxes, scores and, optionally, groups, in host or device memory. Out: the indices of the boxes that are kept, best
//! first. The result equals `torchvision.ops.nms`, and with groups `torchvision.ops.batched_nms`, except for
//! pairs whose overlap differs from the threshold by a rounding error: engines compare the intersection with the product of
//! threshold and union, without a division.
//!
//! ```text
//! run(boxes, scores, groups):
//!     boxes without area, or with a coordinate that is not finite: kept, since no overlap with them exceeds a threshold
//!     groups: numbered from 0, as classes
//!     the others: by the engine, with the layout [N,4], [N], [N]
//!     merge both by score, then by index
//! ```
//!
//! Tensors in device memory are read in place. If the engine reports boxes that it did not take, they are copied to the
//! host and the above is done there.

use std::cmp::Ordering;
use std::collections::HashMap;

use arrayvec::ArrayVec;

use super::NmsError;
use super::merged_boxes::Merger;
use crate::decoder::MAX_CLASSES;
use crate::decoder::layout::{
    BoxFormat, BoxRule, Column, ColumnKind, Field, Group, Layout, MAX_COLUMN_COMPONENTS, Reference,
    ScoreRule,
};
use crate::device::ForeignStream;
use crate::device::{Device, DeviceError, Location, Stream};
use crate::engine::{
    self, Backend, Boxes, ClassThresholds, Cpu, DeviceOutcome, Engine, EngineError, ImagePlace,
    MAX_ANGLE, MAX_BOX_SIDE, Method, Outcome, Params, check_embedding, check_iou_threshold,
    check_method, check_overlap, check_sigma,
};
use crate::geometry::{Corners, OrientedBox, Overlap};
use crate::tensor::{DeviceSlice, ElementType, Elements, Resident, Shape, Storage, TensorView};

/// Suppresses duplicates among boxes.
///
/// ```
/// use nmsfilter_core::nms::{Backend, BoxNms};
/// use nmsfilter_core::tensor::TensorView;
///
/// let boxes = [0.0, 0.0, 10.0, 10.0, 1.0, 1.0, 11.0, 11.0, 20.0, 20.0, 30.0, 30.0f32];
/// let boxes = TensorView::from_slice("boxes", &[3, 4], &boxes);
/// let scores = TensorView::from_slice("scores", &[3], &[0.8, 0.9, 0.7f32]);
///
/// let mut nms = BoxNms::new(Backend::Cpu, None)?;
/// nms.iou_threshold = 0.5;
/// assert_eq!(nms.run(&boxes, &scores, None)?, [1, 2]);
/// # Ok::<(), nmsfilter_core::nms::NmsError>(())
/// ```
#[derive(Debug)]
pub struct BoxNms {
    pub(super) engine: EngineOf,
    /// With [`Backend::Cpu`], the engine for upright boxes, which suppresses them without decoding.
    cpu: Option<Cpu>,
    pub(super) params: Params,
    pub(super) layout: Layout,
    pub(super) host: HostBoxes,
    kept: Vec<u32>,
    pub(super) merger: Merger,
    /// The overlap above which a box is suppressed, 0 to 1; 0.5 unless set.
    pub iou_threshold: f64,
    /// The method; [`Method::Greedy`] unless set.
    pub method: Method,
    /// The measure of overlap; [`Overlap::Iou`] unless set.
    pub overlap: Overlap,
    /// The greatest number of boxes to keep; 0, the default, for all.
    pub max_detections: usize,
    /// If set, an overlap equal to the threshold is a conflict, too; false unless set.
    pub threshold_inclusive: bool,
    /// The width of Gaussian functions, finite and above 0; 0.5 unless set. See [`Params::sigma`].
    pub sigma: f32,
    /// True if boxes that do not join a grown box are lost; false unless set. See
    /// [`Params::lose_released`].
    pub lose_released: bool,
    /// The distance above which embeddings differ, finite and at least 0; 1 unless set. See
    /// [`Params::embedding_distance`].
    pub embedding_distance: f32,
    /// The overlap above which boxes conflict even if their embeddings differ, 0 to 1; 0.9 unless set. See
    /// [`Params::embedding_iou_threshold`].
    pub embedding_iou_threshold: f32,
    /// If set, boxes of different groups conflict, too; false unless set.
    pub class_agnostic: bool,
    /// The score that the boxes of [`merge`](Self::merge) must reach, before and after their scores are lowered; minus
    /// infinity unless set.
    pub score_threshold: f32,
}

/// The boxes that [`BoxNms::run_in_stream`] keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptBoxes<'a> {
    /// As many indices, at the address that the caller provided, in the order of the stream.
    OnDevice(usize),
    /// The indices.
    OnHost(&'a [u32]),
}

/// The engine, which does not implement [`Debug`](std::fmt::Debug).
pub(super) struct EngineOf(pub(super) Box<dyn Engine>);

impl std::fmt::Debug for EngineOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name())
    }
}

/// The tensors, by the index that the layout's fields have.
const BOXES: usize = 0;
const SCORES: usize = 1;
const GROUPS: usize = 2;
const COLUMN: usize = 3;

/// Boxes are in no frame.
const PLACE: ImagePlace = ImagePlace::in_model([1.0; 2]);

impl BoxNms {
    /// One that runs on `backend`, on GPU number `ordinal` if on any; without a number on the first GPU, or on the one
    /// that holds the tensors.
    ///
    /// # Errors
    /// If `backend` is [`Backend::Cuda`] and the GPU cannot be used.
    pub fn new(backend: Backend, ordinal: Option<u32>) -> Result<Self, NmsError> {
        let params =
            Params { thresholds: ClassThresholds::uniform(f32::NEG_INFINITY), ..Params::default() };
        let Params { embedding_distance, embedding_iou_threshold, .. } = params;
        Ok(Self {
            engine: EngineOf(engine::select(backend, ordinal)?.engine),
            cpu: (backend == Backend::Cpu).then(Cpu::default),
            params,
            layout: layout(),
            host: HostBoxes::default(),
            kept: Vec::new(),
            iou_threshold: 0.5,
            method: Method::Greedy,
            overlap: Overlap::Iou,
            max_detections: 0,
            threshold_inclusive: false,
            sigma: 0.5,
            lose_released: false,
            embedding_distance,
            embedding_iou_threshold,
            class_agnostic: false,
            score_threshold: f32::NEG_INFINITY,
            merger: Merger::default(),
        })
    }

    /// The indices of the boxes that are kept, in descending order of their scores, equal scores in the order of their
    /// indices. If the method changes boxes or scores, these are the indices of the keepers, by their final scores;
    /// [`merge`](Self::merge) has the boxes, and the methods that read a column.
    ///
    /// | tensor | shape | elements |
    /// | --- | --- | --- |
    /// | `boxes` | `[N,4]`: left, upper, right, lower edge | f32 or f16 |
    /// | | `[N,5]`: center x, center y, width, height, angle in radians, from the x axis toward the y axis | |
    /// | `scores` | `[N]`, not NaN | f32 or f16 |
    /// | `groups` | `[N]`, at most 65,536 different values; boxes of different groups do not suppress each other | i32 or i64 |
    ///
    /// A box without area, or with a coordinate that is not finite, is kept and suppresses none.
    ///
    /// # Errors
    /// If a tensor is not as the table has it or cannot be read, if a side of a box is longer than 10^9 or an angle is
    /// more than 10^4 in magnitude, if the threshold is not from 0 to 1, if the measure of overlap is not defined for such
    /// boxes, or if the GPU fails.
    pub fn run(
        &mut self,
        boxes: &TensorView<'_>,
        scores: &TensorView<'_>,
        groups: Option<&TensorView<'_>>,
    ) -> Result<&[u32], NmsError> {
        let input = BoxInput::new(boxes, scores, groups)?;
        self.set_params(&input)?;
        let tensors = [Some(boxes), Some(scores), groups].into_iter().flatten();
        if tensors.into_iter().any(TensorView::is_on_device)
            && self
                .run_on_device(&input, |engine, tensors, layout, params| {
                    engine.run(tensors, layout, params, &[PLACE])
                })?
                .is_some()
        {
            return Ok(&self.kept);
        }
        self.run_on_host(&input)
    }

    /// Like [`run`](Self::run) on a GPU, in the order of `stream`: work that was submitted to it before needs no other wait.
    /// `indices` is called once, while the GPU works. If it returns a device address, the GPU writes the indices there as
    /// `i64`, in the order of `stream`; the call waits for their number only. They are on the host instead if some boxes are
    /// those that suppress none, or groups are not from 0 to 65,535.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run), and if the engine does not use a GPU.
    ///
    /// # Safety
    /// The address must be valid for writes of as many numbers as there are boxes, in the order of `stream`.
    pub unsafe fn run_in_stream(
        &mut self,
        boxes: &TensorView<'_>,
        scores: &TensorView<'_>,
        groups: Option<&TensorView<'_>>,
        stream: ForeignStream,
        mut indices: impl FnMut() -> Option<u64>,
    ) -> Result<KeptBoxes<'_>, NmsError> {
        let input = BoxInput::new(boxes, scores, groups)?;
        self.set_params(&input)?;
        let mut is_written = false;
        let mut indices = || {
            let address = indices();
            is_written = address.is_some();
            address
        };
        let kept = self.run_on_device(&input, |engine, tensors, layout, params| {
            // SAFETY: the layout has an anchor for each box; the caller guarantees the address.
            unsafe { engine.run_in_stream(tensors, layout, params, &[PLACE], stream, &mut indices) }
        })?;
        match kept {
            Some(count) if is_written => Ok(KeptBoxes::OnDevice(count)),
            Some(_) => Ok(KeptBoxes::OnHost(&self.kept)),
            None => self.run_on_host(&input).map(KeptBoxes::OnHost),
        }
    }

    /// Calls `run` with the engine and the tensors as it reads them, and returns the number of kept boxes; `None` if some
    /// boxes did not become candidates.
    fn run_on_device(
        &mut self,
        input: &BoxInput<'_, '_>,
        run: impl for<'e> FnOnce(
            &'e mut dyn Engine,
            &[TensorView<'_>],
            &Layout,
            &Params,
        ) -> Result<Outcome<'e>, EngineError>,
    ) -> Result<Option<usize>, NmsError> {
        lay_out(&mut self.layout, input, input.count);
        let tensors: ArrayVec<TensorView<'_>, 3> =
            [Some(input.boxes), Some(input.scores), input.groups]
                .into_iter()
                .flatten()
                .cloned()
                .collect();
        let outcome = run(&mut *self.engine.0, &tensors, &self.layout, &self.params)?;
        let image = outcome.group(0);
        if image.candidates != input.count {
            return Ok(None);
        }
        self.kept.clear();
        self.kept.extend(image.survivors.iter().map(|survivor| survivor.anchor));
        Ok(Some(self.kept.len()))
    }

    /// Suppresses on a GPU in the order of `stream`, without waiting for it. The index of a kept box is
    /// [`Detection::anchor`](super::Detection::anchor).
    ///
    /// If [`DeviceCounts::candidates`](super::DeviceCounts::candidates) is not the number of boxes, some boxes were left out
    /// that [`run`](Self::run) keeps (without area, or not finite), or groups are not from 0 to 65,535: the result is not
    /// the result of `run`.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run) that are known without reading the memory, and the errors of
    /// [`Nms::enqueue`](super::Nms::enqueue).
    pub fn enqueue(
        &mut self,
        boxes: &TensorView<'_>,
        scores: &TensorView<'_>,
        groups: Option<&TensorView<'_>>,
        stream: ForeignStream,
    ) -> Result<DeviceOutcome<'_>, NmsError> {
        let input = BoxInput::new(boxes, scores, groups)?;
        self.set_params(&input)?;
        lay_out(&mut self.layout, &input, input.count);
        let tensors: ArrayVec<TensorView<'_>, 3> =
            [Some(boxes), Some(scores), groups].into_iter().flatten().cloned().collect();
        Ok(self.engine.0.enqueue(&tensors, &self.layout, &self.params, &[PLACE], stream)?)
    }

    pub(super) fn set_params(&mut self, input: &BoxInput<'_, '_>) -> Result<(), NmsError> {
        check_iou_threshold(self.iou_threshold)?;
        check_sigma(self.sigma)?;
        check_embedding(self.embedding_distance, self.embedding_iou_threshold)?;
        check_overlap(input.is_oriented, self.overlap)?;
        check_method(input.is_oriented, self.method)?;
        input.check_column(self.method)?;
        self.params.iou_threshold = floor(self.iou_threshold);
        (self.params.method, self.params.overlap) = (self.method, self.overlap);
        self.params.max_detections = self.max_detections;
        self.params.threshold_inclusive = self.threshold_inclusive;
        (self.params.sigma, self.params.lose_released) = (self.sigma, self.lose_released);
        self.params.embedding_distance = self.embedding_distance;
        self.params.embedding_iou_threshold = self.embedding_iou_threshold;
        self.params.class_agnostic = self.class_agnostic;
        Ok(())
    }

    fn run_on_host(&mut self, input: &BoxInput<'_, '_>) -> Result<&[u32], NmsError> {
        self.host.fill(input)?;
        let HostBoxes { numbers, scores, classes, indices, always_kept, .. } = &self.host;
        let count = scores.len();
        let survivors = match &mut self.cpu {
            Some(cpu) if !input.is_oriented => {
                let (corners, _) = numbers.as_chunks();
                let boxes = Boxes { corners, scores, classes, rows: &[] };
                cpu.suppress_boxes(&boxes, &self.params)
            }
            _ => {
                lay_out(&mut self.layout, input, count);
                let width = input.numbers();
                let mut tensors = ArrayVec::<_, 3>::from_iter([
                    TensorView::from_slice("boxes", &[count, width], numbers),
                    TensorView::from_slice("scores", &[count], scores),
                ]);
                if input.groups.is_some() {
                    tensors.push(TensorView::from_slice("groups", &[count], classes));
                }
                let outcome = self.engine.0.run(&tensors, &self.layout, &self.params, &[PLACE])?;
                let image = outcome.group(0);
                debug_assert_eq!(
                    image.candidates, count,
                    "boxes that engines reject were taken out"
                );
                image.survivors
            }
        };
        let survivors = survivors.iter().map(|survivor| {
            let index = survivor.anchor as usize;
            Ranked { score: survivor.score, index: indices.get(index).map_or(index as u32, |&i| i) }
        });
        self.kept.clear();
        let mut rest = always_kept.as_slice();
        for survivor in survivors {
            while let [first, others @ ..] = rest
                && first.outranks(&survivor)
            {
                self.kept.push(first.index);
                rest = others;
            }
            self.kept.push(survivor.index);
        }
        self.kept.extend(rest.iter().map(|kept| kept.index));
        if self.max_detections != 0 {
            self.kept.truncate(self.max_detections);
        }
        Ok(&self.kept)
    }
}

/// The greatest f32 that is at most `threshold`: an f32 exceeds it if and only if it exceeds `threshold`.
fn floor(threshold: f64) -> f32 {
    let nearest = threshold as f32;
    if f64::from(nearest) > threshold { nearest.next_down() } else { nearest }
}

/// Row `a` of the tensor, of `stride` elements, for anchor `a`.
fn field(tensor: usize, stride: usize) -> Field {
    Field { tensor, offset: 0, image_stride: 0, anchor_stride: stride, component_stride: 1 }
}

fn layout() -> Layout {
    Layout {
        decoder: "boxes",
        images: 1,
        classes: 1,
        groups: ArrayVec::from_iter([Group {
            anchors: 0,
            boxes: field(BOXES, 4),
            angle: None,
            scores: field(SCORES, 1),
            objectness: None,
            class: None,
            reference: Reference::None,
            columns: Vec::new(),
        }]),
        score: ScoreRule::of_classes(1),
        boxes: BoxRule::decoded(BoxFormat::Corners),
        count: None,
        columns: Vec::new(),
        prototypes: None,
        priors: None,
        normalized: false,
    }
}

/// Sets the layout for `count` boxes.
pub(super) fn lay_out(layout: &mut Layout, input: &BoxInput<'_, '_>, count: usize) {
    let group = &mut layout.groups[0];
    group.anchors = count;
    group.boxes.anchor_stride = input.numbers();
    group.angle = input.is_oriented.then_some(Field { offset: 4, ..group.boxes });
    group.class = input.groups.map(|_| field(GROUPS, 1));
    layout.boxes.format = if input.is_oriented { BoxFormat::Center } else { BoxFormat::Corners };
    layout.classes = if input.groups.is_some() { MAX_CLASSES } else { 1 };
    layout.columns.clear();
    group.columns.clear();
    if let Some(column) = input.column {
        let (kind, components) = match *column.shape {
            [_, components] => (ColumnKind::Embedding, components),
            _ => (ColumnKind::Density, 1),
        };
        layout.columns.push(Column { name: kind.name(), components, kind });
        group.columns.push(field(COLUMN, components));
    }
}

/// The tensors of a call, whose element types and shapes were checked.
#[derive(Clone, Copy)]
pub(super) struct BoxInput<'t, 'a> {
    pub boxes: &'t TensorView<'a>,
    pub scores: &'t TensorView<'a>,
    pub groups: Option<&'t TensorView<'a>>,
    /// The column that a method reads.
    pub column: Option<&'t TensorView<'a>>,
    pub count: usize,
    pub is_oriented: bool,
}

impl<'t, 'a> BoxInput<'t, 'a> {
    pub fn new(
        boxes: &'t TensorView<'a>,
        scores: &'t TensorView<'a>,
        groups: Option<&'t TensorView<'a>>,
    ) -> Result<Self, NmsError> {
        let error = |tensor: &TensorView<'_>, what: &str| NmsError::BoxInput {
            expected: what.to_owned(),
            got: tensor.to_string(),
        };
        let (count, numbers) = match *boxes.shape {
            [count, numbers @ (4 | 5)] if boxes.element.is_float() => (count, numbers),
            _ => return Err(error(boxes, "boxes [N,4] or [N,5] of type f32 or f16")),
        };
        if *scores.shape != [count] || !scores.element.is_float() {
            return Err(error(scores, &format!("scores [{count}] of type f32 or f16")));
        }
        if let Some(groups) = groups
            && (*groups.shape != [count]
                || !matches!(groups.element, ElementType::I32 | ElementType::I64))
        {
            return Err(error(groups, &format!("groups [{count}] of type i32 or i64")));
        }
        Ok(Self { boxes, scores, groups, column: None, count, is_oriented: numbers == 5 })
    }

    /// Checks that there is the column that the method reads, and no other.
    fn check_column(&self, method: Method) -> Result<(), NmsError> {
        let count = self.count;
        let shape = self.column.filter(|column| column.element.is_float()).map(|it| &it.shape[..]);
        let (is_valid, expected) = match method.column() {
            None => (self.column.is_none(), "no densities and no embeddings".to_owned()),
            Some(ColumnKind::Density) => {
                (shape == Some(&[count]), format!("densities [{count}] of type f32 or f16"))
            }
            Some(_) => {
                const MOST: usize = MAX_COLUMN_COMPONENTS;
                let is_embedding = matches!(shape, Some(&[of, 1..=MOST]) if of == count);
                (is_embedding, format!("embeddings [{count}, 1 to {MOST}] of type f32 or f16"))
            }
        };
        if is_valid {
            return Ok(());
        }
        Err(NmsError::BoxInput {
            expected: format!("{expected} for the method {}", method.name()),
            got: self.column.map_or_else(|| "none".to_owned(), TensorView::to_string),
        })
    }

    /// The numbers of a box.
    fn numbers(&self) -> usize {
        if self.is_oriented { 5 } else { 4 }
    }
}

/// The rank of a box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ranked {
    pub score: f32,
    pub index: u32,
}

impl Ranked {
    pub fn outranks(&self, other: &Self) -> bool {
        self.score > other.score || (self.score == other.score && self.index < other.index)
    }

    fn order(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.index.cmp(&other.index))
    }
}

/// The boxes of a call in host memory, those that engines take apart from the others.
#[derive(Debug, Default)]
pub(super) struct HostBoxes {
    /// Boxes as engines take them: corners, or center, size and angle.
    pub numbers: Vec<f32>,
    pub scores: Vec<f32>,
    pub classes: Vec<i32>,
    /// The rows of the method's column.
    pub rows: Vec<f32>,
    /// Their indices; empty if they are all boxes.
    pub indices: Vec<u32>,
    /// The other boxes, best first.
    pub always_kept: Vec<Ranked>,
    /// The number of each group.
    group_numbers: HashMap<i64, i32>,
    /// Copies of arrays that are in device memory.
    pub downloads: [Vec<u64>; 4],
}

impl HostBoxes {
    pub fn fill(&mut self, input: &BoxInput<'_, '_>) -> Result<(), NmsError> {
        let [of_boxes, of_scores, of_groups, of_column] = &mut self.downloads;
        let boxes = HostNumbers::new(input.boxes, of_boxes)?;
        let scores = HostNumbers::new(input.scores, of_scores)?;
        let groups = input.groups.map(|groups| HostNumbers::new(groups, of_groups)).transpose()?;
        let column = input.column.map(|column| HostNumbers::new(column, of_column)).transpose()?;

        self.rows.clear();
        column.iter().for_each(|column| column.append_to(&mut self.rows));
        self.numbers.clear();
        self.scores.clear();
        self.classes.clear();
        self.indices.clear();
        self.always_kept.clear();
        boxes.append_to(&mut self.numbers);
        scores.append_to(&mut self.scores);
        for (index, score) in self.scores.iter_mut().enumerate() {
            if score.is_nan() {
                return Err(NmsError::BoxInput {
                    expected: "scores that are numbers".to_owned(),
                    got: format!("NaN as the score of box {index}"),
                });
            }
            // Engines take finite scores. No other score is between the greatest of them and infinity.
            // Minus zero equals zero.
            *score = score.clamp(f32::MIN, f32::MAX) + 0.0;
        }
        if let Some(groups) = groups {
            number_groups(&groups, &mut self.classes, &mut self.group_numbers)?;
        }
        let kind = if input.is_oriented { kind_of_oriented } else { kind_of_upright };
        let width = input.numbers();
        let mut others = 0;
        for (index, numbers) in self.numbers.chunks_exact(width).enumerate() {
            match kind(numbers) {
                Kind::Regular => {}
                Kind::NeverOverlaps => others += 1,
                Kind::Unsupported(expected) => {
                    return Err(NmsError::BoxInput {
                        expected: expected.to_owned(),
                        got: format!("{numbers:?} as box {index}"),
                    });
                }
            }
        }
        if others > 0 {
            self.take_out(width, kind);
        }
        Ok(())
    }

    /// Moves the boxes that overlap no other from the arrays to `always_kept`.
    fn take_out(&mut self, width: usize, kind: fn(&[f32]) -> Kind) {
        let mut regular = 0;
        let components = self.rows.len() / self.scores.len();
        for index in 0..self.scores.len() {
            let numbers = index * width..(index + 1) * width;
            let score = self.scores[index];
            match kind(&self.numbers[numbers.clone()]) {
                Kind::Regular => {
                    self.numbers.copy_within(numbers, regular * width);
                    self.scores[regular] = score;
                    if !self.classes.is_empty() {
                        self.classes[regular] = self.classes[index];
                    }
                    let row = index * components..(index + 1) * components;
                    self.rows.copy_within(row, regular * components);
                    self.indices.push(index as u32);
                    regular += 1;
                }
                _ => self.always_kept.push(Ranked { score, index: index as u32 }),
            }
        }
        self.numbers.truncate(regular * width);
        self.scores.truncate(regular);
        self.rows.truncate(regular * components);
        self.classes.truncate(regular);
        self.always_kept.sort_unstable_by(Ranked::order);
    }
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
        got => Err(NmsError::BoxInput {
            expected: format!("at most {MAX_CLASSES} different groups"),
            got: got.to_string(),
        }),
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

fn kind_of_upright(corners: &[f32]) -> Kind {
    let [width, height] = [corners[2] - corners[0], corners[3] - corners[1]];
    kind_of_sides(width, height, corners.iter().all(|corner| corner.is_finite()))
}

fn kind_of_oriented(numbers: &[f32]) -> Kind {
    let is_finite = numbers.iter().all(|number| number.is_finite());
    match kind_of_sides(numbers[2], numbers[3], is_finite) {
        Kind::Regular if numbers[4].abs() > MAX_ANGLE => {
            Kind::Unsupported("angles in radians of at most 10^4 in magnitude")
        }
        Kind::Regular => {
            let &[x, y, width, height, angle] = numbers else { unreachable!("of 5 numbers") };
            let bounds = OrientedBox { center: [x, y], size: [width, height], angle }.bounds();
            kind_of_bounds(bounds)
        }
        kind => kind,
    }
}

/// Oriented boxes conflict only if their bounds intersect.
fn kind_of_bounds(Corners { x1, y1, x2, y2 }: Corners) -> Kind {
    let is_finite = [x1, y1, x2, y2].iter().all(|edge| edge.is_finite());
    if is_finite && x2 > x1 && y2 > y1 { Kind::Regular } else { Kind::NeverOverlaps }
}

fn kind_of_sides(width: f32, height: f32, is_finite: bool) -> Kind {
    if !is_finite || width <= 0.0 || height <= 0.0 {
        Kind::NeverOverlaps
    } else if width <= MAX_BOX_SIDE && height <= MAX_BOX_SIDE {
        Kind::Regular
    } else {
        Kind::Unsupported("boxes with sides of at most 10^9")
    }
}

/// The elements of a tensor in host memory.
pub(super) struct HostNumbers<'a>(Elements<'a>);

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
        match self.0 {
            Elements::F16(elements) => elements.len(),
            Elements::F32(elements) => elements.len(),
            Elements::I8(elements) => elements.len(),
            Elements::U8(elements) => elements.len(),
            Elements::I32(elements) => elements.len(),
            Elements::I64(elements) => elements.len(),
        }
    }

    fn append_to(&self, to: &mut Vec<f32>) {
        match self.0 {
            Elements::F32(elements) => to.extend_from_slice(elements),
            Elements::F16(elements) => to.extend(elements.iter().map(|element| element.to_f32())),
            _ => unreachable!("boxes and scores are floating-point numbers"),
        }
    }

    pub fn float(&self, index: usize) -> f32 {
        match self.0 {
            Elements::F32(elements) => elements[index],
            Elements::F16(elements) => elements[index].to_f32(),
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
fn download(tensor: &TensorView<'_>, slice: DeviceSlice, bytes: &mut [u8]) -> Result<(), NmsError> {
    let driver = |error| EngineError::from(DeviceError::Driver(error));
    let mut device = Device::open(0).map_err(EngineError::from)?;
    if let Location::OtherDevice(is) = device.locate(slice.address()).map_err(driver)? {
        device = Device::open(is).map_err(EngineError::from)?;
    }
    let stream = Stream::new(&device).map_err(driver)?;
    if !stream.wait_for_producer(slice.ready(), slice.address()).map_err(driver)? {
        return Err(EngineError::UnknownProducer { tensor: tensor.to_string() }.into());
    }
    // SAFETY: a device slice exists, and is not written once it is ready.
    unsafe { stream.download(slice.address(), bytes) }.map_err(driver)?;
    Ok(())
}
