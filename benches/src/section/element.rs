// SPDX-License-Identifier: MIT OR Apache-2.0
//! The whole element, from a buffer with a tensor to the buffer with regions.

use std::time::Instant;

use anyhow::{Context, Result};
use gst::prelude::*;
use gstnmsfilter::input::custom_meta::NewTensor;

use super::{Bench, Section, format_us};
use crate::harness::{buffer, harness};
use crate::measure::measure_with;
use crate::report::Table;
use crate::workload::{Workload, disjoint_windows, greedy_params, windows};

pub const SECTION: Section = Section {
    name: "element",
    about: "the whole element on 84x8400, and its share of a core at 1080p50",
    run,
};

fn run(bench: &mut Bench) -> Result<()> {
    let windows = windows()?;
    let disjoint = disjoint_windows();
    let mut columns = vec!["candidates", "survivors", "engine", "tensor memory"];
    columns.extend(["median us", "p10 us", "p90 us", "p99 us"]);
    let mut table = Table::new(columns);
    for windows in [&[][..], &windows[..360], &windows[..698], &windows, &disjoint] {
        let workload = Workload::yolov8("yolov8", windows, greedy_params(0.45, 0.25));
        let on_host = workload.new_tensors();
        let on_device = bench.engines.upload(&workload)?;
        let mut measure_backend = |backend: &str, memory: &str, tensor: &NewTensor| {
            let mut harness = harness(backend);
            let times = measure_with(
                bench.budget,
                || buffer(tensor),
                |buffer| harness.push_and_pull(buffer).expect("the element takes buffers"),
            );
            let stats = harness
                .element()
                .expect("the harness has an element")
                .property::<gst::Structure>("stats");
            let frames = stats.get::<u64>("frames")?.max(1);
            let survivors = stats.get::<u64>("survivors")? / frames;
            let candidates = stats.get::<u64>("candidates")? / frames;
            let times = [0.5, 0.1, 0.9, 0.99].map(|share| format_us(times.quantile(share)));
            let engine = stats.get::<String>("engine")?;
            let cells = [candidates.to_string(), survivors.to_string(), engine];
            table.row(cells.into_iter().chain([memory.to_owned()]).chain(times));
            anyhow::Ok(())
        };
        measure_backend("cpu", "host", &on_host[0])?;
        if let Some(tensor) = on_device.first() {
            measure_backend("cuda", "device", tensor)?;
            measure_backend("cuda", "host", &on_host[0])?;
        }
    }
    bench.folder.table("element", &table)?;
    let mut table = Table::new(["backend", "frames", "seconds", "us per frame", "% of one core"]);
    for backend in bench.engines.names() {
        let [frames, seconds, mean] = in_real_time(backend)?;
        let share = mean * 50.0 / 1e9 * 100.0;
        let cells = [backend.to_owned(), frames.to_string(), format!("{seconds:.1}")];
        table.row(cells.into_iter().chain([format_us(mean / 1e3), format!("{share:.2}")]));
    }
    println!("crowdtestsrc decoder=yolov8, 1080p50, in real time:");
    bench.folder.table("real-time", &table)
}

/// Plays `crowdtestsrc` in real time. Returns the number of frames, the duration in seconds, and
/// nmsfilter's mean time per frame in nanoseconds.
fn in_real_time(backend: &str) -> Result<[f64; 3]> {
    let memory = if backend == "cuda" { "cuda" } else { "system" };
    let pipeline = gst::parse::launch(&format!(
        "crowdtestsrc decoder=yolov8 memory={memory} num-buffers=100
           ! video/x-raw,width=1920,height=1080,framerate=50/1
           ! nmsfilter name=nms backend={backend} ! fakesink sync=true"
    ))?;
    let pipeline = pipeline.downcast::<gst::Pipeline>().ok().context("expected a pipeline")?;
    let bus = pipeline.bus().context("a pipeline has a bus")?;
    let began = Instant::now();
    pipeline.set_state(gst::State::Playing)?;
    let ends = [gst::MessageType::Eos, gst::MessageType::Error];
    let end = bus.timed_pop_filtered(gst::ClockTime::from_seconds(60), &ends);
    let seconds = began.elapsed().as_secs_f64();
    let end = end.context("no end of stream within 60 s")?;
    if let gst::MessageView::Error(error) = end.view() {
        anyhow::bail!("{} ({:?})", error.error(), error.debug());
    }
    let stats = pipeline
        .by_name("nms")
        .context("expected an nmsfilter")?
        .property::<gst::Structure>("stats");
    pipeline.set_state(gst::State::Null)?;
    let number = |name| anyhow::Ok(stats.get::<u64>(name)? as f64);
    Ok([number("frames")?, seconds, number("time-mean")?])
}
