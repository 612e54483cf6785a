// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other projects' test cases of merging and rescoring, and results recorded from these projects.
//!
//! | project | of equal scores, the first is | conflict |
//! | --- | --- | --- |
//! | SAHI | the box with lesser corners | overlap >= threshold; a member joins if its overlap is > threshold |
//! | Weighted-Boxes-Fusion | not defined | overlap > threshold |
//! | here | the earlier box | `threshold_inclusive` |
//!
//! A case whose rule differs is left out, and its reason is stated. The counts must add up. The cases of supervision are in
//! the module `supervision_vectors`.

use nmsfilter_core::decoder::{self, Options};
use nmsfilter_core::engine::{ClassThresholds, Engine, Job, Params, Reference};
use nmsfilter_core::nms::{Backend, BoxNms, MergedBoxes, Method, Overlap};
use nmsfilter_core::tensor::TensorView;
use serde_json::Value;

use crate::support::{data, engines};

/// The cases of a file, or `None` if the folder of test data has no such file.
pub fn vectors(file: &str) -> Option<Vec<Value>> {
    let path = data::path(&format!("vectors/merging/{file}"))?;
    let text = std::fs::read_to_string(path).unwrap();
    let mut vectors: Value = serde_json::from_str(&text).unwrap();
    Some(vectors["cases"].as_array_mut().unwrap().drain(..).collect())
}

pub fn name(case: &Value) -> &str {
    case["name"].as_str().unwrap()
}

pub fn floats(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap() as f32).collect()
}

pub fn rows(value: &Value) -> Vec<Vec<f32>> {
    value.as_array().unwrap().iter().map(floats).collect()
}

pub fn indices(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|index| index.as_u64().unwrap() as u32).collect()
}

/// Boxes of a case.
#[derive(Clone, Debug, Default)]
pub struct Boxes {
    corners: Vec<f32>,
    scores: Vec<f32>,
    pub classes: Vec<i32>,
    /// The index of each box in the case.
    indices: Vec<u32>,
}

impl Boxes {
    /// Boxes from rows of corners, score and class, in the order of `order`.
    pub fn new(rows: &[Vec<f32>], order: impl IntoIterator<Item = usize>) -> Self {
        let mut boxes = Self::default();
        for index in order {
            let row = &rows[index];
            let class = row.get(5).map_or(0, |&class| class as i32);
            boxes.add(row[..4].try_into().unwrap(), row[4], class, index as u32);
        }
        boxes
    }

    fn add(&mut self, corners: [f32; 4], score: f32, class: i32, index: u32) {
        self.corners.extend(corners);
        self.scores.push(score);
        self.classes.push(class);
        self.indices.push(index);
    }

    /// Runs `BoxNms::merge`, whose survivors must equal both engines'.
    pub fn merge(&self, set: impl FnOnce(&mut BoxNms)) -> MergedBoxes {
        let mut nms = BoxNms::new(Backend::Cpu, None).unwrap();
        set(&mut nms);
        let n = self.scores.len();
        let tensors = [
            TensorView::from_slice("boxes", &[n, 4], &self.corners),
            TensorView::from_slice("scores", &[n], &self.scores),
            TensorView::from_slice("labels", &[n], &self.classes),
        ];
        let [corners, scores, classes] = &tensors;
        let merged = nms.merge(corners, scores, Some(classes), None).unwrap().clone();
        let params = Params {
            method: nms.method,
            overlap: nms.overlap,
            // The core takes the next number below a threshold that is no f32.
            iou_threshold: lower(nms.iou_threshold),
            threshold_inclusive: nms.threshold_inclusive,
            class_agnostic: nms.class_agnostic,
            sigma: nms.sigma,
            lose_released: nms.lose_released,
            thresholds: ClassThresholds::uniform(nms.score_threshold),
            ..Params::default()
        };
        let options = Options { num_classes: 100, ..Options::default() };
        let layout = decoder::choose(&tensors, None, options).unwrap().layout;
        let engines: [Box<dyn Engine>; 2] = [Box::new(Reference::default()), engines::fast()];
        for mut engine in engines {
            let outcome = engine
                .run(Job::new(&tensors, &layout, &params, &engines::places(&layout)))
                .unwrap();
            let survivors = outcome.group(0).survivors.iter();
            let found = survivors.map(|d| ([d.x1, d.y1, d.x2, d.y2], d.score, d.anchor));
            let merged = merged.boxes.iter().zip(&merged.scores).zip(&merged.keepers);
            // Engines drop boxes without area.
            let expected = merged
                .filter(|((corners, _), _)| corners[2] > corners[0] && corners[3] > corners[1])
                .map(|((corners, score), keeper)| (*corners, *score, *keeper));
            assert!(found.eq(expected), "{}", engine.name());
        }
        merged
    }

