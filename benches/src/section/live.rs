// SPDX-License-Identifier: MIT OR Apache-2.0
//! Live cameras through one model: the delay from frame to metadata, and frames that are missed.

use anyhow::Result;

use super::{Bench, Section, format_us};
use crate::chain::{Chain, Inputs};
use crate::report::Table;

pub const SECTION: Section = Section {
    name: "live",
    about: "live sources of 30 frames per second, which share one model, through ortinference and nmsfilter",
    run,
};

/// Numbers of streams.
const STREAMS: &[usize] = &[1, 4, 16];
/// Frames per second of a stream.
const RATE: u32 = 30;

fn run(bench: &mut Bench) -> Result<()> {
    let Some(inputs) = Inputs::from_environment() else {
        return Ok(());
    };
    let time = bench.budget * 40;
    let columns = [
        "streams",
        "frames/s",
        "missed",
        "p50 us",
        "p99 us",
        "batch",
        "cores",
        "of a core per stream",
    ];
    let mut table = Table::new(columns);
    let streams = if bench.engines.cuda().is_some() { STREAMS } else { &STREAMS[..1] };
    for &streams in streams {
        // A frame waits at most this long for frames of the other streams.
        let shared = format!("model-instance-id=live batch-size={streams} batch-timeout=5");
        let properties = if streams > 1 { &*shared } else { "" };
        let chain = Chain { streams, inputs: &inputs, size: None, live: Some(RATE), properties };
        match chain.run(time) {
            Ok(found) => table.row([
                streams.to_string(),
                format!("{:.1}", found.rate),
                found.missed.to_string(),
                format_us(found.latency.quantile(0.5)),
                format_us(found.latency.quantile(0.99)),
                format!("{:.1}", found.batch),
                format!("{:.2}", found.cores),
                format!("{:.3}", found.cores / streams as f64),
            ]),
            Err(error) => println!("SKIPPED: {streams} streams: {error:#}"),
        }
    }
    bench.folder.table("live", &table)
}
