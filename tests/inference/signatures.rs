// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models of known exporters as they are: `ortinference ! nmsfilter` without a property finds their boxes. A model that is
//! nearly one of them is none.

use gst::prelude::*;
use gst_video::VideoRegionOfInterestMeta;

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
    assert_eq!(ended.warnings, [""; 0]);
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
    // Models for COCO have 91 numbers of classes, and a score for no object.
    for (scores, is_known) in [(92, true), (91, false)] {
        let [boxes, logits] = detr(|object| {
            let mut row = vec![1e-6f32; scores];
            row[scores - 1] = object.map_or(1.0, |(_, score)| 1.0 - score);
            if let Some((class, score)) = object {
                row[class] = score;
            }
            row.into_iter().map(f32::ln).collect()
        });
        let stated = format!("batch_size,num_queries,{scores}");
        let outputs: [Output<'_>; 2] = [
            ("logits", Element::F32, &stated, &[1, 3, scores as i64], logits),
            ("pred_boxes", Element::F32, "batch_size,num_queries,4", &[1, 3, 4], boxes),
        ];
        let dims = "batch_size,num_channels,height,width";
        let model = model(("pixel_values", Element::F32, dims), &outputs);
        if is_known {
            assert_found(&model, "transformers-detr", 0);
        } else {
            assert_unknown(&model, "input-width=64 input-height=64");
        }
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
