// SPDX-License-Identifier: MIT OR Apache-2.0
//! `docs/developers/tensor-ids.md` describes the ids of this project, and nothing else: tensors with the ids, dimensions and element
//! types of a section are read by their ids, and the decoder uses every number of a row.

use std::collections::BTreeSet;

use nmsfilter_core::decoder::layout::{ColumnKind, Layout};
use nmsfilter_core::decoder::{self, Options, Reason, decoders, tensor_groups};
use nmsfilter_core::tensor::{ElementType, Shape, Storage, TensorView};

use crate::support::project;

/// The ids in tensor-id-registry. The last one is GStreamer's.
const PUBLISHED: [&str; 18] = [
    "generic-variant-1-out-count",
    "ssd-mobilenet-v1-variant-1-out-boxes",
    "ssd-mobilenet-v1-variant-1-out-classes",
    "ssd-mobilenet-v1-variant-1-out-scores",
    "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-scores",
    "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-boxes-without-postproc",
    "yolo-v8-out",
    "yolo-v8-out-normalized",
    "yolo-v8-obb-out",
    "yolo-v8-obb-out-normalized",
    "yolo-v8-pose-out",
    "yolo-v8-pose-out-normalized",
    "yolo-v8-segmentation-out-detections",
    "yolo-v8-segmentation-out-detections-normalized",
    "yolo-v8-segmentation-out-protos",
    "yolox-out",
    "yolo-26-end2end-out",
    "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-boxes",
];

/// The side of the model's input.
const INPUT: f32 = 320.0;
/// The anchors of the grids of such a model: one or three in each cell.
const ANCHORS: [usize; 2] = [2100, 6300];
const CLASSES: usize = 7;
const KEYPOINTS: usize = 5;
const COEFFICIENTS: usize = 9;
const PROTOTYPES: usize = 80;

/// A section of the document.
struct Section<'a> {
    ids: Vec<&'a str>,
    text: &'a str,
}

impl<'a> Section<'a> {
    fn all(document: &'a str) -> Vec<Self> {
        let texts = document.split("\n## ").filter(|text| text.contains("- tensor-shape: "));
        let ids = |text: &'a str| text.lines().next().unwrap().split(", ").collect();
        texts.map(|text| Self { ids: ids(text), text }).collect()
    }

    fn value(&self, key: &str) -> &'a str {
        let line = format!("\n- {key}: ");
        let (_, rest) =
            self.text.split_once(&line).unwrap_or_else(|| panic!("{key}: {}", self.text));
        rest.lines().next().unwrap()
    }

    /// The outputs of models: the id and the dimensions of each tensor.
    fn outputs(&self) -> Vec<Vec<(&'a str, &'a str)>> {
        let shapes: Vec<&str> = self.value("tensor-shape").split("; ").collect();
        match shapes[..] {
            [shape] => self.ids.iter().map(|&id| vec![(id, shape)]).collect(),
            _ => vec![self.ids.iter().copied().zip(shapes).collect()],
        }
    }
}

/// The number that a dimension such as `(6 + 3 K)` stands for.
fn number(dimension: &str, anchors: usize) -> usize {
    let factor = |word: &str| match word {
        "B" => 1,
        "N" => anchors,
        "C" => CLASSES,
        "K" => KEYPOINTS,
        "M" => COEFFICIENTS,
        "H" | "W" => PROTOTYPES,
        _ => word.parse().unwrap_or_else(|_| panic!("dimension {dimension}")),
    };
    let terms = dimension.trim_matches(['(', ')']).split(" + ");
    terms.map(|term| term.split(' ').map(factor).product::<usize>()).sum()
}

fn dimensions(shape: &str, anchors: usize) -> Vec<usize> {
    shape.split(" x ").map(|dimension| number(dimension, anchors)).collect()
}

