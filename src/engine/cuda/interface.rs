//! What the kernels are passed and what they give: kernels/interface.cuh, which says more.

use bytemuck::{Pod, Zeroable};

use crate::engine::{Detection, Params};
use crate::head::{self, Layout};
use crate::tensor::ElementType;

pub(super) const DECODE_THREADS: u32 = 256;
pub(super) const MAP_THREADS: u32 = 512;
pub(super) const REDUCE_THREADS: u32 = 512;
pub(super) const PUBLISH_THREADS: u32 = 1024;

/// What each element of a tensor is; the number by which decode kernels are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    F32 = 0,
    F16 = 1,
}

impl Precision {
    pub fn of(element: ElementType) -> Self {
        match element {
            ElementType::F16 => Self::F16,
            ElementType::F32 | ElementType::Other(_) => Self::F32,
        }
    }

    fn bytes(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Field {
    address: u64,
    anchor_stride: u64,
    component_stride: u64,
}

impl Field {
    /// `tensor` is the device's address of the tensor's first element.
    fn new(field: &head::Field, tensor: u64, precision: Precision) -> Self {
        Self {
            address: tensor + field.offset as u64 * precision.bytes(),
            anchor_stride: field.anchor_stride as u64,
            component_stride: field.component_stride as u64,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Frame {
    boxes: Field,
    scores: Field,
    objectness: Field,
    class_thresholds: u64,
    listed: u32,
    threshold: f32,
    lowest_threshold: f32,
    anchors: u32,
    classes: u32,
    lanes: u32,
    box_format: u32,
    scale: [f32; 2],
    min_size: [f32; 2],
    max_size: [f32; 2],
    method: u32,
    overlap: u32,
    iou_threshold: f32,
    pixel_offset: f32,
    threshold_inclusive: u32,
    class_agnostic: u32,
    max_candidates: u32,
    max_detections: u32,
    sequence: u32,
}

/// Where a frame's tensors lie on the GPU, by role.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    /// Of the boxes' tensor, then of the scores', which may be the same.
    pub addresses: [u64; 2],
    pub precisions: [Precision; 2],
    /// Of the list of thresholds by class.
    pub thresholds: u64,
}

/// The value of `Outcome::sequence` that says that the outcome is whole.
pub(super) const WHOLE: u32 = 1;

impl Frame {
    pub fn new(source: &Source, layout: &Layout, params: &Params) -> Self {
        let [boxes, scores] = [0, 1].map(|i| (source.addresses[i], source.precisions[i]));
        let objectness = layout.objectness.as_ref();
        let thresholds = &params.thresholds;
        // Beyond what a u32 counts no cap can be reached: rows are counted by one.
        let cap = |cap: usize| u32::try_from(cap).unwrap_or(0);
        Self {
            boxes: Field::new(&layout.boxes, boxes.0, boxes.1),
            scores: Field::new(&layout.scores, scores.0, scores.1),
            objectness: objectness
                .map(|field| Field::new(field, scores.0, scores.1))
                .unwrap_or_default(),
            class_thresholds: if thresholds.per_class.is_empty() { 0 } else { source.thresholds },
            listed: thresholds.per_class.len() as u32,
            threshold: thresholds.default,
            lowest_threshold: thresholds.lowest(layout.classes),
            anchors: layout.anchors as u32,
            classes: layout.classes as u32,
            lanes: lanes(layout.classes),
            box_format: layout.box_format as u32,
            scale: params.scale,
            min_size: params.sizes.min,
            max_size: params.sizes.max,
            method: params.method as u32,
            overlap: params.overlap as u32,
            iou_threshold: params.iou_threshold,
            pixel_offset: params.pixel_offset,
            threshold_inclusive: params.threshold_inclusive.into(),
            // With one class alone, no class need be looked up.
            class_agnostic: (params.class_agnostic || layout.classes == 1).into(),
            max_candidates: cap(params.max_candidates),
            max_detections: cap(params.max_detections),
            sequence: WHOLE,
        }
    }
}

/// What precedes the survivors.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Outcome {
    pub sequence: u32,
    pub candidates: u32,
    pub rejected: u32,
    pub survivors: u32,
    pub rounds: u32,
    pub nanoseconds: u32,
    reserved: [u32; 2],
}

const _: () = assert!(
    size_of::<Frame>() == 168 && size_of::<Outcome>() == 32 && size_of::<Detection>() == 28
);

/// `lanes_for`
pub(super) fn lanes(classes: usize) -> u32 {
    if classes < 8 { 1 } else { 8 }
}

/// How many blocks each kernel gets, in their order.
pub(super) fn blocks(capacity: u32, lanes: u32, multiprocessors: u32) -> [u32; 4] {
    let decode = (u64::from(capacity) * u64::from(lanes)).div_ceil(u64::from(DECODE_THREADS));
    let map = capacity.min(multiprocessors);
    let reduce = capacity.div_ceil(REDUCE_THREADS / 32).min(2 * multiprocessors);
    [u32::try_from(decode).unwrap_or(u32::MAX), map, reduce, 1].map(|blocks| blocks.max(1))
}

pub(super) const HEADER_BYTES: usize = 512;

/// `workspace_bytes`
pub(super) fn workspace_bytes(capacity: u32) -> usize {
    HEADER_BYTES + (capacity as usize).next_multiple_of(4096) * 324
}

/// `outcome_bytes`
pub(super) fn outcome_bytes(capacity: u32) -> usize {
    size_of::<Outcome>() + (capacity as usize * size_of::<Detection>()).next_multiple_of(16)
}
