// SPDX-License-Identifier: MIT OR Apache-2.0
//! The score of the background: first or last, set or found by the number of classes. The expected scores are formulas in
//! this file, in double precision.

use nmsfilter_core::decoder::layout::{Activation, Background};
use nmsfilter_core::decoder::{self, Choice, Options};
use nmsfilter_core::engine::{ClassThresholds, Engine, ImagePlace, Job, Method, Params, Reference};
use nmsfilter_core::tensor::TensorView;

use super::support::engines;

const BOX: [f32; 4] = [0.5, 0.5, 0.25, 0.5];

/// Two objects, of classes 1 and 0, and two anchors without an object, with the score of "no object" last.
const LAST: [[f32; 4]; 4] =
    [[-1.0, 4.0, 0.5, 1.0], [0.25, -2.0, 0.0, 6.0], [3.0, 1.0, -2.0, -1.5], [1.0, 0.5, 0.0, 3.0]];

fn softmax(of: f32, logits: &[f32]) -> f64 {
    let sum: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
    f64::from(of).exp() / sum
}

fn sigmoid(logit: f32) -> f64 {
    1.0 / (1.0 + (-f64::from(logit)).exp())
}

/// Tensors with the boxes of all rows and these scores.
fn tensors<'a>(
    names: [&'a str; 2],
    boxes: &'a [f32],
    scores: &'a [[f32; 4]],
) -> [TensorView<'a>; 2] {
    let count = scores.len();
    [
        TensorView::from_slice(names[0], &[1, count, 4], boxes),
        TensorView::from_slice(names[1], &[1, count, 4], scores.as_flattened()),
    ]
}

fn choose(decoder: &str, tensors: &[TensorView<'_>], options: Options) -> Choice {
    decoder::choose(tensors, decoder::by_name(decoder), options).unwrap()
}

/// The class and the score of each anchor whose score reaches `threshold`, by the anchor. The fast engine has equal bits.
fn scores(choice: &Choice, tensors: &[TensorView<'_>], threshold: f32) -> Vec<(u32, u32, f32)> {
    let layout = &choice.layout;
    let thresholds = ClassThresholds::uniform(threshold);
    let params = Params { thresholds, method: Method::None, ..Params::default() };
    let places = [ImagePlace::in_model([100.0; 2])];
    let mut reference = Reference::default();
    let found = reference.run(Job::new(tensors, layout, &params, &places)).unwrap();
    let mut fast = engines::fast();
    let of_fast = fast.run(Job::new(tensors, layout, &params, &places)).unwrap();
    assert_eq!(engines::bits(&found.group(0)), engines::bits(&of_fast.group(0)));
    let survivors = found.group(0).survivors.iter();
    let mut all: Vec<_> = survivors.map(|it| (it.anchor, it.class, it.score)).collect();
    all.sort_by_key(|(anchor, class, _)| (*anchor, *class));
    all
}

#[track_caller]
fn assert_near(found: &[(u32, u32, f32)], expected: &[(u32, u32, f64)]) {
    let is_near = found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, expected)| {
            (found.0, found.1) == (expected.0, expected.1)
                && (f64::from(found.2) - expected.2).abs() < 1e-6
        });
    assert!(is_near, "{found:?}, expected {expected:?}");
}

/// DETR and YOLOS have one number more than classes, for "no object".
#[test]
fn the_last_logit_of_detr_is_no_object_if_there_is_one_more_than_known_classes() {
    let boxes = BOX.repeat(4);
    let last: Vec<_> = [(0, 1), (1, 0), (2, 0), (3, 0)]
        .map(|(row, class): (u32, u32)| {
            let logits = &LAST[row as usize];
            (row, class, softmax(logits[class as usize], logits))
        })
        .into();
    let any = Options::default();
    let has_softmax = Some(Activation::Softmax);
    for options in [
        Options { labels: 3, ..any },
        Options { num_classes: 3, ..any },
        Options { labels: 3, score_activation: has_softmax, ..any },
        // Softmax means that there is no object elsewhere, unless there are as many classes as logits.
        Options { score_activation: has_softmax, ..any },
        Options { background: Some(Background::Last), ..any },
        Options { background: Some(Background::Last), labels: 80, ..any },
    ] {
        for names in [["pred_boxes", "logits"], ["boxes", "pred_logits"]] {
            let tensors = tensors(names, &boxes, &LAST);
            let choice = choose("detr", &tensors, options);
            assert_eq!(choice.layout.classes, 3, "{options:?}");
            assert_near(&scores(&choice, &tensors, 0.0), &last);
            assert_eq!(scores(&choice, &tensors, 0.5).len(), 2, "{options:?}");
        }
    }
}

