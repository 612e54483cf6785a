// SPDX-License-Identifier: MIT OR Apache-2.0
//! The paper's first workload: the windows of the first face of the picture, of the first two
//! faces, and so on.

use anyhow::Result;
use nmsfilter_core::engine::{Cpu, Detection, Engine, Job};

use super::latency::{PAPER_CAPACITY, PARTITIONS};
use super::{Bench, Section, format_us};
use crate::paper_kernels::PaperKernels;
use crate::report::{Chart, Scale, Series, Table};
use crate::workload::{Window, Workload, greedy_params, windows};

pub const SECTION: Section = Section {
    name: "oscars",
    about: "the paper's windows, by the number of faces (figures 7 and 8)",
    run,
};

fn run(bench: &mut Bench) -> Result<()> {
    let windows = windows()?;
    let faces = faces(&windows)?;
    let count = faces.iter().max().map_or(0, |last| last + 1);
    let paper =
        bench.engines.cuda().is_some().then(|| PaperKernels::new(PAPER_CAPACITY)).transpose()?;
    let budget = bench.budget / 4;

    let mut names = bench.engines.names();
    names.extend(paper.is_some().then_some("paper.cu"));
    let mut columns = vec!["faces".to_owned(), "windows".to_owned(), "survivors".to_owned()];
    columns.extend(names.iter().map(|name| format!("{name} us")));
    let mut table = Table::new(columns);
    let mut series: Vec<Series> =
        names.iter().map(|name| Series { name: (*name).to_owned(), points: Vec::new() }).collect();
    for visible in 1..=count {
        let seen: Vec<Window> = (windows.iter().zip(&faces))
            .filter(|&(_, &face)| face < visible)
            .map(|(window, _)| *window)
            .collect();
        let workload = Workload::windows("oscars", &seen, greedy_params(0.3, 0.0));
        let runs = bench.engines.run(&workload, budget)?;
        let survivors = runs[0].survivors;
        assert!(
            runs.iter().all(|run| run.survivors == survivors),
            "the engines have different results"
        );
        let mut times: Vec<f64> = runs.iter().map(|run| run.times.median()).collect();
        if let Some(paper) = &paper {
            times.push(paper.time(&seen, PARTITIONS, bench.repeats.at_most(5))?.all);
        }
        for (series, time) in series.iter_mut().zip(&times) {
            series.points.push((visible as f64, *time));
        }
        let counts = [visible, seen.len(), survivors].map(|count| count.to_string());
        table.row(counts.into_iter().chain(times.into_iter().map(format_us)));
    }
    bench.folder.csv("oscars", &table)?;
    print!("{}", table.every(16));
    let chart = Chart {
        title: format!("The paper's picture: {} windows on {count} faces", windows.len()),
        x: "number of faces",
        y: "microseconds per frame",
        scale: Scale::Linear,
        series,
        secondary: None,
    };
    bench.folder.plot("oscars", &chart)
}

/// The face of each window: the survivor of exact greedy suppression with which it has the largest
/// IoU. Faces are numbered from the left.
fn faces(windows: &[Window]) -> Result<Vec<usize>> {
    let workload = Workload::windows("oscars", windows, greedy_params(0.3, 0.0));
    let mut cpu = Cpu::default();
    let outcome = cpu.run(Job::new(
        &workload.tensors(),
        &workload.layout(),
        &workload.params,
        &workload.places(),
    ))?;
    let mut faces = outcome.group(0).survivors.to_vec();
    faces.sort_by(|a, b| a.x1.total_cmp(&b.x1));
    let face = |&[x, y, side, _]: &Window| {
        let share = |face: &Detection| {
            let width = (x + side).min(face.x2) - x.max(face.x1);
            let height = (y + side).min(face.y2) - y.max(face.y1);
            let both = width.max(0.0) * height.max(0.0);
            both / (side * side + (face.x2 - face.x1) * (face.y2 - face.y1) - both)
        };
        let best = (0..faces.len()).max_by(|&a, &b| share(&faces[a]).total_cmp(&share(&faces[b])));
        best.unwrap_or(0)
    };
    Ok(windows.iter().map(face).collect())
}
