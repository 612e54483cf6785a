// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quantized tensors: scale and zero point from the metadata and from the property `quantization`.

use gst::prelude::*;
use gstnmsfilter::input::custom_meta::{NewTensor, attach};
use nmsfilter_core::tensor::Quantization;

use crate::support::pipeline::{Ended, Region, init, intercept, parse, regions, run, watch};

const ANCHORS: usize = 20;
const SCALE: f32 = 1.0 / 256.0;

/// Returns the output of a YOLOv8 with normalized coordinates: two objects of the classes 0 and 1,
/// in steps of [`SCALE`].
fn steps() -> Vec<i32> {
    let mut steps = vec![0; 6 * ANCHORS];
    for (anchor, column) in
        [[64, 64, 32, 48, 230, 0], [160, 160, 64, 48, 0, 200]].iter().enumerate()
    {
        for (row, &step) in column.iter().enumerate() {
            steps[row * ANCHORS + anchor] = step;
        }
    }
    steps
}

const ID: &str = "yolo-v8-out-normalized";
const SHAPE: [usize; 3] = [1, 6, ANCHORS];

fn signed() -> NewTensor {
    init();
    let elements: Vec<i8> = steps().iter().map(|&step| (step - 128) as i8).collect();
    NewTensor::from_vec(ID, &SHAPE, elements).unwrap()
}

fn unsigned() -> NewTensor {
    init();
    let elements: Vec<u8> = steps().iter().map(|&step| step as u8).collect();
    NewTensor::from_vec(ID, &SHAPE, elements).unwrap()
}

fn floats() -> NewTensor {
    init();
    let elements: Vec<f32> = steps().iter().map(|&step| step as f32 * SCALE).collect();
    NewTensor::from_vec(ID, &SHAPE, elements).unwrap()
}

fn quantization(scale: f32, zero_point: i32) -> Quantization {
    Quantization::new(scale, zero_point).unwrap()
}

/// Returns the regions of each of three frames of 256x256 with this tensor, and the messages. The
/// property in `change` is set before frame 1.
fn stream(
    properties: &str,
    tensor: NewTensor,
    change: Option<&'static str>,
) -> (Vec<Vec<Region>>, Ended) {
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=3 ! video/x-raw,width=256,height=256,framerate=10/1
           ! nmsfilter name=nms {properties} ! fakesink"
    ));
    let nms = pipeline.by_name("nms").unwrap();
    intercept(&pipeline, "in", move |buffer| {
        attach(buffer, &tensor).unwrap();
        if let Some(quantization) = change
            && buffer.offset() == 1
        {
            nms.set_property("quantization", quantization);
        }
    });
    let seen = watch(&pipeline, "nms", regions);
    let ended = run(&pipeline);
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (seen, ended)
}

fn regions_of(properties: &str, tensor: NewTensor) -> Vec<Region> {
    let (mut seen, ended) = stream(properties, tensor, None);
    assert_eq!((ended.error, &ended.warnings[..]), (None, &[][..]), "{properties}");
    seen.remove(0)
}

fn error_of(properties: &str, tensor: NewTensor) -> String {
    stream(properties, tensor, None).1.error().to_owned()
}

#[test]
fn quantized_tensors_have_the_regions_of_their_dequantized_numbers() {
    let expected = regions_of("", floats());
    assert_eq!(
        expected,
        [("class-0".to_owned(), [48, 40, 32, 48]), ("class-1".to_owned(), [128, 136, 64, 48])]
    );
    let signed_with_scale = signed().with_quantization(quantization(SCALE, -128));
    assert_eq!(regions_of("", signed_with_scale), expected);
    let unsigned_with_scale = unsigned().with_quantization(quantization(SCALE, 0));
    assert_eq!(regions_of("", unsigned_with_scale), expected);
}

#[test]
fn the_property_has_the_quantization_where_the_metadata_has_none() {
    let expected = regions_of("", floats());
    let property = format!("quantization={ID}:0.00390625:-128");
    assert_eq!(regions_of(&property, signed()), expected);
    let property = format!("quantization=\" {ID} : 0.00390625 : 0 \"");
    assert_eq!(regions_of(&property, unsigned()), expected);
}

