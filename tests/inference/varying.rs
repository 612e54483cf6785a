// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models whose outputs have a row for each detection, so that the number of rows depends on the picture.

use crate::element::{self, Tensor, Values, file, has_onnx_runtime, stat, tensors};
use crate::frames::{self, Picture};
use crate::messages;
use crate::support::onnx::{Element, Node, OnnxModel, detections, varying_output};
use crate::support::pipeline::{Region, intercept, parse, regions, run, watch};

/// The size of frames, and of the model's input. It has a detection for each pixel of the first row.
const SIZE: [usize; 2] = [160, 40];
const DIMS: [i64; 4] = [1, 3, 40, 160];
const BOXES: usize = SIZE[0];

/// The difference of the classes that the second picture of a batch has.
const OTHER_PICTURE: usize = 10;

/// The box that belongs to a pixel, its score and its class. Boxes are in columns of three.
fn detection(pixel: usize) -> ([f32; 4], f32, f32) {
    let [x, y] = [pixel % 53 * 3, pixel / 53 * 10].map(|side| side as f32);
    ([x, y, x + 2.0, y + 8.0], 0.5 + pixel as f32 / 400.0, (pixel % 7 + 1) as f32)
}

/// Boxes, scores and classes from 1 on, as torchvision's detectors have them, for pixels above `threshold`.
pub fn like_torchvision(before: &[i64], threshold: f32) -> OnnxModel {
    let pictures = before.first().map_or(1, |&pictures| pictures as usize);
    let of_picture = |picture: usize| {
        (0..BOXES).map(detection).map(move |(corners, score, class)| {
            (corners, score, class + (OTHER_PICTURE * picture) as f32)
        })
    };
    let all = || (0..pictures).flat_map(of_picture);
    let outputs = [
        ("boxes", Element::F32, all().flat_map(|(corners, ..)| corners).collect()),
        ("scores", Element::F32, all().map(|(_, score, _)| score).collect()),
        ("labels", Element::I64, all().map(|(.., class)| class).collect()),
    ];
    let dims = [pictures as i64, DIMS[1], DIMS[2], DIMS[3]];
    detections(dims, (BOXES, threshold), before, &outputs)
}

/// The pixels that are white in each frame. There are frames without any, and with more than earlier ones.
fn white(frame: u64) -> Vec<usize> {
    let count = [3, 0, 2, 1, 60, 0, 130, 160, 5, 2][frame as usize % 10];
    (0..count).map(|index| index * 7919 % BOXES).collect()
}

/// Makes a pipeline of frames, each with its white pixels in the first row, through `elements`.
fn pipeline_of(count: usize, elements: &str) -> gst::Pipeline {
    let [width, height] = SIZE;
    let pipeline = parse(&format!(
        "videotestsrc name=frames num-buffers={count}
           ! video/x-raw,format=RGB,width={width},height={height},framerate=30/1
           ! {elements} ! fakesink"
    ));
    intercept(&pipeline, "frames", |buffer| {
        let white = white(buffer.offset());
        let value = |x, y| if y == 0 && white.contains(&x) { [255; 3] } else { [0; 3] };
        frames::write(buffer, &Picture::new(SIZE, value));
    });
    pipeline
}

/// The regions of a frame with these white pixels, in the order of the regions: by label and position.
fn expected(white: &[usize]) -> Vec<Region> {
    expected_in(white, 1)
}

/// The regions of as many pictures of a batch.
fn expected_in(white: &[usize], pictures: usize) -> Vec<Region> {
    let region = |(pixel, picture): (usize, usize)| {
        let ([x, y, ..], _, class) = detection(pixel);
        (format!("class-{}", class as usize + OTHER_PICTURE * picture), [x as u32, y as u32, 2, 8])
    };
    let pictures = |&pixel: &usize| (0..pictures).map(move |picture| (pixel, picture));
    let mut regions: Vec<Region> = white.iter().flat_map(pictures).map(region).collect();
    regions.sort();
    regions
}

const NMS: &str = "nmsfilter name=nms decoder=boxes box-format=corners method=none";

fn detected(buffer: &gst::BufferRef) -> Vec<Region> {
    let mut regions = regions(buffer);
    regions.sort();
    regions
}

/// Asserts that frames have the detections of their white pixels.
pub fn assert_detected(model: &OnnxModel, properties: &str) {
    let model = file(model);
    let elements = format!("{} ! {NMS}", element::inference(&model, properties));
    let pipeline = pipeline_of(20, &elements);
    let seen = watch(&pipeline, "nms", detected);
    let ended = run(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, vec![]), "{properties}");
    let seen = seen.lock().unwrap();
    for (frame, found) in seen.iter().enumerate() {
        assert_eq!(*found, expected(&white(frame as u64)), "frame {frame}, {properties}");
    }
    assert_eq!(seen.len(), 20);
}

