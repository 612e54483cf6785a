// SPDX-License-Identifier: MIT OR Apache-2.0
//! Large frames in tiles through one model, beside the model alone.

use anyhow::Result;
use gstonnxruntime::inference::CudaGraph;
use gstonnxruntime::inference::provider::Provider;

use super::{Bench, Section, format_us};
use crate::chain::{Chain, Inputs, model_alone};
use crate::report::Table;

pub const SECTION: Section = Section {
    name: "tiles",
    about: "frames of 3840x2160 in 35 tiles and the whole frame, through ortinference and nmsfilter",
    run,
};

/// Width and height of the frames.
const SIZE: (u32, u32) = (3840, 2160);
/// Regions per frame: seven columns and five rows of tiles of the model's input, 640x480, and the whole frame.
const REGIONS: usize = 36;
/// A row of the table.
struct Case {
    streams: usize,
    batch: usize,
    /// Frames per second of a live source.
    live: Option<u32>,
}

impl Case {
    const fn new(streams: usize, batch: usize, live: Option<u32>) -> Self {
        Self { streams, batch, live }
    }
}

/// All batches are full.
const CASES: &[Case] = &[
    Case::new(1, 12, None),
    Case::new(1, 36, None),
    Case::new(1, 36, Some(30)),
    Case::new(8, 36, None),
    Case::new(8, 36, Some(20)),
];

fn run(bench: &mut Bench) -> Result<()> {
    let Some(inputs) = Inputs::from_environment() else {
        return Ok(());
    };
    if bench.engines.cuda().is_none() {
        println!("SKIPPED: a frame takes seconds without a GPU");
        return Ok(());
    }
    let time = bench.budget * 10;
    let columns = [
        "streams",
        "frames/s",
        "missed",
        "tiles/s",
        "of the model",
        "p50 us",
        "p99 us",
        "batch",
        "cores",
    ];
    let mut table = Table::new(columns);
    for Case { streams, batch, live } in CASES {
        let alone = model_alone(&inputs.model, Provider::Cuda, *batch, CudaGraph::On, time);
        let properties = format!(
            "regions=tiles tile-overlap=0.1 batch-size={batch} {}",
            if *streams > 1 { "model-instance-id=tiles" } else { "" }
        );
        let chain = Chain {
            streams: *streams,
            inputs: &inputs,
            size: Some(SIZE),
            live: *live,
            properties: &properties,
        };
        let rate = live.map_or_else(String::new, |rate| format!(", live at {rate}"));
        let name = format!("{streams}, batches of {batch}{rate}");
        match (alone, chain.run(time)) {
            (Ok(alone), Ok(found)) => {
                let tiles = found.rate * REGIONS as f64;
                table.row([
                    name,
                    format!("{:.1}", found.rate),
                    live.map_or_else(String::new, |_| found.missed.to_string()),
                    format!("{tiles:.0}"),
                    format!("{:.2}", tiles / alone),
                    format_us(found.latency.quantile(0.5)),
                    format_us(found.latency.quantile(0.99)),
                    format!("{:.1}", found.batch),
                    format!("{:.2}", found.cores),
                ]);
            }
            (Err(error), _) | (_, Err(error)) => println!("SKIPPED: {name}: {error:#}"),
        }
    }
    bench.folder.table("tiles", &table)
}
