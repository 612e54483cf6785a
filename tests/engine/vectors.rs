// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other projects' test cases of hard suppression.
//!
//! Each case runs with the `boxes` decoder, on both engines and through a pipeline. Cases of
//! oriented boxes are in `oriented_vectors.rs`. Only the form of a case is changed:
//!
//! - Corners are sorted if the source allows any order.
//! - Boxes given as y, x are converted to x, y.
//! - If the source drops `score <= t`, the threshold is the next number above `t`.
//! - An operator that selects a box for several classes runs one class at a time, since an anchor
//!   here has only one class.
//!
//! [`not_covered`] has the reason for every case that is left out, and the counts must add up.

use nmsfilter_core::decoder::{self, BoxFormat, Options};
use nmsfilter_core::engine::{
    ClassThresholds, Detection, Engine, Job, Method, Overlap, Params, Reference,
};
use nmsfilter_core::tensor::TensorView;
use serde_json::Value;

use crate::settings::Settings;
use crate::support::{data, engines};
use crate::{oriented_vectors, through_pipeline};

/// Returns the reason why a case is not run, or `None` if it is run.
fn not_covered(case: &Value) -> Option<&'static str> {
    let name = case["name"].as_str().unwrap();
    let params = &case["params"];
    let limit = params["max_output_boxes_per_class"].as_u64();
    if params.get("soft").is_some() || params["soft_nms_sigma"].as_f64().is_some_and(|s| s > 0.0) {
        return Some("soft suppression is not done");
    }
    if limit == Some(0) {
        return Some("a cap of 0 means no cap here");
    }
    if name == "V1/FirstBoxDegenerate" {
        return Some("a box without area is dropped here; the source keeps it");
    }
    if name.ends_with("InvalidIOUThreshold") {
        return Some("no such threshold can be set: the property ends at 1");
    }
    None
}

pub fn numbers(value: &Value) -> Vec<f32> {
    match value {
        Value::Array(values) => values.iter().flat_map(numbers).collect(),
        _ => vec![value.as_f64().unwrap() as f32],
    }
}

fn indices(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|index| index.as_u64().unwrap() as u32).collect()
}

/// A run on boxes with one score each.
struct Run<'a> {
    boxes: &'a [f32],
    format: BoxFormat,
    scores: &'a [f32],
    /// One class per box; empty if all boxes have one class.
    classes: Vec<usize>,
    params: Params,
}

impl Run<'_> {
    /// Returns the anchors that survive, in descending rank.
    fn keep(&self) -> Vec<u32> {
        let n = self.scores.len();
        let classes = self.classes.iter().max().map_or(1, |class| class + 1);
        // A box has a score for one class. Its other scores are minus infinity.
        let mut scores = vec![f32::NEG_INFINITY; n * classes];
        for (anchor, &score) in self.scores.iter().enumerate() {
            let class = self.classes.get(anchor).copied().unwrap_or(0);
            scores[anchor * classes + class] = score;
        }
        let tensors = [
            TensorView::from_slice("boxes", &[n, 4], self.boxes),
            TensorView::from_slice("scores", &[n, classes], &scores),
        ];
        let options = Options { box_format: self.format, ..Options::default() };
        let layout = decoder::choose(&tensors, None, options).unwrap().layout;
        let anchors = |survivors: &[Detection]| survivors.iter().map(|d| d.anchor).collect();
        let (mut reference, mut fast) = (Reference::default(), engines::fast());
        let expected: Vec<u32> = anchors(
            reference
                .run(Job::new(&tensors, &layout, &self.params, &engines::places(&layout)))
                .unwrap()
                .group(0)
                .survivors,
        );
        let outcome = fast
            .run(Job::new(&tensors, &layout, &self.params, &engines::places(&layout)))
            .unwrap()
            .group(0);
        let found: Vec<u32> = anchors(outcome.survivors);
        assert_eq!(expected, found, "reference and fast");
        through_pipeline::expect_counts(
            &[("boxes", &[n, 4], self.boxes), ("scores", &[n, classes], &scores)],
            Settings::Params(&self.params, self.format),
            [outcome.candidates, found.len()],
        );
        found
    }
}

/// Returns the anchors that survive. Boxes are corners, and all have one class.
fn keep(boxes: &[f32], scores: &[f32], params: Params) -> Vec<u32> {
    Run { boxes, format: BoxFormat::Corners, scores, classes: vec![], params }.keep()
}

/// Returns thresholds that drop scores up to `threshold`. Drops nothing if the source has no
/// threshold.
fn above(threshold: &Value) -> ClassThresholds {
    ClassThresholds::uniform(match threshold.as_f64() {
        Some(threshold) => (threshold as f32).next_up(),
        None => f32::MIN,
    })
}