    /// The keepers, each with the boxes that were merged into it, as indices of the case.
    pub fn groups(&self, merged: &MergedBoxes) -> Vec<(u32, Vec<u32>)> {
        let original = |&index: &u32| self.indices[index as usize];
        let group = |index: usize| {
            let members = merged.merged_into(index).iter().map(original).collect();
            (original(&merged.keepers[index]), members)
        };
        (0..merged.keepers.len()).map(group).collect()
    }
}

fn lower(threshold: f64) -> f32 {
    let nearest = threshold as f32;
    if f64::from(nearest) > threshold { nearest.next_down() } else { nearest }
}

fn sorted<T>(mut items: Vec<T>, less: impl Fn(&T, &T) -> std::cmp::Ordering) -> Vec<T> {
    items.sort_by(less);
    items
}

/// The reason why a case of SAHI has another result here.
fn sahi_differs(case: &Value) -> Option<&'static str> {
    match name(case) {
        "gen011_nmm_IOU_n6" => {
            Some("of equal scores, NMM lets only the box with greater corners claim the other")
        }
        "gen041_nmm_IOU_n80" => {
            Some("members of a claim of NMM join by index there, and by rank here")
        }
        "edge_tie_class" => Some("of equal scores, the class is the member's there"),
        _ => None,
    }
}

/// Returns true if a case has the expected result.
fn is_equal_to_sahi(case: &Value) -> bool {
    let predictions = rows(&case["predictions"]);
    let by_corners = |&a: &usize, &b: &usize| {
        let [a, b] = [a, b].map(|index| &predictions[index][..4]);
        a.partial_cmp(b).unwrap()
    };
    let boxes = Boxes::new(&predictions, sorted((0..predictions.len()).collect(), by_corners));
    let merged = boxes.merge(|nms| {
        nms.method = match case["method"].as_str().unwrap() {
            "nms" => Method::Greedy,
            "greedy_nmm" => Method::Merge,
            "nmm" => Method::MergeTransitive,
            other => panic!("{other}"),
        };
        nms.overlap = match case["match_metric"].as_str().unwrap() {
            "IOU" => Overlap::Iou,
            "IOS" => Overlap::Smaller,
            other => panic!("{other}"),
        };
        nms.iou_threshold = f64::from(case["match_threshold"].as_f64().unwrap() as f32);
        nms.class_agnostic = case["class_agnostic"].as_bool().unwrap();
        (nms.threshold_inclusive, nms.lose_released) = (true, true);
    });
    let groups = boxes.groups(&merged);
    if let Some(keep) = case["expected"].get("keep") {
        return groups.iter().map(|(keeper, _)| *keeper).eq(indices(keep));
    }
    let expected = case["expected"]["groups"].as_object().unwrap();
    let keepers = expected.keys().map(|keeper| keeper.parse::<u32>().unwrap()).collect();
    let kept = groups.iter().map(|(keeper, _)| *keeper).collect();
    if sorted::<u32>(kept, Ord::cmp) != sorted(keepers, Ord::cmp) {
        return false;
    }
    let Some(expected_boxes) = case["expected"].get("merged_xyxy_score_class") else {
        return groups.into_iter().all(|(keeper, members)| {
            let expected = indices(&expected[&keeper.to_string()]);
            sorted(members, Ord::cmp) == sorted(expected, Ord::cmp)
        });
    };
    let found = merged.boxes.iter().zip(&merged.scores).zip(&merged.keepers);
    let found = found.map(|((corners, score), &keeper)| {
        let class = boxes.classes[keeper as usize] as f32;
        corners.iter().copied().chain([*score, class]).collect::<Vec<f32>>()
    });
    let by_numbers = |a: &Vec<f32>, b: &Vec<f32>| a.partial_cmp(b).unwrap();
    sorted(found.collect(), by_numbers) == sorted(rows(expected_boxes), by_numbers)
}

#[test]
fn cases_of_sahi_have_the_expected_boxes() {
    let (mut equal, mut different) = (0, 0);
    for file in ["sahi_combine_literal.json", "sahi_combine_generated.json"] {
        let Some(cases) = vectors(file) else { return };
        for case in &cases {
            let reason = sahi_differs(case);
            let title = name(case);
            assert_eq!(is_equal_to_sahi(case), reason.is_none(), "{title}: {reason:?}");
            *if reason.is_none() { &mut equal } else { &mut different } += 1;
        }
    }
    assert_eq!((equal, different), (42, 3));
}

