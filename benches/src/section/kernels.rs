// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPU times of each kernel of a launch, and of the paper's kernels.

use anyhow::{Result, ensure};
use gstnmsfilter::input::Tensors;
use nmsfilter_core::engine::{Job, Method, Overlap, Params};

use super::latency::{PAPER_CAPACITY, PARTITIONS, fitted_capacity};
use super::{Bench, Section, format_gpu_us};
use crate::gpu_time::{check, expected, time_of_all, times_of_each};
use crate::paper_kernels::PaperKernels;
use crate::report::Table;
use crate::workload::{Spread, Window, Workload, greedy_params, windows};

pub const SECTION: Section = Section {
    name: "kernels",
    about: "GPU times of each kernel: windows, boxes, YOLOv8; of the paper's kernels",
    run,
};

/// Numbers of the paper's windows.
const COUNTS: [usize; 7] = [200, 360, 698, 1027, 2048, 2895, 2997];

fn run(bench: &mut Bench) -> Result<()> {
    if bench.engines.cuda().is_none() {
        println!("SKIPPED: there is no GPU for the kernels");
        return Ok(());
    }
    let windows = windows()?;
    let mut workloads = Vec::new();
    for n in COUNTS {
        for iou in [0.3, 0.5] {
            let params = greedy_params(iou, 0.0);
            workloads.push(Workload::windows(format!("windows, IoU {iou}"), &windows[..n], params));
        }
    }
    for n in [1_000, 8_400, 30_000] {
        workloads.push(Workload::scene(Spread::Uniform, n));
    }
    let params = greedy_params(0.45, 0.25);
    workloads.push(Workload::yolov8("yolov8 84x8400", &windows[..698], params));

    let mut table = Table::new([
        "workload",
        "n",
        "survivors",
        "rounds",
        "decode us",
        "map us",
        "reduce us",
        "sorted us",
        "publish us",
        "all us",
    ]);
    for workload in &workloads {
        let expected = expected(workload)?;
        let uploaded = bench.engines.upload(workload)?;
        let tensors: Tensors<'_> = uploaded.iter().collect();
        let cuda = bench.engines.cuda_mut().expect("there is a GPU");
        let rounds = check(cuda, &tensors.views(), workload, &expected)?.rounds;
        let kernels = cuda.kernels_of(Job::new(
            &tensors.views(),
            &workload.layout(),
            &workload.params,
            &workload.places(),
        ))?;
        let each = times_of_each(&kernels, bench.repeats)?;
        let times = [&["decode"][..], &["map"], &["reduce"], &["sort_", "chunk_"], &["publish"]];
        let times = times.map(|names| format_gpu_us(each.sum(names)));
        let all = format_gpu_us(time_of_all(&kernels, bench.repeats)?);
        let (candidates, survivors) = &expected[0];
        let counts = [*candidates, survivors.len(), rounds as usize].map(|count| count.to_string());
        let name = [workload.name.clone()];
        table.row(name.into_iter().chain(counts).chain(times).chain([all]));
    }
    bench.folder.table("kernels", &table)?;
    paper(bench, &windows)
}

/// The times of the paper's kernels, with the paper's memory for any number of windows, and with the least that holds
/// them.
fn paper(bench: &Bench, windows: &[Window]) -> Result<()> {
    let columns = ["memset us", "map us", "reduce us", "map and reduce us", "all us"];
    let mut table = Table::new(["slots", "n", "survivors"].into_iter().chain(columns));
    for is_fitted in [false, true] {
        for n in COUNTS {
            let capacity = if is_fitted { fitted_capacity(n) } else { PAPER_CAPACITY };
            let windows = &windows[..n];
            let paper = PaperKernels::new(capacity)?;
            let times = paper.time(windows, PARTITIONS, bench.repeats)?;
            let survivors = times.survives.iter().filter(|&&survives| survives).count();
            let [(_, expected)] = &expected(&Workload::windows("", windows, paper_params()))?[..]
            else {
                unreachable!("there is one image");
            };
            let is_right = survivors == expected.len()
                && expected.iter().all(|survivor| times.survives[survivor.anchor as usize]);
            ensure!(is_right, "{n} windows: paper.cu and method=map-reduce have different results");
            let counts = [capacity as usize, n, survivors].map(|count| count.to_string());
            let [memset, map, reduce] = times.separate;
            let times = [memset, map, reduce, times.map_and_reduce, times.all].map(format_gpu_us);
            table.row(counts.into_iter().chain(times));
        }
    }
    bench.folder.table("kernels-paper", &table)
}

/// The paper's rules.
fn paper_params() -> Params {
    Params {
        method: Method::MapReduce,
        overlap: Overlap::Representative,
        threshold_inclusive: true,
        pixel_offset: 1.0,
        ..greedy_params(0.3, 0.0)
    }
}
