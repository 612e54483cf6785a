// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPU times per image of batches of YOLOv8 outputs, whose images have a constant stride or are found by a table.

use anyhow::{Context, Result};
use gstnmsfilter::input::Tensors;
use nmsfilter_core::device::Ready;
use nmsfilter_core::engine::{Engine, Job};
use nmsfilter_core::tensor::{DeviceSlice, ElementType, Storage, TensorView};

use super::{Bench, Section, format_gpu_us};
use crate::gpu_time::{check, expected, time_of_all, times_of_each};
use crate::measure::measure;
use crate::report::Table;
use crate::workload::{Workload, greedy_params, windows};

pub const SECTION: Section =
    Section { name: "batches", about: "GPU times of 1 to 64 outputs of YOLOv8 in a launch", run };

fn run(bench: &mut Bench) -> Result<()> {
    if bench.engines.cuda().is_none() {
        println!("SKIPPED: there is no GPU for the kernels");
        return Ok(());
    }
    let mut table = Table::new([
        "images",
        "found by",
        "candidates",
        "decode us",
        "map us",
        "reduce us",
        "publish us",
        "all us",
        "decode TB/s",
        "run us, wall",
    ]);
    let frame = Workload::yolov8("yolov8", &windows()?[..698], greedy_params(0.45, 0.25));
    for images in [1, 4, 16, 64] {
        let workload = frame.in_batch(images);
        let expected = expected(&workload)?;
        let uploaded = bench.engines.upload(&workload)?;
        let tensors: Tensors<'_> = uploaded.iter().collect();
        let views = tensors.views();
        let memory = views[0].device()?.context("the tensor is in device memory")?;
        let bytes = memory.len() / images;
        // Image i of the table is another one of the tensor.
        let at = |image: usize| memory.address() + (bytes * ((image * 5 + 2) % images)) as u64;
        let separate: Vec<Storage<'_>> = (0..images)
            // SAFETY: the images are in the tensor's memory, which `uploaded` has.
            .map(|image| Storage::Device(unsafe { DeviceSlice::new(at(image), bytes, Ready::Now) }))
            .collect();
        let storage = Storage::Images(&separate);
        let by_table =
            [TensorView::new(views[0].id, ElementType::F32, views[0].shape.clone(), storage)];
        for (found_by, views) in [("stride", &views[..]), ("table", &by_table[..])] {
            let (layout, params, places) = (workload.layout(), &workload.params, workload.places());
            let cuda = bench.engines.cuda_mut().expect("there is a GPU");
            check(cuda, views, &workload, &expected)?;
            let run =
                measure(bench.budget, || drop(cuda.run(Job::new(views, &layout, params, &places))))
                    .median();
            let kernels = cuda.kernels_of(Job::new(views, &layout, params, &places))?;
            let each = times_of_each(&kernels, bench.repeats)?;
            let per_image = |us: f64| format_gpu_us(us / images as f64);
            let decode = each.sum(&["decode"]);
            let [map, reduce, publish] =
                ["map", "reduce", "publish"].map(|name| per_image(each.sum(&[name])));
            let all = per_image(time_of_all(&kernels, bench.repeats)?);
            let read = format!("{:.2}", memory.len() as f64 / decode * 1e-6);
            let counts = [images.to_string(), found_by.to_owned(), expected[0].0.to_string()];
            let times = [per_image(decode), map, reduce, publish, all, read, per_image(run)];
            table.row(counts.into_iter().chain(times));
        }
    }
    println!("times are per image");
    bench.folder.table("batches", &table)
}
