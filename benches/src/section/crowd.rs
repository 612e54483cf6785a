// SPDX-License-Identifier: MIT OR Apache-2.0
//! The paper's streams, crowd_run and the mosaic of four, simulated with `crowdtestsrc`.

use anyhow::{Context, Result};
use gst::prelude::*;
use gstnmsfilter::input::Tensors;
use nmsfilter_core::tensor::Elements;

use super::{Bench, Section, format_us};
use crate::measure::Times;
use crate::report::{Chart, Scale, Series, Table};
use crate::workload::{Window, Workload, greedy_params};

pub const SECTION: Section = Section {
    name: "crowd",
    about: "a crowd of 60 at 1080p and of 240 at 2160p, frame by frame (figures 12 and 13)",
    run,
};

/// One period of the oscillation of `crowdtestsrc`'s number of windows, in frames.
const FRAMES: usize = 240;

/// Returns the windows in the first `frames` frames of `crowdtestsrc`.
///
/// # Errors
/// Returns an error if the pipeline fails.
pub fn crowd_windows(width: u32, height: u32, frames: usize) -> Result<Vec<Vec<Window>>> {
    let pipeline = gst::parse::launch(&format!(
        "crowdtestsrc num-buffers={frames} ! video/x-raw,width={width},height={height},framerate=50/1
           ! appsink name=sink sync=false"
    ))?;
    let pipeline = pipeline.downcast::<gst::Pipeline>().ok().context("expected a pipeline")?;
    let sink = pipeline
        .by_name("sink")
        .and_downcast::<gst_app::AppSink>()
        .context("expected an appsink")?;
    pipeline.set_state(gst::State::Playing)?;
    let mut found = Vec::new();
    while let Ok(sample) = sink.pull_sample() {
        let buffer = sample.buffer().context("expected a buffer")?;
        let tensors = Tensors::of(buffer)?;
        let views = tensors.views();
        let windows = views.first().context("expected a tensor")?;
        let Elements::F32(numbers) = windows.elements()? else {
            anyhow::bail!("expected windows in single precision");
        };
        found.push(numbers.as_chunks::<4>().0.to_vec());
    }
    pipeline.set_state(gst::State::Null)?;
    anyhow::ensure!(found.len() == frames, "expected {frames} frames, got {}", found.len());
    Ok(found)
}

fn run(bench: &mut Bench) -> Result<()> {
    let columns =
        ["stream", "engine", "min windows", "max windows", "median us", "p99 us", "max us"];
    let mut summary = Table::new(columns);
    for (name, width, height) in [("crowd_run", 1920, 1080), ("mosaic", 3840, 2160)] {
        let frames = crowd_windows(width, height, FRAMES)?;
        let names = bench.engines.names();
        let mut columns = vec!["frame".to_owned(), "windows".to_owned(), "survivors".to_owned()];
        columns.extend(names.iter().map(|name| format!("{name} us")));
        let mut table = Table::new(columns);
        let mut series: Vec<Series> = names
            .iter()
            .map(|name| Series { name: (*name).to_owned(), points: Vec::new() })
            .collect();
        let mut counts = Vec::new();
        for (i, windows) in frames.iter().enumerate() {
            let workload = Workload::windows(name, windows, greedy_params(0.3, 0.25));
            let runs = bench.engines.run(&workload, bench.budget / 10)?;
            counts.push((i as f64, windows.len() as f64));
            for (series, run) in series.iter_mut().zip(&runs) {
                series.points.push((i as f64, run.times.median()));
            }
            let cells = [i, windows.len(), runs[0].survivors].map(|count| count.to_string());
            table
                .row(cells.into_iter().chain(runs.iter().map(|run| format_us(run.times.median()))));
        }
        bench.folder.csv(name, &table)?;
        let (fewest, most) = (
            frames.iter().map(Vec::len).min().unwrap_or(0),
            frames.iter().map(Vec::len).max().unwrap_or(0),
        );
        for (engine, series) in names.iter().zip(&series) {
            let times = Times::new(series.points.iter().map(|point| point.1).collect());
            let times = [0.5, 0.99, 1.0].map(|share| format_us(times.quantile(share)));
            let cells = [name, engine].map(str::to_owned).into_iter();
            let cells = cells.chain([fewest, most].map(|count| count.to_string()));
            summary.row(cells.chain(times));
        }
        let chart = Chart {
            title: format!("{name}-like: {fewest} to {most} windows per frame"),
            x: "frame",
            y: "microseconds per frame",
            scale: Scale::Linear,
            series,
            secondary: Some(Series { name: "windows".to_owned(), points: counts }),
        };
        bench.folder.plot(name, &chart)?;
    }
    bench.folder.table("crowd", &summary)
}
