// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface of the kernels: their parameters, their results and sizes of memory.
//! kernels/interface.cuh describes the kernels. Structures and `pub` constants are also in
//! kernels/interface_generated.cuh, which `c/tests/header.rs` writes.

use arrayvec::ArrayVec;
use bytemuck::{Pod, Zeroable};

use super::layout_params::LayoutField;
use super::merging;
use super::places::{PlaceParams, Placed};
use crate::decoder::{self, Layout, MAX_INPUTS, PlainLayout};
/// The counts of a group of images.
pub(super) use crate::engine::DeviceCounts as ResultHeader;
use crate::engine::{Detection, Job, Params, SizeLimits};
use crate::tensor::{ElementType, Quantization};

/// Threads per block.
pub const DECODE_THREADS: u32 = 256;
pub const MAP_THREADS: u32 = 512;
pub const REDUCE_THREADS: u32 = 512;
pub const PUBLISH_THREADS: u32 = 1024;
/// One block publishes the survivors of up to this many candidates of a group.
pub const PUBLISH_STEP_RANKS: u32 = 4096;
/// With more candidates, each block publishes the survivors of this many.
pub const PUBLISH_SHARED_RANKS: u32 = 1024;
pub const SORT_THREADS: u32 = 1024;
pub const CHUNK_THREADS: u32 = 256;

/// Determines which groups of images have their candidates sorted, to avoid comparing all pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SortLimits {
    /// Groups with more candidates than this are sorted.
    pub limit: u32,
    /// The approximate number of candidates in the first chunk. Not 0.
    pub first_chunk: u32,
}

impl SortLimits {
    /// No group is sorted. For oriented boxes.
    pub const NEVER: Self = Self { limit: u32::MAX, ..Self::DEFAULT };
    /// Above this limit, sorting takes less time.
    pub const DEFAULT: Self = Self { limit: 16_384, first_chunk: 32_768 };
}

/// Number c of anchor a of image i is the element at i * image_stride + a * anchor_stride + c *
/// component_stride from the address. If the tensor has a table of images (KernelParams), it is the
/// element at a * anchor_stride + c * component_stride from the sum of the address and entry i of
/// the table, and image_stride is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct FieldParams {
    /// Device address of number 0 of anchor 0 of image 0; with a table, bytes.
    address: u64,
    /// In elements.
    image_stride: u64,
    /// In elements.
    anchor_stride: u64,
    /// In elements.
    component_stride: u64,
}

impl FieldParams {
    fn new(field: &decoder::Field, source: &Source) -> Self {
        let LayoutField { address, image_stride, anchor_stride, component_stride, .. } =
            LayoutField::new(field, source);
        let size = source.tensor(field.tensor).element.size().unwrap_or(1) as u64;
        Self { address, image_stride: image_stride / size, anchor_stride, component_stride }
    }
}

/// The parameters of a launch. Plain data, aligned to 8 bytes, without padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct KernelParams {
    boxes: FieldParams,
    scores: FieldParams,
    /// The element type is the scores' type. Read with has_objectness.
    objectness: FieldParams,
    /// Device address of class_threshold_count floats, by class; or 0.
    class_thresholds: u64,
    /// The number of classes with a threshold of their own.
    class_threshold_count: u32,
    /// The threshold of all other classes.
    threshold: f32,
    /// The minimum over all classes of the layout.
    lowest_threshold: f32,
    pub images: u32,
    /// Anchors of each image.
    anchors: u32,
    classes: u32,
    /// Threads that share an anchor's classes: 1 or 8.
    lanes_per_anchor: u32,
    /// A BoxFormat.
    box_format: u32,
    /// A Method.
    method: u32,
    /// An Overlap.
    overlap: u32,
    iou_threshold: f32,
    pixel_offset: f32,
    /// 0 or 1.
    threshold_inclusive: u32,
    /// 0 or 1.
    class_agnostic: u32,
    /// The greatest number of candidates of a group; 0: no limit.
    max_candidates: u32,
    /// The greatest number of survivors of a group; 0: no limit.
    max_detections: u32,
    /// The value of ResultHeader::sequence. Not 0.
    sequence: u32,
    /// 0 or 1.
    multi_label: u32,
    /// The number of candidates of a group that there is memory for.
    pub capacity: u32,
    /// 0 or 1.
    has_objectness: u32,
    /// For tensors whose images have no constant stride: the device address of a table with each
    /// image's device address, `images` entries of type uint64_t. 0: no table.
    box_images: u64,
    /// As box_images, for the scores and the objectness.
    score_images: u64,
    /// Rules for single classes: the device address of class_rule_count entries of type ClassRule,
    /// by class; or 0. iou_threshold and the sizes in PlaceParams apply to all other classes.
    class_rules: u64,
    class_rule_count: u32,
    /// The minimum over all classes.
    lowest_iou_threshold: f32,
    /// The number of candidates of a group above which they are sorted.
    sort_limit: u32,
    /// The approximate number of candidates in the first chunk. Not 0.
    first_chunk: u32,
    /// The place of every image, if there is no table.
    place: PlaceParams,
    /// The device address of a table with a PlacedImage for each image. 0: no table; image i is then
    /// the only image of group i.
    placed_images: u64,
}

