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
        // Wraps only where there are no anchors, of which nothing is read: `check` has seen to it.
        let offset = (field.offset as u64).wrapping_mul(precision.bytes());
        Self {
            address: tensor.wrapping_add(offset),
            anchor_stride: field.anchor_stride as u64,
            component_stride: field.component_stride as u64,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct KernelParams {
    boxes: Field,
    scores: Field,
    objectness: Field,
    class_thresholds: u64,
    class_threshold_count: u32,
    threshold: f32,
    lowest_threshold: f32,
    anchors: u32,
    classes: u32,
    lanes_per_anchor: u32,
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
    visible: [f32; 4],
    multi_label: u32,
    capacity: u32,
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

/// The value of `ResultHeader::sequence` that says that the outcome is whole.
pub(super) const COMPLETE: u32 = 1;

impl KernelParams {
    /// The frame for a workspace with memory for `capacity` candidates.
    pub fn new(source: &Source, layout: &Layout, params: &Params, capacity: u32) -> Self {
        let [boxes, scores] = [0, 1].map(|i| (source.addresses[i], source.precisions[i]));
        let objectness = layout.objectness.as_ref();
        let thresholds = &params.thresholds;
        let visible = params.visible;
        // Beyond what a u32 counts no cap can be reached: candidates are counted by one.
        let cap = |cap: usize| u32::try_from(cap).unwrap_or(0);
        Self {
            boxes: Field::new(&layout.boxes, boxes.0, boxes.1),
            scores: Field::new(&layout.scores, scores.0, scores.1),
            objectness: objectness
                .map(|field| Field::new(field, scores.0, scores.1))
                .unwrap_or_default(),
            class_thresholds: if thresholds.per_class.is_empty() { 0 } else { source.thresholds },
            class_threshold_count: thresholds.per_class.len().min(layout.classes) as u32,
            threshold: thresholds.default,
            lowest_threshold: thresholds.lowest(layout.classes),
            anchors: layout.anchors as u32,
            classes: layout.classes as u32,
            lanes_per_anchor: lanes_per_anchor(layout.classes),
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
            sequence: COMPLETE,
            visible: [visible.left, visible.top, visible.right, visible.bottom],
            multi_label: params.multi_label.into(),
            capacity,
        }
    }

    /// How many blocks decode gets: `decode_blocks`, or `decode_multi_blocks`.
    pub fn decode_blocks(&self) -> u32 {
        let shared_by = if self.multi_label == 0 { self.lanes_per_anchor } else { self.classes };
        let threads = u64::from(self.anchors) * u64::from(shared_by);
        // It fits: `check` bounds anchors, and with multi_label pairs, by 32 bits.
        threads.div_ceil(u64::from(DECODE_THREADS)).max(1) as u32
    }
}

/// What precedes the survivors.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ResultHeader {
    pub sequence: u32,
    pub candidates: u32,
    pub rejected: u32,
    pub survivors: u32,
    pub rounds: u32,
    pub nanoseconds: u32,
    reserved: [u32; 2],
}

const _: () = assert!(
    size_of::<KernelParams>() == 192
        && size_of::<ResultHeader>() == 32
        && size_of::<Detection>() == 28
);

/// `lanes_per_anchor`
pub(super) fn lanes_per_anchor(classes: usize) -> u32 {
    if classes < 8 { 1 } else { 8 }
}

/// `map_blocks`
pub(super) fn map_blocks(multiprocessors: u32, capacity: u32) -> u32 {
    capacity.min(multiprocessors).max(1)
}

/// `reduce_blocks`
pub(super) fn reduce_blocks(multiprocessors: u32, capacity: u32) -> u32 {
    capacity.div_ceil(REDUCE_THREADS / 32).min(2 * multiprocessors).max(1)
}

pub(super) const HEADER_BYTES: usize = 512;

/// `workspace_bytes`
pub(super) fn workspace_bytes(capacity: u32) -> usize {
    HEADER_BYTES + (capacity as usize).next_multiple_of(4096) * 324
}

/// `results_bytes`
pub(super) fn results_bytes(capacity: u32) -> usize {
    size_of::<ResultHeader>() + (capacity as usize * size_of::<Detection>()).next_multiple_of(16)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::mem::offset_of;
    use std::process::Command;

    use super::*;
    use crate::engine::{Method, Overlap};
    use crate::head::BoxFormat;

    /// Asserts the offset of each field. The names are the same on both sides, but where another is
    /// given.
    macro_rules! fields {
        ($program:ident, $type:ident: $($field:ident $(as $theirs:ident)?),+ $(,)?) => {
            $(
                let theirs = [stringify!($field) $(, stringify!($theirs))?];
                let name = theirs[theirs.len() - 1];
                let what = format!("offsetof({}, {name})", stringify!($type));
                equal(&mut $program, &what, offset_of!($type, $field));
            )+
            // With each field in its place and this size there is no other.
            equal(&mut $program, concat!("sizeof(", stringify!($type), ")"), size_of::<$type>());
            let $type { $($field: _),+ } = bytemuck::Zeroable::zeroed();
        };
    }

    fn equal(program: &mut String, theirs: &str, ours: usize) {
        writeln!(program, "static_assert({theirs} == {ours}, \"{theirs}: Rust has {ours}\");")
            .unwrap();
    }

    /// The C++ compiler is given what Rust has, as assertions.
    #[test]
    fn structures_constants_and_sizes_are_those_of_interface_cuh() {
        let mut program = String::from("#include \"interface.cuh\"\n#include <stddef.h>\n");
        fields!(program, Field: address, anchor_stride, component_stride);
        fields!(
            program, KernelParams: boxes, scores, objectness, class_thresholds, class_threshold_count, threshold,
            lowest_threshold, anchors, classes, lanes_per_anchor, box_format, scale, min_size, max_size,
            method, overlap, iou_threshold, pixel_offset, threshold_inclusive, class_agnostic,
            max_candidates, max_detections, sequence, visible, multi_label, capacity,
        );
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
            ("HEADER_BYTES", HEADER_BYTES),
            ("CORNERS", BoxFormat::Corners as usize),
            ("CENTER", BoxFormat::Centre as usize),
            ("SQUARE", BoxFormat::Square as usize),
            ("GREEDY", Method::Greedy as usize),
            ("MAP_REDUCE", Method::MapReduce as usize),
            ("NONE", Method::None as usize),
            ("IOU", Overlap::Iou as usize),
            ("REPRESENTATIVE", Overlap::Representative as usize),
            ("SMALLER", Overlap::Smaller as usize),
        ] {
            equal(&mut program, theirs, ours);
        }
        for classes in [1, 2, 7, 8, 9, 80] {
            equal(
                &mut program,
                &format!("lanes_per_anchor({classes})"),
                lanes_per_anchor(classes) as usize,
            );
        }
        for capacity in [0, 1, 31, 33, 256, 2_048, 4_096, 4_097, 25_200, 2_016_000] {
            let workspace = workspace_bytes(capacity);
            equal(&mut program, &format!("workspace_bytes({capacity})"), workspace);
            equal(&mut program, &format!("results_bytes({capacity})"), results_bytes(capacity));
            let map = map_blocks(132, capacity) as usize;
            equal(&mut program, &format!("map_blocks(132, {capacity})"), map);
            let reduce = reduce_blocks(132, capacity) as usize;
            equal(&mut program, &format!("reduce_blocks(132, {capacity})"), reduce);
            for (theirs, classes, multi_label) in [("decode", 80, 0), ("decode_multi", 80, 1)] {
                let anchors = capacity;
                let frame = KernelParams {
                    anchors,
                    classes,
                    lanes_per_anchor: 8,
                    multi_label,
                    ..KernelParams::default()
                };
                let shared_by = if multi_label == 0 { frame.lanes_per_anchor } else { classes };
                let theirs = format!("{theirs}_blocks({anchors}, {shared_by})");
                equal(&mut program, &theirs, frame.decode_blocks() as usize);
            }
        }
        compile(&program);
    }

    /// Fails with the compiler's messages where it refuses `program`.
    fn compile(program: &str) {
        let folder = std::env::temp_dir().join(format!("nmsfilter-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("interface.cpp");
        std::fs::write(&file, program).unwrap();
        let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
        let kernels = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels");
        let compiled = Command::new(&compiler)
            .args(["-std=c++17", "-fsyntax-only", "-I", kernels])
            .arg(&file)
            .output();
        std::fs::remove_dir_all(&folder).unwrap();
        match compiled {
            Ok(output) => {
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            }
            // In the form that tests/run.sh reads.
            Err(error) => {
                let thread = std::thread::current();
                let test = thread.name().unwrap_or("main");
                let program = env!("CARGO_CRATE_NAME");
                println!("SKIPPED: {program}::{test}: the C++ compiler {compiler}: {error}");
            }
        }
    }
}
