// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models of known exporters as they are: `ortinference ! nmsfilter` without a property finds their boxes. A model that is
//! nearly one of them has no signature.

use gst::prelude::*;
use gst_video::VideoRegionOfInterestMeta;
use nmsfilter_core::geometry::Letterbox;
use nmsfilter_core::signature::{Pattern, Signature};

use crate::element::{self, file, has_onnx_runtime};
use crate::support::onnx::{Element, Node, OnnxModel, Tensor, scaled_boxes};
use crate::support::pipeline::{self, parse, watch};

/// Width and height of the frame, of which each side is scaled by another factor, and of the model's input.
const FRAME: [f32; 2] = [160.0, 80.0];
const INPUT: f32 = 64.0;

/// Corners in the frame, class and score of each object.
const OBJECTS: [([f32; 4], usize, f32); 2] =
    [([10.0, 20.0, 50.0, 60.0], 16, 0.9), ([100.0, 8.0, 140.0, 40.0], 3, 0.8)];

/// The region of an object: class, left, top, width, height, and score in percent.
type Found = (String, [u32; 4], u32);

fn expected(first_class: usize) -> Vec<Found> {
    let found = |([x1, y1, x2, y2], class, score): &([f32; 4], usize, f32)| {
        let edges = [*x1, *y1, x2 - x1, y2 - y1].map(|side| side as u32);
        (format!("class-{}", class + first_class), edges, (score * 100.0).round() as u32)
    };
    OBJECTS.iter().map(found).collect()
}

/// The objects' corners in the model's input if the frame is stretched, or scaled to its width in the center, times `unit`.
fn corners(is_stretched: bool, unit: f32) -> Vec<[f32; 4]> {
    let [width, height] = FRAME.map(|side| INPUT / side);
    let top = (INPUT - FRAME[1] * width) / 2.0;
    let [scale, top] = if is_stretched { [height, 0.0] } else { [width, top] };
    let of = |[x1, y1, x2, y2]: [f32; 4]| {
        [x1 * width, y1 * scale + top, x2 * width, y2 * scale + top].map(|it| it * unit)
    };
    OBJECTS.iter().map(|&(corners, ..)| of(corners)).collect()
}

fn scores() -> Vec<f32> {
    OBJECTS.iter().map(|(.., score)| *score).collect()
}

fn classes(first: usize) -> Vec<f32> {
    OBJECTS.iter().map(|(_, class, _)| (class + first) as f32).collect()
}

/// The name, type and stated dimensions of an output, its real dimensions, and its values.
type Output<'a> = (&'a str, Element, &'a str, &'a [i64], Vec<f32>);

/// A model with constant outputs, which it adds to nothing of its input.
fn model((input, element, dims): (&str, Element, &str), outputs: &[Output<'_>]) -> OnnxModel {
    let mut model = OnnxModel::new()
        .input(input, element, dims)
        .node(Node::new("Cast", &[input], &["numbers"]).int("to", Element::F32 as i64))
        .node(Node::new("ReduceSum", &["numbers"], &["sum"]).int("keepdims", 0))
        .initializer("zero", &Tensor::f32(&[], &[0.0]))
        .node(Node::new("Mul", &["sum", "zero"], &["nothing"]));
    for (name, element, stated, dims, values) in outputs {
        let [stored, added] = ["values of", "floats of"].map(|word| format!("{word} {name}"));
        model = model
            .initializer(&stored, &Tensor::f32(dims, values))
            .node(Node::new("Add", &[&stored, "nothing"], &[&added]))
            .node(Node::new("Cast", &[&added], &[name]).int("to", *element as i64))
            .output(name, *element, *stated);
    }
    model
}

fn found(buffer: &gst::BufferRef) -> Vec<Found> {
    let found = |region: gst::MetaRef<'_, VideoRegionOfInterestMeta>| {
        let detection = region.param("detection").expect("every region has one");
        let score = detection.get::<f64>("confidence").unwrap();
        let (x, y, width, height) = region.rect();
        (region.roi_type().to_owned(), [x, y, width, height], (score * 100.0).round() as u32)
    };
    buffer.iter_meta().map(found).collect()
}

/// Runs a frame of white pixels through `ortinference` and `nmsfilter`, both with these properties. Returns the regions or
/// the error, and the signature in the message about the model.
fn run(
    model: &OnnxModel,
    properties: &str,
    nms: &str,
) -> (Result<Vec<Found>, String>, Option<String>) {
    let file = file(model);
    let pipeline = parse(&format!(
        "videotestsrc pattern=white num-buffers=1 ! video/x-raw,format=RGB,width=160,height=80
           ! {} ! nmsfilter name=nms {nms} ! fakesink",
        element::inference(&file, &format!("provider=cpu {properties}"))
    ));
    let signature = std::sync::Arc::new(std::sync::Mutex::new(None));
    let of_message = signature.clone();
    pipeline.bus().unwrap().set_sync_handler(move |_, message| {
        let structure = message.structure().filter(|it| it.name() == "ortinference-model");
        if let Some(structure) = structure {
            *of_message.lock().unwrap() = structure.get::<String>("signature").ok();
        }
        gst::BusSyncReply::Pass
    });
    let seen = watch(&pipeline, "nms", found);
    let ended = pipeline::run(&pipeline);
    // Of masks and keypoints.
    let is_other =
        |warning: &&String| !warning.contains("which are not read: there are boxes only");
    assert_eq!(ended.warnings.iter().filter(is_other).count(), 0, "{:?}", ended.warnings);
    let signature = signature.lock().unwrap().clone();
    let result = match ended.error {
        Some(error) => Err(error),
        None => Ok(seen.lock().unwrap().concat()),
    };
    (result, signature)
}

/// Asserts that the model is recognized, and that its objects are found.
fn assert_found(model: &OnnxModel, name: &str, first_class: usize) {
    let (found, signature) = run(model, "", "");
    assert_eq!(signature.as_deref(), Some(name));
    assert_eq!(found, Ok(expected(first_class)), "{name}");
}

/// Asserts that the model is not recognized: its tensors have no ids, and no decoder is chosen.
fn assert_unknown(model: &OnnxModel, properties: &str) {
    let (found, signature) = run(model, properties, "");
    assert_eq!(signature, None);
    let error = found.expect_err("no decoder is set");
    assert!(error.contains("onnx/") && error.contains("decoder"), "{error}");
}

const IMAGES: (&str, Element, &str) = ("images", Element::F32, "1,3,64,64");

fn torchvision(names: [&str; 3], labels: Element, boxes: &[i64]) -> OnnxModel {
    let stated = if boxes.len() == 2 { "N,4" } else { "1,N,4" };
    let outputs: [Output<'_>; 3] = [
        (names[0], Element::F32, stated, boxes, corners(true, 1.0).concat()),
        (names[1], labels, "N", &[2], classes(1)),
        (names[2], Element::F32, "N", &[2], scores()),
    ];
    model(IMAGES, &outputs)
}