/// The rules of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ClassRule {
    /// The threshold of pairs whose lower-ranked candidate has this class.
    iou_threshold: f32,
    /// In the pixels in which sizes are set: PlaceParams::limit_ratio.
    min_size: [f32; 2],
    max_size: [f32; 2],
}

impl ClassRule {
    /// The rules of the classes that have rules in `params`, by class.
    pub fn all(params: &Params) -> impl Iterator<Item = Self> {
        (0..params.class_rules.len() as u32).map(|class| {
            let &SizeLimits { min, max } = params.class_sizes(class).unwrap_or(&params.sizes);
            Self { iou_threshold: params.iou_threshold_of(class), min_size: min, max_size: max }
        })
    }
}

/// A tensor in device memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct TensorSource {
    /// The device address of the first element of image 0, or 0 if there is a table of images.
    pub address: u64,
    /// The distance of images in bytes, or 0 if there is a table; `None` if they are at the layout's image strides.
    pub image_stride: Option<u64>,
    /// The device address of the table of images.
    pub table: Option<u64>,
    pub element: ElementType,
    pub quantization: Option<Quantization>,
}

/// The inputs of a launch in device memory.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// The tensors that the layout reads, each with its index.
    pub tensors: ArrayVec<(usize, TensorSource), MAX_INPUTS>,
    /// The device address of the list of thresholds by class.
    pub thresholds: u64,
    /// The device address of the rules of classes.
    pub class_rules: u64,
    /// The device address of the table of priors.
    pub priors: u64,
    /// The numbers for decoding the boxes of each image.
    pub places: Placed<PlaceParams>,
}

impl Source {
    /// The tensor with this index, which the layout reads.
    pub fn tensor(&self, index: usize) -> &TensorSource {
        let found = self.tensors.iter().find(|(of, _)| *of == index);
        &found.expect("all tensors of the layout are provided").1
    }
}

/// The value of `ResultHeader::sequence` of a complete result.
pub(super) const COMPLETE: u32 = 1;

impl KernelParams {
    /// The parameters for a graph without memory. The kernels for layouts that have no `plain` one receive the layout as a
    /// separate parameter.
    pub fn new(
        source: &Source,
        job: Job<'_>,
        plain: Option<&PlainLayout>,
        sort: SortLimits,
    ) -> Self {
        let Job { layout, params, .. } = job;
        let (thresholds, classes) = (&params.thresholds, layout.classes);
        // Candidates are counted in a u32, so a greater limit cannot be reached.
        let cap = |cap: usize| u32::try_from(cap).unwrap_or(0);
        let mut made = Self {
            class_thresholds: source.thresholds,
            class_threshold_count: thresholds.per_class.len().min(classes) as u32,
            threshold: thresholds.default,
            lowest_threshold: thresholds.lowest(classes),
            images: layout.images as u32,
            anchors: layout.anchors() as u32,
            // Publish divides a pair's index by this number.
            classes: layout.score.components as u32,
            lanes_per_anchor: 1,
            method: merging::kernels(params.method).0 as u32,
            overlap: params.overlap as u32,
            iou_threshold: params.iou_threshold,
            pixel_offset: params.pixel_offset,
            threshold_inclusive: params.threshold_inclusive.into(),
            // With one class the kernels need not load classes.
            class_agnostic: (params.class_agnostic || classes == 1).into(),
            max_candidates: cap(params.max_candidates),
            // Class limits are applied on the host.
            max_detections: cap(params.survivors_to_find()),
            sequence: COMPLETE,
            multi_label: is_multi_label(layout, params).into(),
            class_rules: source.class_rules,
            class_rule_count: params.class_rules.len() as u32,
            lowest_iou_threshold: params.lowest_iou_threshold(),
            sort_limit: sort.limit,
            first_chunk: sort.first_chunk,
            place: source.places.same,
            placed_images: source.places.table,
            ..Self::default()
        };
        if let Some(plain) = plain {
            let field = |field| FieldParams::new(field, source);
            made.boxes = field(&plain.boxes);
            made.scores = field(&plain.scores);
            made.objectness = plain.objectness.as_ref().map(field).unwrap_or_default();
            made.has_objectness = plain.objectness.is_some().into();
            [made.box_images, made.score_images] =
                [plain.boxes, plain.scores].map(|of| source.tensor(of.tensor).table.unwrap_or(0));
            made.box_format = plain.box_format as u32;
            let stride = plain.scores.anchor_stride;
            made.lanes_per_anchor = lanes_per_anchor(classes, stride, plain.anchors, made.images);
        }
        made
    }

