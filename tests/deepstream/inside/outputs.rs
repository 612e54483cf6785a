// SPDX-License-Identifier: MIT OR Apache-2.0
//! nvinfer has memory for six batches of outputs. With `keep-tensors=false` the element returns it
//! before the buffer is pushed.

use std::sync::{Arc, Mutex};

use gst::prelude::*;

use crate::batch::{Producer, Scene};
use crate::libraries::is_inside;
use crate::run;
use crate::standin::Counts;
use crate::support::pipeline::{intercept, parse, run as run_pipeline};

/// Runs `buffers` buffers, which a later element holds until the end. Returns how many batches of
/// outputs were in use when each buffer left the element.
fn in_use_with_all_buffers_held(
    properties: &str,
    buffers: usize,
    pool: u32,
    warnings: &[&str],
) -> Vec<u32> {
    let scene = Scene::new(3, 1);
    let producer = Producer::new(&scene, pool);
    let pool = producer.pool(0);
    let properties = format!("decoder=yolov8 letterbox=none {properties}");
    let pipeline = parse(&run::description(buffers, run::CAPS, &properties));
    intercept(&pipeline, "in", move |buffer| producer.attach(buffer));
    let held = Arc::new(Mutex::new(Vec::new()));
    let pad = pipeline.by_name("nms").unwrap().static_pad("src").unwrap();
    pad.add_probe(gst::PadProbeType::BUFFER, {
        let (held, pool) = (held.clone(), pool.clone());
        move |_, info| {
            held.lock().unwrap().push((info.buffer().unwrap().clone(), pool.in_use()));
            gst::PadProbeReturn::Ok
        }
    });
    let ended = run_pipeline(&pipeline);
    assert_eq!(ended.error, None);
    assert_eq!(ended.warnings.len(), warnings.len(), "{:?}", ended.warnings);
    for (warning, start) in ended.warnings.iter().zip(warnings) {
        assert!(warning.starts_with(start), "{warning}");
    }
    drop(pipeline);
    let held = std::mem::take(&mut *held.lock().unwrap());
    let counts = Counts::now();
    assert_eq!([counts.batches, counts.held, counts.unlocked], [buffers as i64, 0, 0]);
    let in_use = held.iter().map(|(_, in_use)| *in_use).collect();
    drop(held);
    assert_eq!(pool.in_use(), 0);
    Counts::now().assert_nothing_left();
    in_use
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn outputs_are_released_before_the_buffer_is_pushed() {
    if !is_inside() {
        return;
    }
    // A pool of six would block at the seventh buffer.
    let in_use = in_use_with_all_buffers_held("keep-tensors=false", 40, 6, &[]);
    assert_eq!(in_use, [0; 40]);
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn outputs_are_held_as_long_as_the_buffer_by_default() {
    if !is_inside() {
        return;
    }
    let in_use = in_use_with_all_buffers_held("", 6, 6, &[]);
    assert_eq!(in_use, [1, 2, 3, 4, 5, 6]);
}

/// Tensors are released even if they are not decoded because there is nothing to attach.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn outputs_are_released_if_there_are_no_objects() {
    if !is_inside() {
        return;
    }
    let properties = "keep-tensors=false score-threshold=1";
    let in_use = in_use_with_all_buffers_held(properties, 8, 6, &["no detection in 24 images"]);
    assert_eq!(in_use, [0; 8]);
}
