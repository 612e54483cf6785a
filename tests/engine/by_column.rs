// SPDX-License-Identifier: MIT OR Apache-2.0
//! Methods that read a column of the layout, Adaptive-NMS and FeatureNMS: the engines are compared
//! on random scenes, an independent program has the expected results of cases, and each rule has an
//! example that was computed by hand.

use fastrand::Rng;
use nmsfilter_core::decoder::layout::ColumnKind;
use nmsfilter_core::decoder::{self, Options};
use nmsfilter_core::engine::{ClassRule, Engine, ImagePlace, Job, Method, Params, Reference};
use nmsfilter_core::nms::{Backend, BoxNms};
use nmsfilter_core::tensor::TensorView;
use serde_json::Value;

use crate::support::engines::{self, bits};
use crate::support::methods::{add_column, column_numbers, with_column_method};
use crate::support::random_layout::RandomLayout;
use crate::support::scene::Scene;

/// The bits of the survivors and of their columns.
type Bits = (Vec<[u32; 7]>, Vec<u32>);

/// The survivors of each group.
fn run(
    engine: &mut dyn Engine,
    tensors: &[TensorView<'_>],
    layout: &decoder::Layout,
    params: &Params,
    places: &[ImagePlace],
) -> Vec<Bits> {
    let outcome = engine.run(Job::new(tensors, layout, params, places)).unwrap();
    let of_group = |group: nmsfilter_core::engine::GroupOutcome<'_>| {
        (bits(&group).0, group.columns.iter().map(|number| number.to_bits()).collect())
    };
    outcome.groups().map(of_group).collect()
}

fn count(groups: &[Bits]) -> usize {
    groups.iter().map(|(survivors, _)| survivors.len()).sum()
}

#[test]
fn engine_equals_reference_bit_for_bit_and_in_order() {
    let scenes = engines::scene_count(3_000);
    let (mut engine, mut reference) = (engines::fast(), Reference::default());
    let (mut survivors, mut of_greedy) = ([0; 2], [0; 2]);
    for seed in 0..scenes {
        let scene = match seed % 3 {
            // Overlaps that equal the threshold, boxes that touch, and equal scores.
            0 => Scene::on_a_grid(seed),
            1 => Scene::any(seed),
            _ => Scene::joined(&Scene::batch(seed, 3)),
        };
        let mut rng = Rng::with_seed(seed);
        let params = with_column_method(&mut rng, &scene.params);
        let (mut tensors, mut layout) = scene.tensors();
        let (kind, components) = match params.method {
            Method::Adaptive => (ColumnKind::Density, 1),
            _ => (ColumnKind::Embedding, rng.usize(1..5)),
        };
        let shape = [layout.images, layout.anchors(), components];
        let numbers = column_numbers(&mut rng, shape.iter().product());
        add_column(&mut layout, tensors.len(), kind, components);
        tensors.push(TensorView::from_slice("column", &shape, &numbers));
        let mut places = scene.places();
        let mut group = 0;
        for (image, place) in places.iter_mut().enumerate() {
            group += u32::from(image > 0 && rng.bool());
            place.group = group;
        }
        let expected = run(&mut reference, &tensors, &layout, &params, &places);
        let found = run(&mut *engine, &tensors, &layout, &params, &places);
        assert_eq!(expected, found, "seed {seed}: {params:?}, {scene:?}");
        let greedy = Params { method: Method::Greedy, ..params.clone() };
        let method = usize::from(params.method == Method::Feature);
        survivors[method] += count(&found);
        of_greedy[method] += count(&run(&mut reference, &tensors, &layout, &greedy, &places));
    }
    for method in 0..2 {
        assert!(of_greedy[method] as u64 > scenes, "{of_greedy:?} survivors of greedy suppression");
        let more = survivors[method] - of_greedy[method];
        assert!(50 * more > of_greedy[method], "{survivors:?} and {of_greedy:?} survivors");
    }
}

#[test]
fn columns_of_any_layout_are_read_equally_by_both_engines() {
    let (mut engine, mut reference) = (engines::fast(), Reference::default());
    let mut survivors = 0;
    for seed in 0..engines::scene_count(1_500) {
        let mut rng = Rng::with_seed(seed);
        let random = RandomLayout::with_densities_and_embeddings(&mut rng);
        let (tensors, layout) = (random.views(), &random.layout);
        let params = Params {
            multi_label: rng.u8(0..4) == 0,
            ..with_column_method(&mut rng, &Params::default())
        };
        let mut places = engines::places(layout);
        let is_joined = rng.bool();
        places.iter_mut().filter(|_| is_joined).for_each(|place| place.group = 0);
        let expected = run(&mut reference, &tensors, layout, &params, &places);
        let found = run(&mut *engine, &tensors, layout, &params, &places);
        assert_eq!(expected, found, "seed {seed}: {params:?}");
        survivors += count(&found);
    }
    assert!(survivors > 0);
}

