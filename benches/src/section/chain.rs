// SPDX-License-Identifier: MIT OR Apache-2.0
//! The whole chain from pictures in host memory through inference and suppression. For comparison,
//! the model alone in this process.

use anyhow::Result;
use gstonnxruntime::inference::CudaGraph;
use gstonnxruntime::inference::provider::Provider;

use super::{Bench, Section, format_us};
use crate::chain::{Chain, Inputs, model_alone};
use crate::report::Table;

pub const SECTION: Section = Section {
    name: "chain",
    about: "streams through ortinference and nmsfilter, beside the model alone (NMSFILTER_BENCH_MODEL: another one, \
            NMSFILTER_BENCH_DECODER: properties of nmsfilter for it)",
    run,
};

/// Numbers of streams.
const STREAMS: &[usize] = &[1, 4, 16];
/// Numbers of streams on a machine without a GPU.
const FEW_STREAMS: &[usize] = &[1, 2];

fn run(bench: &mut Bench) -> Result<()> {
    let Some(inputs) = Inputs::from_environment() else {
        return Ok(());
    };
    let time = bench.budget * 10;
    // The source is as fast as it can be, so that the queue before nmsfilter is full.
    let columns = ["chain", "pictures/s", "of the model", "p50 us", "p99 us", "batch", "cores"];
    let mut table = Table::new(columns);
    let mut bare = Vec::new();
    let has_gpu = bench.engines.cuda().is_some();
    let provider = if has_gpu { Provider::Cuda } else { Provider::Cpu };
    let graphs: &[CudaGraph] =
        if has_gpu { &[CudaGraph::Off, CudaGraph::On] } else { &[CudaGraph::Off] };
    let counts = if has_gpu { STREAMS } else { FEW_STREAMS };
    for &batch in counts {
        for &graph in graphs {
            let name = match graph {
                CudaGraph::On => format!("model, batch {batch}, graph"),
                _ => format!("model, batch {batch}"),
            };
            match model_alone(&inputs.model, provider, batch, graph, time) {
                Ok(rate) => {
                    bare.push((batch, rate));
                    let rest = std::iter::repeat_n(String::new(), 5);
                    table.row([name, format!("{rate:.0}")].into_iter().chain(rest));
                }
                Err(error) => println!("SKIPPED: {name}: {error:#}"),
            }
        }
    }
    let best = |batch: usize| {
        let rates = bare.iter().filter(|(size, _)| *size == batch).map(|(_, rate)| *rate);
        rates.fold(0.0, f64::max)
    };
    for &streams in counts {
        let shared = format!("model-instance-id=chain batch-size={streams}");
        let mut chains = vec![("", "cuda-graph=auto", 1)];
        if has_gpu {
            chains.push((", no graph", "cuda-graph=off", 1));
        }
        if streams > 1 {
            chains.push((", batches", &*shared, streams));
        }
        for (name, properties, batch) in chains {
            let name = format!("{streams} streams{name}");
            let chain = Chain { streams, inputs: &inputs, size: None, live: None, properties };
            match chain.run(time) {
                Ok(found) => table.row([
                    name,
                    format!("{:.0}", found.rate),
                    format!("{:.2}", found.rate / best(batch)),
                    format_us(found.latency.quantile(0.5)),
                    format_us(found.latency.quantile(0.99)),
                    format!("{:.1}", found.batch),
                    format!("{:.2}", found.cores),
                ]),
                Err(error) => println!("SKIPPED: {name}: {error:#}"),
            }
        }
    }
    bench.folder.table("chain", &table)
}
