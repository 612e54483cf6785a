// SPDX-License-Identifier: MIT OR Apache-2.0
//! Merging and rescoring of the boxes that `merging/compare_with_sahi.py` measures with SAHI, and of
//! fewer. Out: merging.csv, with wall times and times of kernels by method.

use anyhow::Result;
use nmsfilter_core::engine::{Method, Overlap, Params};

use super::{Bench, Section, format_us};
use crate::report::Table;
use crate::workload::{Centers, Workload, greedy_params};

pub const SECTION: Section = Section {
    name: "merging",
    about: "merging and rescoring of 1312 and of 33,337 boxes, crowded and scattered",
    run,
};

const SIZES: [usize; 2] = [1_312, 33_337];

fn run(bench: &mut Bench) -> Result<()> {
    let columns = ["centers", "n", "method", "survivors", "engine", "median us", "kernels us"];
    let mut table = Table::new(columns);
    for n in SIZES {
        for centers in [Centers::Crowded, Centers::Scattered] {
            // The boxes have no column.
            let methods = Method::ALL.into_iter().filter(|method| method.column().is_none());
            // The others take a GPU up to a second.
            for method in methods.filter(|method| n == SIZES[0] || !method.is_sequential()) {
                let params = Params {
                    method,
                    overlap: Overlap::Smaller,
                    threshold_inclusive: true,
                    lose_released: true,
                    ..greedy_params(0.3, 0.1)
                };
                let workload = Workload::around(centers, n, params);
                for run in bench.engines.run(&workload, bench.budget)? {
                    table.row([
                        centers.name().to_owned(),
                        n.to_string(),
                        method.name().to_owned(),
                        run.survivors.to_string(),
                        run.engine.to_owned(),
                        format_us(run.times.median()),
                        format_us(run.device.median()),
                    ]);
                }
            }
        }
    }
    bench.folder.table("merging", &table)
}
