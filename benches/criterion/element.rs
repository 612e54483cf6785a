// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the whole element, from a buffer with a tensor to the buffer with regions.

use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use nmsbench::harness::{buffer, harness};
use nmsbench::workload::{Workload, disjoint_windows, greedy_params, windows};

fn element(criterion: &mut Criterion) {
    gst::init().expect("GStreamer can be initialized");
    gstnmsfilter::plugin_register_static().expect("the plugin can be registered");
    let windows = windows().expect("the recorded data can be read");
    let prefixes = [0, 360, 698, 2997].map(|n| &windows[..n]);
    let disjoint = disjoint_windows();
    let mut group = criterion.benchmark_group("element");
    group.measurement_time(Duration::from_secs(3));
    for windows in prefixes.into_iter().chain([&disjoint[..]]) {
        let name = format!("yolov8 84x8400, {} candidates, backend=cpu", windows.len());
        let workload = Workload::yolov8(name, windows, greedy_params(0.45, 0.25));
        let tensor = &workload.new_tensors()[0];
        let mut harness = harness("cpu");
        group.bench_function(&workload.name, |bencher| {
            bencher.iter_batched(
                || buffer(tensor),
                |buffer| harness.push_and_pull(buffer).unwrap(),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, element);
criterion_main!(benches);