fn floats(value: &Value) -> Vec<f32> {
    let number = |value: &Value| value.as_f64().unwrap() as f32;
    match value.as_array().unwrap()[0].is_array() {
        true => value.as_array().unwrap().iter().flat_map(floats).collect(),
        false => value.as_array().unwrap().iter().map(number).collect(),
    }
}

#[test]
fn cases_of_an_independent_program_give_its_results() {
    let text = include_str!("../fixtures/columns/cases.json");
    let cases: Vec<Value> = serde_json::from_str(text).unwrap();
    assert_eq!(cases.len(), 24);
    for (number, case) in cases.iter().enumerate() {
        let [corners, scores, column] =
            ["boxes", "scores", "column"].map(|name| floats(&case[name]));
        let n = scores.len();
        let shape = if column.len() == n { vec![n] } else { vec![n, column.len() / n] };
        let corners = TensorView::from_slice("boxes", &[n, 4], &corners);
        let scores = TensorView::from_slice("scores", &[n], &scores);
        let column = TensorView::from_slice("column", &shape, &column);
        let kept: Vec<u32> = serde_json::from_value(case["kept"].clone()).unwrap();

        let mut nms = BoxNms::new(Backend::Cpu, None).unwrap();
        let mut params = Params { class_agnostic: true, ..Params::default() };
        params.thresholds.default = 0.0;
        let kind = match case["method"].as_str() {
            Some("adaptive") => {
                params.method = Method::Adaptive;
                ColumnKind::Density
            }
            _ => {
                params.method = Method::Feature;
                let number = |name: &str| case[name].as_f64().unwrap() as f32;
                params.embedding_distance = number("embedding_distance");
                params.embedding_iou_threshold = number("embedding_iou_threshold");
                ColumnKind::Embedding
            }
        };
        nms.iou_threshold = case["iou_threshold"].as_f64().unwrap();
        params.iou_threshold = nms.iou_threshold as f32;
        nms.method = params.method;
        nms.embedding_distance = params.embedding_distance;
        nms.embedding_iou_threshold = params.embedding_iou_threshold;
        let found = nms.merge(&corners, &scores, None, Some(&column)).unwrap();
        assert_eq!(found.keepers, kept, "case {number}");

        let tensors = [corners, scores];
        let mut layout = decoder::choose(&tensors, None, Options::default()).unwrap().layout;
        add_column(&mut layout, tensors.len(), kind, *shape.get(1).unwrap_or(&1));
        let [corners, scores] = tensors;
        let tensors = [corners, scores, column];
        let places = engines::places(&layout);
        let engines: [Box<dyn Engine>; 2] = [Box::new(Reference::default()), engines::fast()];
        for mut engine in engines {
            let outcome = engine.run(Job::new(&tensors, &layout, &params, &places)).unwrap();
            let anchors: Vec<u32> = outcome.group(0).survivors.iter().map(|d| d.anchor).collect();
            assert_eq!(anchors, kept, "case {number}, {}", engine.name());
        }
    }
}

/// Suppresses intervals of left edge, right edge and score, as boxes of height 10, and returns the
/// indices of those that remain.
fn keepers(
    intervals: &[[f32; 3]],
    column: &[f32],
    set: impl FnOnce(&mut BoxNms),
) -> Result<Vec<u32>, String> {
    let n = intervals.len();
    let corners: Vec<f32> = intervals.iter().flat_map(|&[x1, x2, _]| [x1, 0.0, x2, 10.0]).collect();
    let scores: Vec<f32> = intervals.iter().map(|interval| interval[2]).collect();
    let mut nms = BoxNms::new(Backend::Cpu, None).unwrap();
    set(&mut nms);
    let shape = if nms.method == Method::Feature { vec![n, column.len() / n] } else { vec![n] };
    let column = TensorView::from_slice("column", &shape, column);
    let corners = TensorView::from_slice("boxes", &[n, 4], &corners);
    let scores = TensorView::from_slice("scores", &[n], &scores);
    let found = nms.merge(&corners, &scores, None, Some(&column));
    found.map(|found| found.keepers.clone()).map_err(|error| error.to_string())
}

