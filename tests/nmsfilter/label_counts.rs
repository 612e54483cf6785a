// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts of survivors by label in `stats`.

use gstnmsfilter::input::custom_meta::{NewTensor, attach};

use crate::support::pipeline::{init, intercept, parse, run};
use crate::support::scratch::ScratchFile;

/// Returns the labels and their counts after frames with these tensors.
fn label_counts(properties: &str, tensors: Vec<NewTensor>) -> Vec<(String, u64)> {
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers={} ! video/x-raw,width=640,height=640
           ! nmsfilter {properties} ! fakesink",
        tensors.len()
    ));
    intercept(&pipeline, "in", move |buffer| {
        attach(buffer, &tensors[buffer.offset() as usize]).unwrap();
    });
    let ended = run(&pipeline);
    assert_eq!(ended.error, None);
    let [stats] = &ended.stats[..] else { panic!("{:?}", ended.stats) };
    let array = |name: &str| stats.get::<gst::Array>(name).unwrap();
    let (labels, counts) = (array("labels"), array("label-counts"));
    assert_eq!(labels.len(), counts.len());
    let pair = |(label, count): (&gst::glib::SendValue, &gst::glib::SendValue)| {
        (label.get::<String>().unwrap(), count.get::<u64>().unwrap())
    };
    labels.iter().zip(counts.iter()).map(pair).collect()
}

/// Returns a YOLOv8 output of three classes: adjacent boxes of 20 pixels, one for each item of
/// `classes`.
fn boxes(classes: &[usize]) -> NewTensor {
    let anchors = 64;
    let mut data = vec![0.0f32; 7 * anchors];
    for (anchor, &class) in classes.iter().enumerate() {
        data[anchor] = 30.0 + 40.0 * anchor as f32;
        data[anchors + anchor] = 100.0;
        data[2 * anchors + anchor] = 20.0;
        data[3 * anchors + anchor] = 20.0;
        data[(4 + class) * anchors + anchor] = 0.9;
    }
    NewTensor::from_vec("yolo-v8-out", &[1, 7, anchors], data).unwrap()
}

const SIZE: &str = "model-width=640 model-height=640";

#[test]
fn survivors_of_all_frames_are_counted_by_label_the_most_frequent_first() {
    init();
    let labels = ScratchFile::new("txt", "person\ntraffic light\nÄpfel, \"rot\"\n".as_bytes());
    let properties = format!("{SIZE} label-file={}", labels.display());
    let tensors = vec![boxes(&[1, 2, 1]), boxes(&[]), boxes(&[1, 0, 2])];
    let expected = [("traffic light", 3), ("Äpfel, \"rot\"", 2), ("person", 1)];
    let expected = expected.map(|(label, count)| (label.to_owned(), count));
    assert_eq!(label_counts(&properties, tensors), expected);
}

#[test]
fn classes_without_a_label_are_counted_by_the_name_that_their_regions_have() {
    init();
    let expected = [("class-2".to_owned(), 2), ("class-0".to_owned(), 1)];
    assert_eq!(label_counts(SIZE, vec![boxes(&[2, 0, 2])]), expected);
    assert_eq!(label_counts(SIZE, vec![boxes(&[])]), []);
}
