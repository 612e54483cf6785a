// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the time of nvinfer with its own parsing and suppression to the time of nvinfer
//! followed by `nmsfilter`. Prints a table; no time is asserted.

use std::sync::{Arc, Mutex};

use gst::prelude::*;

use super::times::{Clock, Times};
use crate::batch::{Elements, HostLayer, TestModel, outputs};
use crate::kit::Kit;
use crate::recording::{Cameras, Network, Recording};
use crate::standin::Batch;
use crate::support::pipeline::run;

/// Batches before the measurement begins.
const WARM: usize = 20;

/// Returns the number of batches that are measured after the first [`WARM`].
fn batches(cameras: usize) -> usize {
    if cameras < 16 { 150 } else { 40 }
}

/// Returns the outputs of a crowd. All candidates have class 0 of 80.
fn crowd(model: &TestModel, seed: u64) -> Vec<HostLayer> {
    let mut layers = outputs(model, seed);
    let Elements::F32(all) = &mut layers[0].elements else { unreachable!("the model is not half") };
    let n = model.anchors;
    for anchor in 0..n {
        let score = |class: usize| (4 + class) * n + anchor;
        let best =
            (0..model.classes).max_by(|&a, &b| all[score(a)].total_cmp(&all[score(b)])).unwrap();
        all.swap(score(0), score(best));
    }
    layers
}

/// Returns wall-clock microseconds per batch, processor microseconds of all threads per frame,
/// frames per batch, and objects per frame.
fn measured(
    kit: &Kit,
    recording: &Recording,
    cameras: usize,
    network: Network,
    threshold: f32,
    behind: &str,
) -> [f64; 4] {
    let file = recording.configuration(network, threshold, cameras, kit);
    let sizes = vec![[1920, 1080]; cameras];
    let cameras = Cameras { sizes: &sizes, buffers: WARM + batches(cameras), still: true };
    let pipeline = cameras.pipeline(
        kit,
        &format!("nvinfer name=nvinfer config-file-path={file} ! {behind} fakesink name=end"),
    );
    #[derive(Default)]
    struct Seen {
        batches: usize,
        frames: usize,
        objects: usize,
        first: Option<Times>,
        last: Option<Times>,
    }
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let to = seen.clone();
    let pad = pipeline.by_name("end").unwrap().static_pad("sink").unwrap();
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let seen = &mut *to.lock().unwrap();
        seen.batches += 1;
        if seen.batches == WARM {
            seen.first = Some(Times::now(Clock::Process));
        } else if seen.batches > WARM {
            for frame in Batch::find(info.buffer().unwrap()).expect("a batch").frames() {
                seen.frames += 1;
                seen.objects += frame.state().num_obj_meta as usize;
            }
            seen.last = Some(Times::now(Clock::Process));
        }
        gst::PadProbeReturn::Ok
    });
    let ended = run(&pipeline);
    assert_eq!(ended.error, None);
    drop(pipeline);
    let seen = &*seen.lock().unwrap();
    let (Some(first), Some(last)) = (seen.first, seen.last) else {
        panic!("{} batches", seen.batches)
    };
    let batches = (seen.batches - WARM) as f64;
    let frames = seen.frames as f64;
    [
        (last.wall - first.wall).as_secs_f64() * 1e6 / batches,
        (last.cpu - first.cpu).as_secs_f64() * 1e6 / frames,
        frames / batches,
        seen.objects as f64 / frames,
    ]
}

#[test]
#[ignore = "a measurement; needs a GPU and a kit (tests/gpu/run.sh, step nvidia)"]
fn suppression_by_nvinfer_and_by_nmsfilter() {
    let Some(kit) = Kit::given() else { return };
    let model =
        TestModel { anchors: 8400, classes: 80, objects: Some(110), ..TestModel::default() };
    let frames = (0..8).map(|seed| crowd(&model, seed)).collect();
    let recording = Recording::from_outputs(model, frames);
    println!(
        "candidates cameras                     | us a batch | CPU us a frame | frames a batch | objects a frame"
    );
    for candidates in [100.0, 700.0, 3000.0] {
        // Scores are uniformly distributed.
        let threshold = 1.0 - candidates / 8400.0;
        for cameras in [1, 4, 16, 64] {
            let filter = |properties: &str| {
                format!(
                    "nmsfilter decoder=yolov8 attach=nvds keep-tensors=false letterbox=none max-detections=1000
                        score-threshold={threshold} {properties} !"
                )
            };
            let cases = [
                ("nothing", Network::Dropped, String::new()),
                ("nvinfer", Network::Parsed, String::new()),
                ("nmsfilter cpu", Network::Attached, filter("backend=cpu")),
                ("nmsfilter", Network::Attached, filter("backend=cuda")),
                ("nmsfilter, no host copy", Network::OnDevice, filter("backend=cuda")),
            ];
            for (name, network, behind) in cases {
                if kit.is_on_host() && (name.contains("no host") || behind.contains("cuda")) {
                    continue;
                }
                let [batch, frame, frames, objects] =
                    measured(&kit, &recording, cameras, network, threshold, &behind);
                println!(
                    "{candidates:>10} {cameras:>7} {name:<23} | {batch:>10.0} | {frame:>14.1} | {frames:>14.1} | {objects:.1}"
                );
            }
        }
    }
}