#[test]
fn torchvisions_classes_begin_with_one() {
    if has_onnx_runtime() {
        let model = torchvision(["boxes", "labels", "scores"], Element::I64, &[2, 4]);
        assert_found(&model, "torchvision", 1);
    }
}

#[test]
fn a_model_that_is_nearly_known_is_unknown() {
    if !has_onnx_runtime() {
        return;
    }
    for (names, labels, boxes) in [
        (["boxes", "labels", "score"], Element::I64, &[2, 4][..]),
        (["boxes", "labels", "scores"], Element::F32, &[2, 4]),
        (["boxes", "labels", "scores"], Element::I64, &[1, 2, 4]),
    ] {
        assert_unknown(&torchvision(names, labels, boxes), "");
    }
    let further = torchvision(["boxes", "labels", "scores"], Element::I64, &[2, 4])
        .node(Node::new("Identity", &["scores"], &["other"]))
        .output("other", Element::F32, "N");
    assert_unknown(&further, "");
    let input = ("input", Element::F32, "1,3,64,64");
    let outputs: [Output<'_>; 3] = [
        ("boxes", Element::F32, "N,4", &[2, 4], corners(true, 1.0).concat()),
        ("labels", Element::I64, "N", &[2], classes(1)),
        ("scores", Element::F32, "N", &[2], scores()),
    ];
    assert_unknown(&model(input, &outputs), "");
}

#[test]
fn sizes_of_the_original_picture_are_an_input_of_rt_detr() {
    if !has_onnx_runtime() {
        return;
    }
    let boxes: Vec<([f32; 4], i64, f32)> = corners(true, 1.0 / INPUT)
        .into_iter()
        .zip(OBJECTS)
        .map(|(corners, (_, class, score))| (corners, class as i64, score))
        .collect();
    for images in ["1,3,64,64", "N,3,64,64"] {
        let sizes = ("orig_target_sizes", Element::I64, "N,2");
        assert_found(&scaled_boxes(images, sizes, &boxes), "rt-detr", 0);
    }
}

fn ai_hub(is_stretched: bool) -> OnnxModel {
    let outputs: [Output<'_>; 3] = [
        ("boxes", Element::F32, "1,2,4", &[1, 2, 4], corners(is_stretched, 1.0).concat()),
        ("scores", Element::F32, "1,2", &[1, 2], scores()),
        ("class_idx", Element::U8, "1,2", &[1, 2], classes(0)),
    ];
    model(("image", Element::F32, "1,3,64,64"), &outputs)
}

/// Qualcomm's models have a letterbox, unless the property says otherwise.
#[test]
fn properties_come_before_the_signature() {
    if !has_onnx_runtime() {
        return;
    }
    assert_found(&ai_hub(false), "ai-hub-yolo", 0);
    let (found, signature) = run(&ai_hub(true), "letterbox=none", "");
    assert_eq!((found, signature.as_deref()), (Ok(expected(0)), Some("ai-hub-yolo")));
}

#[test]
fn nothing_is_recognized_without_signatures() {
    if !has_onnx_runtime() {
        return;
    }
    assert_unknown(&ai_hub(false), "signature=none");
    let (found, signature) = run(&ai_hub(false), "signature=none", "decoder=boxes");
    assert_eq!((found, signature), (Ok(expected(0)), None));
}

/// A model whose metadata has the ids of its tensors is not looked up.
#[test]
fn ids_of_the_model_come_before_the_signature() {
    if !has_onnx_runtime() {
        return;
    }
    let model = ai_hub(false).metadata("scores", "my-scores");
    let (found, signature) = run(&model, "", "");
    assert_eq!(signature, None);
    assert!(found.unwrap_err().contains("my-scores"));
}

/// Boxes are normalized and in a dimension of their own.
#[test]
fn pytorch_yolov4_has_normalized_corners() {
    if !has_onnx_runtime() {
        return;
    }
    let mut by_class = vec![0.0; 2 * 80];
    for (row, (_, class, score)) in OBJECTS.iter().enumerate() {
        by_class[row * 80 + class] = *score;
    }
    let boxes = corners(true, 1.0 / INPUT).concat();
    let outputs: [Output<'_>; 2] = [
        ("boxes", Element::F32, "N,2,1,4", &[1, 2, 1, 4], boxes),
        ("confs", Element::F32, "N,2,80", &[1, 2, 80], by_class),
    ];
    let model = model(("input", Element::F32, "N,3,64,64"), &outputs);
    assert_found(&model, "pytorch-yolov4", 0);
}

/// Normalized centers and sizes, and logits of which each row's softmax is the object's score, or nearly 1 for no object.
fn detr(scores_of: impl Fn(Option<(usize, f32)>) -> Vec<f32>) -> [Vec<f32>; 2] {
    let center = |[x1, y1, x2, y2]: [f32; 4]| [(x1 + x2) / 2.0, (y1 + y2) / 2.0, x2 - x1, y2 - y1];
    let objects = corners(true, 1.0 / INPUT).into_iter().map(center);
    let boxes: Vec<f32> = objects.chain([[0.5, 0.5, 0.9, 0.9]]).flatten().collect();
    let objects = OBJECTS.iter().map(|&(_, class, score)| scores_of(Some((class, score))));
    [boxes, objects.chain([scores_of(None)]).flatten().collect()]
}

#[test]
fn no_object_is_the_last_class_of_transformers_detr() {
    if !has_onnx_runtime() {
        return;
    }
    // Models for COCO have 91 numbers of classes, and a score for no object. With others, the scores can be of DETR or of
    // RT-DETR; 80 make it RT-DETR for COCO, unless most queries have no object.
    for scores in [92, 91, 80] {
        let [mut boxes, mut logits] = detr(|object| {
            let mut row = vec![1e-6f32; scores];
            row[scores - 1] = object.map_or(1.0, |(_, score)| 1.0 - score);
            if let Some((class, score)) = object {
                row[class] = score;
            }
            row.into_iter().map(|it| it.ln() + 2.0).collect()
        });
        // Two more queries without an object.
        for _ in 0..2 {
            boxes.extend_from_within(8..12);
            logits.extend_from_within(2 * scores..3 * scores);
        }
        let stated = format!("batch_size,num_queries,{scores}");
        let outputs: [Output<'_>; 2] = [
            ("logits", Element::F32, &stated, &[1, 5, scores as i64], logits),
            ("pred_boxes", Element::F32, "batch_size,num_queries,4", &[1, 5, 4], boxes),
        ];
        let dims = "batch_size,num_channels,height,width";
        let model = model(("pixel_values", Element::F32, dims), &outputs);
        if scores == 92 {
            assert_found(&model, "transformers-detr", 0);
            continue;
        }
        let error = run(&model, "", "").0.unwrap_err();
        let contradicted = "contradict the signature, by which the last one of a row is not that";
        let text =
            if scores == 80 { contradicted } else { "transformers-softmax, transformers-sigmoid" };
        assert!(error.contains(text), "{error}");
        let error = run(&model, "signature=transformers-sigmoid", "").0.unwrap_err();
        assert!(error.contains(contradicted), "{error}");
        let (found, signature) = run(&model, "signature=transformers-softmax", "");
        assert_eq!((found, signature.as_deref()), (Ok(expected(0)), Some("transformers-softmax")));
    }
}

