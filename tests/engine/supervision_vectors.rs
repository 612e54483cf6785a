// SPDX-License-Identifier: MIT OR Apache-2.0
//! Roboflow supervision's test cases of suppression, merging and overlaps.
//!
//! Among equal scores, the later box is the first there, and the earlier box here. Boxes conflict at overlap >= threshold for
//! merging, and > for suppression. Its cases of slices are tests of `ortinference`.

use nmsfilter_core::nms::{Method, Overlap};
use serde_json::Value;

use crate::merging_vectors::{Boxes, indices, name, rows, vectors};

/// The cases with one of these methods.
fn cases(methods: &[&str]) -> Option<Vec<Value>> {
    let cases = vectors("supervision_nmm.json")?;
    let has_method = |case: &Value| methods.contains(&case["method"].as_str().unwrap());
    Some(cases.into_iter().filter(has_method).collect())
}

/// Returns true if boxes with these corners, scores and classes have the expected survivors or groups.
fn is_equal(case: &Value, predictions: &[Vec<f32>]) -> bool {
    let merges = case["method"].as_str().unwrap().ends_with("_groups");
    let boxes = Boxes::new(predictions, (0..predictions.len()).rev());
    let merged = boxes.merge(|nms| {
        nms.method = if merges { Method::Merge } else { Method::Greedy };
        nms.iou_threshold = case["iou_threshold"].as_f64().unwrap();
        nms.threshold_inclusive = merges;
    });
    let groups = boxes.groups(&merged);
    if !merges {
        let is_kept = |index| groups.iter().any(|(keeper, _)| *keeper == index);
        let mask: Vec<bool> = (0..predictions.len() as u32).map(is_kept).collect();
        return serde_json::json!(mask) == case["expected"]["keep_mask"];
    }
    let mut found: Vec<Vec<u32>> =
        groups.into_iter().map(|(keeper, members)| [vec![keeper], members].concat()).collect();
    let expected = case["expected"]["groups"].as_array().unwrap().iter().map(indices);
    let mut expected: Vec<Vec<u32>> = expected.collect();
    if case["method"] == "mask_nmm_groups" {
        // Their order is not stated.
        for groups in [&mut found, &mut expected] {
            groups.iter_mut().for_each(|group| group.sort_unstable());
            groups.sort_unstable();
        }
    }
    found == expected
}

#[test]
fn boxes_have_the_expected_groups_and_survivors() {
    let Some(cases) = cases(&["nmm_groups", "nms"]) else { return };
    for case in &cases {
        assert!(is_equal(case, &rows(&case["predictions"])), "{}", name(case));
    }
    assert_eq!(cases.len(), 12);
}

/// Masks are compared there, and boxes here. The masks of these cases are rectangles, so that their boxes have equal
/// overlaps. The exception is due to supervision's scaling, which nearly loses the last column of a mask.
#[test]
fn rectangular_masks_have_the_expected_groups_and_survivors() {
    let Some(cases) = cases(&["mask_nmm_groups", "mask_nms"]) else { return };
    for case in &cases {
        let mut predictions = rows(&case["predictions"]);
        for (row, mask) in predictions.iter_mut().zip(case["masks"].as_array().unwrap()) {
            let pixels: Vec<[usize; 2]> = rows(mask)
                .iter()
                .enumerate()
                .flat_map(|(y, row)| {
                    (0..row.len())
                        .filter(|&x| row[x] > 0.0)
                        .map(move |x| [x, y])
                        .collect::<Vec<_>>()
                })
                .collect();
            let range = |axis: usize| {
                let all = pixels.iter().map(|pixel| pixel[axis]);
                [all.clone().min().unwrap(), all.max().unwrap() + 1]
            };
            let ([left, right], [top, bottom]) = (range(0), range(1));
            assert_eq!(pixels.len(), (right - left) * (bottom - top), "{}", name(case));
            row.splice(..4, [left, top, right, bottom].map(|edge| edge as f32));
        }
        assert_eq!(is_equal(case, &predictions), name(case) != "mask_nmm_05", "{}", name(case));
    }
    assert_eq!(cases.len(), 8);
}

/// Two boxes conflict at a threshold equal to the expected overlap, and only if the threshold is inclusive.
#[test]
fn pairs_have_the_expected_overlap() {
    let Some(cases) = cases(&["overlap"]) else { return };
    for case in &cases {
        let pair = rows(&case["boxes"]);
        let scored: Vec<Vec<f32>> =
            pair.iter().map(|corners| [&corners[..], &[0.5]].concat()).collect();
        let boxes = Boxes::new(&scored, 0..2);
        let expected = case["expected"]["value"].as_f64().unwrap();
        let survivors = |inclusive: bool| {
            let merged = boxes.merge(|nms| {
                nms.overlap = if case["metric"] == "IOS" { Overlap::Smaller } else { Overlap::Iou };
                (nms.iou_threshold, nms.threshold_inclusive) = (expected, inclusive);
            });
            merged.boxes.len()
        };
        // Boxes that do not intersect never conflict.
        let inclusive = if expected > 0.0 { 1 } else { 2 };
        assert_eq!([survivors(true), survivors(false)], [inclusive, 2], "{}", name(case));
    }
    assert_eq!(cases.len(), 11);
}

/// The box and the class of a merged pair are equal. The score there is the mean weighted by area, and the greatest here.
#[test]
fn a_merged_pair_has_the_union_and_the_class_of_the_higher_score() {
    let Some(cases) = cases(&["merge_pair"]) else { return };
    for case in &cases {
        let pair = rows(&serde_json::json!([case["a"], case["b"]]));
        let boxes = Boxes::new(&pair, 0..2);
        let merged = boxes.merge(|nms| {
            nms.method = Method::Merge;
            nms.iou_threshold = 0.0;
            nms.class_agnostic = true;
        });
        let expected = rows(&serde_json::json!([case["expected"]["xyxy_score_class"]])).remove(0);
        assert_eq!(merged.boxes.as_flattened(), &expected[..4], "{}", name(case));
        let class = boxes.classes[merged.keepers[0] as usize];
        assert_eq!(class as f32, expected[5], "{}", name(case));
        assert_eq!(merged.scores, [f32::max(pair[0][4], pair[1][4])], "{}", name(case));
    }
    assert_eq!(cases.len(), 1);
}