/// The score of Weighted-Boxes-Fusion from the mean of the scores of a cluster, or `None` if it
/// depends on the models of the cluster's boxes.
fn score_of_models(params: &Value, mean: f32, boxes: usize, weights: &[f32]) -> Option<f32> {
    let models = weights.len();
    let allows_overflow = params["allows_overflow"].as_bool().unwrap_or(false);
    match params["conf"].as_str().unwrap() {
        "avg" => {
            let counted = if allows_overflow { boxes } else { boxes.min(models) };
            Some(mean * counted as f32 / weights.iter().sum::<f32>())
        }
        // The scores of this cluster are equal, so that their greatest is their mean.
        "max" => Some(mean / weights.iter().copied().fold(0.0, f32::max)),
        _ => None,
    }
}

#[test]
fn cases_of_weighted_boxes_fusion_have_the_expected_boxes() {
    let Some(cases) = vectors("wbf.json") else { return };
    let (mut equal, mut different) = (0, 0);
    for case in &cases {
        let params = &case["params"];
        let weights = floats(&params["weights"]);
        if score_of_models(params, 0.0, 1, &weights).is_none() {
            // The score averages over models, which boxes do not have here.
            different += 1;
            continue;
        }
        let mut boxes = Boxes::default();
        let lists = ["boxes", "scores", "labels"].map(|list| case[list].as_array().unwrap());
        for (model, weight) in weights.iter().enumerate() {
            let [corners, scores, labels] = lists.map(|list| &list[model]);
            for ((corners, score), label) in
                rows(corners).iter().zip(floats(scores)).zip(floats(labels))
            {
                if f64::from(score) < params["skip"].as_f64().unwrap() {
                    continue;
                }
                let corners: [f32; 4] = corners[..].try_into().unwrap();
                let corners = corners.map(|edge| edge.clamp(0.0, 1.0));
                boxes.add(corners, score * weight, label as i32, 0);
            }
        }
        let merged = boxes.merge(|nms| {
            nms.method = Method::WeightedFusion;
            nms.iou_threshold = params["iou_thr"].as_f64().unwrap();
        });
        let found = merged.boxes.iter().zip(&merged.scores).zip(&merged.keepers).enumerate();
        let found = found.map(|(index, ((corners, mean), keeper))| {
            let count = merged.merged_into(index).len() + 1;
            let score = score_of_models(params, *mean, count, &weights).unwrap();
            (boxes.classes[*keeper as usize], corners.to_vec(), score)
        });
        let expected = &case["expected"];
        let labels = floats(&expected["labels"]).into_iter().map(|label| label as i32);
        let expected = labels
            .zip(rows(&expected["boxes"]))
            .zip(floats(&expected["scores"]))
            .map(|((label, corners), score)| (label, corners, score));
        type Fused = (i32, Vec<f32>, f32);
        let by_box = |a: &Fused, b: &Fused| a.partial_cmp(b).unwrap();
        let (found, expected) =
            (sorted(found.collect(), by_box), sorted(expected.collect(), by_box));
        assert_eq!(found.len(), expected.len(), "{}", name(case));
        for (found, expected) in found.iter().zip(&expected) {
            let is_close = |a: f32, b: f32| (a - b).abs() < 1e-5;
            assert!(
                found.0 == expected.0
                    && is_close(found.2, expected.2)
                    && found.1.iter().zip(&expected.1).all(|(&a, &b)| is_close(a, b)),
                "{}: {found:?}, expected {expected:?}",
                name(case)
            );
        }
        equal += 1;
    }
    assert_eq!((equal, different), (6, 5));
}

#[test]
fn cases_of_soft_suppression_have_the_expected_scores() {
    let Some(cases) = vectors("soft_nms_computed.json") else { return };
    for case in &cases {
        let params = &case["params"];
        let scores = floats(&case["scores"]);
        let mut boxes = Boxes::default();
        for (index, (corners, score)) in rows(&case["boxes"]).iter().zip(&scores).enumerate() {
            boxes.add(corners[..].try_into().unwrap(), *score, 0, index as u32);
        }
        let merged = boxes.merge(|nms| {
            nms.method = match params["soft"].as_str().unwrap() {
                "linear" => Method::SoftLinear,
                "gaussian" => Method::SoftGaussian,
                other => panic!("{other}"),
            };
            nms.iou_threshold = params["iou_threshold"].as_f64().unwrap();
            nms.sigma = params["sigma"].as_f64().unwrap() as f32;
            nms.score_threshold = params["min_score"].as_f64().unwrap() as f32;
            nms.threshold_inclusive = true;
        });
        let (keep, expected) =
            (indices(&case["expected"]["keep"]), floats(&case["expected"]["scores"]));
        assert_eq!(merged.scores.len(), expected.len(), "{}", name(case));
        for (index, (score, expected)) in merged.scores.iter().zip(&expected).enumerate() {
            assert!((score - expected).abs() < 1e-5, "{}: {score}, {expected}", name(case));
            // The order of scores that differ by less is not known.
            let is_near = |other: usize| {
                expected - 1e-5 < merged.scores[other] && merged.scores[other] < expected + 1e-5
            };
            let has_neighbor = [index.wrapping_sub(1), index + 1]
                .into_iter()
                .any(|other| other < keep.len() && is_near(other));
            assert!(has_neighbor || merged.keepers[index] == keep[index], "{}", name(case));
        }
    }
    assert_eq!(cases.len(), 9);
}