/// 92 scores make a model DETR for COCO, unless the scores of most of many queries are below 0.
#[test]
fn sigmoid_scores_of_92_classes_are_refused() {
    if !has_onnx_runtime() {
        return;
    }
    for (queries, is_refused) in [(60, true), (40, false)] {
        let mut logits = vec![-5.0; queries * 92];
        logits[16] = 2.0;
        let rows = queries as i64;
        let outputs: [Output<'_>; 2] = [
            ("logits", Element::F32, "B,Q,92", &[1, rows, 92], logits),
            ("pred_boxes", Element::F32, "B,Q,4", &[1, rows, 4], vec![0.5; queries * 4]),
        ];
        let model = model(("pixel_values", Element::F32, "1,3,64,64"), &outputs);
        let error = run(&model, "", "").0.err();
        let text = "by which the last one of a row is that of no object; take another signature";
        assert_eq!(error.as_ref().is_some_and(|it| it.contains(text)), is_refused, "{error:?}");
        assert!(run(&model, "signature=transformers-sigmoid", "").0.is_ok());
    }
}

/// The logit of the only object's class 1 is the first pixel, which is white.
#[test]
fn pixels_are_normalized_as_in_training() {
    if !has_onnx_runtime() {
        return;
    }
    let model = OnnxModel::new()
        .input("input", Element::F32, "1,3,64,64")
        .initializer("from", &Tensor::i64(&[4], &[0; 4]))
        .initializer("to", &Tensor::i64(&[4], &[1; 4]))
        .node(Node::new("Slice", &["input", "from", "to"], &["pixel"]))
        .initializer("one", &Tensor::i64(&[3], &[1; 3]))
        .node(Node::new("Reshape", &["pixel", "one"], &["number"]))
        .initializer("signs", &Tensor::f32(&[1, 2, 3], &[-4.0, 1.0, -4.0, -4.0, -4.0, -4.0]))
        .node(Node::new("Mul", &["number", "signs"], &["labels"]))
        .initializer("rows", &Tensor::f32(&[1, 2, 4], &[0.5, 0.5, 0.5, 0.5, 0.1, 0.1, 0.1, 0.1]))
        .node(Node::new("Identity", &["rows"], &["dets"]))
        .output("dets", Element::F32, "1,2,4")
        .output("labels", Element::F32, "1,2,3");
    // The red of white is (1 - 0.485) / 0.229 with ImageNet's mean and deviation.
    for (properties, white) in [("", 2.248_9f32), ("range=0,1", 1.0), ("mean=0.5", 0.5)] {
        let (found, signature) = run(&model, properties, "");
        let score = (100.0 / (1.0 + (-white).exp())).round() as u32;
        assert_eq!(found, Ok(vec![("class-1".to_owned(), [40, 20, 80, 40], score)]));
        assert_eq!(signature.as_deref(), Some("rf-detr"), "{properties}");
    }
}

/// The size of a model's input that is dynamic comes from the signature.
#[test]
fn a_dynamic_input_has_the_usual_size() {
    if !has_onnx_runtime() {
        return;
    }
    let [x, y] = FRAME.map(|side| 800.0 / side);
    let boxes = OBJECTS.iter().flat_map(|&([x1, y1, x2, y2], ..)| [x1 * x, y1 * y, x2 * x, y2 * y]);
    let outputs: [Output<'_>; 3] = [
        ("boxes", Element::F32, "N,4", &[2, 4], boxes.collect()),
        ("labels", Element::I64, "N", &[2], classes(1)),
        ("scores", Element::F32, "N", &[2], scores()),
    ];
    assert_found(&model(("images", Element::F32, "?,3,h,w"), &outputs), "torchvision", 1);
}

/// The value of each column of a row with one class, and the others.
fn one_hot(classes: usize, class: usize, value: f32, other: f32) -> Vec<f32> {
    (0..classes).map(|column| if column == class { value } else { other }).collect()
}

fn logit(probability: f32) -> f32 {
    (probability / (1.0 - probability)).ln()
}

/// A row of each object for the tensor with this id: corners are in pixels of the model's input, and `columns` the length
/// of the last dimension.
fn row(id: &str, corners: [f32; 4], size: [f32; 2], of: (usize, f32), columns: usize) -> Vec<f32> {
    let (class, score) = of;
    let [x1, y1, x2, y2] = corners;
    let center = |[w, h]: [f32; 2]| {
        vec![(x1 + x2) / 2.0 / w, (y1 + y2) / 2.0 / h, (x2 - x1) / w, (y2 - y1) / h]
    };
    let [w, h] = size;
    let (number, corners) = (class as f32, corners.to_vec());
    match id {
        "boxes" | "torchvision-boxes" | "det_boxes" => corners,
        "boxes-normalized" | "zoo-ssd-boxes" => vec![x1 / w, y1 / h, x2 / w, y2 / h],
        "ssd-mobilenet-v1-variant-1-out-boxes" => vec![y1 / h, x1 / w, y2 / h, x2 / w],
        "yolov3-boxes" => vec![y1, x1, y2, x2],
        "rf-detr-boxes" | "detr-softmax-boxes" | "detr-boxes" => center(size),
        "scores" if columns == 80 => one_hot(80, class, score, 0.0),
        "rf-detr-logits" | "detr-logits" => one_hot(columns, class, logit(score), -9.0),
        "detr-softmax-logits" => {
            let mut row = one_hot(columns, class, score.ln(), -20.0);
            row[columns - 1] = (1.0 - score).ln();
            row
        }
        "mmdetection-boxes" => [corners, vec![score]].concat(),
        "paddle-nms-rows" => [vec![number, score], corners].concat(),
        "yolonas-flat-rows" => [vec![0.0], corners, vec![score, number]].concat(),
        "yolov7-end2end-rows" => [vec![0.0], corners, vec![number, score]].concat(),
        "efficientdet-rows" => vec![0.0, y1, x1, y2, x2, score, number + 1.0],
        "yolo-v5-out" | "yolox-out" => {
            [center([1.0; 2]), vec![1.0], one_hot(80, class, score, 0.0)].concat()
        }
        "yolo-v8-out" => [center([1.0; 2]), one_hot(80, class, score, 0.0)].concat(),
        "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-boxes" => {
            vec![x1 / size[0], y1 / size[1], x2 / size[0], y2 / size[1]]
        }
        "labels" | "mmdetection-labels" | "det_classes" => vec![number],
        id if id.ends_with("-labels") || id.ends_with("-classes") => vec![number + 1.0],
        id if id.ends_with("scores") => vec![score],
        id => panic!("{id}"),
    }
}

