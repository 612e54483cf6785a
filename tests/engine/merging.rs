// SPDX-License-Identifier: MIT OR Apache-2.0
//! Methods that merge boxes or lower scores: the engines are compared on random scenes, and each
//! rule has an example that was computed by hand. The examples run on the CPU.

use fastrand::Rng;
use nmsfilter_core::decoder::{self, Options};
use nmsfilter_core::engine::{
    ClassRule, ClassThresholds, Engine, GroupOutcome, ImagePlace, Job, Method, Overlap, Params,
    Reference,
};
use nmsfilter_core::nms::{Backend, BoxNms};
use nmsfilter_core::tensor::TensorView;

use crate::support::engines::{self, bits};
use crate::support::methods::with_any_method;
use crate::support::random_layout::RandomLayout;
use crate::support::scene::Scene;

/// The bits of the survivors and of their columns.
fn all_bits(group: &GroupOutcome<'_>) -> (Vec<[u32; 7]>, Vec<u32>) {
    (bits(group).0, group.columns.iter().map(|number| number.to_bits()).collect())
}

/// Runs both engines, which must agree, and returns the numbers of survivors and candidates.
fn compare(
    tensors: &[TensorView<'_>],
    layout: &decoder::Layout,
    params: &Params,
    places: &[ImagePlace],
    engine: &mut dyn Engine,
    context: &str,
) -> [usize; 2] {
    let mut reference = Reference::default();
    let expected = reference.run(Job::new(tensors, layout, params, places)).unwrap();
    let found = engine.run(Job::new(tensors, layout, params, places)).unwrap();
    let mut counts = [0; 2];
    for (expected, found) in expected.groups().zip(found.groups()) {
        assert_eq!(all_bits(&expected), all_bits(&found), "{context}, {params:?}");
        counts[0] += found.survivors.len();
        counts[1] += found.candidates;
    }
    counts
}

#[test]
fn engine_equals_reference_bit_for_bit_and_in_order() {
    let scenes = engines::scene_count(6_000);
    let (mut engine, mut survivors, mut candidates) = (engines::fast(), 0, 0);
    for seed in 0..scenes {
        let scene = match seed % 3 {
            // Overlaps that equal the threshold, boxes that touch, and equal scores.
            0 => Scene::on_a_grid(seed),
            _ => Scene::any(seed),
        };
        let (tensors, layout) = scene.tensors();
        let params = with_any_method(&mut Rng::with_seed(seed), &scene.params);
        let context = format!("seed {seed}: {scene:?}");
        let [left, all] =
            compare(&tensors, &layout, &params, &scene.places(), &mut *engine, &context);
        survivors += left;
        candidates += all;
    }
    let at_least = |count: u64| (count * scenes / 6_000) as usize;
    assert!(candidates > at_least(400_000), "{candidates} candidates");
    assert!(survivors > at_least(50_000), "{survivors} survivors");
}

#[test]
fn images_of_a_group_are_merged_together_in_both_engines() {
    let mut engine = engines::fast();
    for seed in 0..engines::scene_count(600) {
        let batch = Scene::batch(seed, 4);
        let joined = Scene::joined(&batch);
        let (tensors, layout) = joined.tensors();
        let mut rng = Rng::with_seed(seed);
        let mut places = joined.places();
        let mut group = 0;
        for (image, place) in places.iter_mut().enumerate() {
            group += u32::from(image > 0 && rng.u32(0..3) == 0);
            place.group = group;
        }
        let params = with_any_method(&mut rng, &joined.params);
        compare(&tensors, &layout, &params, &places, &mut *engine, &format!("seed {seed}"));
    }
}

#[test]
fn survivors_have_the_columns_and_masks_of_their_keepers_in_both_engines() {
    let mut engine = engines::fast();
    let (mut columns, mut masks) = (0, 0);
    for seed in 0..engines::scene_count(1_500) {
        let mut rng = Rng::with_seed(seed);
        let random = RandomLayout::new(&mut rng);
        let (tensors, layout) = (random.views(), &random.layout);
        let params = with_any_method(&mut rng, &Params::default());
        let places = engines::places(layout);
        compare(&tensors, layout, &params, &places, &mut *engine, &format!("seed {seed}"));
        let mut reference = Reference::default();
        let expected = reference.run(Job::new(&tensors, layout, &params, &places)).unwrap();
        let found = engine.run(Job::new(&tensors, layout, &params, &places)).unwrap();
        for (expected, found) in expected.groups().zip(found.groups()) {
            columns += found.columns.len();
            for (expected, found) in engines::masks(&expected).iter().zip(engines::masks(&found)) {
                let contents = |mask: &nmsfilter_core::engine::Mask<'_>| mask.bytes.to_vec();
                assert_eq!(expected.as_ref().map(contents), found.as_ref().map(contents));
                masks += usize::from(found.is_some());
            }
        }
    }
    assert!(columns > 0 && masks > 0, "{columns} numbers of columns, {masks} masks");
}

#[test]
fn oriented_boxes_are_an_error_of_both_engines() {
    // Center, size, score, class and angle.
    let row = [50.0, 50.0, 30.0, 10.0, 0.9, 0.0, 0.5f32];
    let tensors = [TensorView::from_slice("output0", &[1, 1, 7], &row)];
    let decoder = decoder::by_name("end2end-obb");
    let layout = decoder::choose(&tensors, decoder, Options::default()).unwrap().layout;
    let places = engines::places(&layout);
    let engines: [Box<dyn Engine>; 2] = [Box::new(Reference::default()), engines::fast()];
    for mut engine in engines {
        for method in Method::ALL {
            let params = Params { method, ..Params::default() };
            let outcome = engine.run(Job::new(&tensors, &layout, &params, &places)).map(|_| ());
            if matches!(method, Method::Greedy | Method::MapReduce | Method::None) {
                assert_eq!(outcome, Ok(()));
                continue;
            }
            let error = outcome.unwrap_err();
            let expected = format!(
                "the method {} is not defined for oriented boxes; choose greedy, map-reduce or none",
                method.name()
            );
            assert_eq!(error.to_string(), expected);
            assert_eq!(engine.supports(&layout, &params), Err(error));
        }
    }
}

/// A box with its score.
type Scored = ([f32; 4], f32);

/// Boxes, scores, keepers, and the indices that were merged into each keeper.
type Remaining = (Vec<[f32; 4]>, Vec<f32>, Vec<u32>, Vec<Vec<u32>>);

/// Merges boxes, and returns what remains.
fn merge(boxes: &[Scored], set: impl FnOnce(&mut BoxNms)) -> Remaining {
    let corners: Vec<f32> = boxes.iter().flat_map(|(corners, _)| *corners).collect();
    let scores: Vec<f32> = boxes.iter().map(|(_, score)| *score).collect();
    let mut nms = BoxNms::new(Backend::Cpu, None).unwrap();
    set(&mut nms);
    let corners = TensorView::from_slice("boxes", &[boxes.len(), 4], &corners);
    let scores = TensorView::from_slice("scores", &[boxes.len()], &scores);
    let found = nms.merge(&corners, &scores, None, None).unwrap();
    let merged = (0..found.keepers.len()).map(|index| found.merged_into(index).to_vec());
    (found.boxes.clone(), found.scores.clone(), found.keepers.clone(), merged.collect())
}

/// Intervals on the x axis, as boxes of height 10.
fn intervals(intervals: &[[f32; 3]]) -> Vec<Scored> {
    intervals.iter().map(|&[left, right, score]| ([left, 0.0, right, 10.0], score)).collect()
}

/// The intervals that remain.
fn spans(boxes: &[[f32; 4]]) -> Vec<[f32; 2]> {
    boxes.iter().map(|&[left, _, right, _]| [left, right]).collect()
}

fn by(method: Method, overlap: Overlap, threshold: f64) -> impl Fn(&mut BoxNms) {
    move |nms| (nms.method, nms.overlap, nms.iou_threshold) = (method, overlap, threshold)
}

#[test]
fn merging_joins_what_the_keeper_suppresses_and_transitive_merging_joins_chains() {
    // Each interval overlaps the next by half.
    let chain = intervals(&[[0.0, 10.0, 0.9], [5.0, 15.0, 0.8], [10.0, 20.0, 0.7]]);
    let (boxes, scores, keepers, merged) = merge(&chain, by(Method::Merge, Overlap::Smaller, 0.4));
    assert_eq!(spans(&boxes), [[0.0, 15.0], [10.0, 20.0]]);
    assert_eq!((scores, keepers), (vec![0.9, 0.7], vec![0, 2]));
    assert_eq!(merged, [vec![1], vec![]]);
    let (boxes, scores, keepers, merged) =
        merge(&chain, by(Method::MergeTransitive, Overlap::Smaller, 0.4));
    assert_eq!(spans(&boxes), [[0.0, 20.0]]);
    assert_eq!((scores, keepers, merged), (vec![0.9], vec![0], vec![vec![1, 2]]));
}

#[test]
fn released_boxes_remain_and_merge_with_each_other_unless_they_are_lost() {
    // The second interval makes the box so long that the last two are less than half of it.
    let boxes =
        intervals(&[[0.0, 10.0, 0.9], [-9.0, 9.0, 0.8], [3.0, 12.0, 0.7], [3.0, 13.0, 0.6]]);
    let iou = by(Method::Merge, Overlap::Iou, 0.4);
    let (found, scores, keepers, merged) = merge(&boxes, &iou);
    assert_eq!(spans(&found), [[-9.0, 10.0], [3.0, 13.0]]);
    assert_eq!((scores, keepers), (vec![0.9, 0.7], vec![0, 2]));
    assert_eq!(merged, [vec![1], vec![3]]);
    let (found, ..) = merge(&boxes, |nms| {
        iou(nms);
        nms.lose_released = true;
    });
    assert_eq!(spans(&found), [[-9.0, 10.0]]);
}

#[test]
fn an_overlap_equal_to_an_inclusive_threshold_joins_unless_released_boxes_are_lost() {
    let half = intervals(&[[0.0, 10.0, 0.9], [5.0, 15.0, 0.8]]);
    for (inclusive, lose, expected) in [
        (true, false, vec![[0.0, 15.0]]),
        (false, false, vec![[0.0, 10.0], [5.0, 15.0]]),
        (true, true, vec![[0.0, 10.0]]),
    ] {
        let (boxes, ..) = merge(&half, |nms| {
            by(Method::Merge, Overlap::Smaller, 0.5)(nms);
            (nms.threshold_inclusive, nms.lose_released) = (inclusive, lose);
        });
        assert_eq!(spans(&boxes), expected, "inclusive {inclusive}, lose {lose}");
    }
}

#[test]
fn a_weighted_average_has_the_keepers_score() {
    let pair = intervals(&[[0.0, 10.0, 0.75], [2.0, 14.0, 0.25]]);
    let (boxes, scores, _, merged) = merge(&pair, by(Method::WeightedAverage, Overlap::Iou, 0.5));
    assert_eq!(spans(&boxes), [[0.5, 11.0]]);
    assert_eq!((scores, merged), (vec![0.75], vec![vec![1]]));
}

#[test]
fn weighted_fusion_compares_with_the_mean_and_averages_scores() {
    // The third interval overlaps the mean of the first two by more than half, but not the first.
    let boxes = intervals(&[[0.0, 8.0, 0.5], [4.0, 12.0, 0.5], [5.0, 13.0, 0.25]]);
    let (found, scores, keepers, merged) =
        merge(&boxes, by(Method::WeightedFusion, Overlap::Iou, 0.3));
    assert_eq!(spans(&found), [[2.6, 10.6]]);
    assert_eq!(scores, [1.25f32 / 3.0]);
    assert_eq!((keepers, merged), (vec![0], vec![vec![1, 2]]));
}

#[test]
fn soft_suppression_lowers_scores_until_they_are_below_the_threshold() {
    // The overlaps are 1/3 with the next interval.
    let boxes = intervals(&[[0.0, 10.0, 0.9], [5.0, 15.0, 0.6], [20.0, 30.0, 0.5]]);
    let soft = by(Method::SoftLinear, Overlap::Iou, 0.3);
    let (_, scores, keepers, _) = merge(&boxes, &soft);
    assert_eq!(keepers, [0, 2, 1]);
    assert_eq!(scores, [0.9, 0.5, 0.6 * (1.0 - 1.0f32 / 3.0)]);
    // The overlap does not exceed the threshold.
    let (_, scores, ..) = merge(&boxes, by(Method::SoftLinear, Overlap::Iou, 0.4));
    assert_eq!(scores, [0.9, 0.6, 0.5]);
    let (_, scores, keepers, _) = merge(&boxes, |nms| {
        soft(nms);
        nms.score_threshold = 0.45;
    });
    assert_eq!((scores, keepers), (vec![0.9, 0.5], vec![0, 2]));
    let (_, scores, ..) = merge(&boxes, |nms| {
        by(Method::SoftGaussian, Overlap::Iou, 1.0)(nms);
        nms.sigma = 0.25;
    });
    let expected = 0.6 * (-(1.0f32 / 3.0).powi(2) / 0.25).exp();
    assert!((scores[2] - expected).abs() < 1e-6, "{scores:?}");
}

#[test]
fn matrix_decay_is_compensated_by_the_overlap_of_the_suppressor() {
    // The overlaps of the second interval with the first and of the third with the second are 1/3,
    // and the first does not touch the third.
    let boxes = intervals(&[[0.0, 10.0, 0.9], [5.0, 15.0, 0.6], [10.0, 20.0, 0.3]]);
    let (_, scores, keepers, _) = merge(&boxes, by(Method::MatrixLinear, Overlap::Iou, 0.5));
    assert_eq!(keepers, [0, 1, 2]);
    // The third is not lowered, because the second is itself lowered by as much.
    assert_eq!(scores, [0.9, 0.6 * (1.0 - 1.0f32 / 3.0), 0.3]);
}

#[test]
fn no_method_raises_a_negative_score() {
    let boxes = intervals(&[[0.0, 10.0, -1.0], [2.0, 12.0, -2.0]]);
    for method in [Method::SoftLinear, Method::SoftGaussian, Method::MatrixLinear] {
        let (_, scores, ..) = merge(&boxes, by(method, Overlap::Iou, 0.3));
        assert_eq!(scores, [-1.0, -2.0], "{}", method.name());
    }
}

#[test]
fn boxes_that_overlap_nothing_remain_and_boxes_below_the_threshold_are_left_out() {
    let mut boxes = intervals(&[[0.0, 10.0, 0.5], [1.0, 11.0, 0.4], [0.0, 30.0, 0.1]]);
    boxes.push(([5.0, 5.0, 5.0, 9.0], 0.45));
    boxes.push(([f32::NAN, 0.0, 9.0, 9.0], 0.9));
    for method in Method::ALL.into_iter().filter(|method| method.column().is_none()) {
        let (found, _, keepers, _) = merge(&boxes, |nms| {
            by(method, Overlap::Smaller, 0.5)(nms);
            nms.score_threshold = 0.2;
        });
        assert_eq!(keepers[0], 4, "{}", method.name());
        assert!(found[0][0].is_nan());
        assert!(keepers.contains(&3) && !keepers.contains(&2), "{}: {keepers:?}", method.name());
        let (found, ..) = merge(&boxes, |nms| {
            by(method, Overlap::Smaller, 0.5)(nms);
            nms.score_threshold = 2.0;
        });
        assert!(found.is_empty(), "{}", method.name());
        let (found, ..) = merge(&boxes, |nms| {
            by(method, Overlap::Smaller, 0.5)(nms);
            nms.max_detections = 1;
        });
        assert_eq!(found.len(), 1, "{}", method.name());
    }
}

#[test]
fn classes_are_merged_separately_unless_class_agnostic_is_set() {
    let corners = [0.0, 0.0, 10.0, 10.0, 1.0, 0.0, 11.0, 10.0f32];
    let corners = TensorView::from_slice("boxes", &[2, 4], &corners);
    let scores = TensorView::from_slice("scores", &[2], &[0.8, 0.9f32]);
    let numbers = [-7i64, 1 << 40];
    let classes = TensorView::from_slice("classes", &[2], &numbers);
    let mut nms = BoxNms::new(Backend::Cpu, None).unwrap();
    nms.method = Method::Merge;
    assert_eq!(nms.merge(&corners, &scores, Some(&classes), None).unwrap().classes, [1 << 40, -7]);
    nms.class_agnostic = true;
    let found = nms.merge(&corners, &scores, Some(&classes), None).unwrap();
    assert_eq!((&found.classes[..], &found.keepers[..]), (&[1 << 40][..], &[1][..]));
}

#[test]
fn wrong_arguments_are_errors() {
    let corners = TensorView::from_slice("boxes", &[1, 5], &[0.0f32; 5]);
    let scores = TensorView::from_slice("scores", &[1], &[0.5f32]);
    let mut nms = BoxNms::new(Backend::Cpu, None).unwrap();
    let error = nms.merge(&corners, &scores, None, None).unwrap_err().to_string();
    assert_eq!(error, "expected boxes [N,4] of type f32 or f16, got boxes (f32 1x5)");
    // `run` suppresses oriented boxes, but does not merge them.
    nms.method = Method::Merge;
    let error = nms.run(&corners, &scores, None).unwrap_err().to_string();
    assert!(error.starts_with("the method merge is not defined for oriented boxes"), "{error}");
    let corners = TensorView::from_slice("boxes", &[1, 4], &[0.0f32; 4]);
    nms.sigma = 0.0;
    let error = nms.merge(&corners, &scores, None, None).unwrap_err().to_string();
    assert_eq!(error, "sigma: expected a finite number above 0, got 0");
}

#[test]
fn limits_of_classes_apply_to_final_scores() {
    // Rows of x1, y1, x2, y2, score and class. The second row of class 0 falls below the third.
    let rows = [
        [0.0, 0.0, 10.0, 10.0, 0.9, 0.0],
        [1.0, 0.0, 11.0, 10.0, 0.8, 0.0],
        [50.0, 0.0, 60.0, 10.0, 0.5, 0.0],
        [0.0, 50.0, 10.0, 60.0, 0.4, 1.0f32],
    ]
    .concat();
    let tensors = [TensorView::from_slice("output0", &[1, 4, 6], &rows)];
    let decoder = decoder::by_name("end2end");
    let options = Options { num_classes: 2, ..Options::default() };
    let layout = decoder::choose(&tensors, decoder, options).unwrap().layout;
    let params = Params {
        method: Method::SoftLinear,
        class_rules: vec![ClassRule { max_detections: 2, ..ClassRule::default() }],
        thresholds: ClassThresholds::uniform(0.1),
        ..Params::default()
    };
    let places = engines::places(&layout);
    let engines: [Box<dyn Engine>; 2] = [Box::new(Reference::default()), engines::fast()];
    for mut engine in engines {
        let outcome = engine.run(Job::new(&tensors, &layout, &params, &places)).unwrap();
        let anchors: Vec<u32> = outcome.group(0).survivors.iter().map(|d| d.anchor).collect();
        assert_eq!(anchors, [0, 2, 3], "{}", engine.name());
    }
}
