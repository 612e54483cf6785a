// SPDX-License-Identifier: MIT OR Apache-2.0
//! The property `background`.

use gst::prelude::*;
use gstnmsfilter::input::custom_meta::{NewTensor, attach};

use crate::support::pipeline::{Region, init, intercept, parse, regions, run, watch};
use crate::support::scratch::ScratchFile;

/// Probabilities of pytorch-ssd: of the background, of aeroplane and of bicycle.
const SCORES: [[f32; 3]; 3] = [[0.05, 0.9, 0.05], [0.1, 0.2, 0.7], [0.95, 0.03, 0.02]];

fn tensors() -> [NewTensor; 2] {
    init();
    let boxes = [[0.0, 0.0, 20.0, 20.0], [30.0, 0.0, 50.0, 20.0], [60.0, 0.0, 80.0, 20.0]];
    [
        NewTensor::from_vec("boxes", &[1, 3, 4], boxes.as_flattened().to_vec()).unwrap(),
        NewTensor::from_vec("scores", &[1, 3, 3], SCORES.as_flattened().to_vec()).unwrap(),
    ]
}

/// Returns the regions of each of two frames. The property is set to `change` before the second.
fn stream(properties: &str, change: &'static str) -> [Vec<Region>; 2] {
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=2 ! video/x-raw,width=96,height=64
           ! nmsfilter name=nms {properties} ! fakesink"
    ));
    let nms = pipeline.by_name("nms").unwrap();
    let tensors = tensors();
    intercept(&pipeline, "in", move |buffer| {
        tensors.iter().for_each(|tensor| attach(buffer, tensor).unwrap());
        if buffer.offset() == 1 {
            nms.set_property_from_str("background", change);
        }
    });
    let seen = watch(&pipeline, "nms", regions);
    assert_eq!(run(&pipeline).error, None, "{properties}");
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    seen.try_into().unwrap()
}

#[test]
fn the_background_becomes_no_region_while_playing_too() {
    let region = |label: &str, x| (label.to_owned(), [x, 0, 20, 20]);
    let objects = [region("aeroplane", 0), region("bicycle", 30)];
    // The label file can have a line for the background.
    for lines in ["aeroplane\nbicycle\n", "BACKGROUND\naeroplane\nbicycle\n"] {
        let labels = ScratchFile::new("txt", lines.as_bytes());
        let properties = format!("background=first label-file={}", labels.display());
        let [first, second] = stream(&properties, "none");
        assert_eq!(first, objects, "{lines}");
        assert_eq!(second.len(), 3, "{lines}");
    }
    let [first, second] = stream("background=auto", "first");
    assert_eq!(first, [region("class-0", 60), region("class-1", 0), region("class-2", 30)]);
    assert_eq!(second, [region("class-0", 0), region("class-1", 30)]);
    let [first, second] = stream("background=last", "first");
    assert_eq!(first, [region("class-0", 60), region("class-1", 0)]);
    assert_eq!(second, [region("class-0", 0), region("class-1", 30)]);
}