/// The values of a tensor with this id and these dimensions, for objects with these corners in pixels of the model's
/// input. `score_of` is what a model outputs for a probability where `Pattern::logits` says that there are two forms.
fn values(
    id: &str,
    dims: &[usize],
    corners: &[[f32; 4]],
    size: [f32; 2],
    is_raw: bool,
    score_of: impl Fn(f32) -> f32,
) -> Vec<f32> {
    let elements = dims.iter().product();
    let objects = || corners.iter().copied().zip(OBJECTS.map(|(_, class, score)| (class, score)));
    let center = |[x1, y1, x2, y2]: [f32; 4]| [(x1 + x2) / 2.0, (y1 + y2) / 2.0, x2 - x1, y2 - y1];
    let mut values = vec![0.0; elements];
    match id {
        "num_dets" | "paddle-nms-count" | "generic-variant-1-out-count" => values.fill(2.0),
        "" => {}
        // Rows of picture, class and box.
        "yolov3-indices" => {
            for (index, (_, (class, _))) in objects().enumerate() {
                values[index * 3 + 1] = class as f32;
                values[index * 3 + 2] = index as f32;
            }
        }
        "yolov3-scores" => {
            for (index, (_, (class, score))) in objects().enumerate() {
                values[class * dims[2] + index] = score;
            }
        }
        "blazeface-regressors" => {
            for (index, (corners, _)) in objects().enumerate() {
                let [x, y, width, height] = center(corners);
                // The two anchors of a cell are in the middle of it.
                let middle = [index as f32 * 8.0 + 4.0, 4.0];
                // The points are in the middle of the object.
                let [x, y] = [x - middle[0], y - middle[1]];
                let row = [vec![x, y, width, height], [x, y].repeat(6)].concat();
                values[index * 32..][..16].copy_from_slice(&row);
            }
        }
        // Numbers and scores are rows.
        "yolo-v8-out" => {
            for (index, (corners, of)) in objects().enumerate() {
                for (number, value) in row(id, corners, size, of, 80).into_iter().enumerate() {
                    values[number * dims[2] + index] = value;
                }
            }
        }
        "scores" if dims[1] == 80 && dims[2] != 80 => {
            for (index, (_, (class, score))) in objects().enumerate() {
                values[class * dims[2] + index] = score;
            }
        }
        "yolox-raw-out" | "nanodet-plus-rows" => {
            let columns =
                size.map(|side| [8.0f32, 16.0].map(|stride| (side / stride).ceil() as usize));
            for (corners, (class, score)) in objects() {
                let [x, y, width, height] = center(corners).map(|it| it / 16.0);
                let cell = y as usize * columns[0][1] + x as usize;
                let at = (columns[0][0] * columns[1][0] + cell) * dims[2];
                let (of_box, scores) = if id == "yolox-raw-out" { (0, 5) } else { (80, 0) };
                let to = &mut values[at..][..dims[2]];
                to[scores + class] = score;
                if id == "yolox-raw-out" {
                    let numbers = [x % 1.0, y % 1.0, width.ln(), height.ln(), 1.0];
                    to[..5].copy_from_slice(&numbers);
                    continue;
                }
                // Sides from the corner of the cell, each the mean of a distribution over 8 numbers.
                let [column, row] = [x.floor(), y.floor()];
                let [x1, y1, x2, y2] = corners.map(|it| it / 16.0);
                for (side, length) in
                    [column - x1, row - y1, x2 - column, y2 - row].iter().enumerate()
                {
                    let bins = &mut to[of_box + 8 * side..][..8];
                    bins.fill(-40.0);
                    let (bin, part) = (*length as usize, length % 1.0);
                    bins[bin] = (1.0 - part).max(1e-9).ln();
                    bins[bin + 1] = part.max(1e-9).ln();
                }
            }
        }
        // The first of three anchors of a cell of 8 pixels has 10.
        "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-boxes-without-postproc" => {
            for (index, (corners, _)) in objects().enumerate() {
                let [x, y, width, height] = center(corners);
                let middle = [4.0 + 8.0 * index as f32, 4.0];
                let offsets = [(x - middle[0]) / 10.0 / 0.1, (y - middle[1]) / 10.0 / 0.1];
                let logarithms = [width, height].map(|side| (side / 10.0).ln() / 0.2);
                values[index * 12..][..4].copy_from_slice(&[offsets, logarithms].concat());
            }
        }
        // With a score for these anchors.
        "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-scores" => {
            for (index, (_, (_, score))) in objects().enumerate() {
                let of = if is_raw { index * 3 } else { index };
                values[of * 2..][..2].copy_from_slice(&[1.0 - score, score]);
            }
        }
        "blazeface-classificators" => {
            values.fill(-9.0);
            objects().enumerate().for_each(|(at, (_, (_, score)))| values[at * 2] = logit(score));
        }
        id if id.starts_with("fcos-") => {
            let stride: f32 = id.rsplit('-').next().unwrap().parse().unwrap();
            let [channels, rows, columns] = [dims[1], dims[2], dims[3]];
            // The score is the square root of a product, of which the centerness is 1.
            values.fill(if id.contains("centerness") { 30.0 } else { -20.0 });
            for (corners, (class, score)) in objects().filter(|_| stride == 16.0) {
                let [x, y, ..] = center(corners);
                let cell = [x, y].map(|it| (it / stride) as usize);
                let at = |channel: usize| (channel * rows + cell[1]) * columns + cell[0];
                if channels == 80 {
                    values[at(class)] = logit(score * score);
                }
                let [x, y] = cell.map(|it| (it as f32 + 0.5) * stride);
                let unit = if id.contains("cells") { stride } else { 1.0 };
                let sides = [x - corners[0], y - corners[1], corners[2] - x, corners[3] - y];
                if channels == 4 {
                    (0..4).for_each(|side| values[at(side)] = sides[side] / unit);
                }
            }
        }
        id if id.starts_with("centernet-") => {
            let [channels, rows, columns] = [dims[1], dims[2], dims[3]];
            let is_of_scores = channels == 80;
            values.fill(if is_of_scores { score_of(0.001) } else { 0.0 });
            for (corners, (class, score)) in objects() {
                let [x, y, width, height] = center(corners).map(|it| it / 4.0);
                let cell = |channel: usize| (channel * rows + y as usize) * columns + x as usize;
                let pair = if id.ends_with("sizes") { [width, height] } else { [x % 1.0, y % 1.0] };
                match is_of_scores {
                    true => values[cell(class)] = score_of(score),
                    false => (0..2).for_each(|channel| values[cell(channel)] = pair[channel]),
                }
            }
        }
        id if id.starts_with("yolov4-raw-") => {
            let row = [vec![0.0; 4], vec![score_of(0.001); 81]].concat();
            values = row.iter().copied().cycle().take(elements).collect();
            for (corners, (class, score)) in objects().filter(|_| id.ends_with("-16")) {
                let [x, y, width, height] = center(corners);
                let cell = (y / 16.0) as usize * dims[2] + (x / 16.0) as usize;
                let position = |at: f32| logit(((at / 16.0).fract() + 0.05) / 1.1);
                let numbers = [position(x), position(y), (width / 36.0).ln(), (height / 75.0).ln()];
                let row = &mut values[cell * 3 * 85..][..85];
                row[..4].copy_from_slice(&numbers);
                row[4] = score_of(0.999_99);
                row[5 + class] = score_of(score);
            }
        }
        id => {
            let columns = dims.last().copied().unwrap_or(1);
            let rows = objects().flat_map(|(corners, of)| row(id, corners, size, of, columns));
            let rows: Vec<f32> = rows.collect();
            values[..rows.len()].copy_from_slice(&rows);
        }
    }
    values
}