#[test]
fn cases_of_matrix_suppression_have_the_expected_scores() {
    let Some(cases) = vectors("matrix_nms.json") else { return };
    for case in &cases {
        let params = &case["params"];
        let number = |name: &str| params[name].as_f64().unwrap();
        let corners = rows(&case["boxes"]);
        let mut found: Vec<(f32, u32, u32)> = Vec::new();
        for (class, scores) in (0..).zip(rows(&case["scores"])) {
            if number("background_class") == f64::from(class) {
                continue;
            }
            let is_above = |&index: &usize| f64::from(scores[index]) > number("score_threshold");
            let mut order: Vec<usize> = (0..scores.len()).filter(is_above).collect();
            order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
            order.truncate(number("nms_top_k") as usize);
            let mut boxes = Boxes::default();
            for index in order {
                boxes.add(corners[index][..].try_into().unwrap(), scores[index], 0, index as u32);
            }
            let merged = boxes.merge(|nms| {
                assert_eq!(params["decay"], "linear");
                nms.method = Method::MatrixLinear;
                // The source drops scores equal to the threshold.
                nms.score_threshold = (number("post_threshold") as f32).next_up();
            });
            let groups = boxes.groups(&merged);
            found.extend(groups.iter().zip(&merged.scores).map(|(group, &s)| (s, class, group.0)));
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        if number("keep_top_k") >= 0.0 {
            found.truncate(number("keep_top_k") as usize);
        }
        let expected = rows(&case["expected"]["class_score_index"]);
        assert_eq!(found.len(), expected.len(), "{}", name(case));
        for ((score, class, index), expected) in found.iter().zip(&expected) {
            assert!((score - expected[1]).abs() < 1e-6, "{}: {found:?}", name(case));
            assert_eq!(
                [*class as f32, *index as f32],
                [expected[0], expected[2]],
                "{}",
                name(case)
            );
        }
    }
    assert_eq!(cases.len(), 6);
}

/// TensorFlow's box voting replaces the boxes and scores of survivors by means of all boxes that overlap them. Weighted
/// fusion means over the boxes that overlap the mean, and has equal results in these cases.
#[test]
fn cases_of_box_voting_have_the_expected_means() {
    let Some(cases) = vectors("box_voting.json") else { return };
    for case in &cases {
        let (pool, params) = (&case["pool"], &case["params"]);
        let classes = pool.get("classes").map(indices);
        let mut boxes = Boxes::default();
        for (index, (corners, score)) in
            rows(&pool["boxes"]).iter().zip(floats(&pool["scores"])).enumerate()
        {
            let class = classes.as_ref().map_or(0, |classes| classes[index] as i32);
            boxes.add(corners[..].try_into().unwrap(), score, class, index as u32);
        }
        let threshold = params.get("voting_iou_threshold").or(params.get("iou_threshold"));
        let merged = boxes.merge(|nms| {
            nms.method = Method::WeightedFusion;
            nms.iou_threshold = threshold.unwrap().as_f64().unwrap();
            nms.threshold_inclusive = true;
        });
        let expected = &case["expected"];
        let (corners, scores) = (rows(&expected["boxes"]), floats(&expected["scores"]));
        assert_eq!(merged.boxes.len(), corners.len(), "{}", name(case));
        let is_close = |a: f32, b: f32| (a - b).abs() < 1e-6;
        for index in 0..corners.len() {
            let edges = merged.boxes[index].iter().zip(&corners[index]);
            assert!(
                is_close(merged.scores[index], scores[index])
                    && edges.into_iter().all(|(&a, &b)| is_close(a, b)),
                "{}: {merged:?}",
                name(case)
            );
        }
        if let Some(classes) = expected.get("classes") {
            let found = merged.keepers.iter().map(|&keeper| boxes.classes[keeper as usize] as u32);
            assert!(found.eq(indices(classes)), "{}", name(case));
        }
    }
    assert_eq!(cases.len(), 2);
}
