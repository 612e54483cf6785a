// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs beside the picture: known ones, and those whose numbers the user sets.

use crate::element::{Tensor, Values, file, has_onnx_runtime};
use crate::frames::{Picture, tensors_of};
use crate::messages;
use crate::support::onnx::{self, Element, Node, OnnxModel, scaled_boxes};

const BOXES: [([f32; 4], i64, f32); 2] =
    [([0.25, 0.5, 0.5, 0.75], 16, 0.9), ([0.0, 0.0, 1.0, 0.25], 3, 0.8)];
/// Width and height of the model's input.
const SIZE: [usize; 2] = [64, 32];

fn picture() -> Picture {
    Picture::random([80, 40], 3)
}

/// Asserts that the model's boxes belong to a picture of this size.
fn assert_boxes(model: &OnnxModel, properties: &str, [width, height]: [f32; 2]) {
    // The ids of a known exporter's outputs are their names alone.
    let properties = format!("signature=none {properties}");
    let found = tensors_of(&picture(), &file(model), &properties);
    let scaled = |([x1, y1, x2, y2], ..): &([f32; 4], i64, f32)| {
        [x1 * width, y1 * height, x2 * width, y2 * height]
    };
    let boxes: Vec<f32> = BOXES.iter().flat_map(scaled).collect();
    let tensor = |id: &str, shape: &[usize], values| {
        let id = format!("onnx/{id}");
        Tensor { id, shape: shape.to_vec(), values }
    };
    let expected = [
        tensor("labels", &[1, 2], Values::Integers(vec![16, 3])),
        tensor("boxes", &[1, 2, 4], Values::F32(boxes)),
        tensor("scores", &[1, 2], Values::F32(vec![0.9, 0.8])),
    ];
    assert_eq!(found, expected, "{properties}");
}

#[test]
fn sizes_of_the_original_picture_are_those_of_the_models_input() {
    if !has_onnx_runtime() {
        return;
    }
    let [width, height] = SIZE.map(|side| side as f32);
    for element in [Element::I64, Element::I32, Element::F32] {
        for images in ["N,3,32,64", "1,3,32,64"] {
            let model = scaled_boxes(images, ("orig_target_sizes", element, "N,2"), &BOXES);
            assert_boxes(&model, "", [width, height]);
        }
    }
    // Height comes first.
    for name in ["image_shape", "im_shape"] {
        let model = scaled_boxes("1,3,32,64", (name, Element::F32, [1, 2]), &BOXES);
        assert_boxes(&model, "", [height, width]);
    }
    let model = scaled_boxes("1,3,32,64", ("scale_factor", Element::F32, [1, 2]), &BOXES);
    assert_boxes(&model, "", [1.0, 1.0]);
}

#[test]
fn a_batch_has_the_size_of_each_picture() {
    if !has_onnx_runtime() {
        return;
    }
    let model = scaled_boxes("N,3,32,64", ("orig_target_sizes", Element::I64, "N,2"), &BOXES);
    for inputs in ["", "inputs=orig_target_sizes=64,32", "inputs=orig_target_sizes=64,32,64,32"] {
        assert_boxes(
            &model,
            &format!("batch-size=2 model-instance-id=sizes-of-pictures {inputs}"),
            [64.0, 32.0],
        );
    }
}

#[test]
fn the_property_sets_the_numbers_of_any_input() {
    if !has_onnx_runtime() {
        return;
    }
    let model = scaled_boxes("1,3,32,64", ("a=size", Element::I32, "?,2"), &BOXES);
    assert_boxes(&model, "inputs=a=size=200,100", [200.0, 100.0]);
    let known = scaled_boxes("1,3,32,64", ("scale_factor", Element::F32, [1, 2]), &BOXES);
    assert_boxes(&known, "inputs=\"scale_factor = 2.5, 0.5;\"", [2.5, 0.5]);
}

/// The mask of Transformers' DETR has an element for each pixel.
#[test]
fn a_mask_of_pixels_is_of_ones() {
    if !has_onnx_runtime() {
        return;
    }
    let model = OnnxModel::new()
        .input("pixel_values", Element::F32, "batch,3,32,64")
        .input("pixel_mask", Element::I64, "batch,height,width")
        .node(Node::new("Identity", &["pixel_values"], &["same"]))
        .node(Node::new("Cast", &["pixel_mask"], &["mask"]).int("to", Element::F32 as i64))
        .output("same", Element::F32, "batch,3,32,64")
        .output("mask", Element::F32, "batch,32,64");
    let [_, mask] = tensors_of(&picture(), &file(&model), "").try_into().expect("two outputs");
    assert_eq!((&*mask.shape, mask.f32()), (&[1, 32, 64][..], &[1.0; 32 * 64][..]));
}

/// An input with this name, but another type or other dimensions, is one that nobody knows.
#[test]
fn an_input_that_is_nearly_known_is_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    for (name, element, dims, text) in [
        ("orig_target_size", Element::I64, "N,2", "[?,2]"),
        ("orig_target_sizes", Element::I64, "N,?", "[?,?]"),
        ("orig_target_sizes", Element::U8, "N,2", "[?,2]"),
        ("scale_factor", Element::I64, "1,2", "[1,2]"),
    ] {
        let model = file(&scaled_boxes("1,3,32,64", (name, element, dims), &BOXES));
        let expected = format!(
            "the model has 2 inputs (images [1,3,32,64], {name} {text}); expected one, the picture: set \
             inputs=NAME=NUMBER,... for each other input, or export the model with the picture alone"
        );
        assert_eq!(messages::error(&format!("model={}", model.display())), expected);
    }
}

#[test]
fn numbers_that_an_input_cannot_have_are_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&scaled_boxes("1,3,32,64", ("size", Element::I64, "1,2"), &BOXES));
    let input = "the model's input size is a tensor of i64 with the dimensions [1,2]; expected";
    for (inputs, expected) in [
        ("size", "inputs: expected the name and the numbers of each input, as in ".to_owned()),
        ("size=", "inputs: expected the name and the numbers of each input, as in ".to_owned()),
        ("size=1,x", "inputs: expected the name and the numbers of each input, as in ".to_owned()),
        (
            "other=1",
            "inputs=other=...: the model has no such input; its inputs are images".to_owned(),
        ),
        ("size=1", format!("{input} 2 numbers, got 1: correct inputs=size=NUMBER,...")),
        ("size=1,2,3", format!("{input} 2 numbers, got 3: correct inputs=size=NUMBER,...")),
        ("size=1.5,2", format!("{input} numbers that its type has")),
        ("size=1,2;images=1", "the model has 2 inputs".to_owned()),
    ] {
        let error = messages::error(&format!("model={} inputs={inputs}", model.display()));
        assert!(error.starts_with(&expected), "{inputs}: {error}");
    }
}

/// An input that has its numbers in the file keeps them.
#[test]
fn an_initializer_with_an_inputs_name_is_not_replaced() {
    if !has_onnx_runtime() {
        return;
    }
    let model = scaled_boxes("1,3,32,64", ("orig_target_sizes", Element::I64, "1,2"), &BOXES)
        .initializer("orig_target_sizes", &onnx::Tensor::i64(&[1, 2], &[300, 200]));
    assert_boxes(&model, "", [300.0, 200.0]);
}