    /// Parameters for `images`, each with `squares` squares (x, y, side, score), one image after
    /// the other and one group per image.
    #[cfg(test)]
    pub fn of_squares(
        address: u64,
        images: u32,
        squares: u32,
        graph: &super::graph_config::GraphConfig,
    ) -> Self {
        let image_stride = u64::from(squares) * 4;
        let boxes = FieldParams { address, image_stride, anchor_stride: 4, component_stride: 1 };
        Self {
            boxes,
            scores: FieldParams { address: address + 12, ..boxes },
            images,
            anchors: squares,
            classes: 1,
            lanes_per_anchor: 1,
            box_format: 2,
            iou_threshold: 0.3,
            lowest_iou_threshold: 0.3,
            class_agnostic: 1,
            sequence: COMPLETE,
            capacity: graph.capacity,
            sort_limit: graph.sort.limit,
            first_chunk: graph.sort.first_chunk,
            place: PlaceParams::of_pixels(),
            ..Self::default()
        }
    }

    /// Blocks of decode per image, with a thread per anchor and lane, or per pair of anchor and class.
    pub fn decode_blocks(&self) -> u32 {
        let shared_by = if self.multi_label == 0 { self.lanes_per_anchor } else { self.classes };
        let threads = u64::from(self.anchors) * u64::from(shared_by);
        // `validate` ensures that anchors, and pairs with multi_label, fit in 32 bits.
        threads.div_ceil(u64::from(DECODE_THREADS)).max(1) as u32
    }
}

/// Returns true if candidates are pairs of anchor and class.
pub(super) fn is_multi_label(layout: &Layout, params: &Params) -> bool {
    params.multi_label && !layout.has_class_field()
}

const _: () = assert!(
    size_of::<KernelParams>() == 296
        && size_of::<ClassRule>() == 20
        && size_of::<ResultHeader>() == 32
        && size_of::<Detection>() == 28
);

/// If all images together have at least this many anchors, decode uses one thread per anchor.
const SINGLE_LANE_ANCHORS: usize = 131_072;

/// Threads that share an anchor's classes. More threads have more loads in flight, which a small launch needs. One thread
/// per anchor has less overhead; it is used for few classes, and for a batch whose anchors fill a GPU, if the scores of
/// consecutive anchors are contiguous (otherwise loads would not coalesce).
pub(super) fn lanes_per_anchor(
    classes: usize,
    anchor_stride: usize,
    anchors: usize,
    images: u32,
) -> u32 {
    let is_large = images > 1 && anchors.saturating_mul(images as usize) >= SINGLE_LANE_ANCHORS;
    if classes < 8 || (is_large && anchor_stride == 1) { 1 } else { 8 }
}

/// A group's share of `blocks`, between 1 and `wanted`.
pub(super) fn blocks_per_group(blocks: u32, wanted: u32, groups: u32) -> u32 {
    (blocks / groups.max(1)).min(wanted).max(1)
}

