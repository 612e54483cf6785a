// SPDX-License-Identifier: MIT OR Apache-2.0
//! A detector whose heads are outputs, as in models that are cut for NPUs.

use crate::element::{file_of_bytes, has_onnx_runtime, inference};
use crate::support::data;
use crate::support::onnx::with_outputs;
use crate::support::pipeline::{Region, parse, regions, run, watch};

/// The regions that the decoder `yolov8` finds in the model's own output, and `yolov8-heads` in its heads, are equal
/// up to the rounding of the model's quantized decode step, which the heads do not pass.
#[test]
fn the_heads_of_yolov8_have_its_detections() {
    if !has_onnx_runtime() {
        return;
    }
    let paths = ["data/models/yolov8n_int8_320.onnx", "data/images/bus.jpg"].map(data::path);
    let [Some(model), Some(picture)] = paths else { return };
    let head = |part: &str, level: usize| {
        format!("/model.22/{part}.{level}/{part}.{level}.2/Conv_output_0")
    };
    let heads: Vec<String> =
        (0..3).flat_map(|level| [head("cv2", level), head("cv3", level)]).collect();
    let model = file_of_bytes(&with_outputs(&std::fs::read(model).unwrap(), &heads));
    let found = |properties: &str| -> Vec<Region> {
        let pipeline = parse(&format!(
            "filesrc location={} ! jpegdec ! videoconvert ! {} ! nmsfilter name=nms {properties} ! fakesink",
            picture.display(),
            inference(&model, "provider=cpu"),
        ));
        let seen = watch(&pipeline, "nms", regions);
        assert_eq!(run(&pipeline).error, None);
        seen.lock().unwrap().remove(0)
    };
    let expected = found("decoder=yolov8");
    let heads = found("decoder=yolov8-heads score-activation=sigmoid");
    assert!(expected.len() >= 4, "{expected:?}");
    assert_eq!(heads.len(), expected.len());
    for ((label, found), (expected_label, expected)) in heads.iter().zip(&expected) {
        assert_eq!(label, expected_label);
        // Boxes have up to 786 pixels; one bin of a head of stride 32 is 108 pixels of the picture.
        let near = |(a, b): (&u32, &u32)| a.abs_diff(*b) <= 12;
        assert!(found.iter().zip(expected).all(near), "{found:?}, expected {expected:?}");
    }
}