/// RT-DETR, D-FINE and others have as many logits as classes. RF-DETR, found by its names, has a sigmoid in any case.
#[test]
fn logits_of_detr_are_of_classes_with_sigmoid_if_nothing_else_is_known() {
    let boxes = BOX.repeat(4);
    let all = |activation: fn(f32, &[f32]) -> f64| {
        [(0, 1), (1, 3), (2, 0), (3, 3)].map(|(row, class): (u32, u32)| {
            let logits = &LAST[row as usize];
            (row, class, activation(logits[class as usize], logits))
        })
    };
    let of_sigmoid = all(|logit, _| sigmoid(logit));
    let any = Options::default();
    for (names, options) in [
        (["pred_boxes", "logits"], any),
        (["pred_boxes", "logits"], Options { labels: 4, ..any }),
        (["pred_boxes", "logits"], Options { labels: 2, ..any }),
        (["pred_boxes", "logits"], Options { num_classes: 4, labels: 3, ..any }),
        (
            ["pred_boxes", "logits"],
            Options { labels: 3, background: Some(Background::None), ..any },
        ),
        (["dets", "labels"], Options { labels: 3, ..any }),
    ] {
        let tensors = tensors(names, &boxes, &LAST);
        let choice = choose("detr", &tensors, options);
        assert_eq!(choice.layout.classes, 4, "{options:?}");
        assert_near(&scores(&choice, &tensors, 0.0), &of_sigmoid);
    }
    let tensors = tensors(["pred_boxes", "logits"], &boxes, &LAST);
    let options = Options { labels: 4, score_activation: Some(Activation::Softmax), ..any };
    assert_near(&scores(&choose("detr", &tensors, options), &tensors, 0.0), &all(softmax));
}

/// The probabilities of SSD in pytorch-ssd begin with the background's. Its label file does, too.
#[test]
fn the_background_of_boxes_is_first_or_last_and_of_no_class() {
    let boxes = [0.0f32, 0.0, 0.5, 0.5].repeat(3);
    let rows = [[0.7f32, 0.1, 0.2, 0.0], [0.1, 0.2, 0.1, 0.6], [0.9, 0.05, 0.05, 0.0]];
    let tensors = tensors(["boxes", "scores"], &boxes, &rows);
    let any = Options::default();
    let of = |background, options: Options| {
        let choice = choose("boxes", &tensors, Options { background, ..options });
        (choice.layout.classes, scores(&choice, &tensors, 0.15))
    };
    let expected = [
        (None, any, 4, vec![(0, 0, 0.7), (1, 3, 0.6), (2, 0, 0.9)]),
        (Some(Background::First), any, 3, vec![(0, 1, 0.2), (1, 2, 0.6)]),
        (Some(Background::First), Options { labels: 3, ..any }, 3, vec![(0, 1, 0.2), (1, 2, 0.6)]),
        (Some(Background::First), Options { labels: 4, ..any }, 4, vec![(0, 2, 0.2), (1, 3, 0.6)]),
        (
            Some(Background::First),
            Options { num_classes: 4, ..any },
            4,
            vec![(0, 2, 0.2), (1, 3, 0.6)],
        ),
        (Some(Background::Last), any, 3, vec![(0, 0, 0.7), (1, 1, 0.2), (2, 0, 0.9)]),
        (
            Some(Background::Last),
            Options { num_classes: 4, ..any },
            4,
            vec![(0, 0, 0.7), (1, 1, 0.2), (2, 0, 0.9)],
        ),
    ];
    for (background, options, classes, scores) in expected {
        let (found_classes, found) = of(background, options);
        assert_eq!(found_classes, classes, "{background:?} {options:?}");
        assert_near(&found, &scores);
    }
    // Logits: the sum of softmax includes the background.
    let logits = tensors_of_logits(&boxes);
    for (background, column, class) in [(Background::First, 2, 1), (Background::Last, 0, 0)] {
        let options = Options {
            background: Some(background),
            score_activation: Some(Activation::Softmax),
            ..any
        };
        let found = scores(&choose("boxes", &logits, options), &logits, 0.0);
        assert_near(&found[..1], &[(0, class, softmax(LOGITS[0][column], &LOGITS[0]))]);
    }
}

const LOGITS: [[f32; 4]; 3] = [[5.0, 1.0, 2.0, -1.0], [0.0; 4], [0.0; 4]];

fn tensors_of_logits(boxes: &[f32]) -> [TensorView<'_>; 2] {
    tensors(["boxes", "scores"], boxes, &LOGITS)
}