/// A word's length in a model whose picture has this size.
fn length(dim: &str, [width, height]: [i64; 2]) -> i64 {
    match dim.split('|').next().unwrap().trim_start_matches('>').trim_end_matches('?') {
        _ if dim.starts_with('!') => 91,
        "B" | "OB" => 1,
        "N" | "Q" | "M" | "" => 2,
        "K" | "MH" | "MW" => 5,
        // Those of UltraFace.
        "A" => 940,
        "C" => 80,
        "D" => 84,
        "S" | "H" => height,
        "W" => width,
        cells if cells.contains('+') => {
            let (of_cell, strides) = cells.split_once('x').unwrap_or(("1", cells));
            let strides = strides.split('+').map(|it| it.parse::<i64>().unwrap());
            let cells =
                |stride: i64| (height + stride - 1) / stride * ((width + stride - 1) / stride);
            strides.map(cells).sum::<i64>() * of_cell.parse::<i64>().unwrap()
        }
        "1" if dim.starts_with('>') => 91,
        dim => match dim.split_once('/') {
            Some((side, stride)) => {
                let side = if side == "H" { height } else { width };
                let stride: i64 = stride.parse().unwrap();
                (side + stride - 1) / stride
            }
            None => dim.parse().unwrap(),
        },
    }
}

/// A model with each signature, as it is. A `*` in the text is another name; of alternatives, the first.
#[test]
fn every_signature_is_read_as_it_is() {
    if !has_onnx_runtime() {
        return;
    }
    for signature in nmsfilter_core::signature::all() {
        let picture = signature.inputs.iter().find(|it| it.numbers().is_none()).unwrap();
        let fixed: Vec<i64> =
            picture.form.split([' ', ',']).filter_map(|it| it.parse().ok()).collect();
        let size = match (signature.facts.size, fixed.iter().find(|&&side| side > 3)) {
            (Some(size), _) => size.map(i64::from),
            (None, Some(&side)) => [side; 2],
            (None, None) => [128; 2],
        };
        let [width, height] = size.map(|side| side as f32);
        let scale = (width / FRAME[0]).min(height / FRAME[1]);
        let (scales, top) = match signature.facts.letterbox {
            Letterbox::None => ([width / FRAME[0], height / FRAME[1]], 0.0),
            Letterbox::TopLeft => ([scale; 2], 0.0),
            _ => ([scale; 2], (height - FRAME[1] * scale) / 2.0),
        };
        let place = |[x1, y1, x2, y2]: [f32; 4]| {
            let ([x, y], top) = (scales, top);
            [x1 * x, y1 * y + top, x2 * x, y2 * y + top]
        };
        let corners = OBJECTS.map(|(corners, ..)| place(corners));
        let is_raw = signature.name.ends_with("-raw");
        let has_logits = signature.outputs.iter().any(|it| it.logits.is_some());
        for score_of in
            [logit as fn(f32) -> f32, |score| score].into_iter().take(1 + usize::from(has_logits))
        {
            let mut parts = OnnxModel::new();
            let element = |types: &str| match types {
                "float" => Element::F32,
                "byte" => Element::U8,
                _ => Element::I64,
            };
            let form = |form: &str| {
                let [name, types, dims] = form.split(' ').collect::<Vec<_>>().try_into().unwrap();
                let dims = dims.split('|').next().unwrap();
                let lengths: Vec<i64> =
                    dims.split(',').map(|dim: &str| length(dim, size)).collect();
                let stated: Vec<String> = dims
                    .split(',')
                    .zip(&lengths)
                    .map(
                        |(dim, length)| {
                            if dim == "?" { dim.to_owned() } else { length.to_string() }
                        },
                    )
                    .collect();
                let any = format!("any name {dims}");
                (name.replace('*', &any), element(types), lengths, stated.join(","))
            };
            for input in &signature.inputs {
                let (name, element, _, stated) = form(input.form);
                parts = parts.input(&name, element, stated.as_str());
            }
            let mut nothing = Vec::new();
            for (index, input) in signature.inputs.iter().enumerate() {
                let [number, sum] = ["number", "sum"].map(|word| format!("{word} {index}"));
                parts = parts
                    .node(Node::new("Cast", &[&form(input.form).0], &[&number]).int("to", 1))
                    .node(Node::new("ReduceSum", &[&number], &[&sum]).int("keepdims", 0));
                nothing.push(sum);
            }
            let sums: Vec<&str> = nothing.iter().map(|it| &**it).collect();
            parts = parts
                .node(Node::new("Sum", &sums, &["sum"]))
                .initializer("zero", &Tensor::f32(&[], &[0.0]))
                .node(Node::new("Mul", &["sum", "zero"], &["nothing"]));
            for output in &signature.outputs {
                let (name, element, lengths, stated) = form(output.form);
                let dims: Vec<usize> = lengths.iter().map(|&it| it as usize).collect();
                let values =
                    values(output.meaning, &dims, &corners, [width, height], is_raw, score_of);
                // The model computes the dimensions, so that ONNX Runtime knows only what is stated.
                let [stored, added, dims, zeros, shape, shaped] =
                    ["stored", "added", "dims", "zeros", "shape", "shaped"]
                        .map(|word| format!("{word} {name}"));
                parts = parts
                    .initializer(&stored, &Tensor::f32(&lengths, &values))
                    .node(Node::new("Add", &[&stored, "nothing"], &[&added]))
                    .initializer(&dims, &Tensor::i64(&[lengths.len() as i64], &lengths))
                    .node(Node::new("Cast", &["nothing"], &[&zeros]).int("to", 7))
                    .node(Node::new("Add", &[&dims, &zeros], &[&shape]))
                    .node(Node::new("Reshape", &[&added, &shape], &[&shaped]))
                    .node(Node::new("Cast", &[&shaped], &[&name]).int("to", element as i64))
                    .output(&name, element, stated.as_str());
            }
            let mut properties = if signature.facts.pixels_vary { "channel-order=rgb" } else { "" };
            let is_of = |other: &&Signature| {
                let forms = |of: &[Pattern]| of.iter().map(|it| it.form).collect::<Vec<_>>();
                forms(&other.inputs) == forms(&signature.inputs)
                    && forms(&other.outputs) == forms(&signature.outputs)
            };
            let named = format!("signature={}", signature.name);
            if nmsfilter_core::signature::all().iter().filter(is_of).count() > 1 {
                properties = &named;
            }
            // The kernels have neither peaks nor pairs.
            let is_of_cpu =
                ["centernet", "zoo-yolov3", "zoo-tiny-yolov3"].contains(&signature.name);
            let backend = if is_of_cpu { "backend=cpu" } else { "" };
            let (found, taken) = run(&parts, properties, backend);
            assert_eq!(taken.as_deref(), Some(signature.name), "{found:?}");
            let found = found.unwrap_or_else(|error| panic!("{}: {error}", signature.name));
            let has = |part: &str| signature.outputs.iter().any(|it| it.meaning.starts_with(part));
            let first = ["torchvision", "zoo-ssd", "ssd-mobilenet", "efficientdet"]
                .iter()
                .any(|it| has(it));
            let mut expected = expected(usize::from(first));
            if has("blazeface") || has("ultra-lightweight") {
                expected.iter_mut().for_each(|(class, ..)| "face".clone_into(class));
            }
            let is_near = |(found, expected): (&Found, &Found)| {
                let edges = found.1.iter().zip(expected.1).all(|(a, b)| a.abs_diff(b) <= 1);
                found.0 == expected.0 && edges && found.2.abs_diff(expected.2) <= 1
            };
            let are_near = found.len() == 2 && found.iter().zip(&expected).all(is_near);
            assert!(are_near, "{}: {found:?}, expected {expected:?}", signature.name);
        }
    }
}

