// SPDX-License-Identifier: MIT OR Apache-2.0
//! The whole chain from pictures in host memory through inference and suppression. For comparison,
//! the model alone in this process.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use gst::prelude::*;
use gstonnxruntime::inference::model::Overrides;
use gstonnxruntime::inference::provider::Provider;
use gstonnxruntime::inference::provider_options::ProviderOptions;
use gstonnxruntime::inference::session::ModelSession;
use gstonnxruntime::inference::{CudaGraph, InferenceOptions};
use nmsfilter_core::geometry::Letterbox;

use super::{Bench, Section, format_us};
use crate::measure::Times;
use crate::report::Table;

pub const SECTION: Section = Section {
    name: "chain",
    about: "streams through ortinference and nmsfilter, beside the model alone (NMSFILTER_BENCH_MODEL: another one, \
            NMSFILTER_BENCH_DECODER: properties of nmsfilter for it)",
    run,
};

/// Numbers of streams.
const STREAMS: &[usize] = &[1, 2, 4, 8, 16];
/// Numbers of streams on a machine without a GPU.
const FEW_STREAMS: &[usize] = &[1, 2];

fn run(bench: &mut Bench) -> Result<()> {
    let Some(data) = std::env::var_os("NMSFILTER_TEST_DATA").map(PathBuf::from) else {
        println!("SKIPPED: NMSFILTER_TEST_DATA is not set");
        return Ok(());
    };
    let model = std::env::var_os("NMSFILTER_BENCH_MODEL").map(PathBuf::from);
    let model = model.unwrap_or_else(|| data.join("data/models/version-RFB-640.onnx"));
    let decoder = std::env::var("NMSFILTER_BENCH_DECODER").unwrap_or_default();
    let picture = data.join("data/oscars/oscars.png");
    let time = bench.budget * 10;
    // Latencies are measured from the sink pad of ortinference to the source pad of nmsfilter. The
    // queue between them is full.
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
            match model_alone(&model, provider, batch, graph, time) {
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
            let chain =
                Chain { streams, properties, model: &model, decoder: &decoder, picture: &picture };
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

/// Measures the pictures per second of the model alone, with a constant input.
fn model_alone(
    model: &Path,
    provider: Provider,
    batch: usize,
    cuda_graph: CudaGraph,
    time: Duration,
) -> Result<f64> {
    let options = InferenceOptions {
        instance_id: None,
        library: None,
        model: model.to_owned(),
        overrides: Overrides::default(),
        letterbox: Letterbox::default(),
        labels: None,
        plugin: None,
        provider_options: ProviderOptions::default(),
        threads: None,
        device: 0,
        cuda_graph,
        batch: Some(batch),
        batch_timeout: Duration::ZERO,
    };
    let mut session = ModelSession::open(&options, provider, cuda_graph == CudaGraph::On)?;
    let set = session.new_set()?;
    let mut run = |count: usize| -> Result<()> {
        for index in 0..count {
            session.run(index % session.buffer_count(), &set, &[])?;
        }
        if let Some(ready) = &set.ready {
            ready.synchronize()?;
        }
        Ok(())
    };
    run(10)?;
    let began = Instant::now();
    let mut runs = 0;
    while began.elapsed() < time {
        run(50)?;
        runs += 50;
    }
    Ok((runs * batch) as f64 / began.elapsed().as_secs_f64())
}

/// Pipelines that run in one process.
struct Chain<'c> {
    streams: usize,
    properties: &'c str,
    model: &'c Path,
    /// Properties of `nmsfilter`.
    decoder: &'c str,
    picture: &'c Path,
}

struct Found {
    rate: f64,
    /// Microseconds from the sink pad of `ortinference` to the source pad of `nmsfilter`.
    latency: Times,
    /// Pictures per run of the model.
    batch: f64,
    /// Processor time, divided by wall time.
    cores: f64,
}

/// A pipeline that is stopped when it is dropped.
struct Running(gst::Pipeline);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.set_state(gst::State::Null);
    }
}

/// State that the probes of a stream share.
#[derive(Default)]
struct Passed {
    entered: VecDeque<Instant>,
    /// For each picture that has left: the time when it left, and the microseconds that it took.
    left: Vec<(Instant, f64)>,
}