/// Two boxes whose intersection is 0.6 of their union.
const PAIR: [[f32; 3]; 2] = [[0.0, 40.0, 0.9], [10.0, 50.0, 0.8]];

#[test]
fn the_density_of_the_better_box_raises_the_threshold() {
    let adaptive = |densities: [f32; 2], threshold: f64, inclusive: bool| {
        let set = |nms: &mut BoxNms| {
            (nms.method, nms.iou_threshold) = (Method::Adaptive, threshold);
            nms.threshold_inclusive = inclusive;
        };
        keepers(&PAIR, &densities, set).unwrap().len()
    };
    assert_eq!(adaptive([0.5, 0.9], 0.5, false), 1);
    assert_eq!(adaptive([0.7, 0.0], 0.5, false), 2);
    // A lower density has no effect.
    assert_eq!(adaptive([0.5, 0.5], 0.7, false), 2);
    // Boxes of 300 and an intersection of 200: half of the union exactly.
    let half = [[0.0, 30.0, 0.9], [10.0, 40.0, 0.8]];
    for (inclusive, left) in [(false, vec![0, 1]), (true, vec![0])] {
        let set = |nms: &mut BoxNms| {
            (nms.method, nms.iou_threshold) = (Method::Adaptive, 0.25);
            nms.threshold_inclusive = inclusive;
        };
        assert_eq!(keepers(&half, &[0.5, 0.0], set).unwrap(), left, "inclusive {inclusive}");
    }
    for (density, left) in [(f32::NAN, 1), (-1.0, 1), (f32::INFINITY, 2), (1.5, 2)] {
        assert_eq!(adaptive([density, 0.0], 0.5, false), left, "{density}");
    }
}

#[test]
fn a_suppressed_box_does_not_suppress() {
    // Each interval overlaps the next by 0.6, and the first the third by 1/3.
    let chain = [[0.0, 40.0, 0.9], [10.0, 50.0, 0.8], [20.0, 60.0, 0.7]];
    let adaptive = |nms: &mut BoxNms| nms.method = Method::Adaptive;
    assert_eq!(keepers(&chain, &[0.0; 3], adaptive).unwrap(), [0, 2]);
    // The first keeps the second, which suppresses the third.
    assert_eq!(keepers(&chain, &[0.7, 0.0, 0.0], adaptive).unwrap(), [0, 1]);
}

#[test]
fn embeddings_decide_between_two_overlaps() {
    let feature = |embeddings: &[f32], [low, high]: [f32; 2], distance: f32| {
        let set = |nms: &mut BoxNms| {
            (nms.method, nms.iou_threshold) = (Method::Feature, low.into());
            (nms.embedding_iou_threshold, nms.embedding_distance) = (high, distance);
        };
        keepers(&PAIR, embeddings, set).unwrap().len()
    };
    // The embeddings are 5 apart.
    let apart = [0.0, 0.0, 3.0, 4.0];
    assert_eq!(feature(&apart, [0.25, 0.75], 4.0), 2);
    assert_eq!(feature(&apart, [0.25, 0.75], 5.0), 1);
    assert_eq!(feature(&apart, [0.25, 0.5], 4.0), 1);
    assert_eq!(feature(&[0.0; 2], [0.25, 0.75], 0.0), 1);
    assert_eq!(feature(&[0.0; 2], [0.75, 0.9], 1.0), 2);
    // A distance that is no number, or infinite, is not near.
    assert_eq!(feature(&[f32::NAN, f32::NAN], [0.25, 0.75], 1.0e9), 2);
    assert_eq!(feature(&[f32::INFINITY, 0.0], [0.25, 0.75], 1.0e9), 2);
}

