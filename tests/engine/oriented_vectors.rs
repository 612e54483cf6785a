// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other projects' test cases of oriented boxes. Where rules differ, the table has them.
//!
//! | project | angles | overlap equal to the threshold |
//! | --- | --- | --- |
//! | mmcv | radians, clockwise with y down by default | suppresses on the CPU, not on the GPU |
//! | detectron2 | degrees, counterclockwise | does not suppress |
//! | here | radians, clockwise; the layout's `angle-factor` converts others | `threshold-inclusive` |
//!
//! The other projects do not define the order of equal scores. In this project, the lower anchor
//! outranks the higher one.

use nmsfilter_core::decoder::{self, Options};
use nmsfilter_core::engine::{Detection, Engine, Job, Method, Overlap, Params, Reference};
use nmsfilter_core::tensor::TensorView;
use serde_json::Value;

use crate::support::engines;
use crate::vectors::{numbers, vectors};

/// Test cases of suppression, and of overlaps of pairs.
pub const FILES: [&str; 3] =
    ["mmcv_nms_rotated_quadri.json", "mmcv_box_iou_rotated.json", "detectron2_rotated_iou.json"];

const MMCV_NMS: &str = FILES[0];
const MMCV_IOU: &str = FILES[1];
const DETECTRON2_IOU: &str = FILES[2];

/// Boxes (center x and y, width, height, angle) with scores and classes.
struct Run<'a> {
    boxes: &'a [f32],
    scores: &'a [f32],
    /// One class per box; empty if all boxes have one class.
    classes: Vec<f32>,
    /// Factor that converts the angles to radians clockwise.
    angle_factor: f32,
    params: Params,
}

impl Run<'_> {
    /// Returns the anchors that survive, in descending rank.
    fn keep(&self) -> Vec<u32> {
        let mut rows = Vec::new();
        for (index, (number, &score)) in
            self.boxes.as_chunks::<5>().0.iter().zip(self.scores).enumerate()
        {
            let class = self.classes.get(index).copied().unwrap_or(0.0);
            rows.extend(&number[..4]);
            rows.extend([score, class, number[4]]);
        }
        let tensors = [TensorView::from_slice("output0", &[1, rows.len() / 7, 7], &rows)];
        let decoder = decoder::by_name("end2end-obb");
        let mut layout = decoder::choose(&tensors, decoder, Options::default()).unwrap().layout;
        layout.boxes.angle_factor = self.angle_factor;
        let anchors = |survivors: &[Detection]| survivors.iter().map(|d| d.anchor).collect();
        let (mut reference, mut fast) = (Reference::default(), engines::fast());
        let outcome = reference
            .run(Job::new(&tensors, &layout, &self.params, &engines::places(&layout)))
            .unwrap();
        let expected: Vec<u32> = anchors(outcome.group(0).survivors);
        let outcome =
            fast.run(Job::new(&tensors, &layout, &self.params, &engines::places(&layout))).unwrap();
        let found: Vec<u32> = anchors(outcome.group(0).survivors);
        assert_eq!(expected, found, "reference and fast");
        found
    }
}

#[test]
fn rotated_cases_of_mmcv_have_the_expected_result() {
    let vectors = vectors(MMCV_NMS);
    let (mut covered, mut quadrilaterals) = (0, 0);
    for case in vectors["cases"].as_array().unwrap() {
        if case["params"]["kind"] == "quad" {
            quadrilaterals += 1;
            continue;
        }
        let clockwise = case["params"]["clockwise"].as_bool().unwrap();
        let params = Params {
            iou_threshold: case["params"]["iou_threshold"].as_f64().unwrap() as f32,
            ..Params::default()
        };
        let run = Run {
            boxes: &numbers(&case["boxes"]),
            scores: &numbers(&case["scores"]),
            classes: case.get("classes").map_or_else(Vec::new, numbers),
            angle_factor: if clockwise { 1.0 } else { -1.0 },
            params,
        };
        let expected: Vec<u32> =
            numbers(&case["expected"]["keep"]).iter().map(|&anchor| anchor as u32).collect();
        assert_eq!(run.keep(), expected, "{}", case["name"]);
        covered += 1;
    }
    assert_eq!((covered, quadrilaterals), (5, 4));
}

