// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suppression, including sorting. The time also includes reading windows or boxes, which is a
//! small part.

use criterion::{Criterion, criterion_group, criterion_main};
use nmsbench::workload::{Spread, Workload, greedy_params, windows};
use nmsfilter_core::engine::{Cpu, Engine, Job};

fn suppression(criterion: &mut Criterion) {
    let windows = windows().expect("the recorded data can be read");
    let paper_workloads = [200, 360, 698, 1027, 2895, 2997].map(|n| {
        Workload::windows(
            format!("{n} of the paper's windows"),
            &windows[..n],
            greedy_params(0.3, 0.0),
        )
    });
    let scene_workloads = [1_000, 10_000, 100_000].into_iter().flat_map(|n| {
        [Spread::Clustered, Spread::Uniform].map(|spread| Workload::scene(spread, n))
    });
    let mut group = criterion.benchmark_group("suppression");
    for workload in paper_workloads.into_iter().chain(scene_workloads) {
        let (tensors, layout) = (workload.tensors(), workload.layout());
        let mut cpu = Cpu::default();
        group.bench_function(&workload.name, |bencher| {
            bencher.iter(|| {
                cpu.run(Job::new(&tensors, &layout, &workload.params, &workload.places()))
                    .unwrap()
                    .group(0)
                    .survivors
                    .len()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, suppression);
criterion_main!(benches);
