// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decode and suppression of families with general layouts, compared with plain layouts.

use anyhow::Result;
use nmsfilter_core::engine::Params;

use super::{Bench, Section, format_us};
use crate::report::Table;
use crate::workload::{TensorData, Workload};

pub const SECTION: Section = Section {
    name: "layouts",
    about: "families whose boxes or scores are computed, beside those that are final",
    run,
};

/// Distance between anchors that have an object.
const PERIOD: usize = 12;

fn rows(
    id: &'static str,
    [anchors, numbers]: [usize; 2],
    number: impl Fn(usize, usize) -> f32,
) -> TensorData {
    let values = (0..anchors)
        .flat_map(|anchor| (0..numbers).map(move |k| (anchor, k)))
        .map(|(a, k)| number(a, k));
    TensorData { id, shape: vec![1, anchors, numbers], values: values.collect() }
}

/// A tensor whose numbers of one kind are contiguous.
fn columns(
    id: &'static str,
    [numbers, anchors]: [usize; 2],
    number: impl Fn(usize, usize) -> f32,
) -> TensorData {
    let values = (0..numbers)
        .flat_map(|k| (0..anchors).map(move |anchor| (anchor, k)))
        .map(|(a, k)| number(a, k));
    TensorData { id, shape: vec![1, numbers, anchors], values: values.collect() }
}

/// Returns the score of a class. Some anchors have a high score for one class.
fn class_score(anchor: usize, class: usize, high: f32, low: f32) -> f32 {
    if anchor.is_multiple_of(PERIOD) && class == anchor % 80 { high } else { low }
}

fn objectness(anchor: usize) -> f32 {
    if anchor.is_multiple_of(PERIOD) { 0.9 } else { 0.02 }
}

/// Returns center x, center y, width or height in pixels. The boxes are spread over the model's
/// input.
fn pixels(anchor: usize, number: usize) -> f32 {
    match number {
        0 => (anchor * 37 % 600) as f32,
        1 => (anchor * 101 % 600) as f32,
        _ => 20.0 + (anchor % 60) as f32,
    }
}

fn workloads() -> Vec<Workload> {
    let row_number = |box_: fn(usize, usize) -> f32| {
        move |anchor: usize, k: usize| match k {
            0..4 => box_(anchor, k),
            4 => objectness(anchor),
            _ => class_score(anchor, k - 5, 0.8, 0.01),
        }
    };
    // 80 classes, then coefficients of masks.
    let detection = |anchor: usize, k: usize| match k {
        0..4 => pixels(anchor, k),
        4..84 => class_score(anchor, k - 4, 0.8, 0.01),
        _ => ((anchor + k) % 9) as f32 * 0.1 - 0.4,
    };
    let prototypes = TensorData {
        id: "output1",
        shape: vec![1, 32, 160, 160],
        values: (0..32 * 160 * 160).map(|at| (at % 11) as f32 * 0.1 - 0.5).collect(),
    };
    let segmentation = Workload::family(
        "yolov8-seg",
        vec![columns("output0", [116, 8400], detection), prototypes],
    );
    let without_masks = Params { masks: false, ..segmentation.params.clone() };
    let offsets: fn(usize, usize) -> f32 =
        |anchor, k| if k < 2 { 0.4 } else { (anchor % 7) as f32 * 0.2 };
    let levels = |number: fn(usize, usize) -> f32, numbers: usize, ids: [&'static str; 3]| {
        let anchors = [8, 16, 32].map(|stride| (640 / stride) * (640 / stride) * 2);
        ids.into_iter()
            .zip(anchors)
            .map(move |(id, anchors)| rows(id, [anchors, numbers], number))
            .collect::<Vec<_>>()
    };
    let distances: fn(usize, usize) -> f32 = |anchor, k| 1.0 + ((anchor + k) % 3) as f32;
    let scores: fn(usize, usize) -> f32 =
        |anchor, _| if anchor.is_multiple_of(5 * PERIOD) { 0.7 } else { 0.02 };
    let boxes = levels(distances, 4, ["bbox_8", "bbox_16", "bbox_32"]);
    let faces = levels(scores, 1, ["score_8", "score_16", "score_32"]);
    vec![
        Workload::family("yolov5", vec![rows("yolo-v5-out", [8400, 85], row_number(pixels))]),
        Workload::family("yolox-raw", vec![rows("output", [8400, 85], row_number(offsets))]),
        Workload::family(
            "end2end",
            vec![rows("output0", [8400, 6], |anchor, k| match k {
                0 | 1 => pixels(anchor, k),
                2 | 3 => pixels(anchor, k - 2) + pixels(anchor, k),
                4 => objectness(anchor),
                _ => (anchor % 80) as f32,
            })],
        ),
        Workload::family(
            "detr",
            vec![
                rows("logits", [300, 80], |anchor, k| class_score(anchor, k, 2.0, -6.0)),
                rows("pred_boxes", [300, 4], |anchor, k| pixels(anchor, k) / 640.0),
            ],
        ),
        Workload::family(
            "ssd",
            vec![
                rows("boxes", [1917, 4], |anchor, k| ((anchor + k) % 9) as f32 * 0.1),
                rows("scores", [1917, 91], |anchor, k| class_score(anchor, k, 2.0, -6.0)),
            ],
        ),
        Workload::family("scrfd", faces.into_iter().chain(boxes).collect()),
        Workload::family("yolov8", vec![columns("output0", [84, 8400], detection)]),
        // One class, 17 keypoints.
        Workload::family(
            "yolov8-pose",
            vec![columns("output0", [56, 8400], |anchor, k| match k {
                0..4 => pixels(anchor, k),
                4 => objectness(anchor),
                _ => pixels(anchor, k % 2),
            })],
        ),
        segmentation.with_params("yolov8-seg, no masks", without_masks),
        segmentation,
    ]
}

fn run(bench: &mut Bench) -> Result<()> {
    let columns =
        ["decoder", "candidates", "survivors", "engine", "median us", "p90 us", "kernels us"];
    let mut table = Table::new(columns);
    for workload in workloads() {
        for run in bench.engines.run(&workload, bench.budget)? {
            let times =
                [run.times.median(), run.times.quantile(0.9), run.device.median()].map(format_us);
            let counts = [run.candidates, run.survivors].map(|count| count.to_string());
            let cells = std::iter::once(workload.name.clone()).chain(counts);
            table.row(cells.chain([run.engine.to_owned()]).chain(times));
        }
    }
    bench.folder.table("layouts", &table)
}