/// The rows of the table in docs/usage.md. `NMSFILTER_WRITE_DOCS=1 cargo test -p nmsfilter-tests --test inference
/// the_documents_have` writes them.
#[test]
fn the_documents_have_the_table_of_signatures() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/usage.md");
    let document = std::fs::read_to_string(path).unwrap();
    let mark = "| signature | models | exporter |";
    let begin = document.find(mark).expect("the table");
    let end = begin + document[begin..].find("\n\n").expect("an empty line after the table") + 1;
    let mut table = String::from(
        "| signature | models | exporter | left to set |\n| --- | --- | --- | --- |\n",
    );
    for signature in nmsfilter_core::signature::all() {
        let left = match (signature.facts.pixels_vary, signature.left) {
            (true, "") => "pixels as in the configuration",
            (_, left) => left,
        };
        // Without the files in which it was read.
        let is_file = |word: &&str| word.contains('.') || word.matches('/').count() > 1;
        let words: Vec<_> = signature.source.split(' ').filter(|word| !is_file(word)).collect();
        let exporter = words.join(" ");
        let [name, models] = [signature.name, signature.models];
        table +=
            &format!("| `{name}` | {models} | {} | {left} |\n", exporter.trim_end_matches(','));
    }
    if std::env::var_os("NMSFILTER_WRITE_DOCS").is_some() {
        std::fs::write(path, document[..begin].to_owned() + &table + &document[end..]).unwrap();
        return;
    }
    assert_eq!(document[begin..end], table, "write the table again with NMSFILTER_WRITE_DOCS=1");
}

/// RT-DETR's authors' models need no suppression, even where objects are in the same place, unless the user sets one.
#[test]
fn detections_that_need_no_suppression_have_none() {
    if !has_onnx_runtime() {
        return;
    }
    let boxes = [([0.1, 0.1, 0.5, 0.5], 3, 0.9), ([0.1, 0.1, 0.5, 0.5], 3, 0.8)];
    let sizes = ("orig_target_sizes", Element::I64, "1,2");
    let model = scaled_boxes("1,3,64,64", sizes, &boxes);
    for (properties, count) in [("", 2), ("method=greedy", 1), ("iou-threshold=0.5", 1)] {
        let (found, signature) = run(&model, "", properties);
        assert_eq!(found.map(|found| found.len()), Ok(count), "{properties}");
        assert_eq!(signature.as_deref(), Some("rt-detr"));
    }
}

/// Other models of Ultralytics have a frame in the center.
#[test]
fn a_frame_is_stretched_into_ultralytics_rt_detr() {
    if !has_onnx_runtime() {
        return;
    }
    let [boxes, _] = detr(|_| Vec::new());
    let ends = OBJECTS.iter().map(|&(_, class, score)| [score, class as f32]).chain([[0.0; 2]]);
    let rows = boxes.chunks(4).zip(ends).flat_map(|(corners, ends)| [corners, &ends].concat());
    let output = ("output0", Element::F32, "1,3,6", &[1, 3, 6][..], rows.collect());
    let model = model(("images", Element::F32, "1,3,64,64"), &[output])
        .metadata("head", "RTDETRDecoder")
        .metadata("task", "detect");
    assert_eq!(run(&model, "", ""), (Ok(expected(0)), None));
}

/// The model zoo's Faster R-CNN takes blue first: a white pixel is 255 - 102.9801 in the first channel. The score is 0.5 with
/// this number.
#[test]
fn the_order_of_channels_is_that_of_the_signature() {
    if !has_onnx_runtime() {
        return;
    }
    let model = OnnxModel::new()
        .input("image", Element::F32, "3,64,64")
        .initializer("0", &Tensor::i64(&[], &[0]))
        .initializer("blue", &Tensor::f32(&[1], &[255.0 - 102.9801 - 0.5]))
        .initializer("corners", &Tensor::f32(&[1, 4], &[8.0, 8.0, 24.0, 24.0]))
        .initializer("class", &Tensor::i64(&[1], &[1]))
        .node(Node::new("Gather", &["image", "0"], &["channel"]).int("axis", 0))
        .node(Node::new("ReduceMax", &["channel"], &["most"]).int("keepdims", 0))
        .node(Node::new("Identity", &["corners"], &["6379"]))
        .node(Node::new("Identity", &["class"], &["6381"]))
        .node(Node::new("Sub", &["most", "blue"], &["6383"]))
        .output("6379", Element::F32, "N,4")
        .output("6381", Element::I64, "N")
        .output("6383", Element::F32, "N");
    let (found, signature) = run(&model, "", "");
    assert_eq!(signature.as_deref(), Some("zoo-faster-rcnn"));
    assert_eq!(found, Ok(vec![("class-1".to_owned(), [20, 10, 40, 20], 50)]));
}

