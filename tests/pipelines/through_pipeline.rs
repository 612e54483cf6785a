// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensors attached to a frame and decoded by `nmsfilter` in a pipeline.

use gst::prelude::*;
use gstnmsfilter::input::custom_meta::{NewTensor, attach};

use crate::settings::Settings;
use crate::support::pipeline::{intercept, parse, run};

/// Runs one frame of 4096x4096 with these `f32` tensors (id, shape and elements) through `nmsfilter`, and compares the
/// numbers of candidates and survivors with `expected`.
pub fn expect_counts(
    tensors: &[(&str, &[usize], &[f32])],
    settings: Settings<'_>,
    expected: [usize; 2],
) {
    let pipeline = parse(
        "videotestsrc name=source num-buffers=1 ! video/x-raw,format=GRAY8,width=4096,height=4096
           ! nmsfilter name=nms ! fakesink",
    );
    set_up(&pipeline.by_name("nms").unwrap(), settings);
    let tensors: Vec<NewTensor> = tensors
        .iter()
        .map(|(id, shape, elements)| NewTensor::from_vec(id, shape, elements.to_vec()).unwrap())
        .collect();
    intercept(&pipeline, "source", move |buffer| {
        for tensor in &tensors {
            attach(buffer, tensor).unwrap();
        }
    });
    let ended = run(&pipeline);
    assert_eq!(ended.error, None);
    let count = |name| ended.stats[0].get::<u64>(name).unwrap();
    assert_eq!(count("rejected"), 0, "these inputs are valid");
    let found = [count("candidates"), count("survivors")];
    assert_eq!(found, expected.map(|count| count as u64), "candidates and survivors");
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
