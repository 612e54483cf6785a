// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suppression of recorded candidates. Out: candidates.csv, which tells `peers/nms.py` the lists
//! that it measures with other programs.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{Bench, Section, format_us};
use crate::report::Table;
use crate::workload::{
    Spread, Window, Workload, fixture, greedy_params, read_csv, windows, windows_file,
};

pub const SECTION: Section = Section {
    name: "candidates",
    about: "suppression with sorting: the paper's windows, random boxes and real candidate lists",
    run,
};

/// Recorded lists in `tests/fixtures/candidates`.
const RECORDED: [&str; 7] = [
    "yoloxnano_street",
    "yolov8n640_street",
    "yolov8n640_towncentre_f40",
    "yolov5nfp16_street",
    "ultraface640_selfie",
    "yunet_selfie",
    "ultraface640_selfie_low",
];

/// Returns the workloads. Each has its file, and the number of rows of the file that it uses.
fn workloads(bench: &Bench) -> Result<Vec<(Workload, PathBuf, usize)>> {
    let mut workloads = Vec::new();
    let (windows, file) = (windows()?, windows_file().canonicalize()?);
    for n in [200, 360, 698, 1027, 2048, 2895, 2997] {
        let windows: &[Window] = &windows[..n];
        let workload = Workload::windows(format!("oscars {n}"), windows, greedy_params(0.3, 0.0));
        workloads.push((workload, file.clone(), n));
    }
    for n in [8_400, 30_000] {
        let workload = Workload::scene(Spread::Uniform, n);
        let mut list = Table::new(["x1", "y1", "x2", "y2", "score"]);
        for (corners, score) in
            workload.numbers("boxes").chunks(4).zip(workload.numbers("scores").chunks(1))
        {
            list.row(corners.iter().chain(score));
        }
        let name = format!("boxes-{n}");
        bench.folder.csv(&name, &list)?;
        let file = bench.folder.file(&format!("{name}.csv")).canonicalize()?;
        workloads.push((workload, file, n));
    }
    let recorded = RECORDED.iter().map(|name| fixture(&format!("candidates/{name}.csv")));
    for file in recorded.chain(bench.lists.iter().cloned()) {
        let wanted = || format!("{}: expected rows of x1,y1,x2,y2,score", file.display());
        let rows: Vec<[f32; 5]> = read_csv(&file)?
            .into_iter()
            .map(|row| row.first_chunk().copied().with_context(wanted))
            .collect::<Result<_>>()?;
        let file = file.canonicalize()?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        // The other programs compare candidates of all classes with each other.
        let mut params = greedy_params(0.45, 0.0);
        params.class_agnostic = true;
        workloads.push((Workload::boxes(name, &rows, params), file, rows.len()));
    }
    Ok(workloads)
}

fn run(bench: &mut Bench) -> Result<()> {
    let columns = [
        "list",
        "n",
        "survivors",
        "engine",
        "median us",
        "p10 us",
        "p90 us",
        "kernels us",
        "iou",
        "file",
    ];
    let mut table = Table::new(columns);
    // The columns that peers/nms.py reads are list, n, engine, survivors, times, threshold and
    // file.
    for (workload, file, n) in workloads(bench)? {
        for run in bench.engines.run(&workload, bench.budget)? {
            let times = [0.5, 0.1, 0.9].map(|share| format_us(run.times.quantile(share)));
            let cells = [workload.name.clone(), n.to_string(), run.survivors.to_string()];
            let file = [workload.params.iou_threshold.to_string(), file.display().to_string()];
            let cells = cells.into_iter().chain([run.engine.to_owned()]);
            table.row(cells.chain(times).chain([format_us(run.device.median())]).chain(file));
        }
    }
    print!("{}", table.first(8));
    bench.folder.csv("candidates", &table)
}
