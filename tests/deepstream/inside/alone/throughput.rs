// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the time of batches in the element, from device pointers to objects. Prints rows of CSV, which
//! tests/gpu/run.sh keeps; no time is asserted.

use std::sync::{Arc, Mutex};

use gst::prelude::*;
use nmsfilter_core::geometry::Letterbox;

use super::times::{Clock, Times};
use crate::batch::{Memory, Producer, Scene, TestModel};
use crate::libraries::is_inside;
use crate::run;
use crate::standin::Counts;
use crate::support::engines;
use crate::support::pipeline::{intercept, parse, run as run_pipeline};

/// Batches that are measured. An equal number of batches runs before.
const BATCHES: usize = 100;

/// Returns wall-clock and thread microseconds for each batch in the element.
fn measured(scene: &Scene, properties: &str) -> (Vec<f64>, Vec<f64>, gst::Structure) {
    let pipeline = parse(&run::description(2 * BATCHES, run::CAPS, properties));
    let producer = Producer::new(scene, 2);
    intercept(&pipeline, "in", move |buffer| producer.attach(buffer));
    let element = pipeline.by_name("nms").unwrap();
    let entered: Arc<Mutex<Option<Times>>> = Arc::default();
    let times: Arc<Mutex<(Vec<f64>, Vec<f64>)>> = Arc::default();
    let probe = |name: &str, act: Box<dyn Fn() + Send + Sync>| {
        let pad = element.static_pad(name).unwrap();
        pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
            act();
            gst::PadProbeReturn::Ok
        });
    };
    let (on_entry, on_exit, to) = (entered.clone(), entered, times.clone());
    probe("sink", Box::new(move || *on_entry.lock().unwrap() = Some(Times::now(Clock::Thread))));
    probe(
        "src",
        Box::new(move || {
            let (from, until) =
                (on_exit.lock().unwrap().take().unwrap(), Times::now(Clock::Thread));
            let mut to = to.lock().unwrap();
            to.0.push((until.wall - from.wall).as_secs_f64() * 1e6);
            to.1.push((until.cpu - from.cpu).as_secs_f64() * 1e6);
        }),
    );
    let ended = run_pipeline(&pipeline);
    assert_eq!((&ended.error, ended.warnings.as_slice()), (&None, &[][..]));
    let (wall, thread) = std::mem::take(&mut *times.lock().unwrap());
    assert_eq!(wall.len(), 2 * BATCHES);
    (wall[BATCHES..].to_vec(), thread[BATCHES..].to_vec(), ended.stats.last().unwrap().clone())
}

#[test]
#[ignore = "a measurement; needs a GPU, and libraries of DeepStream (tests/gpu/run.sh, step deepstream)"]
fn throughput() {
    if !is_inside() {
        return;
    }
    engines::require_gpu();
    let input = [640, 640];
    let (anchors, classes, letterbox) = (8400, 80, Letterbox::Center);
    println!(
        "csv: frames,tensors,candidates,objects,mean us,p50 us,p99 us,thread us,GPU us,bytes up,bytes down,cores at 50/s"
    );
    for (count, scattered) in [(1, false), (16, false), (16, true), (64, false), (64, true)] {
        let objects = Some(110);
        let model =
            TestModel { anchors, classes, objects, input, letterbox, ..TestModel::default() };
        let mut scene = Scene::new(count, 1).with_model(model);
        for frame in &mut scene.frames {
            frame.meta.pipeline = [1920, 1080];
        }
        (scene.memory, scene.scattered) = (Memory::Device, scattered);
        // There are about 700 candidates: scores are uniformly distributed, and one in three boxes
        // is in the border.
        let properties = "decoder=yolov8 backend=cuda letterbox=center keep-tensors=false class-agnostic=true \
                          score-threshold=0.874";
        let (mut wall, thread, stats) = measured(&scene, properties);
        wall.sort_by(f64::total_cmp);
        let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
        let stat = |name: &str| stats.get::<u64>(name).unwrap() as f64;
        let batches = 2.0 * BATCHES as f64;
        println!(
            "csv: {count},{},{:.0},{:.0},{:.1},{:.1},{:.1},{:.1},{:.1},{:.0},{:.0},{:.4}",
            if scattered { "scattered" } else { "in a row" },
            stat("candidates") / batches / count as f64,
            stat("survivors") / batches / count as f64,
            mean(&wall),
            wall[BATCHES / 2],
            wall[BATCHES * 99 / 100],
            mean(&thread),
            stat("device-time-mean") / 1000.0,
            stat("bytes-uploaded") / batches,
            stat("bytes-downloaded") / batches,
            mean(&thread) * 50.0 / 1e6,
        );
    }
    Counts::now().assert_nothing_left();
}
