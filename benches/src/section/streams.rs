// SPDX-License-Identifier: MIT OR Apache-2.0
//! Concurrent elements on one GPU, at 50 frames per second and at full load, beside the floor: kernels without work.
//! Times are of the element alone, from its sink pad to its source pad.

use std::time::{Duration, Instant};

use anyhow::Result;
use gstnmsfilter::input::custom_meta::NewTensor;

use super::{Bench, Section, format_us};
use crate::floor::Floor;
use crate::harness::{buffer, harness, push_paced};
use crate::measure::Times;
use crate::report::Table;
use crate::workload::{Workload, greedy_params, windows};

pub const SECTION: Section = Section {
    name: "streams",
    about: "1 to 64 elements with 84x8400 on one GPU, at 50 frames per second and at full load, and the floor",
    run,
};

const FRAME: Duration = Duration::from_millis(20);
/// Numbers of elements, at 50 frames per second and at full load.
const CASES: [(Option<Duration>, [u32; 2]); 2] = [(Some(FRAME), [1, 32]), (None, [1, 64])];

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
    let time = bench.budget * 12;
    let columns =
        ["work", "pace", "streams", "frames", "p50 us", "p99 us", "slowest p99 us", "max us"];
    let mut table = Table::new(columns);
    for (pace, counts) in CASES {
        for streams in counts {
            row(&mut table, "element", pace, &elements(&tensors, streams, pace, time));
            match floors(streams, pace, time) {
                Ok(times) => row(&mut table, "floor", pace, &times),
                Err(error) => println!("SKIPPED: floor of {streams}: {error:#}"),
            }
        }
    }
    bench.folder.table("streams", &table)
}

fn row(table: &mut Table, work: &str, pace: Option<Duration>, each: &[Times]) {
    let slowest = each.iter().map(|times| times.quantile(0.99)).fold(0.0, f64::max);
    let all = Times::new(each.iter().flat_map(|times| times.clone().into_inner()).collect());
    let pace = pace.map_or("full load".to_owned(), |pace| format!("{}/s", 1000 / pace.as_millis()));
    let [p50, p99, max] = [0.5, 0.99, 1.0].map(|share| all.quantile(share));
    let counts = [each.len(), all.into_inner().len()].map(|count| count.to_string());
    let times = [p50, p99, slowest, max].map(format_us);
    table.row([work.to_owned(), pace].into_iter().chain(counts).chain(times));
}

/// The times of each of `streams` elements, each in a thread.
fn elements(
    tensors: &[NewTensor],
    streams: u32,
    pace: Option<Duration>,
    time: Duration,
) -> Vec<Times> {
    let ready = (0..streams).map(|_| {
        let mut harness = harness("cuda");
        for tensor in tensors {
            harness.push_and_pull(buffer(tensor)).expect("the element takes buffers");
        }
        harness
    });
    in_threads(ready.collect(), |offset, start, mut harness| {
        if let Some(pace) = pace {
            let frames = (time.as_micros() / pace.as_micros()) as u32;
            let start = start + pace.mul_f64(offset);
            return push_paced(&mut harness, tensors, start, pace, frames);
        }
        let mut times = Vec::new();
        while start.elapsed() < time {
            let buffer = buffer(&tensors[times.len() % tensors.len()]);
            let began = Instant::now();
            let done = harness.push_and_pull(buffer);
            times.push(began.elapsed().as_secs_f64() * 1e6);
            done.expect("the element takes buffers");
        }
        Times::new(times)
    })
}

/// The times of each of `streams` floors, each in a thread.
fn floors(streams: u32, pace: Option<Duration>, time: Duration) -> Result<Vec<Times>> {
    let ready = (0..streams).map(|_| Floor::new()).collect::<Result<Vec<_>>>()?;
    let times = in_threads(ready, |offset, start, mut floor| -> Result<Times> {
        let mut times = Vec::new();
        while start.elapsed() < time {
            if let Some(pace) = pace {
                let due = start + pace.mul_f64(offset + times.len() as f64);
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            times.push(floor.run()?);
        }
        Ok(Times::new(times))
    });
    times.into_iter().collect()
}

/// Calls `work` for each item in a separate thread. The arguments are the share of a period by which the thread is later
/// than the first one, so that streams begin their frames at different times, when the first one starts, and the item.
fn in_threads<I: Send, T: Send>(
    items: Vec<I>,
    work: impl Fn(f64, Instant, I) -> T + Sync,
) -> Vec<T> {
    let (work, count) = (&work, items.len() as f64);
    let start = Instant::now() + Duration::from_millis(100);
    std::thread::scope(|scope| {
        let thread = |(i, item): (usize, I)| {
            scope.spawn(move || {
                std::thread::sleep(start.saturating_duration_since(Instant::now()));
                work(i as f64 / count, start, item)
            })
        };
        let threads: Vec<_> = items.into_iter().enumerate().map(thread).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}
