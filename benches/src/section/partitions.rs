// SPDX-License-Identifier: MIT OR Apache-2.0
//! Table 6 and figure 11 of the paper: times of its map and reduce kernels by the number of
//! partitions.

use anyhow::Result;

use super::crowd::crowd_windows;
use super::latency::PAPER_CAPACITY;
use super::{Bench, Section, format_us};
use crate::measure::Times;
use crate::paper_kernels::PaperKernels;
use crate::report::{Chart, Scale, Series, Table};

pub const SECTION: Section = Section {
    name: "partitions",
    about: "the paper's kernels on the mosaic, k from 4 to 128 (table 6, figure 11)",
    run,
};

fn run(bench: &mut Bench) -> Result<()> {
    if bench.engines.cuda().is_none() {
        println!("SKIPPED: there is no GPU for the paper's kernels");
        return Ok(());
    }
    // Half of a period goes from the maximum number of windows to the minimum.
    let frames: Vec<_> = crowd_windows(3840, 2160, 120)?.into_iter().step_by(10).collect();
    let paper = PaperKernels::new(PAPER_CAPACITY)?;
    let repeats = bench.repeats.at_most(5);
    let mut table = Table::new(["k", "memset us", "map us", "reduce us", "map + reduce us"]);
    let mut points = [Vec::new(), Vec::new()];
    for k in [4, 8, 16, 32, 64, 128] {
        let times = frames
            .iter()
            .map(|windows| Ok(paper.time(windows, k, repeats)?.separate))
            .collect::<Result<Vec<_>>>()?;
        let mean = |part: usize| times.iter().map(|t| t[part]).sum::<f64>() / times.len() as f64;
        let [memset, map, reduce] = [mean(0), mean(1), mean(2)];
        table.row([
            k.to_string(),
            format_us(memset),
            format_us(map),
            format_us(reduce),
            format_us(map + reduce),
        ]);
        points[0].push((f64::from(k), map));
        points[1].push((f64::from(k), reduce));
    }
    let most = frames.iter().map(Vec::len).max().unwrap_or(0);
    let median = Times::new(frames.iter().map(|windows| windows.len() as f64).collect()).median();
    println!("{} frames of the mosaic, median {median} windows, maximum {most}", frames.len());
    let [map, reduce] = points;
    let series = [("map", map), ("reduce", reduce)]
        .map(|(name, points)| Series { name: name.to_owned(), points });
    let chart = Chart {
        title: "The paper's kernels on the mosaic".to_owned(),
        x: "partitions k",
        y: "microseconds per frame, mean",
        scale: Scale::Doubling,
        series: series.into(),
        secondary: None,
    };
    bench.folder.plot("partitions", &chart)?;
    bench.folder.table("partitions", &table)
}