/// With several classes for each anchor, too, the background is not one of them.
#[test]
fn no_pair_of_anchor_and_class_is_one_of_the_background() {
    let boxes = BOX.repeat(4);
    let tensors = tensors(["pred_boxes", "logits"], &boxes, &LAST);
    let choice = choose("detr", &tensors, Options { labels: 3, ..Options::default() });
    let params = Params {
        thresholds: ClassThresholds::uniform(0.0),
        method: Method::None,
        multi_label: true,
        ..Params::default()
    };
    let places = [ImagePlace::in_model([100.0; 2])];
    let mut engine = engines::fast();
    let found = engine.run(Job::new(&tensors, &choice.layout, &params, &places)).unwrap();
    let survivors = found.group(0).survivors.iter();
    let mut found: Vec<_> = survivors.map(|it| (it.anchor, it.class, it.score)).collect();
    found.sort_by_key(|(anchor, class, _)| (*anchor, *class));
    let expected: Vec<_> = (0..4)
        .flat_map(|row| (0..3).map(move |class| (row, class)))
        .map(|(row, class): (u32, u32)| {
            let logits = &LAST[row as usize];
            (row, class, softmax(logits[class as usize], logits))
        })
        .collect();
    assert_near(&found, &expected);
}

/// A family whose background is known reads it where it is set to be.
#[test]
fn the_option_replaces_the_background_of_a_family() {
    let loc = [0.0f32; 42 * 4];
    let conf = [0.25f32; 42 * 2];
    let tensors = [
        TensorView::from_slice("loc", &[1, 42, 4], &loc),
        TensorView::from_slice("conf", &[1, 42, 2], &conf),
    ];
    let of = |decoder, background| {
        let options = Options { background, model_size: Some([32.0; 2]), ..Options::default() };
        let layout = choose(decoder, &tensors, options).layout;
        (layout.classes, layout.groups[0].scores.offset, layout.score.components)
    };
    assert_eq!(of("retinaface", None), (1, 1, 1));
    assert_eq!(of("retinaface", Some(Background::First)), (1, 1, 1));
    assert_eq!(of("retinaface", Some(Background::Last)), (1, 0, 1));
    assert_eq!(of("retinaface", Some(Background::None)), (2, 0, 2));
    let ultraface = |background| {
        let scores = TensorView::from_slice("scores", &[1, 42, 2], &conf);
        let boxes = TensorView::from_slice("boxes", &[1, 42, 4], &loc);
        let options = Options { background, ..Options::default() };
        let layout = choose("ultraface", &[scores, boxes], options).layout;
        (layout.classes, layout.groups[0].scores.offset, layout.score.components)
    };
    assert_eq!(ultraface(None), (1, 1, 1));
    assert_eq!(ultraface(Some(Background::Last)), (1, 0, 1));
    assert_eq!(ultraface(Some(Background::None)), (2, 0, 2));
}

/// Column 0 of SSD is the background, and column 1 is class 1; without a background, column 0 is class 0.
#[test]
fn classes_of_ssd_are_the_numbers_of_their_columns() {
    let (boxes, logits, priors) = ([0.0f32; 5 * 4], [0.0f32; 5 * 3], [0.5f32; 5 * 4]);
    let tensors = [
        TensorView::from_slice("boxes", &[1, 5, 4], &boxes),
        TensorView::from_slice("scores", &[1, 5, 3], &logits),
        TensorView::from_slice("priors", &[5, 4], &priors),
    ];
    for (background, first_class, classes, offset) in [
        (None, 1, 3, 1),
        (Some(Background::First), 1, 3, 1),
        (Some(Background::None), 0, 3, 0),
        (Some(Background::Last), 0, 2, 0),
    ] {
        for labels in [0, 3] {
            let options = Options { background, labels, ..Options::default() };
            let layout = choose("ssd", &tensors, options).layout;
            let classes =
                if background == Some(Background::Last) { classes.max(labels) } else { classes };
            assert_eq!(
                (layout.score.first_class, layout.classes, layout.groups[0].scores.offset),
                (first_class, classes, offset),
                "{background:?} {labels}"
            );
        }
    }
}

#[test]
fn a_single_score_or_a_class_in_a_tensor_leaves_no_background() {
    let numbers = [0.5f32; 60];
    let view =
        |id, shape: &[usize]| TensorView::from_slice(id, shape, &numbers[..shape.iter().product()]);
    for (decoder, tensors, background) in [
        ("end2end", vec![view("out", &[1, 10, 6])], Background::First),
        ("windows", vec![view("windows", &[10, 4])], Background::Last),
        ("yolov8", vec![view("out", &[1, 5, 12])], Background::Last),
        ("boxes", vec![view("boxes", &[1, 10, 4]), view("scores", &[1, 10])], Background::First),
        (
            "boxes",
            vec![
                view("boxes", &[1, 10, 4]),
                view("scores", &[1, 10]),
                TensorView::from_slice("labels", &[1, 10], &[0i64; 10]),
            ],
            Background::First,
        ),
    ] {
        let options = Options { background: Some(background), ..Options::default() };
        let error = decoder::choose(&tensors, decoder::by_name(decoder), options).err().unwrap();
        let text = error.to_string();
        let expected = format!(
            "so the {} is not the background's; unset `options.background`",
            background.name()
        );
        assert!(text.contains(&expected), "{decoder}: {text}");
        // No background is what these have.
        let none = Options { background: Some(Background::None), ..options };
        decoder::choose(&tensors, decoder::by_name(decoder), none).unwrap();
    }
}