/// Transformers' post-processing: of 3 queries, the best 3 of the four pairs of query and class that reach the threshold.
#[test]
fn a_query_of_a_detr_with_sigmoid_can_have_several_classes() {
    if !has_onnx_runtime() {
        return;
    }
    let scores = [(0, 16, 0.9), (0, 5, 0.85), (0, 7, 0.8), (1, 3, 0.84)];
    let [boxes, _] = detr(|_| Vec::new());
    for (name, [boxes_name, logits_name], dims, classes) in [
        ("transformers-rt-detr", ["pred_boxes", "logits"], "batch_size,3,64,64", 80),
        ("rf-detr", ["dets", "labels"], "1,3,64,64", 91),
    ] {
        let mut logits = vec![-9.0; 3 * classes];
        for (query, class, score) in scores {
            logits[query * classes + class] = logit(score);
        }
        let outputs: [Output<'_>; 2] = [
            (boxes_name, Element::F32, "1,3,4", &[1, 3, 4], boxes.clone()),
            (logits_name, Element::F32, &format!("1,3,{classes}"), &[1, 3, classes as i64], logits),
        ];
        let input = if name == "rf-detr" { "input" } else { "pixel_values" };
        let model = model((input, Element::F32, dims), &outputs);
        for (properties, expected) in [
            ("", &[("class-16", 90), ("class-5", 85), ("class-3", 84)][..]),
            ("max-detections=2", &[("class-16", 90), ("class-5", 85)]),
            ("multi-label=false", &[("class-16", 90), ("class-3", 84)]),
        ] {
            let (found, signature) = run(&model, "", properties);
            let found = found.unwrap();
            let found: Vec<_> = found.iter().map(|(class, _, score)| (&**class, *score)).collect();
            assert_eq!(found, expected, "{name} {properties}");
            assert_eq!(signature.as_deref(), Some(name));
        }
    }
}

/// Somebody has made a constant of RT-DETR's second input: if it is the size of the model's input, boxes are in its pixels.
#[test]
fn sizes_can_be_constants_of_the_file() {
    if !has_onnx_runtime() {
        return;
    }
    let model = |size: [i64; 2]| {
        let outputs: [Output<'_>; 3] = [
            ("labels", Element::I64, "1,2", &[1, 2], classes(0)),
            ("boxes", Element::F32, "1,2,4", &[1, 2, 4], corners(true, 1.0).concat()),
            ("scores", Element::F32, "1,2", &[1, 2], scores()),
        ];
        model(IMAGES, &outputs).initializer("orig_target_sizes", &Tensor::i64(&[1, 2], &size))
    };
    assert_found(&model([64, 64]), "rt-detr", 0);
    assert_unknown(&model([640, 64]), "");
}

/// Models of MMDetection differ in the numbers of pixels.
#[test]
fn a_warning_says_that_pixels_are_not_known() {
    if !has_onnx_runtime() {
        return;
    }
    let rows: Vec<f32> = corners(true, 1.0)
        .into_iter()
        .zip(scores())
        .flat_map(|(corners, score)| [&corners[..], &[score]].concat())
        .collect();
    let outputs: [Output<'_>; 2] = [
        ("dets", Element::F32, "1,2,5", &[1, 2, 5], rows),
        ("labels", Element::I64, "1,2", &[1, 2], classes(0)),
    ];
    let file = file(&model(("input", Element::F32, "1,3,64,64"), &outputs));
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=1 ! video/x-raw,format=RGB,width=160,height=80 ! {} ! nmsfilter ! fakesink",
        element::inference(&file, "provider=cpu")
    ));
    let warnings = pipeline::run(&pipeline).warnings.concat();
    assert!(
        warnings.contains("signature mmdeploy") && warnings.contains("range, mean"),
        "{warnings}"
    );
}

/// Rows of a batch are those of the picture that their first number names.
#[test]
fn rows_of_a_batch_name_their_picture() {
    if !has_onnx_runtime() {
        return;
    }
    let row = |image: f32, object: usize| {
        let (_, class, score) = OBJECTS[object];
        [&[image], &corners(false, 1.0)[object][..], &[class as f32, score]].concat()
    };
    // A row of -1 belongs to none.
    let rows = [row(1.0, 0), row(0.0, 0), row(-1.0, 1), row(0.0, 1), row(1.0, 1)].concat();
    for (images, is_batch) in [("N,3,64,64", true), ("1,3,64,64", false)] {
        let model = OnnxModel::new()
            .input("images", Element::F32, images)
            .initializer("stored", &Tensor::f32(&[5, 7], &rows))
            .node(Node::new("ReduceSum", &["images"], &["sum"]).int("keepdims", 0))
            .initializer("zero", &Tensor::f32(&[], &[0.0]))
            .node(Node::new("Mul", &["sum", "zero"], &["nothing"]))
            .node(Node::new("Add", &["stored", "nothing"], &["added"]))
            .node(Node::new("Cast", &["nothing"], &["zeros"]).int("to", 7))
            .initializer("dims", &Tensor::i64(&[2], &[5, 7]))
            .node(Node::new("Add", &["dims", "zeros"], &["shape"]))
            .node(Node::new("Reshape", &["added", "shape"], &["output"]))
            .output("output", Element::F32, "?,7");
        let (found, signature) = run(&model, "batch-size=2 model-instance-id=rows", "");
        if is_batch {
            assert_eq!((found, signature.as_deref()), (Ok(expected(0)), Some("yolov7-end2end")));
        } else {
            // The model is for one picture, so that each row is of picture 0.
            let error = found.expect_err("the batch is 1");
            assert!(error.contains("batch-size") && error.contains("output"), "{error}");
        }
    }
}

/// YOLOv3 of the model zoo gives all boxes and scores, and the pairs that its own suppression selects: a black picture has one,
/// a white one more. Other pairs have higher scores.
#[test]
fn the_pairs_that_a_model_selects_are_those_of_their_picture() {
    if !has_onnx_runtime() {
        return;
    }
    let yx = |[x1, y1, x2, y2]: [f32; 4]| [y1, x1, y2, x2];
    let objects = corners(false, 1.0).into_iter().map(yx);
    let boxes: Vec<f32> = objects.chain([[1.0, 2.0, 30.0, 40.0]]).flatten().collect();
    let mut scores = vec![0.97; 80 * 3];
    for (index, (_, class, score)) in OBJECTS.iter().enumerate() {
        scores[class * 3 + index] = *score;
    }
    let pair = |picture: i64, object: usize| [picture, OBJECTS[object].1 as i64, object as i64];
    for (batch, pairs, names) in [
        (
            1,
            vec![pair(0, 1), pair(0, 0)],
            ["yolonms_layer_1", "yolonms_layer_1:1", "yolonms_layer_1:2"],
        ),
        (
            2,
            vec![pair(1, 0), pair(0, 0), [-1, 7, 2], pair(0, 1), pair(1, 1)],
            [
                "yolonms_layer_1/ExpandDims_1:0",
                "yolonms_layer_1/ExpandDims_3:0",
                "yolonms_layer_1/concat_2:0",
            ],
        ),
    ] {
        let rows = pairs.len() as i64;
        let mut model = OnnxModel::new()
            .input("input_1", Element::F32, "N,3,64,64")
            .input("image_shape", Element::F32, "N,2")
            .node(Node::new("ReduceSum", &["input_1"], &["sum"]).int("keepdims", 0))
            .node(Node::new("ReduceSum", &["image_shape"], &["sides"]).int("keepdims", 0))
            .initializer("zero", &Tensor::f32(&[], &[0.0]))
            .node(Node::new("Add", &["sum", "sides"], &["both"]))
            .node(Node::new("Mul", &["both", "zero"], &["nothing"]));
        for (name, stated, dims, values) in [
            (names[0], "batch,N,4", [batch, 3, 4], boxes.repeat(batch as usize)),
            (names[1], "batch,80,N", [batch, 80, 3], scores.repeat(batch as usize)),
        ] {
            let stored = format!("stored {name}");
            model = model
                .initializer(&stored, &Tensor::f32(&dims, &values))
                .node(Node::new("Add", &[&stored, "nothing"], &[name]))
                .output(name, Element::F32, stated);
        }
        let model = model
            .initializer("pairs", &Tensor::i64(&[rows, 3], &pairs.concat()))
            .initializer("from", &Tensor::i64(&[1], &[0]))
            .initializer("one", &Tensor::i64(&[1], &[1]))
            .initializer("more", &Tensor::i64(&[1], &[rows - 1]))
            .node(Node::new("Greater", &["sum", "zero"], &["is white"]))
            .node(Node::new("Cast", &["is white"], &["white"]).int("to", 7))
            .node(Node::new("Mul", &["white", "more"], &["further"]))
            .node(Node::new("Add", &["further", "one"], &["count"]))
            .node(Node::new("Slice", &["pairs", "from", "count"], &["selected"]))
            .node(Node::new("Cast", &["selected"], &[names[2]]).int("to", 6))
            .output(names[2], Element::I32, "M,3");
        let properties = match batch {
            1 => "",
            _ => "batch-size=2 model-instance-id=pairs",
        };
        // The kernels have no pairs.
        let (found, signature) = run(&model, properties, "backend=cpu");
        assert_eq!(found, Ok(expected(0)));
        assert!(signature.unwrap().contains("yolov3"));
    }
}

