// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decode, suppression and masks of a segmentation model, compared with boxes alone.
//!
//! Also writes the survivors and the prototypes, from which peers/masks.py computes the masks with
//! NumPy.

use anyhow::{Context, Result};
use fastrand::Rng;
use nmsfilter_core::engine::{Cpu, Engine, Job, MaskSize, Params};
use nmsfilter_core::geometry::FrameMap;

use super::{Bench, Section, format_us};
use crate::report::Table;
use crate::workload::{TensorData, Workload};

pub const SECTION: Section = Section {
    name: "masks",
    about: "100 survivors of a segmentation model with an input of 640x640, with masks and without",
    run,
};

const ANCHORS: usize = 8400;
/// Numbers per anchor: four for the box, 80 scores, 32 coefficients.
const NUMBERS: usize = 116;
const SURVIVORS: usize = 100;
/// Anchors per object. One of them survives.
const PER_OBJECT: usize = 10;
/// Side of each of the 32 prototypes.
const SIDE: usize = 160;
const MODEL: f32 = 640.0;

/// Makes objects that are about `width` pixels wide and twice as high. No two objects share both
/// class and place.
fn workload(name: &str, width: f32) -> Workload {
    let mut rng = Rng::with_seed(7);
    let mut numbers: Vec<f32> = (0..NUMBERS * ANCHORS)
        .map(|at| match at / ANCHORS {
            0..4 => rng.f32() * MODEL,
            4..84 => rng.f32() * 0.02,
            _ => rng.f32() * 2.0 - 1.0,
        })
        .collect();
    for object in 0..SURVIVORS {
        let [x, y] = [object % 10, object / 10].map(|step| 32.0 + 64.0 * step as f32);
        let width = width * (0.5 + rng.f32());
        for part in 0..PER_OBJECT {
            let anchor = (object * PER_OBJECT + part) * ANCHORS / (SURVIVORS * PER_OBJECT);
            let shift = part as f32 * width * 0.01;
            let row = [x + shift, y, width, 2.0 * width, 0.9 - part as f32 * 0.05];
            for (number, value) in [0, 1, 2, 3, 4 + object % 80].into_iter().zip(row) {
                numbers[number * ANCHORS + anchor] = value;
            }
        }
    }
    let prototypes = (0..32 * SIDE * SIDE).map(|_| rng.f32() * 2.0 - 1.0).collect();
    let tensors = vec![
        TensorData { id: "output0", shape: vec![1, NUMBERS, ANCHORS], values: numbers },
        TensorData { id: "output1", shape: vec![1, 32, SIDE, SIDE], values: prototypes },
    ];
    let workload = Workload::family("yolov8-seg", tensors);
    workload.with_params(name, workload.params.clone())
}

/// Returns the corners and coefficients of the survivors, the number of mask pixels, and the number
/// of pixels that are set.
fn survivors(workload: &Workload) -> Result<(Vec<f32>, u64, u64)> {
    let mut engine = Cpu::default();
    let tensors = workload.tensors();
    let outcome =
        engine.run(Job::new(&tensors, &workload.layout(), &workload.params, &workload.places()))?;
    let image = outcome.group(0);
    let coefficients = image.columns.chunks(outcome.column_components.max(1));
    let rows = image.survivors.iter().zip(coefficients).flat_map(|(survivor, row)| {
        [survivor.x1, survivor.y1, survivor.x2, survivor.y2].into_iter().chain(row.iter().copied())
    });
    let rows = rows.collect();
    let masks: Vec<_> = (0..image.survivors.len()).filter_map(|i| image.masks.get(i)).collect();
    let pixels = masks.iter().map(|mask| u64::from(mask.width) * u64::from(mask.height)).sum();
    let ones = |mask: &[u8]| mask.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>();
    Ok((rows, pixels, masks.iter().map(|mask| ones(mask.bytes)).sum()))
}

fn run(bench: &mut Bench) -> Result<()> {
    let columns = [
        "objects",
        "masks",
        "survivors",
        "pixels",
        "set",
        "engine",
        "median us",
        "p90 us",
        "kernels us",
        "bytes downloaded",
        "of masks",
    ];
    // A frame of 1920x1080 is in the input, between borders above and below.
    let third = 1.0 / 3.0;
    let frame = FrameMap { size: [1920, 1080], ratio: [third; 2], offset: [0.0, 140.0] };
    let mut table = Table::new(columns);
    for (name, width) in [("small", 30.0), ("medium", 60.0), ("large", 150.0)] {
        let workload = workload(name, width);
        let write = |file: &str, numbers: &[f32]| {
            let path = bench.folder.file(file);
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            std::fs::write(&path, bytes).with_context(|| path.display().to_string())
        };
        write(&format!("masks-{name}.f32"), &survivors(&workload)?.0)?;
        write("masks-prototypes.f32", workload.numbers("output1"))?;
        let with_masks = |masks, mask_size, frame| {
            let params = Params { masks, mask_size, ..workload.params.clone() };
            let mut workload = workload.with_params(name, params);
            workload.frame = frame;
            workload
        };
        for (masks, workload) in [
            ("none", with_masks(false, MaskSize::Prototypes, None)),
            ("prototypes", with_masks(true, MaskSize::Prototypes, None)),
            ("frame", with_masks(true, MaskSize::Frame, Some(frame))),
        ] {
            let (_, pixels, set) = survivors(&workload)?;
            for run in bench.engines.run(&workload, bench.budget)? {
                let times = [run.times.median(), run.times.quantile(0.9), run.device.median()];
                let bytes = [run.work.bytes_downloaded, run.work.mask_bytes_downloaded];
                let counts = [run.survivors as u64, pixels, set].map(|count| count.to_string());
                let names = [name, masks].map(str::to_owned).into_iter();
                let cells = names.chain(counts).chain([run.engine.to_owned()]);
                let cells = cells.chain(times.map(format_us));
                table.row(cells.chain(bytes.map(|bytes| bytes.to_string())));
            }
        }
    }
    bench.folder.table("masks", &table)
}