/// Asserts that two boxes conflict at a threshold slightly below the overlap, and do not conflict
/// slightly above it.
fn assert_overlap(case: &Value, overlap: Overlap, expected: f32, angle_factor: f32) {
    let boxes = numbers(&case["boxes"]);
    let survivors = |threshold: f32| {
        let params = Params { overlap, iou_threshold: threshold, ..Params::default() };
        let (scores, classes) = (&[0.9, 0.8], vec![]);
        Run { boxes: &boxes, scores, classes, angle_factor, params }.keep().len()
    };
    let name = &case["name"];
    if name == "iou_extreme" {
        // The box is so far from the origin that rounding makes its bounds empty. Such boxes are
        // dropped.
        assert_eq!(survivors(0.0), 1);
        return;
    }
    // The expected numbers have four digits, or are rounded to single precision.
    if expected > 0.0 {
        assert_eq!(survivors(expected - 1e-4), 1, "{name}: {overlap:?}");
    }
    if expected < 1.0 {
        assert_eq!(survivors(expected + 1e-4), 2, "{name}: {overlap:?}");
    }
}

#[test]
fn boxes_conflict_below_the_iou_that_other_projects_compute_and_not_above() {
    let mut covered = 0;
    for file in [MMCV_IOU, DETECTRON2_IOU] {
        let vectors = vectors(file);
        let angle = &vectors["semantics"]["angle"];
        let radians = match angle["unit"].as_str().unwrap() {
            "degrees" => std::f32::consts::PI / 180.0,
            unit => {
                assert_eq!(unit, "radians");
                1.0
            }
        };
        let angle_factor = if angle["clockwise"] == true { radians } else { -radians };
        for case in vectors["cases"].as_array().unwrap() {
            let expected = |measure: &str| case["expected"][measure].as_f64().map(|n| n as f32);
            assert_overlap(case, Overlap::Iou, expected("iou").unwrap(), angle_factor);
            if let Some(of_first) = expected("iof") {
                assert_overlap(case, Overlap::Representative, of_first, angle_factor);
            }
            covered += 1;
        }
    }
    assert_eq!(covered, 9 + 19);
}

/// Pairs of boxes whose overlap equals the threshold exactly. All numbers are exact in binary. The
/// first number of survivors is expected from mmcv on the GPU and from detectron2, the second from
/// mmcv on the CPU.
#[test]
fn an_overlap_equal_to_the_threshold_suppresses_only_if_the_threshold_is_inclusive() {
    let cases = [
        // Two boxes of 5 x 8 share 2 x 8: the IoU is 16 / 64.
        (Overlap::Iou, [2.5, 4.0, 5.0, 8.0, 0.0, 5.5, 4.0, 5.0, 8.0, 0.0], 0.25),
        // Boxes of 8 x 4 and 4 x 4 share 2 x 4.
        (Overlap::Representative, [4.0, 2.0, 8.0, 4.0, 0.0, 8.0, 2.0, 4.0, 4.0, 0.0], 0.25),
        (Overlap::Smaller, [4.0, 2.0, 8.0, 4.0, 0.0, 8.0, 2.0, 4.0, 4.0, 0.0], 0.5),
    ];
    for (overlap, boxes, iou_threshold) in cases {
        for method in [Method::Greedy, Method::MapReduce] {
            for (threshold_inclusive, left) in [(false, 2), (true, 1)] {
                let params = Params {
                    method,
                    overlap,
                    iou_threshold,
                    threshold_inclusive,
                    ..Params::default()
                };
                let (scores, classes) = (&[0.9, 0.8], vec![]);
                let run = Run { boxes: &boxes, scores, classes, angle_factor: 1.0, params };
                assert_eq!(run.keep().len(), left, "{overlap:?} {method:?}");
            }
        }
    }
}

