// SPDX-License-Identifier: MIT OR Apache-2.0
//! The elements find the objects in pictures that an independent program finds
//! (`benches/accuracy`). Decoded pixels are the common input. The comparison covers resampling,
//! letterbox, inference, decoding, suppression and mapping.

use std::path::Path;

use crate::detections::{python, script};
use crate::element::{has_onnx_runtime, init};
use crate::support::scratch::Scratch;
use crate::support::{data, pipeline};

/// Asserts that the detections of a model in 32 pictures are equal. 14 of the pictures have an odd
/// side.
fn equals_independent(family: &str, model: &str, least: usize) {
    let (Some(model), Some(pictures)) = (data::path(model), data::path("data/coco")) else {
        return;
    };
    let Some(python) = python() else { return };
    if !has_onnx_runtime() {
        return;
    }
    init();
    let folder = Scratch::new();
    let text = |path: &Path| path.display().to_string();
    let same_detections = |what: &str| {
        let paths = [&model, &pictures, &folder.to_path_buf()].map(|path| text(path));
        let arguments = [&[what, family].map(str::to_owned)[..], &paths].concat();
        script(&python, "same_detections.py", &arguments)
    };
    let words = same_detections("pipeline");
    let words: Vec<&str> = words.lines().collect();
    let parsed = gst::parse::launchv(&words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
    let pipeline = gst::prelude::Cast::downcast(parsed).expect("several elements make a pipeline");
    let ended = pipeline::run(&pipeline);
    assert_eq!(ended.error, None);

    let compared = same_detections("compare");
    let (count, different) = compared.split_once('\n').expect("the first line is the count");
    assert_eq!(different, "", "of {count} detections");
    assert!(count.parse::<usize>().unwrap() >= least, "{count}, expected at least {least}");
}

#[test]
fn yolox_with_a_border_at_the_bottom_finds_what_an_independent_program_finds() {
    equals_independent("yolox-raw", "data/models2026/models/yolox_nano.onnx", 100);
}

#[test]
fn yolov5_with_borders_on_both_sides_finds_what_an_independent_program_finds() {
    equals_independent("yolov5", "data/models/yolov5n_fp16.onnx", 100);
}
