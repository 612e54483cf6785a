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

use arrayvec::ArrayVec;

use super::NmsError;
use super::box_input::BoxInput;
use super::host_boxes::{Downloads, HostBoxes};
use super::merged_boxes::MergedBoxes;
use crate::decoder::layout::{BoxFormat, Column, ColumnKind, Field, Layout};
use crate::decoder::{MAX_CLASSES, PlainLayout};
use crate::device::ForeignStream;
use crate::engine::{
    self, Backend, Boxes, ClassThresholds, Cpu, DeviceOutcome, Engine, EngineError, ImagePlace,
    Job, Method, Outcome, Params, check_embedding, check_iou_threshold, check_method,
    check_overlap, check_sigma,
};
use crate::geometry::Overlap;
use crate::reading::Notice;
use crate::tensor::TensorView;

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
pub struct BoxNms {
    pub(super) engine: Box<dyn Engine>,
    /// The engine that suppresses and merges upright boxes without decoding.
    pub(super) cpu: Cpu,
    /// True if it suppresses, too.
    is_on_cpu: bool,
    pub(super) params: Params,
    pub(super) layout: Layout,
    pub(super) host: HostBoxes,
    pub(super) downloads: Downloads,
    kept: Vec<u32>,
    pub(super) merged: MergedBoxes,
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
    /// This number of indices is at the address that the caller provided, in the order of the stream.
    OnDevice(usize),
    /// The indices.
    OnHost(&'a [u32]),
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
            engine: engine::select(backend, ordinal)?,
            cpu: Cpu::default(),
            is_on_cpu: backend == Backend::Cpu,
            params,
            layout: layout(),
            host: HostBoxes::default(),
            downloads: Downloads::default(),
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
            merged: MergedBoxes::default(),
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
        if input.is_on_device()
            && self.run_on_device(&input, |engine, job| engine.run(job))?.is_some()
        {
            return Ok(&self.kept);
        }
        self.run_on_host(&input)
    }

    /// A notice if the last run's angles are implausible: more than two turns are probably degrees. Boxes in device
    /// memory are not looked at.
    pub fn notice(&self) -> Option<Notice> {
        self.host.is_oriented.then(|| Notice::of_angles(&self.host.numbers)).flatten()
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
        let kept = self.run_on_device(&input, |engine, job| {
            // SAFETY: the layout has an anchor for each box; the caller guarantees the address.
            unsafe { engine.cuda()?.run_in_stream(job, stream, &mut indices) }
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
        run: impl for<'e> FnOnce(&'e mut dyn Engine, Job<'_>) -> Result<Outcome<'e>, EngineError>,
    ) -> Result<Option<usize>, NmsError> {
        lay_out(&mut self.layout, input, input.count);
        let tensors = input.tensors();
        let job = Job::new(&tensors, &self.layout, &self.params, &[PLACE]);
        let outcome = run(&mut *self.engine, job)?;
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
        let tensors = input.tensors();
        let job = Job::new(&tensors, &self.layout, &self.params, &[PLACE]);
        Ok(self.engine.cuda()?.enqueue(job, stream)?)
    }

    pub(super) fn set_params(&mut self, input: &BoxInput<'_, '_>) -> Result<(), NmsError> {
        check_iou_threshold(self.iou_threshold)?;
        check_sigma(self.sigma)?;
        check_embedding(self.embedding_distance, self.embedding_iou_threshold)?;
        check_overlap(input.is_oriented, self.overlap)?;
        check_method(input.is_oriented, self.method)?;
        input.check_column(self.method)?;
        self.host.numbers.clear();
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
        self.host.fill(input, &mut self.downloads)?;
        let HostBoxes { numbers, scores, classes, .. } = &self.host;
        let count = scores.len();
        let survivors = match self.is_on_cpu && !input.is_oriented {
            true => {
                let (corners, _) = numbers.as_chunks();
                let boxes = Boxes { corners, scores, classes, rows: &[] };
                self.cpu.suppress_boxes(&boxes, &self.params).0
            }
            false => {
                lay_out(&mut self.layout, input, count);
                let width = input.numbers();
                let mut tensors = ArrayVec::<_, 3>::from_iter([
                    TensorView::from_slice("boxes", &[count, width], numbers),
                    TensorView::from_slice("scores", &[count], scores),
                ]);
                if input.groups.is_some() {
                    tensors.push(TensorView::from_slice("groups", &[count], classes));
                }
                let outcome =
                    self.engine.run(Job::new(&tensors, &self.layout, &self.params, &[PLACE]))?;
                let image = outcome.group(0);
                debug_assert_eq!(
                    image.candidates, count,
                    "boxes that engines reject were taken out"
                );
                image.survivors
            }
        };
        self.kept.clear();
        self.host.in_order(survivors, f32::NEG_INFINITY, |kept, _| self.kept.push(kept.index));
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
    Layout::from(PlainLayout {
        decoder: "boxes",
        images: 1,
        anchors: 0,
        classes: 1,
        boxes: field(BOXES, 4),
        box_format: BoxFormat::Corners,
        scores: field(SCORES, 1),
        objectness: None,
        normalized: false,
    })
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
