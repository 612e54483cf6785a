// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attaches regions to a buffer, by kind of metadata. The time does not include removing them.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use gst_newer::Capabilities;
use gstnmsfilter::output::{self, DetailedRegions, Kinds, Labels, MaskBuffers, Region};

const ROI: Kinds = Kinds::ROI;
const ANALYTICS: Kinds = Kinds::ANALYTICS;
const BOTH: Kinds = Kinds::ROI.union(Kinds::ANALYTICS);
const FRAME: [u32; 2] = [1920, 1080];

fn attach(criterion: &mut Criterion) {
    gst::init().expect("GStreamer can be initialized");
    let mut kinds = vec![("roi", ROI)];
    if Capabilities::get().relations.is_ok() {
        kinds.extend([("analytics", ANALYTICS), ("both", BOTH)]);
    }
    let mut group = criterion.benchmark_group("attach");
    for n in [1, 150, 1000, 8400] {
        let regions: Vec<Region> = (0..n)
            .map(|i| {
                let (x1, y1) = ((i % 120) as f32 * 16.0, (i / 120) as f32 * 15.0);
                let (x2, y2) = (x1 + 14.0, y1 + 14.0);
                Region { x1, y1, x2, y2, confidence: 0.5, class: i % 3, parent: None }
            })
            .collect();
        group.throughput(Throughput::Elements(u64::from(n)));
        for (name, kinds) in &kinds {
            let (mut labels, mut masks) = (Labels::default(), MaskBuffers::default());
            group.bench_function(format!("{name}, {n} regions"), |bencher| {
                bencher.iter_batched_ref(
                    gst::Buffer::new,
                    |buffer| {
                        let buffer = buffer.get_mut().expect("the buffer has one reference");
                        let regions = DetailedRegions::from(&regions[..]);
                        output::attach(buffer, FRAME, regions, &mut labels, &mut masks, *kinds)
                            .unwrap();
                    },
                    BatchSize::PerIteration,
                );
            });
        }
    }
    group.finish();
}

criterion_group!(benches, attach);
criterion_main!(benches);
