// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generates tensors as models output them, and invalid tensors.

use half::f16;

use crate::bytes::Bytes;
use crate::numbers::{self, Anchor};

/// A tensor before it is written to a buffer.
#[derive(Clone, Debug)]
pub struct Spec {
    pub id: String,
    /// Either `f32`, `f16`, or a type that the plugin does not read.
    pub element: &'static str,
    pub dims: Vec<u64>,
    pub data: Vec<u8>,
}

/// The model families that are generated.
#[derive(Clone, Copy, Debug)]
enum Family {
    Windows,
    Boxes,
    Squares,
    Yolov5,
    Yolov8,
    Yolov8Transposed,
    UltraFace,
    Yolox,
}

const FAMILIES: [Family; 8] = [
    Family::Windows,
    Family::Boxes,
    Family::Squares,
    Family::Yolov5,
    Family::Yolov8,
    Family::Yolov8Transposed,
    Family::UltraFace,
    Family::Yolox,
];

const IDS: [&str; 15] = [
    "windows",
    "boxes",
    "scores",
    "yolo-v5-out",
    "yolo-v5-out-normalized",
    "yolo-v8-out",
    "yolo-v8-out-normalized",
    "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-scores",
    "ssd-mobilenet-v1-variant-1-out-boxes",
    "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-boxes",
    "output0",
    "yolox-out",
    "",
    "größe\u{1F600}",
    "%s%n{}\n\t\"quoted\\",
];

const DIMS: [u64; 16] =
    [1, 0, 2, 3, 4, 5, 6, 84, 85, 1027, 8400, 65_537, 1 << 31, 1 << 32, 1 << 62, u64::MAX];

/// Maximum number of pairs of anchor and class in a frame.
const MOST_PAIRS: usize = 16_000;

/// Generates the tensors of a frame: mostly a model's output, sometimes with a wrong claim, and
/// sometimes random tensors.
pub fn any(bytes: &mut Bytes<'_>) -> Vec<Spec> {
    let mut specs = match bytes.below(16) {
        0..14 => model(bytes),
        14 => Vec::new(),
        _ => (0..1 + bytes.below(3)).map(|_| anything(bytes)).collect(),
    };
    if bytes.one_in(8) {
        specs.push(anything(bytes));
    }
    if bytes.one_in(128) {
        // There are more tensors than the element reads from one buffer.
        specs.extend((0..20).map(|_| anything(bytes)));
    }
    if bytes.one_in(4) && !specs.is_empty() {
        let index = bytes.below(specs.len());
        corrupt_one(bytes, &mut specs[index]);
    }
    if bytes.one_in(16) {
        specs.reverse();
    }
    specs
}

/// Generates the output of a model of any family.
pub fn model(bytes: &mut Bytes<'_>) -> Vec<Spec> {
    let mut specs = model_output(bytes, None);
    if bytes.one_in(4) {
        for spec in &mut specs {
            match spec.dims[..] {
                [1, rows, columns] => spec.dims = vec![rows, columns],
                [rows, columns] => spec.dims = vec![1, rows, columns],
                _ => {}
            }
        }
    }
    specs
}

/// Generates the output of a model of any family for a batch of images. If `is_corrupt` is true,
/// one of its claims is wrong.
pub fn batch(bytes: &mut Bytes<'_>, is_corrupt: bool) -> Vec<Spec> {
    let images = bytes.pick(&[2, 3, 1, 4, 2, 5, 8, 16]);
    let mut specs = model_output(bytes, Some(images));
    if is_corrupt {
        let index = bytes.below(specs.len());
        corrupt_one(bytes, &mut specs[index]);
    }
    specs
}

/// Generates the output of a model of any family, for one image or for a batch. The batch is the
/// first dimension.
fn model_output(bytes: &mut Bytes<'_>, batch: Option<usize>) -> Vec<Spec> {
    let family = bytes.pick(&FAMILIES);
    let classes = match family {
        Family::Windows | Family::UltraFace => 1,
        _ => bytes.pick(&[1, 2, 3, 1, 2, 20, 80]),
    };
    let count = match bytes.below(64) {
        0..44 => bytes.below(40),
        44..60 => bytes.below(200),
        60..63 => bytes.below(700),
        _ => bytes.below(2_000),
    };
    // With multi-label, each pair of anchor and class can be a candidate, and the reference
    // compares each candidate with every other.
    let images = batch.unwrap_or(1);
    let count = count.min(MOST_PAIRS / classes / images);
    let anchors = numbers::anchors(bytes, count * images, classes);
    let written = match batch {
        None => write(family, &anchors, classes),
        Some(images) => write_batch(family, &anchors, images, classes),
    };
    let half = [bytes.one_in(4), bytes.one_in(4)];
    let mut specs = written
        .into_iter()
        .zip(half)
        .map(|((id, dims, mut numbers), half)| {
            numbers::corrupt(bytes, &mut numbers);
            encode(id, dims, &numbers, half)
        })
        .collect::<Vec<_>>();
    if bytes.one_in(8) {
        // These ids are unknown, so the decoder must be chosen by shape.
        let ids = ["output0", "a", "b"];
        specs.iter_mut().zip(ids).for_each(|(spec, id)| spec.id = id.to_owned());
    } else if bytes.one_in(8) && specs.len() == 1 && specs[0].id.starts_with("yolo-v") {
        specs[0].id.push_str("-normalized");
    }
    specs
}