#[test]
fn each_frame_has_the_detections_of_its_rows() {
    if !has_onnx_runtime() {
        return;
    }
    for before in [&[][..], &[1]] {
        assert_detected(&like_torchvision(before, 0.5), "provider=cpu");
    }
}

/// The run with which a model is opened has a picture of zeros. Here they are as white as white pixels.
#[test]
fn the_number_of_rows_can_vary_from_the_first_frame_on() {
    if has_onnx_runtime() {
        assert_detected(&like_torchvision(&[], -0.5), "provider=cpu range=-1,0");
    }
}

/// All pictures of a batch have as many rows as the first one: its white pixels.
#[test]
fn a_batch_has_the_rows_of_each_picture() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&like_torchvision(&[2], 0.9));
    let twice = "regions=list region-list=0,0,160,40;0,0,160,40 provider=cpu";
    let elements = format!("{} ! {NMS}", element::inference(&model, twice));
    let pipeline = pipeline_of(10, &elements);
    let seen = watch(&pipeline, "nms", detected);
    let ended = run(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
    for (frame, found) in seen.lock().unwrap().iter().enumerate() {
        let white = white(frame as u64);
        assert_eq!(*found, expected_in(&white, 2), "frame {frame}");
    }
}

/// The tensors of frames with up to 128 rows have equal dimensions, so that `nmsfilter` need not adapt to them.
#[test]
fn rows_that_a_run_does_not_have_are_zeros() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&like_torchvision(&[1], 0.5));
    let pipeline = pipeline_of(10, &element::inference(&model, "provider=cpu"));
    let frames = element::run_pipeline(&pipeline);
    for (frame, tensors) in frames.iter().enumerate() {
        let rows = if frame < 6 { 128 } else { 256 };
        let shapes: Vec<&[usize]> = tensors.iter().map(|tensor| &*tensor.shape).collect();
        assert_eq!(shapes, [&[1, rows, 4][..], &[1, rows], &[1, rows]], "frame {frame}");
        let mut white = white(frame as u64);
        white.sort_unstable();
        let used: Vec<_> = white.iter().map(|&pixel| detection(pixel)).collect();
        let mut scores: Vec<f32> = used.iter().map(|(_, score, _)| *score).collect();
        scores.resize(rows, 0.0);
        assert_eq!(tensors[1].f32(), scores, "frame {frame}");
        let mut classes: Vec<i64> = used.iter().map(|(.., class)| *class as i64).collect();
        classes.resize(rows, 0);
        assert_eq!(tensors[2].values, Values::Integers(classes), "frame {frame}");
        let mut boxes: Vec<f32> = used.iter().flat_map(|(corners, ..)| *corners).collect();
        boxes.resize(4 * rows, 0.0);
        assert_eq!(tensors[0].f32(), boxes, "frame {frame}");
    }
}

/// A buffer that is held keeps its rows while later frames need more memory.
#[test]
fn held_tensors_keep_their_rows() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&like_torchvision(&[], 0.5));
    let held = element::inference(&model, "provider=cpu");
    let pipeline = pipeline_of(10, &format!("{held} ! queue name=held min-threshold-buffers=9"));
    let early = watch(&pipeline, "inference", tensors);
    let late = watch(&pipeline, "held", tensors);
    assert_eq!(run(&pipeline).error, None);
    let (early, late): (Vec<Vec<Tensor>>, Vec<Vec<Tensor>>) =
        (std::mem::take(&mut early.lock().unwrap()), std::mem::take(&mut late.lock().unwrap()));
    assert_eq!(early, late);
    assert!(stat(&pipeline, "output-sets") > 5);
}

#[test]
fn more_rows_than_the_limit_are_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&varying_output([1, 3, 150, 150]));
    let picture = Picture::solid([150, 150], [255; 3]);
    let pipeline = frames::pipeline_of(&picture, 1, &element::inference(&model, "provider=cpu"));
    let expected = "the model's output output has 67500 rows; expected at most 65536: export the model with a higher \
                    score threshold or a limit of detections";
    let ended = run(&pipeline);
    assert!(ended.error().starts_with(expected), "{:?}", ended.error);
}

/// The number of rows and of columns follows from the white pixels.
#[test]
fn two_dimensions_that_vary_are_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    let model = OnnxModel::new()
        .input("input", Element::F32, [1, 3, 12, 16])
        .node(Node::new("NonZero", &["input"], &["columns"]))
        .node(Node::new("Transpose", &["columns"], &["rows"]).ints("perm", &[1, 0]))
        .node(Node::new("MatMul", &["rows", "columns"], &["product"]))
        .node(Node::new("Cast", &["product"], &["output"]).int("to", Element::F32 as i64))
        .output("output", Element::F32, "found,found");
    let model = file(&model);
    let expected = "the model's output output has the dimensions [?,?], of which more than the number of rows depends \
                    on the picture; export the model without suppression (nms=False) and with fixed sizes";
    let properties = format!("model={}", model.display());
    assert_eq!(messages::error(&properties), expected);
}