fn params(case: &Value) -> Params {
    let params = &case["params"];
    Params {
        iou_threshold: params["iou_threshold"].as_f64().unwrap() as f32,
        pixel_offset: params["offset"].as_f64().unwrap_or(0.0) as f32,
        thresholds: above(&params["score_threshold"]),
        max_detections: ["max_output_size", "max_num", "max_output_boxes_per_class"]
            .iter()
            .find_map(|cap| params[*cap].as_u64())
            .and_then(|cap| usize::try_from(cap).ok())
            .unwrap_or(0),
        ..Params::default()
    }
}

/// Converts corners given as y, x in any order to sorted corners given as x, y.
fn in_order(boxes: &[f32]) -> Vec<f32> {
    let ordered = |b: &[f32; 4]| [b[1].min(b[3]), b[0].min(b[2]), b[1].max(b[3]), b[0].max(b[2])];
    boxes.as_chunks::<4>().0.iter().flat_map(ordered).collect()
}

/// Returns the survivors in the form of the source's list, or `None` if the input is an error.
fn run(op: &str, case: &Value) -> Option<Value> {
    let boxes = numbers(&case["boxes"]);
    let scores = numbers(&case["scores"]);
    let expected = &case["expected"];
    let single = |boxes: &[f32]| {
        let classes = case.get("classes").map_or_else(Vec::new, |classes| {
            indices(classes).into_iter().map(|class| class as usize).collect()
        });
        let params = params(case);
        Run { boxes, format: BoxFormat::Corners, scores: &scores, classes, params }.keep()
    };
    if expected.get("error").is_some() {
        let n = boxes.len() / 4;
        let tensors = [
            TensorView::from_slice("boxes", &[n, 4], &boxes),
            TensorView::from_slice("scores", &[scores.len()], &scores),
        ];
        return decoder::choose(&tensors, None, Options::default()).ok().map(|_| Value::Null);
    }
    match op {
        "onnx_nms" => {
            let center = case["params"]["center_point_box"] == 1;
            let mut selected = Vec::new();
            let images = case["boxes"].as_array().unwrap().iter();
            for (batch, (boxes, scores)) in
                images.zip(case["scores"].as_array().unwrap()).enumerate()
            {
                let boxes = numbers(boxes);
                let boxes = if center { boxes } else { in_order(&boxes) };
                let format = if center { BoxFormat::Center } else { BoxFormat::Corners };
                for (class, scores) in scores.as_array().unwrap().iter().enumerate() {
                    let (scores, params) = (numbers(scores), params(case));
                    let run =
                        Run { boxes: &boxes, format, scores: &scores, classes: vec![], params };
                    selected.extend(
                        run.keep().iter().map(|anchor| serde_json::json!([batch, class, anchor])),
                    );
                }
            }
            Some(Value::Array(selected))
        }
        "tf_nms" => Some(single(&in_order(&boxes)).into()),
        "opencv_nms" => {
            let corners = |b: &[f32; 4]| [b[0], b[1], b[0] + b[2], b[1] + b[3]];
            let boxes: Vec<f32> = boxes.as_chunks::<4>().0.iter().flat_map(corners).collect();
            Some(single(&boxes).into())
        }
        "mmcv_nms" | "plain" => Some(single(&boxes).into()),
        _ => panic!("no rule for {op}"),
    }
}

/// Compares in the way of the source's test.
fn matches(case: &Value, found: &Option<Value>) -> bool {
    let expected = &case["expected"];
    let Some(found) = found else {
        return expected.get("error").is_some();
    };
    if case["compare"] == "count" {
        return expected["count"].as_u64() == Some(found.as_array().unwrap().len() as u64);
    }
    let list = expected.get("keep").unwrap_or(&expected["selected_indices"]);
    // The source pads its outputs. The padding is not compared.
    let valid = expected["valid_outputs"].as_u64().map(|valid| valid as usize);
    let list = &list.as_array().unwrap()[..];
    let list = &list[..valid.unwrap_or(list.len())];
    let mut list = list.to_vec();
    let mut found = found.as_array().unwrap().clone();
    if case["compare"] == "set" {
        list.sort_by_key(Value::as_u64);
        found.sort_by_key(Value::as_u64);
    }
    list == found
}

/// For each file, the number of cases that are run, and of cases that are not.
const FILES: [(&str, [usize; 2]); 6] = [
    ("mmcv_nms.json", [4, 3]),
    ("onnx_backend_nonmaxsuppression.json", [10, 0]),
    ("onnxruntime_nonmaxsuppression.json", [17, 2]),
    ("opencv_dnn_nms.json", [2, 1]),
    ("tensorflow_nms_v1_v5.json", [37, 5]),
    ("torchvision_nms_literal.json", [1, 0]),
];

/// Reads the test cases of a file.
pub fn vectors(file: &str) -> Value {
    serde_json::from_str(&data::fixture_text(&format!("vectors/{file}"))).unwrap()
}

