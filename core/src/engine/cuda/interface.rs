// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface of the kernels in Rust: their parameters, their results, grids and sizes of
//! memory. kernels/interface.cuh documents it; a test compares both.

use arrayvec::ArrayVec;
use bytemuck::{Pod, Zeroable};

use super::merging::deciding_method;
use super::places::{PlaceParams, Placed};
use crate::decoder::{self, Layout, MAX_INPUTS, PlainLayout};
/// The counts of a group of images.
pub(super) use crate::engine::DeviceCounts as ResultHeader;
use crate::engine::{Detection, Params, SizeLimits};
use crate::tensor::{ElementType, Quantization};

pub(super) const DECODE_THREADS: u32 = 256;
pub(super) const MAP_THREADS: u32 = 512;
pub(super) const REDUCE_THREADS: u32 = 512;
pub(super) const PUBLISH_THREADS: u32 = 1024;
pub(super) const SORT_THREADS: u32 = 1024;
pub(super) const CHUNK_THREADS: u32 = 256;

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

/// The element type of a tensor, and its index in tables of decode kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    F32 = 0,
    F16 = 1,
}

impl Precision {
    pub fn of(element: ElementType) -> Self {
        match element {
            ElementType::F16 => Self::F16,
            _ => Self::F32,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct FieldParams {
    address: u64,
    image_stride: u64,
    anchor_stride: u64,
    component_stride: u64,
}

impl FieldParams {
    fn new(field: &decoder::Field, tensor: &TensorSource) -> Self {
        // `validate` ensures that the product does not wrap if there are anchors. Without anchors
        // nothing is read.
        let size = tensor.element.size().unwrap_or(1) as u64;
        let offset = (field.offset as u64).wrapping_mul(size);
        Self {
            address: tensor.address.wrapping_add(offset),
            image_stride: match tensor.images {
                ImageAddresses::AsInLayout => field.image_stride as u64,
                ImageAddresses::Stride(bytes) => bytes / size,
                ImageAddresses::Table(_) => 0,
            },
            anchor_stride: field.anchor_stride as u64,
            component_stride: field.component_stride as u64,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct KernelParams {
    boxes: FieldParams,
    scores: FieldParams,
    objectness: FieldParams,
    class_thresholds: u64,
    class_threshold_count: u32,
    threshold: f32,
    lowest_threshold: f32,
    images: u32,
    anchors: u32,
    classes: u32,
    lanes_per_anchor: u32,
    box_format: u32,
    method: u32,
    overlap: u32,
    iou_threshold: f32,
    pixel_offset: f32,
    threshold_inclusive: u32,
    class_agnostic: u32,
    max_candidates: u32,
    max_detections: u32,
    sequence: u32,
    multi_label: u32,
    capacity: u32,
    has_objectness: u32,
    box_images: u64,
    score_images: u64,
    class_rules: u64,
    class_rule_count: u32,
    lowest_iou_threshold: f32,
    sort_limit: u32,
    first_chunk: u32,
    place: PlaceParams,
    placed_images: u64,
}

/// The rules of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ClassRule {
    iou_threshold: f32,
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

/// The addresses of a tensor's images.
#[derive(Clone, Copy, Debug)]
pub(super) enum ImageAddresses {
    /// At the layout's image strides.
    AsInLayout,
    /// At this distance from one another, in bytes.
    Stride(u64),
    /// Listed in a table at this device address.
    Table(u64),
}

impl ImageAddresses {
    /// The table's device address, or 0 if there is no table.
    pub fn table(self) -> u64 {
        match self {
            Self::AsInLayout | Self::Stride(_) => 0,
            Self::Table(address) => address,
        }
    }
}

/// A tensor in device memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct TensorSource {
    /// The device address of the first element of image 0, or 0 if there is a table of images.
    pub address: u64,
    pub images: ImageAddresses,
    pub element: ElementType,
    pub quantization: Option<Quantization>,
}

/// The amount of memory that a graph was made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    /// The number of candidates per group.
    pub capacity: u32,
    pub sort: SortLimits,
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
    /// The parameters for a graph with this memory.
    pub fn new(source: &Source, layout: &PlainLayout, params: &Params, memory: Memory) -> Self {
        let [boxes, scores] =
            [layout.boxes, layout.scores].map(|field| source.tensor(field.tensor));
        let objectness = layout.objectness.as_ref();
        let general = Self::general(source, params, [layout.images, layout.classes], memory);
        Self {
            boxes: FieldParams::new(&layout.boxes, boxes),
            scores: FieldParams::new(&layout.scores, scores),
            objectness: objectness.map(|field| FieldParams::new(field, scores)).unwrap_or_default(),
            anchors: layout.anchors as u32,
            classes: layout.classes as u32,
            lanes_per_anchor: lanes_per_anchor(
                layout.classes,
                layout.scores.anchor_stride,
                layout.anchors,
                layout.images as u32,
            ),
            box_format: layout.box_format as u32,
            multi_label: params.multi_label.into(),
            has_objectness: objectness.is_some().into(),
            box_images: boxes.images.table(),
            score_images: scores.images.table(),
            ..general
        }
    }

    /// The parameters for the kernels for layouts, which receive the layout as a separate
    /// parameter.
    pub fn of_layout(source: &Source, layout: &Layout, params: &Params, memory: Memory) -> Self {
        Self {
            anchors: layout.anchors() as u32,
            // Publish divides a pair's index by this number.
            classes: layout.score.components as u32,
            lanes_per_anchor: 1,
            multi_label: is_multi_label(layout, params).into(),
            ..Self::general(source, params, [layout.images, layout.classes], memory)
        }
    }

    /// The parameters that are independent of where a layout's numbers are.
    fn general(
        source: &Source,
        params: &Params,
        [images, classes]: [usize; 2],
        memory: Memory,
    ) -> Self {
        let thresholds = &params.thresholds;
        // Candidates are counted in a u32, so a greater limit cannot be reached.
        let cap = |cap: usize| u32::try_from(cap).unwrap_or(0);
        Self {
            class_thresholds: if thresholds.per_class.is_empty() { 0 } else { source.thresholds },
            class_threshold_count: thresholds.per_class.len().min(classes) as u32,
            threshold: thresholds.default,
            lowest_threshold: thresholds.lowest(classes),
            images: images as u32,
            method: deciding_method(params.method) as u32,
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
            capacity: memory.capacity,
            class_rules: if params.class_rules.is_empty() { 0 } else { source.class_rules },
            class_rule_count: params.class_rules.len() as u32,
            lowest_iou_threshold: params.lowest_iou_threshold(),
            sort_limit: memory.sort.limit,
            first_chunk: memory.sort.first_chunk,
            place: source.places.same,
            placed_images: source.places.table,
            ..Self::default()
        }
    }

    /// The number of images.
    pub fn images(&self) -> u32 {
        self.images
    }

    /// Parameters for `images`, each with `squares` squares (x, y, side, score), one image after
    /// the other and one group per image.
    #[cfg(test)]
    pub fn of_squares(address: u64, images: u32, squares: u32, memory: Memory) -> Self {
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
            capacity: memory.capacity,
            sort_limit: memory.sort.limit,
            first_chunk: memory.sort.first_chunk,
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

/// All groups together have a block per multiprocessor, so that each loads all candidates once.
pub(super) fn map_blocks(multiprocessors: u32, capacity: u32, groups: u32) -> u32 {
    blocks_per_group(multiprocessors, capacity, groups)
}

/// A warp per candidate, but no more blocks than are resident at a time.
pub(super) fn reduce_blocks(multiprocessors: u32, capacity: u32, groups: u32) -> u32 {
    blocks_per_group(2 * multiprocessors, capacity.div_ceil(REDUCE_THREADS / 32), groups)
}

/// A thread per candidate, but no more blocks than are resident at a time.
pub(super) fn sort_blocks(multiprocessors: u32, capacity: u32, groups: u32) -> u32 {
    blocks_per_group(multiprocessors, capacity.div_ceil(SORT_THREADS), groups)
}

/// A thread per two candidates and per two positions.
pub(super) fn sort_rank_blocks(multiprocessors: u32, capacity: u32, groups: u32) -> u32 {
    blocks_per_group(4 * multiprocessors, capacity / CHUNK_THREADS + 1, groups)
}

/// A block per leaf, but no more than are resident at a time.
pub(super) fn chunk_blocks(multiprocessors: u32, capacity: u32, groups: u32) -> u32 {
    blocks_per_group(4 * multiprocessors, capacity / LEAF_CANDIDATES as u32 + 1, groups)
}

const CHUNK_GROWTH: u64 = 8;
const MAX_CHUNKS: u32 = 8;

/// The number of chunks of up to `capacity` candidates: one more than the chunk of the last rank (`chunk_of`).
pub(super) fn chunk_count(capacity: u32, first_chunk: u32) -> u32 {
    let ends = (0..MAX_CHUNKS - 1).map(|chunk| u64::from(first_chunk) * CHUNK_GROWTH.pow(chunk));
    1 + ends.take_while(|&end| u64::from(capacity) > end).count() as u32
}

pub(super) const HEADER_BYTES: usize = 512;
const BYTES_PER_CANDIDATE: usize = 324;
const RECTANGLE_BYTES: usize = 32;
pub(super) const SORT_STATE_BYTES: usize = 16_896;
const SORT_BYTES_PER_CANDIDATE: usize = 8;
const LEAF_CANDIDATES: usize = 32;
const LEAF_BYTES: usize = 28 + LEAF_CANDIDATES * 24;

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

/// C++ assertions about values from Rust.
#[cfg(test)]
pub(super) mod compare {
    use std::fmt::Write;

    /// Asserts the offset of each field. Field names are equal on both sides, unless another name
    /// is given.
    macro_rules! fields {
        ($program:ident, $type:ident: $($field:ident $(as $theirs:ident)?),+ $(,)?) => {
            $(
                let theirs = [stringify!($field) $(, stringify!($theirs))?];
                let name = theirs[theirs.len() - 1];
                let what = format!("offsetof({}, {name})", stringify!($type));
                equal(&mut $program, &what, offset_of!($type, $field));
            )+
            // Equal offsets and sizes leave no room for a further field.
            equal(&mut $program, concat!("sizeof(", stringify!($type), ")"), size_of::<$type>());
            let $type { $($field: _),+ } = bytemuck::Zeroable::zeroed();
        };
    }

    pub fn equal(program: &mut String, theirs: &str, ours: usize) {
        writeln!(program, "static_assert({theirs} == {ours}, \"{theirs}: Rust has {ours}\");")
            .unwrap();
    }

    pub(in crate::engine::cuda) use fields;
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::compare::{equal, fields};
    use super::*;
    use crate::decoder::BoxFormat;
    use crate::device::kernel_headers;
    use crate::engine::{Method, Overlap};

    /// Compiles Rust's values into assertions in C++.
    #[test]
    fn structures_constants_and_sizes_are_those_of_interface_cuh() {
        let mut program = String::from("#include \"interface.cuh\"\n#include <stddef.h>\n");
        fields!(program, FieldParams: address, image_stride, anchor_stride, component_stride);
        fields!(
            program, KernelParams: boxes, scores, objectness, class_thresholds,
            class_threshold_count, threshold, lowest_threshold, images, anchors, classes,
            lanes_per_anchor, box_format, method, overlap,
            iou_threshold, pixel_offset, threshold_inclusive, class_agnostic, max_candidates,
            max_detections, sequence, multi_label, capacity, has_objectness,
            box_images, score_images, class_rules, class_rule_count, lowest_iou_threshold, sort_limit, first_chunk,
            place, placed_images,
        );
        fields!(program, ClassRule: iou_threshold, min_size, max_size);
        fields!(program, Detection: x1, y1, x2, y2, score, class as class_index, anchor);
        fields!(
            program, ResultHeader: sequence, candidates, rejected, survivors, rounds, nanoseconds,
            reserved,
        );
        for (theirs, ours) in [
            ("DECODE_THREADS", DECODE_THREADS as usize),
            ("MAP_THREADS", MAP_THREADS as usize),
            ("REDUCE_THREADS", REDUCE_THREADS as usize),
            ("PUBLISH_THREADS", PUBLISH_THREADS as usize),
            ("SORT_THREADS", SORT_THREADS as usize),
            ("CHUNK_THREADS", CHUNK_THREADS as usize),
            ("CHUNK_GROWTH", CHUNK_GROWTH as usize),
            ("MAX_CHUNKS", MAX_CHUNKS as usize),
            ("MAX_BOX_SIDE", crate::engine::MAX_BOX_SIDE as usize),
            ("HEADER_BYTES", HEADER_BYTES),
            ("BYTES_PER_CANDIDATE", BYTES_PER_CANDIDATE),
            ("RECTANGLE_BYTES", RECTANGLE_BYTES),
            ("SORT_STATE_BYTES", SORT_STATE_BYTES),
            ("SORT_BYTES_PER_CANDIDATE", SORT_BYTES_PER_CANDIDATE),
            ("LEAF_CANDIDATES", LEAF_CANDIDATES),
            ("LEAF_BYTES", LEAF_BYTES),
            ("CORNERS", BoxFormat::Corners as usize),
            ("CENTER", BoxFormat::Center as usize),
            ("SQUARE", BoxFormat::Square as usize),
            ("GREEDY", Method::Greedy as usize),
            ("MAP_REDUCE", Method::MapReduce as usize),
            ("NONE", Method::None as usize),
            ("IOU", Overlap::Iou as usize),
            ("REPRESENTATIVE", Overlap::Representative as usize),
            ("SMALLER", Overlap::Smaller as usize),
            ("PROB_IOU", Overlap::ProbIou as usize),
        ] {
            equal(&mut program, theirs, ours);
        }
        // What the kernels compute, too.
        for capacity in [1, 31, 33, 256, 2_048, 4_096, 4_097, 25_200, 2_016_000] {
            let name = |function| format!("{function}({capacity})");
            equal(&mut program, &name("sort_state_offset"), sort_state_offset(capacity));
            equal(&mut program, &name("padded"), padded(capacity));
            equal(&mut program, &name("leaf_capacity"), leaf_capacity(capacity));
            for first in [1, 64, 4_096, 16_384, u32::MAX] {
                let theirs = format!("chunk_of({}, {first}u) + 1", capacity - 1);
                equal(&mut program, &theirs, chunk_count(capacity, first) as usize);
            }
        }
        kernel_headers::compile(&program);
    }
}
