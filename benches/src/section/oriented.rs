// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suppression of oriented boxes, compared with mmcv's algorithm. Out: oriented.csv and the lists
//! of boxes, which `peers/oriented.py` measures with OpenCV.

use anyhow::Result;
use nmsfilter_core::engine::{Method, Overlap, Params};

use super::growth::exponent;
use super::{Bench, Section, format_us};
use crate::measure::{Times, measure};
use crate::report::Table;
use crate::rotated_nms;
use crate::workload::{OrientedRow, Workload, greedy_params, oriented_rows};

pub const SECTION: Section = Section {
    name: "oriented",
    about: "oriented boxes: by polygons and by the probabilistic IoU, beside mmcv's algorithm",
    run,
};

const SIZES: [usize; 4] = [200, 1_000, 3_000, 10_000];

fn rules() -> [(&'static str, Params); 4] {
    let greedy = greedy_params(0.45, 0.25);
    let prob_iou = Params { overlap: Overlap::ProbIou, ..greedy.clone() };
    let map_reduce = Params { method: Method::MapReduce, ..prob_iou.clone() };
    let none = Params { method: Method::None, ..greedy.clone() };
    [
        ("polygons", greedy),
        ("prob-iou", prob_iou),
        ("prob-iou, map-reduce", map_reduce),
        ("decode only", none),
    ]
}

fn run(bench: &mut Bench) -> Result<()> {
    let columns = ["rule", "n", "survivors", "program", "median us", "p10 us", "p90 us"];
    let mut table = Table::new(columns);
    let mut series: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for (rule, params) in rules() {
        for n in SIZES {
            let rows = oriented_rows(n);
            let workload = Workload::oriented(rule, &rows, params.clone());
            let mut programs: Vec<(&str, usize, Times)> = Vec::new();
            for run in bench.engines.run(&workload, bench.budget)? {
                programs.push((run.engine, run.survivors, run.times));
            }
            if rule == "polygons" {
                write_list(bench, n, &rows)?;
                let boxes: Vec<[f32; 5]> = rows.iter().map(OrientedRow::numbers).collect();
                let scores: Vec<f32> = rows.iter().map(|row| row.score).collect();
                let suppress = || rotated_nms::suppress(&boxes, &scores, params.iou_threshold);
                let survivors = suppress().len();
                let times = measure(bench.budget, || drop(std::hint::black_box(suppress())));
                programs.push(("mmcv's algorithm", survivors, times));
            }
            for (program, survivors, times) in programs {
                let name = format!("{rule}, {program}");
                match series.iter_mut().find(|(other, _)| *other == name) {
                    Some((_, points)) => points.push((n as f64, times.median())),
                    None => series.push((name, vec![(n as f64, times.median())])),
                }
                let counts = [n.to_string(), survivors.to_string(), program.to_owned()];
                let times = [0.5, 0.1, 0.9].map(|share| format_us(times.quantile(share)));
                table.row([rule.to_owned()].into_iter().chain(counts).chain(times));
            }
        }
    }
    bench.folder.table("oriented", &table)?;
    let mut fitted = Table::new(["series", "exponent"]);
    for (name, points) in series {
        fitted.row([name, format!("{:.2}", exponent(&points))]);
    }
    bench.folder.table("oriented-exponents", &fitted)
}

/// Writes the boxes that other programs must suppress.
fn write_list(bench: &Bench, n: usize, rows: &[OrientedRow]) -> Result<()> {
    let mut list = Table::new(["x", "y", "width", "height", "angle", "score"]);
    for row in rows {
        list.row(row.numbers().into_iter().chain([row.score]));
    }
    bench.folder.csv(&format!("oriented-boxes-{n}"), &list)
}