/// Writes the tensors of a batch. Each image has an equal number of anchors.
fn write_batch(family: Family, anchors: &[Anchor], images: usize, classes: usize) -> Vec<Written> {
    let count = anchors.len() / images;
    let mut all: Vec<Written> = Vec::new();
    for image in 0..images {
        let tensors = write(family, &anchors[image * count..(image + 1) * count], classes);
        if all.is_empty() {
            all = tensors;
            for (_, dims, _) in &mut all {
                if dims.len() == 3 {
                    dims.remove(0);
                }
                dims.insert(0, images as u64);
            }
        } else {
            for ((_, _, all), (_, _, numbers)) in all.iter_mut().zip(tensors) {
                all.extend(numbers);
            }
        }
    }
    all
}

type Written = (&'static str, Vec<u64>, Vec<f32>);

fn write(family: Family, anchors: &[Anchor], classes: usize) -> Vec<Written> {
    let (n, c) = (anchors.len() as u64, classes as u64);
    let corners = |anchor: &Anchor| anchor.corners.to_vec();
    let center = |anchor: &Anchor| {
        let [x1, y1, x2, y2] = anchor.corners;
        vec![(x1 + x2) / 2.0, (y1 + y2) / 2.0, x2 - x1, y2 - y1]
    };
    let square = |anchor: &Anchor| {
        vec![anchor.corners[0], anchor.corners[1], anchor.corners[2] - anchor.corners[0]]
    };
    let all =
        |part: &dyn Fn(&Anchor) -> Vec<f32>| anchors.iter().flat_map(part).collect::<Vec<f32>>();
    let scores = |anchor: &Anchor| anchor.scores.clone();
    let with_scores = |anchor: &Anchor| [center(anchor), anchor.scores.clone()].concat();
    let with_objectness =
        |anchor: &Anchor| [center(anchor), vec![anchor.objectness], anchor.scores.clone()].concat();
    match family {
        Family::Windows => {
            vec![("windows", vec![n, 4], all(&|anchor| [square(anchor), scores(anchor)].concat()))]
        }
        Family::Boxes if classes == 1 => {
            vec![("boxes", vec![n, 4], all(&corners)), ("scores", vec![n], all(&scores))]
        }
        Family::Boxes => {
            vec![("boxes", vec![n, 4], all(&corners)), ("scores", vec![n, c], all(&scores))]
        }
        Family::Squares => {
            vec![("scores", vec![n, c], all(&scores)), ("boxes", vec![n, 3], all(&square))]
        }
        Family::Yolov5 => vec![("yolo-v5-out", vec![1, n, 5 + c], all(&with_objectness))],
        Family::Yolox => vec![("yolox-out", vec![1, n, 5 + c], all(&with_objectness))],
        Family::Yolov8Transposed => vec![("yolo-v8-out", vec![1, n, 4 + c], all(&with_scores))],
        Family::Yolov8 => {
            let by_row = all(&with_scores);
            let numbers = 4 + classes;
            let by_column = (0..numbers)
                .flat_map(|number| by_row.iter().skip(number).step_by(numbers).copied())
                .collect();
            vec![("yolo-v8-out", vec![1, 4 + c, n], by_column)]
        }
        Family::UltraFace => vec![
            (
                "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-scores",
                vec![1, n, 2],
                all(&|anchor| vec![1.0 - anchor.scores[0], anchor.scores[0]]),
            ),
            ("ssd-mobilenet-v1-variant-1-out-boxes", vec![1, n, 4], all(&corners)),
        ],
    }
}

fn encode(id: &str, dims: Vec<u64>, numbers: &[f32], half: bool) -> Spec {
    let (element, data) = if half {
        let numbers: Vec<f16> = numbers.iter().map(|&number| f16::from_f32(number)).collect();
        ("f16", bytemuck::cast_slice(&numbers).to_vec())
    } else {
        ("f32", bytemuck::cast_slice(numbers).to_vec())
    };
    Spec { id: id.to_owned(), element, dims, data }
}

fn anything(bytes: &mut Bytes<'_>) -> Spec {
    let dims: Vec<u64> = (0..bytes.below(10)).map(|_| bytes.pick(&DIMS)).collect();
    let element = bytes.pick(&["f32", "f16", "f32", "f16", "f64", "u8", "", "F32"]);
    let len = match bytes.below(4) {
        0 => bytes.below(200),
        1 => 0,
        // The memory has the size that the shape requires, if that is small.
        _ => {
            let count = dims.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim));
            let size = if element == "f16" { 2 } else { 4 };
            count.filter(|&n| n < 20_000).map_or(0, |n| n as usize * size)
        }
    };
    let mut data = vec![0; len];
    bytes.rng().fill(&mut data);
    Spec { id: bytes.pick(&IDS).to_owned(), element, dims, data }
}

/// Makes one claim of a tensor wrong.
fn corrupt_one(bytes: &mut Bytes<'_>, spec: &mut Spec) {
    match bytes.below(8) {
        0 => spec.data.truncate(bytes.below(spec.data.len() + 1)),
        1 if !spec.dims.is_empty() => {
            let index = bytes.below(spec.dims.len());
            spec.dims[index] = bytes.pick(&DIMS);
        }
        2 => spec.element = bytes.pick(&["f16", "f32", "i8", "bf16"]),
        3 => spec.id = bytes.pick(&IDS).to_owned(),
        4 => spec.dims.insert(0, bytes.pick(&DIMS)),
        5 => {
            spec.dims.pop();
        }
        6 => spec.data.clear(),
        // More memory than the shape needs is valid.
        _ => spec.data.extend(vec![0xAB; bytes.below(64)]),
    }
}