/// The first chunk has about KernelParams::first_chunk candidates. Each further chunk multiplies the
/// total number of candidates so far by about this number.
pub const CHUNK_GROWTH: u64 = 8;
/// The greatest number of chunks.
pub const MAX_CHUNKS: u32 = 8;

/// The number of chunks of up to `capacity` candidates: one more than the chunk of the last rank (`chunk_of`).
pub(super) fn chunk_count(capacity: u32, first_chunk: u32) -> u32 {
    let ends = (0..MAX_CHUNKS - 1).map(|chunk| u64::from(first_chunk) * CHUNK_GROWTH.pow(chunk));
    1 + ends.take_while(|&end| u64::from(capacity) > end).count() as u32
}

/// A group's workspace is a header of this size, and arrays.
pub const HEADER_BYTES: usize = 512;
/// The size of the arrays (workspace.cuh) per candidate. Their capacity is rounded up to a multiple
/// of 64, so that every array is aligned to 256 bytes.
pub const BYTES_PER_CANDIDATE: usize = 324;
/// The size of one more array, per candidate, for kernels for oriented boxes.
pub const RECTANGLE_BYTES: usize = 32;
/// The size of the SortState, for kernels that sort.
pub const SORT_STATE_BYTES: usize = 16_896;
/// The size of further arrays per candidate, for kernels that sort.
pub const SORT_BYTES_PER_CANDIDATE: usize = 8;
/// The greatest number of candidates of a leaf.
pub const LEAF_CANDIDATES: usize = 32;
/// The size of further arrays per leaf, for kernels that sort.
pub const LEAF_BYTES: usize = 28 + LEAF_CANDIDATES * 24;

/// The capacity of a group's arrays, rounded up so that each array is aligned to 256 bytes.
fn padded(capacity: u32) -> usize {
    (capacity as usize).next_multiple_of(64)
}

/// Leaves of all chunks, the last of each of which may have fewer candidates.
fn leaf_capacity(capacity: u32) -> usize {
    padded(capacity) / LEAF_CANDIDATES + MAX_CHUNKS as usize
}

/// Where a group's counters of the sort begin in its workspace.
pub(super) fn sort_state_offset(capacity: u32) -> usize {
    HEADER_BYTES + padded(capacity) * BYTES_PER_CANDIDATE
}

/// The bytes of one group's workspace.
pub(super) fn workspace_bytes(capacity: u32, is_oriented: bool, sort_limit: u32) -> usize {
    let rectangles = if is_oriented { padded(capacity) * RECTANGLE_BYTES } else { 0 };
    let sort = padded(capacity) * SORT_BYTES_PER_CANDIDATE + leaf_capacity(capacity) * LEAF_BYTES;
    sort_state_offset(capacity)
        + rectangles
        + if capacity > sort_limit { SORT_STATE_BYTES + sort.next_multiple_of(256) } else { 0 }
}

/// Where the detections begin in a memory for all results: after the headers of all groups.
pub(super) fn detections_offset(groups: u32) -> usize {
    groups as usize * size_of::<ResultHeader>()
}

/// The bytes of the headers and detections of all groups.
pub(super) fn results_bytes(capacity: u32, groups: u32) -> usize {
    let detections = groups as usize * capacity as usize * size_of::<Detection>();
    detections_offset(groups) + detections.next_multiple_of(16)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use crate::device::kernel_headers;

    /// Compiles Rust's values into assertions in C++.
    #[test]
    fn sizes_of_memory_are_those_of_interface_cuh() {
        let mut program = String::from("#include \"interface.cuh\"\n");
        let mut equal = |theirs: String, ours: usize| {
            writeln!(program, "static_assert({theirs} == {ours}, \"{theirs}: Rust has {ours}\");")
                .unwrap();
        };
        for capacity in [1, 31, 33, 256, 2_048, 4_096, 4_097, 25_200, 2_016_000] {
            equal(format!("sort_state_offset({capacity})"), sort_state_offset(capacity));
            equal(format!("padded({capacity})"), padded(capacity));
            equal(format!("leaf_capacity({capacity})"), leaf_capacity(capacity));
            for first in [1, 64, 4_096, 16_384, u32::MAX] {
                let theirs = format!("chunk_of({}, {first}u) + 1", capacity - 1);
                equal(theirs, chunk_count(capacity, first) as usize);
            }
        }
        kernel_headers::compile(&program);
    }
}