/// The layout of the tensors of an output; `None` if no decoder reads them by their ids.
fn layout(output: &[(&str, &str)], anchors: usize, element: ElementType) -> Option<Layout> {
    let shapes: Vec<Vec<usize>> =
        output.iter().map(|(_, shape)| dimensions(shape, anchors)).collect();
    let largest = shapes.iter().map(|shape| shape.iter().product::<usize>()).max()?;
    let zeros = vec![0u64; largest];
    let tensors: Vec<TensorView<'_>> = output
        .iter()
        .zip(&shapes)
        .map(|((id, _), shape)| {
            let bytes = shape.iter().product::<usize>() * element.size().unwrap();
            let storage = Storage::Host(&bytemuck::cast_slice(&zeros)[..bytes]);
            TensorView::new(id, element, Shape::new(shape).unwrap(), storage)
        })
        .collect();
    let options = Options { model_size: Some([INPUT; 2]), ..Options::default() };
    let choice = decoder::choose(&tensors, None, options).ok()?;
    (choice.reason == Reason::Id && choice.layout.anchors() == anchors).then_some(choice.layout)
}

/// The task of a layout, in the registry's words.
fn use_case(layout: &Layout) -> &'static str {
    let has_points = layout.columns.iter().any(|it| matches!(it.kind, ColumnKind::Points(_)));
    match (layout.prototypes.is_some(), has_points, layout.is_oriented()) {
        (true, ..) => "instance-segmentation",
        (_, true, _) => "keypoint-detection",
        (.., true) => "oriented-object-detection",
        _ => "object-detection",
    }
}

#[test]
fn sections_have_the_ids_dimensions_and_types_that_decoders_read() {
    let document = std::fs::read_to_string(project::path("docs/developers/tensor-ids.md")).unwrap();
    let (_, types) = document.split_once("`tensor-datatype: ").unwrap();
    let types = types.split(", `").next().unwrap();
    for section in Section::all(&document) {
        for output in section.outputs() {
            let of_type = |element| ANCHORS.iter().find_map(|&it| layout(&output, it, element));
            let layout = of_type(ElementType::F32).unwrap_or_else(|| panic!("{output:?}"));
            for (name, element) in [
                ("float32", ElementType::F32),
                ("float16", ElementType::F16),
                ("int32", ElementType::I32),
                ("int64", ElementType::I64),
            ] {
                assert_eq!(of_type(element).is_some(), types.contains(name), "{output:?}, {name}");
            }
            let group = &layout.groups[0];
            let single = [group.angle, group.objectness, group.class].iter().flatten().count();
            let used = layout.boxes.components()
                + layout.score.columns()
                + layout.column_components()
                + single;
            let (id, shape) = output[0];
            assert_eq!(dimensions(shape, layout.anchors())[2], used, "{output:?}");
            if group.class.is_none() {
                assert_eq!(layout.classes, CLASSES, "{output:?}");
            }
            assert_eq!(section.value("use-case"), use_case(&layout), "{output:?}");
            assert_eq!(layout.normalized, id.ends_with("-normalized"), "{output:?}");
            if let Some(prototypes) = &layout.prototypes {
                assert_eq!([prototypes.width, prototypes.height], [PROTOTYPES; 2]);
                let group = section.value("part-of-tensor-groups");
                let id = group.strip_suffix(" (tensor-group: yes)").unwrap();
                let groups = tensor_groups();
                let group = groups.iter().find(|group| group.id == id).unwrap();
                assert!(group.tensors.iter().map(|it| it.id).eq(output.iter().map(|it| it.0)));
            }
        }
    }
}

/// Other ids of decoders are the names of a model's outputs, without `-out`.
#[test]
fn sections_have_every_id_that_is_published_nowhere_else() {
    let document = std::fs::read_to_string(project::path("docs/developers/tensor-ids.md")).unwrap();
    let described: BTreeSet<&str> =
        Section::all(&document).iter().flat_map(|section| section.ids.clone()).collect();
    let forms = decoders().iter().flat_map(|decoder| &decoder.forms);
    let ids = forms.flat_map(|form| &form.roles).flat_map(|role| &role.ids);
    let known: BTreeSet<&str> = ids.map(|id| &**id).filter(|id| id.contains("-out")).collect();
    let published = BTreeSet::from(PUBLISHED);
    assert!(published.is_subset(&known), "{:?}", published.difference(&known));
    assert_eq!(described, &known - &published);
}