/// Rows of several pictures follow each other: as many rows as pictures are not a row for each.
#[test]
fn rows_that_do_not_name_their_picture_are_refused_in_batches() {
    if !has_onnx_runtime() {
        return;
    }
    let outputs: [Output<'_>; 3] = [
        ("boxes", Element::F32, "?,4", &[2, 4], corners(true, 1.0).concat()),
        ("labels", Element::I64, "?", &[2], classes(1)),
        ("scores", Element::F32, "?", &[2], scores()),
    ];
    let torchvision = model(("images", Element::F32, "N,3,64,64"), &outputs);
    assert_found(&torchvision, "torchvision", 1);
    // PaddleDetection counts the rows of each picture in another output.
    let rows = corners(true, 1.0).into_iter().zip(OBJECTS);
    let rows = rows
        .flat_map(|(corners, (_, class, score))| [&[class as f32, score], &corners[..]].concat());
    let outputs: [Output<'_>; 2] = [
        ("multiclass_nms3_0.tmp_0", Element::F32, "?,6", &[2, 6], rows.collect()),
        ("multiclass_nms3_0.tmp_2", Element::I32, "N", &[2], vec![1.0; 2]),
    ];
    let paddle = model(("image", Element::F32, "N,3,64,64"), &outputs);
    for (model, output) in [(torchvision, "boxes"), (paddle, "multiclass_nms3_0.tmp_0")] {
        let (found, _) = run(&model, "batch-size=2 model-instance-id=unnamed", "");
        let error = found.expect_err("the rows are of two pictures");
        let words = "no number of their picture";
        assert!(error.contains("leave batch-size at 0") && error.contains(words), "{error}");
        assert!(error.contains(output), "{error}");
    }
}

/// Masks of torchvision and RF-DETR are not read, which a warning says.
#[test]
fn a_warning_names_masks_that_are_not_read() {
    if !has_onnx_runtime() {
        return;
    }
    let masks =
        |name| -> Output<'_> { (name, Element::F32, "1,3,16,16", &[1, 3, 16, 16], vec![0.0; 768]) };
    let [boxes, logits] = detr(|object| {
        let mut row = vec![-9.0; 91];
        object.into_iter().for_each(|(class, score)| row[class] = logit(score));
        row
    });
    let outputs: [Output<'_>; 2] = [
        ("dets", Element::F32, "1,3,4", &[1, 3, 4], boxes),
        ("labels", Element::F32, "1,3,91", &[1, 3, 91], logits),
    ];
    for further in [None, Some("masks"), Some("4245")] {
        let all: Vec<Output<'_>> = outputs.iter().cloned().chain(further.map(masks)).collect();
        let model = model(("input", Element::F32, "1,3,64,64"), &all);
        assert_found(&model, "rf-detr", 0);
        let file = file(&model);
        let pipeline = parse(&format!(
            "videotestsrc num-buffers=1 ! video/x-raw,format=RGB,width=160,height=80 ! {} ! nmsfilter ! fakesink",
            element::inference(&file, "provider=cpu")
        ));
        let warnings = pipeline::run(&pipeline).warnings.concat();
        let named =
            further.map(|name| format!("keypoints in the outputs {name}, which are not read"));
        assert!(named.map_or(warnings.is_empty(), |it| warnings.contains(&it)), "{warnings}");
    }
}

/// YOLOX's output is decoded or not, which its name and dimensions do not say: both are named, and the property decides.
#[test]
fn of_several_signatures_the_property_takes_one() {
    if !has_onnx_runtime() {
        return;
    }
    let rows = OBJECTS.iter().zip(corners(true, 2.0)).flat_map(|((_, class, score), corners)| {
        row("yolox-out", corners, [INPUT; 2], (*class, *score), 85)
    });
    let mut numbers: Vec<f32> = rows.collect();
    numbers.resize(336 * 85, 0.0);
    let output = ("output", Element::F32, "1,336,85", &[1, 336, 85][..], numbers);
    let model = model(("images", Element::F32, "1,3,128,128"), &[output]);
    let named = "signature=yolox-decoded letterbox=none";
    assert_eq!(run(&model, named, ""), (Ok(expected(0)), Some("yolox-decoded".to_owned())));
    for (properties, expected) in [
        (
            "signature=fcos",
            "signature: the model does not have the signature fcos; it has yolox, yolox-decoded; expected the inputs input_image float",
        ),
        (
            "signature=yolo",
            "signature: the model does not have the signature yolo; it has yolox, yolox-decoded; expected one of rt-detr, ",
        ),
    ] {
        let error = run(&model, properties, "").0.unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    let file = file(&model);
    let ended = |properties: &str, nms: &str| {
        pipeline::run(&parse(&format!(
            "videotestsrc num-buffers=1 ! video/x-raw,format=RGB,width=160,height=80 ! {}
               ! nmsfilter {nms} ! fakesink",
            element::inference(&file, &format!("provider=cpu {properties}"))
        )))
    };
    let error = ended("", "").error.unwrap();
    let named = "or set signature of ortinference to the right one of those that the model has: yolox, yolox-decoded";
    assert!(error.contains("decoder") && error.contains(named), "{error}");
    let warnings = |properties: &str| ended(properties, "decoder=yolox").warnings.concat();
    let told = warnings("");
    assert!(told.contains("of which none is taken: yolox, yolox-decoded; set signature"), "{told}");
    // Who sets the pixels knows the model.
    assert!(!warnings("range=0,255 channel-order=bgr").contains("signature"));
}
