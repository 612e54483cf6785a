// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes without suppression (`method=none`), with and without candidates.

use criterion::{Criterion, criterion_group, criterion_main};
use nmsbench::workload::{Workload, greedy_params, windows};
use nmsfilter_core::engine::{Cpu, Engine, Job, Method, Params};

fn decode(criterion: &mut Criterion) {
    let windows = windows().expect("the recorded data can be read");
    let none = Params { method: Method::None, ..greedy_params(0.45, 0.25) };
    let mut group = criterion.benchmark_group("decode");
    for n in [0, 698, 2997] {
        for workload in [
            Workload::yolov8(
                format!("yolov8 84x8400, {n} candidates"),
                &windows[..n],
                none.clone(),
            ),
            Workload::yolov5(
                format!("yolov5 25200x85, {n} candidates"),
                &windows[..n],
                none.clone(),
            ),
        ] {
            let (tensors, layout) = (workload.tensors(), workload.layout());
            let mut cpu = Cpu::default();
            group.bench_function(&workload.name, |bencher| {
                bencher.iter(|| {
                    cpu.run(Job::new(&tensors, &layout, &workload.params, &workload.places()))
                        .unwrap()
                        .group(0)
                        .candidates
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, decode);
criterion_main!(benches);