#[test]
fn every_case_of_hard_suppression_has_the_expected_result() {
    for (file, expected) in FILES {
        let vectors = vectors(file);
        let op = vectors["semantics"]["op"].as_str().unwrap();
        let (mut covered, mut left_out) = (0, 0);
        for case in vectors["cases"].as_array().unwrap() {
            let title = format!("{file}: {}", case["name"].as_str().unwrap());
            if let Some(reason) = not_covered(case) {
                println!("not covered: {title}: {reason}");
                left_out += 1;
                continue;
            }
            let found = run(op, case);
            assert!(matches(case, &found), "{title}: {found:?}, expected {}", case["expected"]);
            covered += 1;
        }
        assert_eq!([covered, left_out], expected, "{file}: cases covered and not covered");
    }
    // Not covered: 5 cases of soft suppression, 1 with a limit of 0, 1 without area, 4 with
    // thresholds above 1.
    let total = |i: usize| FILES.iter().map(|(_, counts)| counts[i]).sum::<usize>();
    assert_eq!([total(0), total(1)], [71, 11]);
}

#[test]
fn every_file_of_vectors_is_run() {
    let folder = crate::support::project::path("tests/fixtures/vectors");
    let mut found: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    let run = FILES.iter().map(|(file, _)| *file);
    let mut expected: Vec<&str> =
        run.chain([GSTREAMER_IOU]).chain(oriented_vectors::FILES).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

const GSTREAMER_IOU: &str = "gstreamer_analytics_iou.json";

/// IoU values from GStreamer's tests. Two boxes conflict at a threshold slightly below the value,
/// and do not conflict slightly above it. GStreamer's function replaces negative corners by zero
/// and the engines do not, so cases with negative corners are counted as not covered.
#[test]
fn boxes_conflict_below_the_iou_that_gstreamer_computes_and_not_above() {
    let vectors = vectors(GSTREAMER_IOU);
    let (mut covered, mut negative) = (0, 0);
    for case in vectors["cases"].as_array().unwrap() {
        let boxes = numbers(&case["boxes"]);
        let [a, b] = boxes.as_chunks::<4>().0 else { panic!("two boxes") };
        if [a, b].iter().any(|b| b[0] < 0.0 || b[1] < 0.0 || b[2] <= 0.0 || b[3] <= 0.0) {
            negative += 1;
            continue;
        }
        let iou = case["expected"]["iou"].as_array().unwrap();
        let iou = (iou[0].as_f64().unwrap() / iou[1].as_f64().unwrap()) as f32;
        let corners: Vec<f32> =
            [a, b].iter().flat_map(|b| [b[0], b[1], b[0] + b[2], b[1] + b[3]]).collect();
        let left = |iou_threshold: f32| {
            let params = Params { iou_threshold, ..Params::default() };
            let kept = keep(&corners, &[0.9, 0.8], params);
            kept.len()
        };
        if iou > 0.0 {
            assert_eq!(left(iou - 1e-5), 1, "{}", case["name"]);
        }
        assert_eq!(left((iou + 1e-5).min(1.0)), 2, "{}", case["name"]);
        covered += 1;
    }
    assert_eq!(
        (covered, negative),
        (20, 10),
        "cases covered; with negative corners or no area, not covered"
    );
}

/// Pairs of boxes whose overlap equals the threshold exactly. All numbers are exact in binary.
#[test]
fn an_overlap_equal_to_the_threshold_suppresses_only_if_the_threshold_is_inclusive() {
    // Boxes of 8 x 4 and 4 x 4 share 2 x 4. This is a fifth of the union of 40, a quarter of the
    // larger box, and a half of the smaller. Two boxes of 5 x 8 share 2 x 8: the IoU is 16 / 64,
    // exactly a quarter.
    let cases = [
        (Overlap::Iou, [0.0, 0.0, 5.0, 8.0, 3.0, 0.0, 8.0, 8.0], 0.25),
        (Overlap::Representative, [0.0, 0.0, 8.0, 4.0, 6.0, 0.0, 10.0, 4.0], 0.25),
        (Overlap::Smaller, [0.0, 0.0, 8.0, 4.0, 6.0, 0.0, 10.0, 4.0], 0.5),
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
                let kept = keep(&boxes, &[0.9, 0.8], params);
                assert_eq!(kept.len(), left, "{overlap:?} {method:?}");
            }
        }
    }
}

#[test]
fn an_anchor_whose_score_equals_the_threshold_is_a_candidate() {
    let boxes = [0.0, 0.0, 4.0, 4.0, 10.0, 0.0, 14.0, 4.0];
    let scores = [0.25, 0.25f32.next_down()];
    let params = Params::default();
    let kept = keep(&boxes, &scores, params);
    assert_eq!(kept, [0]);
}

#[test]
fn boxes_that_touch_conflict_only_with_a_pixel_offset() {
    let boxes = [0.0, 0.0, 4.0, 4.0, 4.0, 0.0, 8.0, 4.0];
    for (pixel_offset, left) in [(0.0, 2), (1.0, 1)] {
        let params = Params {
            iou_threshold: 0.0,
            threshold_inclusive: true,
            pixel_offset,
            ..Params::default()
        };
        let kept = keep(&boxes, &[0.9, 0.8], params);
        assert_eq!(kept.len(), left, "offset {pixel_offset}");
    }
}