#[test]
fn the_property_replaces_the_quantization_of_the_metadata() {
    let expected = regions_of("", floats());
    let property = format!("quantization={ID}:0.00390625:-128");
    let wrong = signed().with_quantization(quantization(0.001, 7));
    assert_eq!(regions_of(&property, wrong), expected);
}

#[test]
fn a_quantized_tensor_without_a_scale_is_an_error() {
    for decoder in ["", "decoder=yolov8"] {
        let message = error_of(decoder, signed());
        let expected = "tensor yolo-v8-out-normalized (i8 1x6x20): its elements are quantized, but their scale and \
                        zero point are not known; set the property quantization";
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn an_invalid_entry_is_an_error_that_names_it() {
    for (value, expected) in [
        ("output0", "quantization: cannot read \"output0\"; expected ID:SCALE:ZERO-POINT"),
        ("output0:x:0", "quantization: cannot read \"output0:x:0\"; expected ID:SCALE:ZERO-POINT"),
        ("output0:0:0", "quantization: \"output0:0:0\" is out of range; expected a scale above 0"),
        (
            "output0:1:0",
            "quantization: there is no tensor output0 of type i8 or u8; the buffer carries ",
        ),
    ] {
        let message = error_of(&format!("quantization={value}"), signed());
        assert!(message.starts_with(expected), "{value}: {message}");
    }
    // A quantization does not apply to floating-point elements.
    let message = error_of(&format!("quantization={ID}:1:0"), floats());
    assert!(
        message.starts_with(&format!("quantization: there is no tensor {ID} of type")),
        "{message}"
    );
}

#[test]
fn a_change_comes_into_force_with_the_next_frame() {
    let tensor = || signed().with_quantization(quantization(SCALE, -128));
    let all = regions_of("", tensor());
    // All numbers are halved, so the scores are 0.45 and 0.39.
    let (seen, ended) = stream(
        "score-threshold=0.4 coordinates=pixels model-width=1 model-height=1",
        tensor(),
        Some("yolo-v8-out-normalized:0.001953125:-128"),
    );
    assert_eq!((ended.error, &ended.warnings[..]), (None, &[][..]));
    let half = vec![("class-0".to_owned(), [24, 20, 16, 24])];
    assert_eq!(seen, [all, half.clone(), half]);
}

#[test]
fn one_scale_for_boxes_and_scores_is_warned_of_at_once() {
    // If 256 steps cover the coordinates of 640 pixels, scores can only be 0, 2.5, 5 and so on.
    for (scale, is_coarse) in [(2.5, true), (0.05, true), (0.049, false)] {
        let tensor = unsigned().with_quantization(quantization(scale, 0));
        let (_, ended) = stream("score-threshold=1 coordinates=pixels", tensor, None);
        assert_eq!(ended.error, None);
        let expected = format!(
            "the scores in tensor {ID} (u8 1x6x20) are multiples of its scale {scale}, but scores of decoder yolov8 \
             are probabilities from 0 to 1, so most of them are lost; export the model with a scale for the scores \
             alone, or not quantized, or correct the property quantization"
        );
        let found = ended.warnings.iter().filter(|warning| **warning == expected).count();
        assert_eq!(found, usize::from(is_coarse), "{scale}: {:?}", ended.warnings);
        let first = ended.warnings.first().is_some_and(|warning| *warning == expected);
        assert_eq!(first, is_coarse, "{scale}: {:?}", ended.warnings);
    }
}

#[test]
fn integers_that_no_decoder_needs_do_not_stop_a_frame() {
    let pipeline = parse(
        "videotestsrc name=in num-buffers=1 ! video/x-raw,width=256,height=256 ! nmsfilter name=nms ! fakesink",
    );
    intercept(&pipeline, "in", |buffer| {
        attach(buffer, &NewTensor::from_vec("labels", &[1, 300], vec![7i64; 300]).unwrap())
            .unwrap();
        attach(buffer, &NewTensor::from_vec("num", &[1, 1], vec![7i32]).unwrap()).unwrap();
        attach(buffer, &NewTensor::from_vec("proto", &[1, 4], vec![7u8; 4]).unwrap()).unwrap();
        attach(buffer, &floats()).unwrap();
    });
    let seen = watch(&pipeline, "nms", regions);
    assert_eq!(run(&pipeline).error, None);
    assert_eq!(seen.lock().unwrap()[0], regions_of("", floats()));
}