impl Chain<'_> {
    /// # Errors
    /// Returns an error if a pipeline fails.
    fn run(&self, time: Duration) -> Result<Found> {
        let stream = |index: usize| {
            format!(
                "filesrc location={} ! decodebin ! videoconvert ! video/x-raw,format=I420 ! imagefreeze
                   ! ortinference name=inference{index} model={} {}
                   ! queue max-size-buffers=3 max-size-bytes=0
                   ! nmsfilter name=nms{index} keep-tensors=false {} ! fakesink sync=false async=false ",
                self.picture.display(),
                self.model.display(),
                self.properties,
                self.decoder,
            )
        };
        let description: String = (0..self.streams).map(stream).collect();
        let pipeline = gst::parse::launch(&description)?.downcast::<gst::Pipeline>();
        let pipeline = pipeline.map_err(|_| anyhow!("a pipeline"))?;
        let mut passed = Vec::new();
        for index in 0..self.streams {
            let passed_here = Arc::new(Mutex::new(Passed::default()));
            let pad = |element: &str, pad: &str| {
                let element = pipeline.by_name(&format!("{element}{index}"));
                element
                    .and_then(|element| element.static_pad(pad))
                    .context("the element has the pad")
            };
            let shared = passed_here.clone();
            pad("inference", "sink")?.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
                shared.lock().expect("no panic").entered.push_back(Instant::now());
                gst::PadProbeReturn::Ok
            });
            let shared = passed_here.clone();
            pad("nms", "src")?.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
                let mut passed = shared.lock().expect("no panic");
                let now = Instant::now();
                if let Some(entered) = passed.entered.pop_front() {
                    passed.left.push((now, (now - entered).as_secs_f64() * 1e6));
                }
                gst::PadProbeReturn::Ok
            });
            passed.push(passed_here);
        }
        // The guard stops the pipeline even after an error.
        let pipeline = Running(pipeline);
        let pipeline = &pipeline.0;
        pipeline.set_state(gst::State::Playing)?;
        let bus = pipeline.bus().context("a pipeline has a bus")?;
        let wait = |time: Duration| match bus
            .timed_pop_filtered(gst::ClockTime::try_from(time)?, &[gst::MessageType::Error])
        {
            Some(message) => Err(match message.view() {
                gst::MessageView::Error(error) => anyhow!("{}", error.error()),
                _ => anyhow!("no frame"),
            }),
            None => Ok(()),
        };
        let is_running =
            || passed.iter().all(|stream| stream.lock().expect("no panic").left.len() > 3);
        let opened = Instant::now();
        while !is_running() && opened.elapsed() < Duration::from_secs(60) {
            wait(Duration::from_millis(10))?;
        }
        wait(time / 4)?;
        let (began, processor) = (Instant::now(), processor_time());
        wait(time)?;
        let (ended, used) = (Instant::now(), processor_time() - processor);
        let inference = pipeline.by_name("inference0").context("the element exists")?;
        let stats = inference.property::<gst::Structure>("stats");
        pipeline.set_state(gst::State::Null)?;
        let mut latency = Vec::new();
        for stream in &passed {
            let stream = stream.lock().expect("no panic");
            let in_time = stream.left.iter().filter(|(at, _)| (began..ended).contains(at));
            latency.extend(in_time.map(|(_, us)| *us));
        }
        let seconds = (ended - began).as_secs_f64();
        Ok(Found {
            rate: latency.len() as f64 / seconds,
            latency: Times::new(latency),
            batch: stats.get("batch-mean").unwrap_or(1.0),
            cores: used.as_secs_f64() / seconds,
        })
    }
}

/// Returns the processor time of all threads in this process.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks: u64 = stat.rsplit_once(')').map_or(0, |(_, fields)| {
        let fields: Vec<&str> = fields.split_whitespace().collect();
        fields[11..13].iter().map(|field| field.parse::<u64>().unwrap_or(0)).sum()
    });
    // Linux has 100 ticks per second.
    Duration::from_millis(ticks * 10)
}
