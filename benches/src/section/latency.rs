// SPDX-License-Identifier: MIT OR Apache-2.0
//! Table 5 of the paper, with 200, 1027 and 2895 windows: this project's engines, the paper's
//! kernels, and published figures.

use anyhow::Result;

use super::{Bench, Section, format_us};
use crate::paper_kernels::PaperKernels;
use crate::report::Table;
use crate::workload::{Workload, greedy_params, windows};

pub const SECTION: Section =
    Section { name: "latency", about: "200, 1027 and 2895 windows (table 5)", run };

/// The paper's capacity (D_max) for all numbers of windows.
pub(super) const PAPER_CAPACITY: u32 = 4096;

/// The number of partitions (k) that the paper found best.
pub(super) const PARTITIONS: u32 = 32;

/// The minimum capacity for `n` windows such that partitions consist of whole warps.
pub(super) fn fitted_capacity(n: usize) -> u32 {
    (n as u32).next_multiple_of(32 * PARTITIONS)
}

/// Times that the paper reports, in microseconds.
const PUBLISHED: [(&str, [f64; 3]); 2] =
    [("paper, GTX 1060", [107.0, 324.0, 1313.0]), ("paper, Tesla T4", [24.0, 88.0, 430.0])];

fn run(bench: &mut Bench) -> Result<()> {
    let windows = windows()?;
    let prefixes = [200, 1027, 2895];
    let mut table = Table::new(["us", "n = 200", "n = 1027", "n = 2895"]);
    let runs = prefixes
        .iter()
        .map(|&n| {
            let workload = Workload::windows("windows", &windows[..n], greedy_params(0.3, 0.0));
            bench.engines.run(&workload, bench.budget)
        })
        .collect::<Result<Vec<_>>>()?;
    let mut row = |name: String, cells: Vec<f64>| {
        table.row(std::iter::once(name).chain(cells.into_iter().map(format_us)));
    };
    for (i, name) in bench.engines.names().iter().enumerate() {
        row(format!("{name}, median"), runs.iter().map(|runs| runs[i].times.median()).collect());
        let tenth = runs.iter().map(|runs| runs[i].times.quantile(0.9)).collect();
        row(format!("{name}, p90"), tenth);
    }
    if bench.engines.cuda().is_some() {
        let on_device = runs.iter().map(|runs| runs[1].device.median()).collect();
        row("cuda, by the GPU's clock".to_owned(), on_device);
        for is_fitted in [false, true] {
            let times = prefixes
                .iter()
                .map(|&n| {
                    let capacity = if is_fitted { fitted_capacity(n) } else { PAPER_CAPACITY };
                    let paper = PaperKernels::new(capacity)?;
                    Ok(paper.time(&windows[..n], PARTITIONS, bench.repeats)?.separate)
                })
                .collect::<Result<Vec<_>>>()?;
            let capacity_label = if is_fitted { "capacity fitted to n" } else { "capacity 4096" };
            for (i, part) in ["memset", "map", "reduce"].into_iter().enumerate() {
                let name = format!("paper.cu, {capacity_label}, {part}");
                row(name, times.iter().map(|t| t[i]).collect());
            }
        }
    }
    for (name, published) in PUBLISHED {
        row(name.to_owned(), published.to_vec());
    }
    bench.folder.table("latency", &table)
}