#[test]
fn classes_have_their_thresholds() {
    let rows = [
        [0.0, 0.0, 40.0, 10.0, 0.9, 0.0, 0.5],
        [10.0, 0.0, 50.0, 10.0, 0.8, 0.0, 0.0],
        [0.0, 50.0, 40.0, 60.0, 0.9, 1.0, 0.5],
        [10.0, 50.0, 50.0, 60.0, 0.8, 1.0, 0.0f32],
    ];
    let text = "name = mine\n[tensor rows]\nshape = N,7\n[score]\nscores = rows 4\nclass = rows 5\n\
                [box]\nbox = rows 0\n[column density]\nnumbers = rows 6\ncount = 1\nkind = density\n";
    let numbers = rows.concat();
    let tensors = [TensorView::from_slice("output", &[1, 4, 7], &numbers)];
    let decoder = decoder::from_text(text).unwrap();
    let options = Options { num_classes: 2, ..Options::default() };
    let layout = decoder::choose(&tensors, Some(decoder), options).unwrap().layout;
    let params = Params {
        method: Method::Adaptive,
        class_rules: vec![ClassRule { iou_threshold: Some(0.7), ..ClassRule::default() }],
        ..Params::default()
    };
    let engines: [Box<dyn Engine>; 2] = [Box::new(Reference::default()), engines::fast()];
    for mut engine in engines {
        let outcome =
            engine.run(Job::new(&tensors, &layout, &params, &engines::places(&layout))).unwrap();
        let group = outcome.group(0);
        let anchors: Vec<u32> = group.survivors.iter().map(|survivor| survivor.anchor).collect();
        assert_eq!(anchors, [0, 2, 1], "{}", engine.name());
        assert_eq!(group.columns, [0.5, 0.5, 0.0]);
    }
}

#[test]
fn boxes_that_overlap_nothing_remain_with_any_column() {
    let boxes = [[0.0, 40.0, 0.5], [5.0, 5.0, 0.9], [10.0, 50.0, 0.6], [f32::NAN, 9.0, 0.4]];
    let adaptive = |nms: &mut BoxNms| nms.method = Method::Adaptive;
    assert_eq!(keepers(&boxes, &[0.0, 0.0, 0.7, 0.0], adaptive).unwrap(), [1, 2, 0, 3]);
    assert_eq!(keepers(&boxes, &[0.7, 0.7, 0.0, 0.7], adaptive).unwrap(), [1, 2, 3]);
    let limited = |nms: &mut BoxNms| (nms.method, nms.max_detections) = (Method::Adaptive, 2);
    assert_eq!(keepers(&boxes, &[0.0, 0.0, 0.7, 0.0], limited).unwrap(), [1, 2]);
}

#[test]
fn a_missing_or_other_column_is_an_error() {
    let corners = TensorView::from_slice("boxes", &[1, 4], &[0.0, 0.0, 9.0, 9.0f32]);
    let scores = TensorView::from_slice("scores", &[1], &[0.5f32]);
    let mut nms = BoxNms::new(Backend::Cpu, None).unwrap();
    let densities = TensorView::from_slice("column", &[1], &[0.5f32]);
    let embeddings = TensorView::from_slice("column", &[1, 2], &[0.5f32; 2]);
    for (method, column, expected) in [
        (
            Method::Adaptive,
            None,
            "expected densities [1] of type f32 or f16 for the method adaptive, got none",
        ),
        (
            Method::Adaptive,
            Some(&embeddings),
            "expected densities [1] of type f32 or f16 for the method adaptive, got column (f32 1x2)",
        ),
        (
            Method::Feature,
            Some(&densities),
            "expected embeddings [1, 1 to 1024] of type f32 or f16 for the method feature, got column (f32 1)",
        ),
        (
            Method::Greedy,
            Some(&densities),
            "expected no densities and no embeddings for the method greedy, got column (f32 1)",
        ),
    ] {
        nms.method = method;
        let error = nms.merge(&corners, &scores, None, column).unwrap_err().to_string();
        assert_eq!(error, expected);
    }
    // `run` takes no column.
    nms.method = Method::Adaptive;
    assert!(nms.run(&corners, &scores, None).is_err());

    let tensors = [corners, scores];
    let layout = decoder::choose(&tensors, None, Options::default()).unwrap().layout;
    let params = Params { method: Method::Feature, ..Params::default() };
    let engines: [Box<dyn Engine>; 2] = [Box::new(Reference::default()), engines::fast()];
    for mut engine in engines {
        let expected = "the method feature reads a column of the kind embedding, but decoder boxes has none; \
                        describe the tensors in a layout file with this column, or choose another method";
        let outcome = engine.run(Job::new(&tensors, &layout, &params, &engines::places(&layout)));
        let error = outcome.map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), expected, "{}", engine.name());
        assert_eq!(engine.supports(&layout, &params), Err(error.clone()));
        // Other errors of the layout come later.
        let without_classes = decoder::Layout { classes: 0, ..layout.clone() };
        let places = engines::places(&layout);
        let outcome = engine.run(Job::new(&tensors, &without_classes, &params, &places));
        assert_eq!(outcome.map(|_| ()), Err(error));
    }
}
