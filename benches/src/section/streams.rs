// SPDX-License-Identifier: MIT OR Apache-2.0
//! Concurrent streams on one GPU, each at 50 frames per second.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::{Bench, Section, format_us};
use crate::harness::{harness, push_paced};
use crate::measure::Times;
use crate::report::Table;
use crate::workload::{Workload, greedy_params, windows};

pub const SECTION: Section = Section {
    name: "streams",
    about: "concurrent streams of 84x8400 at 50 frames per second on one GPU",
    run,
};

const FRAME: Duration = Duration::from_millis(20);
const FRAMES: u32 = 500;

fn run(bench: &mut Bench) -> Result<()> {
    if bench.engines.cuda().is_none() {
        println!("SKIPPED: there is no GPU");
        return Ok(());
    }
    let windows = windows()?;
    // The numbers of windows go from a stream's minimum to its maximum.
    let tensors = (360..=698)
        .step_by(48)
        .map(|n| {
            let workload = Workload::yolov8("yolov8", &windows[..n], greedy_params(0.45, 0.25));
            Ok(bench.engines.upload(&workload)?.remove(0))
        })
        .collect::<Result<Vec<_>>>()?;
    let columns = ["streams", "frames each", "p50 us", "p99 us", "max us", "over 20 ms"];
    let mut table = Table::new(columns);
    for streams in [1, 8, 32] {
        let start = Instant::now() + Duration::from_millis(500);
        let times: Vec<f64> = std::thread::scope(|scope| {
            let stream = |i: u32| {
                let tensors = &tensors;
                scope.spawn(move || {
                    let mut harness = harness("cuda");
                    // Different streams begin their frames at different times.
                    let offset = FRAME * i / streams;
                    push_paced(&mut harness, tensors, start + offset, FRAME, FRAMES)
                })
            };
            let threads: Vec<_> = (0..streams).map(stream).collect();
            let times = threads.into_iter().map(|thread| thread.join().expect("no panic"));
            times.flat_map(Times::into_inner).collect()
        });
        let late = times.iter().filter(|&&time| time > FRAME.as_secs_f64() * 1e6).count();
        let times = Times::new(times);
        let shares = [0.5, 0.99, 1.0].map(|share| format_us(times.quantile(share)));
        let counts = [streams.to_string(), FRAMES.to_string()];
        table.row(counts.into_iter().chain(shares).chain([late.to_string()]));
    }
    bench.folder.table("streams", &table)
}