#[test]
fn a_number_of_classes_without_the_background_names_the_setting() {
    let numbers = [0.5f32; 21 * 10];
    let tensors = [
        TensorView::from_slice("boxes", &[1, 10, 4], &numbers[..40]),
        TensorView::from_slice("scores", &[1, 10, 21], &numbers),
    ];
    let options = Options { num_classes: 20, ..Options::default() };
    let error = decoder::choose(&tensors, None, options).err().unwrap().to_string();
    assert!(
        error.contains("if one score is the background's, set `options.background`"),
        "{error}"
    );
    let options = Options { background: Some(Background::First), ..options };
    assert_eq!(decoder::choose(&tensors, None, options).unwrap().layout.classes, 20);
}

/// Numbers of scores and keypoints together are divided with the background among the scores.
#[test]
fn known_classes_divide_the_numbers_beside_a_background() {
    let numbers = [0.5f32; 4 * 80 * 5];
    // Two classes and a background, and three points.
    let tensors = [TensorView::from_slice("out", &[1, 4 + 3 + 9, 20], &numbers[..16 * 20])];
    let options = Options {
        num_classes: 2,
        background: Some(Background::Last),
        keypoints: Some(decoder::KeypointShape { count: 3, components: 3 }),
        ..Options::default()
    };
    let layout = choose("yolov8-pose", &tensors, options).layout;
    assert_eq!((layout.classes, layout.columns[0].components), (2, 9));
    let error = decoder::choose(
        &tensors,
        decoder::by_name("yolov8-pose"),
        Options { num_classes: 3, ..options },
    );
    let error = error.err().unwrap().to_string();
    assert!(error.contains("it has 2 classes, but `options.num_classes` is 3"), "{error}");
}

#[test]
fn the_text_of_a_layout_names_the_background() {
    let boxes = BOX.repeat(4);
    let tensors = tensors(["pred_boxes", "logits"], &boxes, &LAST);
    let layout = |background: &str, options: Options| {
        let text = format!(
            "name = t\n[tensor pred_boxes]\nnames = pred_boxes\nshape = N,4\n[tensor logits]\nnames = logits\n\
             shape = N,C\n[score]\nscores = logits\nactivation = softmax\n{background}[box]\nbox = pred_boxes\n\
             format = center\nunit = normalized\n"
        );
        let decoder = decoder::from_text(&text).unwrap();
        decoder::choose(&tensors, Some(decoder), options).unwrap()
    };
    let any = Options::default();
    for (text, options, expected, classes) in [
        ("", any, Background::None, 4),
        ("background = none\n", any, Background::None, 4),
        ("background = no\n", any, Background::None, 4),
        ("background = yes\n", any, Background::First, 3),
        ("background = first\n", any, Background::First, 3),
        ("background = last\n", any, Background::Last, 3),
        ("background = last\n", Options { labels: 4, ..any }, Background::Last, 3),
        ("background = auto\n", any, Background::None, 4),
        ("background = auto\n", Options { labels: 3, ..any }, Background::Last, 3),
        (
            "background = last\n",
            Options { background: Some(Background::First), ..any },
            Background::First,
            3,
        ),
    ] {
        let choice = layout(text, options);
        let found = (choice.layout.score.background, choice.layout.classes);
        assert_eq!(found, (expected, classes), "{text} {options:?}");
        let columns = match expected {
            Background::None => 0..4,
            Background::First => 1..4,
            Background::Last => 0..3,
        };
        let best =
            columns.clone().rev().max_by(|a, b| LAST[0][*a].total_cmp(&LAST[0][*b])).unwrap();
        let class = (best - columns.start) as u32;
        assert_near(
            &scores(&choice, &tensors, 0.0)[..1],
            &[(0, class, softmax(LAST[0][best], &LAST[0]))],
        );
    }
    let error = decoder::from_text(
        "name = t\n[tensor t]\nshape = N,4+C\n[score]\nscores = t 4\nbackground = middle\n[box]\nbox = t\n",
    );
    let error = error.err().unwrap().to_string();
    assert!(error.contains("expected none, first, last, auto, yes, no, got"), "{error}");
}
