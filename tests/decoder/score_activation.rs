// SPDX-License-Identifier: MIT OR Apache-2.0
//! The option `score_activation` with every decoder. The expected scores are formulas in this file.

use nmsfilter_core::decoder::layout::Activation;
use nmsfilter_core::decoder::{self, Layout, LayoutProblem, Options, decoders};
use nmsfilter_core::engine::{ClassThresholds, Engine, ImagePlace, Job, Method, Params, Reference};
use nmsfilter_core::tensor::TensorView;

use crate::support::engines;

type Shapes = &'static [(&'static str, &'static [usize])];

/// For each decoder, tensors that it reads. The model has 32x32 pixels, and 3 classes if it has
/// any.
const TENSORS: &[(&str, Shapes)] = &[
    ("windows", &[("windows", &[9, 4])]),
    ("boxes", &[("boxes", &[1, 9, 4]), ("scores", &[1, 9, 3])]),
    ("yolov5", &[("out", &[1, 9, 8])]),
    ("yolov8", &[("out", &[1, 7, 9])]),
    ("ultraface", &[("scores", &[1, 9, 2]), ("boxes", &[1, 9, 4])]),
    ("yolox", &[("out", &[1, 9, 8])]),
    ("end2end", &[("out", &[1, 9, 6])]),
    ("detr", &[("boxes", &[1, 9, 4]), ("logits", &[1, 9, 3])]),
    ("yolox-raw", &[("out", &[1, 21, 8])]),
    ("yolov5-raw", &[("out", &[1, 63, 8])]),
    ("ssd", &[("boxes", &[1, 9, 4]), ("scores", &[1, 9, 3]), ("priors", &[4, 9])]),
    ("retinaface", &[("loc", &[1, 42, 4]), ("conf", &[1, 42, 2])]),
    ("ultraface-raw", &[("boxes", &[1, 61, 4]), ("scores", &[1, 61, 2])]),
    (
        "yunet",
        &[
            ("cls_8", &[1, 16, 1]),
            ("cls_16", &[1, 4, 1]),
            ("cls_32", &[1, 1, 1]),
            ("obj_8", &[1, 16, 1]),
            ("obj_16", &[1, 4, 1]),
            ("obj_32", &[1, 1, 1]),
            ("bbox_8", &[1, 16, 4]),
            ("bbox_16", &[1, 4, 4]),
            ("bbox_32", &[1, 1, 4]),
        ],
    ),
    (
        "scrfd",
        &[
            ("score_8", &[1, 32, 1]),
            ("score_16", &[1, 8, 1]),
            ("score_32", &[1, 2, 1]),
            ("bbox_8", &[1, 32, 4]),
            ("bbox_16", &[1, 8, 4]),
            ("bbox_32", &[1, 2, 4]),
        ],
    ),
    ("nanodet", &[("out", &[1, 22, 35])]),
    (
        "picodet",
        &[
            ("cls_8", &[1, 16, 3]),
            ("cls_16", &[1, 4, 3]),
            ("cls_32", &[1, 1, 3]),
            ("cls_64", &[1, 1, 3]),
            ("dis_8", &[1, 16, 32]),
            ("dis_16", &[1, 4, 32]),
            ("dis_32", &[1, 1, 32]),
            ("dis_64", &[1, 1, 32]),
        ],
    ),
    (
        "yolov8-heads",
        &[
            ("cls_8", &[1, 3, 4, 4]),
            ("cls_16", &[1, 3, 2, 2]),
            ("cls_32", &[1, 3, 1, 1]),
            ("box_8", &[1, 64, 4, 4]),
            ("box_16", &[1, 64, 2, 2]),
            ("box_32", &[1, 64, 1, 1]),
        ],
    ),
    (
        "yolov8-heads-seg",
        &[
            ("cls_8", &[1, 3, 4, 4]),
            ("cls_16", &[1, 3, 2, 2]),
            ("cls_32", &[1, 3, 1, 1]),
            ("box_8", &[1, 64, 4, 4]),
            ("box_16", &[1, 64, 2, 2]),
            ("box_32", &[1, 64, 1, 1]),
            ("mask_8", &[1, 9, 4, 4]),
            ("mask_16", &[1, 9, 2, 2]),
            ("mask_32", &[1, 9, 1, 1]),
            ("proto", &[1, 9, 8, 8]),
        ],
    ),
    (
        "yolov8-heads-pose",
        &[
            ("head_8", &[1, 67, 4, 4]),
            ("head_16", &[1, 67, 2, 2]),
            ("head_32", &[1, 67, 1, 1]),
            ("keypoints", &[1, 5, 3, 21]),
        ],
    ),
    (
        "ssd-postprocess",
        &[("boxes", &[1, 9, 4]), ("classes", &[1, 9]), ("scores", &[1, 9]), ("count", &[1])],
    ),
    (
        "efficientnms",
        &[
            ("num_dets", &[1]),
            ("det_boxes", &[1, 9, 4]),
            ("det_scores", &[1, 9]),
            ("det_classes", &[1, 9]),
        ],
    ),
    ("yolov8-seg", &[("out", &[1, 15, 20]), ("protos", &[1, 8, 16, 16])]),
    ("yolov8-pose", &[("out", &[1, 56, 84])]),
    ("yolov8-obb", &[("out", &[1, 8, 20])]),
    ("yolov5-seg", &[("out", &[1, 20, 16]), ("protos", &[1, 8, 16, 16])]),
    ("end2end-seg", &[("out", &[1, 9, 14]), ("protos", &[1, 8, 16, 16])]),
    ("end2end-pose", &[("out", &[1, 9, 15])]),
    ("end2end-obb", &[("out", &[1, 9, 7])]),
    ("detr-end2end", &[("out", &[1, 9, 6])]),
    ("yolov7-end2end", &[("out", &[9, 7])]),
    ("yolonas-flat", &[("out", &[9, 7])]),
    ("detection-output", &[("out", &[1, 1, 9, 7])]),
    ("efficientdet", &[("out", &[1, 9, 7])]),
    ("paddle-nms", &[("multiclass_nms3_0.tmp_0", &[9, 6]), ("multiclass_nms3_0.tmp_2", &[1])]),
    ("mmdetection", &[("dets", &[1, 9, 5]), ("labels", &[1, 9])]),
    ("torchvision", &[("boxes", &[9, 4]), ("labels", &[9]), ("scores", &[9])]),
    ("yolov3", &[("boxes", &[1, 9, 4]), ("scores", &[1, 3, 9]), ("indices", &[2, 3])]),
    (
        "yolov4-raw",
        &[
            ("output_8", &[1, 4, 4, 3, 8]),
            ("output_16", &[1, 2, 2, 3, 8]),
            ("output_32", &[1, 1, 1, 3, 8]),
        ],
    ),
    (
        "yolov3-raw",
        &[
            ("output_8", &[1, 4, 4, 3, 8]),
            ("output_16", &[1, 2, 2, 3, 8]),
            ("output_32", &[1, 1, 1, 3, 8]),
        ],
    ),
    (
        "fcos",
        &[
            ("P3/logits", &[1, 3, 4, 4]),
            ("P4/logits", &[1, 3, 2, 2]),
            ("P5/logits", &[1, 3, 1, 1]),
            ("P6/logits", &[1, 3, 1, 1]),
            ("P7/logits", &[1, 3, 1, 1]),
            ("P3/bbox_reg", &[1, 4, 4, 4]),
            ("P4/bbox_reg", &[1, 4, 2, 2]),
            ("P5/bbox_reg", &[1, 4, 1, 1]),
            ("P6/bbox_reg", &[1, 4, 1, 1]),
            ("P7/bbox_reg", &[1, 4, 1, 1]),
            ("P3/centerness", &[1, 1, 4, 4]),
            ("P4/centerness", &[1, 1, 2, 2]),
            ("P5/centerness", &[1, 1, 1, 1]),
            ("P6/centerness", &[1, 1, 1, 1]),
            ("P7/centerness", &[1, 1, 1, 1]),
        ],
    ),
    ("centernet", &[("hm", &[1, 3, 8, 8]), ("wh", &[1, 2, 8, 8]), ("reg", &[1, 2, 8, 8])]),
    ("blazeface", &[("regressors", &[1, 56, 16]), ("classificators", &[1, 56, 1])]),
    ("fomo", &[("out", &[1, 4, 4, 3])]),
];

