// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many elements share one GPU. Every frame is compared with the result of the CPU engine. Run with
//! `--include-ignored` and `NMSFILTER_TEST_BACKEND=cuda`.
//!
//! This is a separate program, since it measures the memory of the process.
//!
//! The environment variable `NMSFILTER_TEST_STREAMS` sets the number of elements (8), and
//! `NMSFILTER_TEST_SECONDS` the time for which they run (3).

#[path = "support/mod.rs"]
mod support;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gst::prelude::*;

use crate::support::pipeline::{Region, parse, regions, run, watch};
use crate::support::process::resident;
use crate::support::scratch::ScratchFile;
use crate::support::{data, engines};

/// Frames of the recording; each has different windows.
const FRAMES: usize = 20;
/// Slots for windows in a frame; a frame with fewer windows leaves the last slots empty.
const CAPACITY: usize = 1_000;

fn number(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

fn description(file: &Path, frames: i64, memory: &str, backend: &str) -> String {
    format!(
        "videotestsrc num-buffers={frames} ! video/x-raw,format=GRAY8,width=1920,height=744
           ! tensorreplay shape={CAPACITY}x4 tensor-id=windows memory={memory} location={}
           ! nmsfilter name=nms backend={backend} score-threshold=0 iou-threshold=0.3
             max-detections=0 ! fakesink",
        file.display()
    )
}

#[test]
#[ignore = "needs a GPU"]
fn many_streams_have_the_regions_of_the_cpu_engine() {
    assert!(engines::on_gpu(), "set NMSFILTER_TEST_BACKEND=cuda");
    let windows = data::oscars();
    // Each frame has different windows: 60 in the first frame, and `CAPACITY` in the last.
    let mut recorded = vec![0.0f32; FRAMES * CAPACITY * 4];
    for (frame, elements) in recorded.chunks_exact_mut(CAPACITY * 4).enumerate() {
        let count = 60 + frame * (CAPACITY - 60) / (FRAMES - 1);
        let from = frame * 90 * 4;
        elements[..count * 4].copy_from_slice(&windows[from..from + count * 4]);
    }
    let file = ScratchFile::new("raw", bytemuck::cast_slice(&recorded));
    let on_cpu = parse(&description(&file, FRAMES as i64, "system", "cpu"));
    let expected = watch(&on_cpu, "nms", regions);
    assert_eq!(run(&on_cpu).error, None);
    let expected: Arc<Vec<Vec<Region>>> = Arc::new(expected.lock().unwrap().clone());
    assert!(expected.len() == FRAMES && expected.iter().all(|regions| regions.len() > 5));

    let (streams, seconds) =
        (number("NMSFILTER_TEST_STREAMS", 8), number("NMSFILTER_TEST_SECONDS", 3));
    let (checked, wrong) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(Vec::new())));
    let pipelines: Vec<gst::Pipeline> = (0..streams)
        .map(|stream| {
            // Every fourth element uploads its tensors.
            let memory = if stream % 4 == 3 { "system" } else { "cuda" };
            let pipeline = parse(&description(&file, -1, memory, "cuda"));
            let pad = pipeline.by_name("nms").unwrap().static_pad("src").unwrap();
            let (expected, checked, wrong) = (expected.clone(), checked.clone(), wrong.clone());
            let frame = AtomicU64::new(0);
            pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
                let frame = frame.fetch_add(1, Ordering::SeqCst) as usize;
                if regions(info.buffer().unwrap()) != expected[frame % FRAMES] {
                    wrong.lock().unwrap().push((stream, frame));
                }
                checked.fetch_add(1, Ordering::SeqCst);
                gst::PadProbeReturn::Ok
            });
            pipeline
        })
        .collect();
    for pipeline in &pipelines {
        pipeline.set_state(gst::State::Playing).unwrap();
    }
    let began = Instant::now();
    let mut early = 0;
    while began.elapsed() < Duration::from_secs(seconds) {
        std::thread::sleep(Duration::from_millis(100));
        if early == 0 && began.elapsed() > Duration::from_secs(seconds) / 5 {
            early = resident();
        }
        for (stream, pipeline) in pipelines.iter().enumerate() {
            if let Some(message) = pipeline.bus().unwrap().pop_filtered(&[gst::MessageType::Error])
            {
                panic!("stream {stream}: {message:?}");
            }
        }
    }
    let grown = resident().saturating_sub(early);
    let mut slowest = 0;
    for pipeline in &pipelines {
        let stats = pipeline.by_name("nms").unwrap().property::<gst::Structure>("stats");
        slowest = slowest.max(stats.get::<u64>("time-p99").unwrap());
        pipeline.set_state(gst::State::Null).unwrap();
    }
    println!(
        "{streams} streams for {seconds} s: {} frames checked, slowest p99 {slowest} ns, grown by \
         {grown} KiB",
        checked.load(Ordering::SeqCst),
    );
    assert_eq!(*wrong.lock().unwrap(), Vec::new());
    assert!(checked.load(Ordering::SeqCst) > streams * 2);
    // All caches are full after a minute. A leak of one small object per frame would exceed this
    // limit.
    if seconds >= 60 {
        assert!(grown < 16 << 10, "grown by {grown} KiB");
    }
}
