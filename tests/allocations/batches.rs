// SPDX-License-Identifier: MIT OR Apache-2.0
//! Batches of several streams: no allocations per batch, even where models and frame sizes
//! alternate.

use gst_check::Harness;
use gstnmsfilter::input::custom_meta::{NewTensor, attach};
use gstnmsfilter::input::model::{Letterbox, ModelInfo};

use crate::counting::allocations;
use crate::support::batches::{batch, caps_event};
use crate::support::pipeline;
use crate::windows::windows;

#[test]
fn a_warm_element_allocates_nothing_for_the_streams_of_a_batch() {
    crate::support::needs::needs!(batches);
    pipeline::init();
    let mut harness = Harness::new("nmsfilter");
    harness.set_src_caps_str("multistream/x-analytics-batch(meta:GstAnalyticsBatchMeta)");
    let described = ModelInfo {
        size: Some([320, 320]),
        letterbox: Some(Letterbox::Center),
        ..ModelInfo::default()
    };
    let caps =
        ModelInfo { labels: ["head"].map(Into::into).into(), ..described }.to_caps().unwrap();
    let window_tensors = [700, 400, 650]
        .map(|count| NewTensor::from_vec("windows", &[count, 4], windows(count)).unwrap());
    let mut yolov8 = vec![0.0f32; 60];
    for (row, number) in [50.0, 50.0, 20.0, 20.0, 0.9].into_iter().enumerate() {
        yolov8[row * 10] = number;
    }
    let yolov8 = NewTensor::from_vec("yolo-v8-out", &[1, 6, 10], yolov8).unwrap();
    let mut push = |round: usize| {
        let windows = &window_tensors[round % 3];
        let tensors = [windows.clone(), yolov8.clone(), windows.clone().with_model(caps.clone())];
        let streams =
            tensors.iter().zip([640, 1280, 320]).enumerate().map(|(index, (tensor, width))| {
                let frame = || {
                    let mut frame = gst::Buffer::new();
                    attach(frame.get_mut().unwrap(), tensor).unwrap();
                    frame.upcast()
                };
                let caps = caps_event(&format!("video/x-raw,width={width},height=480"));
                (index as u32, vec![caps], vec![frame(), frame()])
            });
        let buffer = batch(streams.collect());
        let count = allocations(|| assert!(harness.push(buffer).is_ok()));
        drop(harness.pull().unwrap());
        count
    };
    assert!(push(0) > 0, "plans are made");
    for round in 0..6 {
        push(round);
    }
    assert_eq!(std::array::from_fn(push), [0; 12]);
}