fn layout_of(
    name: &str,
    tensors: &[TensorView<'_>],
    score_activation: Option<Activation>,
) -> Result<Layout, decoder::ChoiceError> {
    let options = Options { score_activation, model_size: Some([32.0; 2]), ..Options::default() };
    decoder::choose(tensors, decoder::by_name(name), options).map(|choice| choice.layout)
}

/// Sets the logits of scores and objectness at every anchor that the layout addresses, and compares
/// the decoded scores with the formula.
#[test]
fn every_decoder_obeys_the_activation_that_is_set() {
    let names: Vec<&str> = decoders().iter().map(|decoder| decoder.name()).collect();
    assert_eq!(TENSORS.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names);
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    for &(name, shapes) in TENSORS {
        let mut numbers: Vec<Vec<f32>> =
            shapes.iter().map(|(_, shape)| vec![1.0; shape.iter().product()]).collect();
        let views = |numbers: &'static [Vec<f32>]| -> Vec<TensorView<'static>> {
            let tensors = shapes.iter().zip(numbers);
            tensors
                .map(|((id, shape), elements)| TensorView::from_slice(id, shape, elements))
                .collect()
        };
        let tensors = views(numbers.clone().leak());
        let layout = layout_of(name, &tensors, Some(Activation::Sigmoid))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(layout.score.activation, Activation::Sigmoid, "{name}");

        // Every anchor has the logit 2 for its last class, and -3 for all others.
        let first = layout.score.first_column();
        let anchors = layout.groups.iter().flat_map(|g| (0..g.anchors).map(move |a| (g, a)));
        for (group, anchor) in anchors {
            let mut set = |field: decoder::Field, component: usize, number: f32| {
                numbers[field.tensor][field.offset
                    + anchor * field.anchor_stride
                    + component * field.component_stride] = number;
            };
            // These four numbers are a valid box in every box format. Scores replace those of boxes in the same place (FOMO).
            for (component, number) in [2.0, 2.0, 3.0, 3.0].into_iter().enumerate() {
                match (group.sizes, component.checked_sub(2)) {
                    (Some(sizes), Some(component)) => set(sizes, component, number),
                    _ if component < layout.boxes.components() => {
                        set(group.boxes, component, number)
                    }
                    _ => {}
                }
            }
            for score in 0..layout.score.components {
                let is_last = score + 1 == layout.score.components;
                set(group.scores, first + score, if is_last { 2.0 } else { -3.0 });
            }
            if let Some(objectness) = group.objectness {
                set(objectness, 0, 1.5);
            }
            if let Some(image) = layout.image {
                set(image, 0, 0.0);
            }
            if let Some(pairs) = layout.pairs.filter(|pairs| anchor < pairs.rows) {
                let last = layout.score.components - 1;
                let row = [0.0, last as f32, anchor as f32];
                (0..3).for_each(|component| set(pairs.field, component, row[component]));
            }
        }
        let with_objectness = layout.groups[0].objectness.is_some();
        let expected = match (with_objectness, layout.score.combination) {
            (false, _) => sigmoid(2.0),
            (true, decoder::layout::Combination::Product) => sigmoid(2.0) * sigmoid(1.5),
            (true, decoder::layout::Combination::SquareRoot) => {
                (sigmoid(2.0) * sigmoid(1.5)).sqrt()
            }
        };
        let tensors = views(numbers.leak());
        let params = Params {
            thresholds: ClassThresholds::uniform(0.0),
            method: Method::None,
            max_candidates: 0,
            ..Params::default()
        };
        let mut reference = Reference::default();
        let found = engines::bits(
            &reference
                .run(Job::new(&tensors, &layout, &params, &engines::places(&layout)))
                .unwrap()
                .group(0),
        );
        assert!(!found.0.is_empty(), "{name}");
        for survivor in &found.0 {
            let score = f64::from(f32::from_bits(survivor[4]));
            assert!((score - expected).abs() < 1e-6, "{name}: {score}, expected {expected}");
        }
        let mut engine = engines::fast();
        if engines::on_gpu() && engine.supports(&layout, &params).is_err() {
            continue;
        }
        let of_engine = engines::bits(
            &engine
                .run(Job::new(&tensors, &layout, &params, &engines::places(&layout)))
                .unwrap()
                .group(0),
        );
        assert_eq!(of_engine, found, "{name}");
    }
}

/// Softmax needs a second score: the background's or another class's.
#[test]
fn softmax_of_a_single_score_is_an_error() {
    for &(name, shapes) in TENSORS {
        let numbers: Vec<Vec<f32>> =
            shapes.iter().map(|(_, shape)| vec![1.0; shape.iter().product()]).collect();
        let tensors: Vec<TensorView<'_>> = shapes
            .iter()
            .zip(&numbers)
            .map(|((id, shape), elements)| TensorView::from_slice(id, shape, elements))
            .collect();
        let single = [
            "windows",
            "end2end",
            "yunet",
            "scrfd",
            "ssd-postprocess",
            "efficientnms",
            "yolov8-pose",
            "end2end-seg",
            "end2end-pose",
            "end2end-obb",
            "detr-end2end",
            "yolov7-end2end",
            "yolonas-flat",
            "detection-output",
            "efficientdet",
            "paddle-nms",
            "mmdetection",
            "torchvision",
            "blazeface",
        ];
        match layout_of(name, &tensors, Some(Activation::Softmax)) {
            Ok(layout) => {
                assert!(!single.contains(&name), "{name}");
                assert_eq!(layout.score.activation, Activation::Softmax, "{name}");
            }
            Err(decoder::ChoiceError::Layout(error))
                if error.problem == LayoutProblem::SingleSoftmax =>
            {
                assert!(single.contains(&name), "{error}");
                assert!(
                    error.to_string().contains("set `options.score_activation` to sigmoid"),
                    "{error}"
                );
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

/// A face's probability is the softmax over background and face.
#[test]
fn the_background_of_ultraface_is_in_the_sum_of_softmax() {
    let (boxes, scores) = ([0.1f32, 0.1, 0.5, 0.5].repeat(2), [1.0f32, 3.0, 2.0, -1.0]);
    let tensors = [
        TensorView::from_slice("scores", &[1, 2, 2], &scores),
        TensorView::from_slice("boxes", &[1, 2, 4], &boxes),
    ];
    let layout = layout_of("ultraface", &tensors, Some(Activation::Softmax)).unwrap();
    let params = Params {
        thresholds: ClassThresholds::uniform(0.0),
        method: Method::None,
        ..Params::default()
    };
    let mut engine = engines::fast();
    let place = ImagePlace::in_model([100.0; 2]);
    let outcome = engine.run(Job::new(&tensors, &layout, &params, &[place])).unwrap();
    let found: Vec<f32> = outcome.group(0).survivors.iter().map(|found| found.score).collect();
    let expected = [2.0f64, -3.0].map(|of_face| 1.0 / (1.0 + (-of_face).exp()));
    assert_eq!(found.len(), 2);
    for (found, expected) in found.iter().zip(expected) {
        assert!((f64::from(*found) - expected).abs() < 1e-6, "{found}, expected {expected}");
    }
}
