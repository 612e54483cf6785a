//! The whole element: one buffer with a tensor in, one with regions out.

use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use gst::prelude::*;
use gst_check::Harness;
use gstnmsfilter::tensor::attached::attach;
use nmsbench::workload::{Workload, apart, rules, windows};

fn element(criterion: &mut Criterion) {
    gst::init().expect("GStreamer is at hand");
    gstnmsfilter::plugin_register_static().expect("the plugin can be registered");
    let windows = windows().expect("the recorded data can be read");
    let of_windows = [0, 360, 698, 2997].map(|n| &windows[..n]);
    let apart = apart();
    let mut group = criterion.benchmark_group("element");
    group.measurement_time(Duration::from_secs(3));
    for windows in of_windows.into_iter().chain([&apart[..]]) {
        let name = format!("yolov8 84x8400, {} candidates, backend=cpu", windows.len());
        let workload = Workload::yolov8(name, windows, rules(0.45, 0.25));
        let tensor = &workload.new_tensors()[0];
        let mut harness = Harness::new("nmsfilter");
        harness.element().expect("there is one").set_property_from_str("backend", "cpu");
        harness.set_src_caps_str("video/x-raw,format=GRAY8,width=1920,height=1080,framerate=50/1");
        group.bench_function(&workload.name, |bencher| {
            bencher.iter_batched(
                || {
                    let mut buffer = gst::Buffer::new();
                    attach(buffer.get_mut().expect("it is new"), tensor).unwrap();
                    buffer
                },
                |buffer| harness.push_and_pull(buffer).unwrap(),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, element);
criterion_main!(benches);
