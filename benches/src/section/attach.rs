// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time for attaching regions to a buffer, by kind of metadata. For comparison, the time for
//! decoding a tensor.

use anyhow::Result;
use gst_newer::Capabilities;
use gstnmsfilter::output::{self, DetailedRegions, Kinds, Labels, MaskBuffers, Region};

use super::{Bench, Section, format_us};
use crate::measure::{Times, measure_with};
use crate::report::Table;
use crate::workload::{Workload, greedy_params};

pub const SECTION: Section =
    Section { name: "attach", about: "attaching regions to a buffer, by kind of metadata", run };

const FRAME: [u32; 2] = [1920, 1080];

fn regions(count: u32) -> Vec<Region> {
    let region = |i: u32| {
        let (x1, y1) = ((i % 120) as f32 * 16.0, (i / 120) as f32 * 15.0);
        Region { x1, y1, x2: x1 + 14.0, y2: y1 + 14.0, confidence: 0.5, class: i % 3, parent: None }
    };
    (0..count).map(region).collect()
}

fn run(bench: &mut Bench) -> Result<()> {
    let mut kinds = vec![("roi", Kinds::ROI)];
    let missing = Capabilities::get().relations;
    if let Err(missing) = missing {
        println!("SKIPPED: {missing}");
    } else {
        kinds.extend([("analytics", Kinds::ANALYTICS), ("both", Kinds::ROI | Kinds::ANALYTICS)]);
    }
    let mut table =
        Table::new(["kind", "regions", "median us", "p10 us", "p90 us", "ns per region"]);
    let mut row = |name: &str, count: u32, times: &Times| {
        let each = times.median() * 1000.0 / f64::from(count.max(1));
        let times = [0.5, 0.1, 0.9].map(|share| format_us(times.quantile(share)));
        let cells = [name.to_owned(), count.to_string()].into_iter().chain(times);
        table.row(cells.chain([format!("{each:.0}")]));
    };
    for count in [0, 1, 150, 1000, 8400] {
        let regions = regions(count);
        for (name, kinds) in &kinds {
            let (mut labels, mut masks) = (Labels::default(), MaskBuffers::default());
            let mut failure = None;
            let times = measure_with(bench.budget, gst::Buffer::new, |mut buffer| {
                let writable = buffer.get_mut().expect("the buffer has one reference");
                let regions = DetailedRegions::from(&regions[..]);
                let attached =
                    output::attach(writable, FRAME, regions, &mut labels, &mut masks, *kinds);
                if let Err(error) = attached {
                    failure = Some(error);
                }
                buffer
            });
            if let Some(error) = failure {
                return Err(error.into());
            }
            row(name, count, &times);
        }
    }
    let decode = Workload::yolov8("yolov8", &[], greedy_params(0.45, 0.25));
    let runs = bench.engines.run(&decode, bench.budget)?;
    row("for comparison: decode of 84x8400 on the CPU", 0, &runs[0].times);
    bench.folder.table("attach", &table)
}
