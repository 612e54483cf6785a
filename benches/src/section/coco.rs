// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decode and suppression with COCO's evaluation settings: a score of 0.001, each class above it, IoU 0.7.
//!
//! The scores of `[1,84,8400]` are random, so few boxes are suppressed, and 300 detections are found among the
//! first candidates. `python/tests/gpu.py` measures PyTorch with these distributions.

use anyhow::Result;
use fastrand::Rng;
use nmsfilter_core::engine::{ClassThresholds, Params};

use super::{Bench, Section, format_us};
use crate::report::Table;
use crate::workload::{TensorData, Workload};

pub const SECTION: Section = Section {
    name: "coco",
    about: "84x8400 with COCO's evaluation settings: several classes an anchor",
    run,
};

const ANCHORS: usize = 8400;

/// The higher the power, the fewer scores are above the threshold.
fn workload(power: i32) -> Workload {
    let mut rng = Rng::with_seed(9);
    let values = (0..84 * ANCHORS).map(|at| match at / ANCHORS {
        0 | 1 => rng.f32() * 640.0,
        2 | 3 => rng.f32() * 100.0 + 10.0,
        _ => rng.f32().powi(power) * 0.9,
    });
    let tensor =
        TensorData { id: "output0", shape: vec![1, 84, ANCHORS], values: values.collect() };
    Workload::family("yolov8", vec![tensor])
}

fn run(bench: &mut Bench) -> Result<()> {
    let columns = ["max-detections", "candidates", "survivors", "engine", "median us", "p90 us"];
    let mut table = Table::new(columns.into_iter().chain(["kernels us"]));
    for power in [2000, 400, 100] {
        let workload = workload(power);
        for max_detections in [300, 0] {
            let params = Params {
                iou_threshold: 0.7,
                thresholds: ClassThresholds::uniform(0.001),
                multi_label: true,
                max_detections,
                ..Params::default()
            };
            let workload = workload.with_params("coco", params);
            for run in bench.engines.run(&workload, bench.budget)? {
                let times = [run.times.median(), run.times.quantile(0.9), run.device.median()];
                let counts = [max_detections, run.candidates, run.survivors];
                let cells = counts.map(|count| count.to_string()).into_iter();
                table.row(cells.chain([run.engine.to_owned()]).chain(times.map(format_us)));
            }
        }
    }
    bench.folder.table("coco", &table)
}
