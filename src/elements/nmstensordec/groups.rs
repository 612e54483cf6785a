// SPDX-License-Identifier: MIT OR Apache-2.0
//! The groups of tensors that `nmstensordec` decodes, in the form in which GStreamer's inference elements put them
//! in their caps.
//!
//! A model's `.modelinfo` file contains the id of its group (`group-id`). If a model has one output, this id equals
//! the tensor's id; the other groups have the ids that GStreamer's decoders use.

use std::fmt::Write;
use std::sync::LazyLock;

/// A group of tensors.
#[derive(Debug)]
pub struct Group {
    /// The id of the group.
    pub id: &'static str,
    /// The tensors of the group.
    pub tensors: &'static [GroupTensor],
    /// True if GStreamer's decoder of this group ends with an error if the tensors are missing.
    pub is_required: bool,
}

/// A tensor of a group.
#[derive(Debug)]
pub struct GroupTensor {
    /// The id of the tensor.
    pub id: &'static str,
    /// The dimensions. `None` stands for any number, including one that is unknown before the first frame.
    pub dims: &'static [Option<usize>],
}

const N: Option<usize> = None;

/// A batch of images, each with rows and columns; any numbers.
const MATRIX: &[Option<usize>] = &[N, N, N];

const fn group(id: &'static str, tensors: &'static [GroupTensor]) -> Group {
    Group { id, tensors, is_required: false }
}

const fn tensor(id: &'static str, dims: &'static [Option<usize>]) -> GroupTensor {
    GroupTensor { id, dims }
}

/// Creates a group whose id is the id of its only tensor.
macro_rules! single {
    ($id:literal) => {
        group($id, &[tensor($id, MATRIX)])
    };
}

/// Creates a group with detections and the prototypes of their masks.
macro_rules! with_prototypes {
    ($id:literal) => {
        group(
            $id,
            &[
                tensor(concat!($id, "-detections"), MATRIX),
                tensor(concat!($id, "-protos"), &[N, N, N, N]),
            ],
        )
    };
}

/// All groups.
pub static GROUPS: [Group; 22] = [
    single!("yolo-v8-out"),
    single!("yolo-v8-out-normalized"),
    single!("yolo-v5-out"),
    single!("yolo-v5-out-normalized"),
    single!("yolo-v5-raw-out"),
    single!("yolox-out"),
    single!("yolox-raw-out"),
    single!("yolo-26-end2end-out"),
    single!("yolo-26-end2end-out-normalized"),
    single!("yolo-v8-pose-out"),
    single!("yolo-v8-pose-out-normalized"),
    single!("yolo-v8-obb-out"),
    single!("yolo-v8-obb-out-normalized"),
    single!("yolo-26-pose-end2end-out"),
    single!("yolo-26-pose-end2end-out-normalized"),
    single!("yolo-26-obb-end2end-out"),
    single!("yolo-26-obb-end2end-out-normalized"),
    with_prototypes!("yolo-v8-segmentation-out"),
    with_prototypes!("yolo-v5-segmentation-out"),
    with_prototypes!("yolo-26-segmentation-end2end-out"),
    Group {
        id: "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out",
        tensors: &[
            tensor("ssd-mobilenet-v1-variant-1-out-boxes", &[N, N, Some(4)]),
            tensor(
                "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-scores",
                &[N, N, Some(2)],
            ),
        ],
        is_required: true,
    },
    Group {
        id: "ssd-mobilenet-v1-variant-1-out",
        tensors: &[
            tensor("generic-variant-1-out-count", &[N]),
            tensor("ssd-mobilenet-v1-variant-1-out-scores", &[N, N]),
            tensor("ssd-mobilenet-v1-variant-1-out-boxes", &[N, N, Some(4)]),
            tensor("ssd-mobilenet-v1-variant-1-out-classes", &[N, N]),
        ],
        is_required: true,
    },
];

/// Returns the caps of the sink pad, with one structure per group. `None` if the running GStreamer cannot parse
/// such caps.
pub(super) fn sink_caps() -> Option<&'static gst::Caps> {
    static CAPS: LazyLock<Option<gst::Caps>> = LazyLock::new(|| {
        // Before 1.28 the text is not valid, and parsing it would make GStreamer log an error.
        (gst::version() >= (1, 28, 0, 0)).then(|| text().parse().ok()).flatten()
    });
    CAPS.as_ref()
}

/// Returns the caps of the sink pad as text.
fn text() -> String {
    let mut text = String::new();
    for Group { id, tensors, .. } in &GROUPS {
        let tensors: Vec<String> = tensors.iter().map(tensor_text).collect();
        write!(
            text,
            "video/x-raw(ANY), tensors=(structure)[tensorgroups, {id}=(/uniquelist){{{}}}];",
            tensors.join(", ")
        )
        .expect("a string can be written to");
    }
    text
}

/// Returns the caps of a tensor as text. Both orders of dimensions are accepted, because elements claim different
/// orders for identical bytes.
fn tensor_text(GroupTensor { id, dims }: &GroupTensor) -> String {
    let dims: Vec<String> = dims
        .iter()
        .map(|side| side.map_or("(int)[0, max]".to_owned(), |side| format!("(int){side}")))
        .collect();
    format!(
        "(GstCaps)[tensor/strided, tensor-id=(string){id}, dims=<{}>, \
         dims-order=(string){{row-major, col-major}}, type=(string){{float32, float16}}]",
        dims.join(", ")
    )
}
