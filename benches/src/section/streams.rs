// SPDX-License-Identifier: MIT OR Apache-2.0
//! Concurrent elements on one GPU, at 50 frames per second and at full load, beside the floor: kernels without work, the
//! same metadata, and the element `identity`. Times are of one element, from its sink pad to its source pad.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use gst_check::Harness;
use gst_video::VideoRegionOfInterestMeta;
use gstnmsfilter::input::custom_meta::NewTensor;
use gstnmsfilter::output::add_region;

use super::{Bench, Section, format_us};
use crate::floor::Floor;
use crate::harness::{buffer, harness, harness_of};
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
    let mut found = Vec::new();
    let mut harness = harness("cuda");
    for tensor in &tensors {
        found.push(harness.push_and_pull(buffer(tensor))?);
    }
    let regions: Vec<usize> = found
        .iter()
        .map(|buffer| buffer.iter_meta::<VideoRegionOfInterestMeta>().count())
        .collect();
    let region = found[0].meta::<VideoRegionOfInterestMeta>().context("a region was found")?;
    let detection = region.param("detection").context("a region has a structure")?.to_owned();
    let time = bench.budget * 12;
    let columns =
        ["work", "pace", "streams", "frames", "p50 us", "p99 us", "slowest p99 us", "max us"];
    let mut table = Table::new(columns);
    for (pace, counts) in CASES {
        for streams in counts {
            row(&mut table, "element", pace, &elements(&tensors, streams, pace, time)?);
            match floors((&regions, &detection), streams, pace, time) {
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
) -> Result<Vec<Times>> {
    let ready = (0..streams).map(|_| {
        let mut harness = harness("cuda");
        for tensor in tensors {
            harness.push_and_pull(buffer(tensor))?;
        }
        Ok(harness)
    });
    in_threads(ready.collect::<Result<_>>()?, pace, time, |harness, frame| {
        let buffer = buffer(&tensors[frame % tensors.len()]);
        let began = Instant::now();
        let done = harness.push_and_pull(buffer);
        let elapsed = began.elapsed();
        done?;
        Ok(elapsed)
    })
}

/// The work for a frame without decode and suppression.
struct Least {
    kernels: Floor,
    label: gst::glib::Quark,
    identity: Harness,
}

impl Least {
    fn new() -> Result<Self> {
        let identity = gst::ElementFactory::make("identity").build()?;
        let label = gst::glib::Quark::from_str("window");
        Ok(Self { kernels: Floor::new()?, label, identity: harness_of(&identity) })
    }

    /// Runs the kernels, attaches this many regions, and pushes the buffer. Returns the time.
    fn run(&mut self, regions: usize, detection: &gst::StructureRef) -> Result<Duration> {
        let mut buffer = gst::Buffer::new();
        let began = Instant::now();
        self.kernels.run()?;
        let writable = buffer.get_mut().expect("it is new");
        for _ in 0..regions {
            // Without the lookup of a name, for which all threads take one lock.
            add_region(writable, self.label, [0, 0, 1, 1]).add_param(detection.to_owned());
        }
        let done = self.identity.push_and_pull(buffer);
        let elapsed = began.elapsed();
        done?;
        Ok(elapsed)
    }
}

/// The times of each of `streams` floors with the numbers of regions of frames, each in a thread.
fn floors(
    (regions, detection): (&[usize], &gst::StructureRef),
    streams: u32,
    pace: Option<Duration>,
    time: Duration,
) -> Result<Vec<Times>> {
    let ready = (0..streams).map(|_| Least::new()).collect::<Result<_>>()?;
    in_threads(ready, pace, time, |least, frame| {
        least.run(regions[frame % regions.len()], detection)
    })
}

/// For `time`, calls `run` for each item in a separate thread with the numbers of frames: one per `pace`, or one after the
/// other. Returns the times of each thread, which `run` measures. Threads begin their frames at different times.
fn in_threads<I: Send>(
    items: Vec<I>,
    pace: Option<Duration>,
    time: Duration,
    run: impl Fn(&mut I, usize) -> Result<Duration> + Sync,
) -> Result<Vec<Times>> {
    let (run, count) = (&run, items.len() as f64);
    let start = Instant::now() + Duration::from_millis(100);
    let sleep_until = |due: Instant| {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    };
    std::thread::scope(|scope| {
        let thread = |(i, mut item): (usize, I)| {
            scope.spawn(move || {
                let mut times = Vec::new();
                sleep_until(start);
                while start.elapsed() < time {
                    if let Some(pace) = pace {
                        sleep_until(start + pace.mul_f64(i as f64 / count + times.len() as f64));
                    }
                    times.push(run(&mut item, times.len())?.as_secs_f64() * 1e6);
                }
                Ok(Times::new(times))
            })
        };
        let threads: Vec<_> = items.into_iter().enumerate().map(thread).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}