#[test]
fn equal_boxes_with_any_angle_have_an_iou_of_one() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..1_000 {
        let mut number = |scale: f32| random.f32() * scale + 0.5;
        let row = [number(600.0), number(400.0), number(200.0), number(50.0), number(6.0) - 3.0];
        let params = Params { iou_threshold: 1.0, threshold_inclusive: true, ..Params::default() };
        let boxes = [row, row].concat();
        let run =
            Run { boxes: &boxes, scores: &[0.9, 0.9], classes: vec![], angle_factor: 1.0, params };
        // If scores are equal, the lower anchor comes first.
        assert_eq!(run.keep(), [0], "{row:?}");
    }
}

/// A chain of boxes, each of which overlaps its neighbors. Ultralytics' rule for oriented boxes
/// lets suppressed boxes suppress others, as map-reduce does.
#[test]
fn suppressed_boxes_suppress_with_map_reduce_only() {
    let boxes: Vec<f32> =
        (0..4).flat_map(|i| [50.0 + 3.0 * i as f32, 50.0, 20.0, 8.0, 0.3]).collect();
    for (method, kept) in [(Method::Greedy, vec![0, 2]), (Method::MapReduce, vec![0])] {
        let params = Params { method, iou_threshold: 0.6, ..Params::default() };
        let scores = &[0.9, 0.8, 0.7, 0.6];
        let run = Run { boxes: &boxes, scores, classes: vec![], angle_factor: 1.0, params };
        assert_eq!(run.keep(), kept, "{method:?}");
    }
}

/// Boxes turned by multiples of a right angle are upright boxes. detectron2's tests check its
/// engine in this way.
#[test]
fn boxes_turned_by_right_angles_have_the_survivors_of_upright_boxes() {
    let mut random = fastrand::Rng::with_seed(7);
    let corners: Vec<[f32; 4]> = (0..1_000)
        .map(|_| {
            let mut number = |end: u32| (random.u32(0..end) * 2) as f32;
            let (x, y) = (number(200), number(200));
            [x, y, x + 2.0 + number(60), y + 2.0 + number(60)]
        })
        .collect();
    let scores: Vec<f32> = corners.iter().map(|_| random.f32() * 0.7 + 0.3).collect();
    for iou_threshold in [0.200_01, 0.450_01, 0.800_01] {
        let params = Params { iou_threshold, ..Params::default() };
        let tensors = [
            TensorView::from_slice("boxes", &[1_000, 4], corners.as_flattened()),
            TensorView::from_slice("scores", &[1_000, 1], &scores),
        ];
        let layout = decoder::choose(&tensors, None, Options::default()).unwrap().layout;
        let mut reference = Reference::default();
        let upright =
            reference.run(Job::new(&tensors, &layout, &params, &engines::places(&layout))).unwrap();
        let upright: Vec<u32> = upright.group(0).survivors.iter().map(|d| d.anchor).collect();
        assert!((100..1_000).contains(&upright.len()), "{} survivors", upright.len());
        for (quarters, angle_factor) in
            [(0.0, 1.0), (1.0, 90.0), (2.0, 90.0), (-1.0, 90.0), (5.0, 90.0)]
        {
            let boxes: Vec<f32> = corners
                .iter()
                .flat_map(|&[x1, y1, x2, y2]| {
                    let (w, h) = (x2 - x1, y2 - y1);
                    let (w, h) = if quarters % 2.0 == 0.0 { (w, h) } else { (h, w) };
                    [(x1 + x2) / 2.0, (y1 + y2) / 2.0, w, h, quarters]
                })
                .collect();
            let angle_factor = angle_factor * std::f32::consts::PI / 180.0;
            let (classes, params) = (vec![], params.clone());
            let run = Run { boxes: &boxes, scores: &scores, classes, angle_factor, params };
            assert_eq!(run.keep(), upright, "{quarters} quarter turns, {iou_threshold}");
        }
    }
}
