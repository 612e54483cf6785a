// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attaches tensors to a frame, which `nmsfilter` decodes in a pipeline.
//!
//! Test programs that are also built without GStreamer can use this module only with the feature
//! `gstreamer`.

use gst::prelude::*;
use gstnmsfilter::input::custom_meta::{NewTensor, attach};
use gstnmsfilter::internals::decoder::BoxFormat;
use gstnmsfilter::internals::engine::Params;

use super::pipeline::{init, intercept, parse, run};

/// The numbers of candidates and survivors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counts {
    pub candidates: u64,
    pub survivors: u64,
}

/// How the properties of `nmsfilter` are set.
#[derive(Clone, Copy)]
pub enum Settings<'a> {
    /// From the parameters of an engine and a box format.
    Params(&'a Params, BoxFormat),
    /// From pairs of name and value.
    Properties(&'a [(&'a str, &'a str)]),
}

/// Runs one frame of 4096x4096 with these tensors through `nmsfilter`.
pub fn decode(tensors: Vec<NewTensor>, settings: Settings<'_>) -> Counts {
    let pipeline = parse(
        "videotestsrc name=source num-buffers=1 ! video/x-raw,format=GRAY8,width=4096,height=4096
           ! nmsfilter name=nms ! fakesink",
    );
    set_up(&pipeline.by_name("nms").unwrap(), settings);
    intercept(&pipeline, "source", move |buffer| {
        for tensor in &tensors {
            attach(buffer, tensor).unwrap();
        }
    });
    let ended = run(&pipeline);
    assert_eq!(ended.error, None);
    let count = |name| ended.stats[0].get::<u64>(name).unwrap();
    assert_eq!(count("rejected"), 0, "these inputs are valid");
    Counts { candidates: count("candidates"), survivors: count("survivors") }
}

/// Makes a tensor of these elements.
pub fn tensor(id: &str, shape: &[usize], elements: &[f32]) -> NewTensor {
    init();
    NewTensor::from_vec(id, shape, elements.to_vec()).unwrap()
}

fn set_up(nms: &gst::Element, settings: Settings<'_>) {
    let (params, format) = match settings {
        Settings::Params(params, format) => (params, format),
        Settings::Properties(properties) => {
            for (name, value) in properties {
                nms.set_property_from_str(name, value);
            }
            return;
        }
    };
    nms.set_property_from_str("method", params.method.name());
    nms.set_property_from_str("overlap", params.overlap.name());
    nms.set_property("iou-threshold", params.iou_threshold);
    nms.set_property("threshold-inclusive", params.threshold_inclusive);
    nms.set_property("pixel-offset", params.pixel_offset as u32);
    nms.set_property("class-agnostic", params.class_agnostic);
    nms.set_property("score-threshold", params.thresholds.default);
    nms.set_property("max-detections", u32::try_from(params.max_detections).unwrap_or(0));
    nms.set_property_from_str("box-format", format.name());
}

/// Decodes boxes with their scores by class.
pub fn decode_boxes(boxes: &[f32], scores: &[f32], format: BoxFormat, params: &Params) -> Counts {
    let numbers = format.components();
    let anchors = boxes.len() / numbers;
    let classes = scores.len().checked_div(anchors).unwrap_or(1);
    let tensors = vec![
        tensor("boxes", &[anchors, numbers], boxes),
        tensor("scores", &[anchors, classes], scores),
    ];
    decode(tensors, Settings::Params(params, format))
}
