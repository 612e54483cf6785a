// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams of frames in host memory through `ortinference` and `nmsfilter` in this process, and the model alone. In:
//! numbers of streams, sources and properties. Out: frames per second, latencies and processor time.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use gst::prelude::*;
use gstonnxruntime::inference::provider::Provider;
use gstonnxruntime::inference::session::ModelSession;
use gstonnxruntime::inference::{CudaGraph, InferenceOptions};

use crate::measure::Times;

/// The model, its picture and its decoder.
pub struct Inputs {
    /// File of the model.
    pub model: PathBuf,
    /// Properties of `nmsfilter`.
    pub decoder: String,
    /// File of the picture.
    pub picture: PathBuf,
}

impl Inputs {
    /// Reads the environment. Returns `None`, and prints the reason, if there is no test data.
    pub fn from_environment() -> Option<Self> {
        let Some(data) = std::env::var_os("NMSFILTER_TEST_DATA").map(PathBuf::from) else {
            println!("SKIPPED: NMSFILTER_TEST_DATA is not set");
            return None;
        };
        let model = std::env::var_os("NMSFILTER_BENCH_MODEL").map(PathBuf::from);
        Some(Self {
            model: model.unwrap_or_else(|| data.join("data/models/version-RFB-640.onnx")),
            decoder: std::env::var("NMSFILTER_BENCH_DECODER").unwrap_or_default(),
            picture: data.join("data/oscars/oscars.png"),
        })
    }
}

/// Measures the pictures per second of the model alone, with a constant input.
pub fn model_alone(
    model: &Path,
    provider: Provider,
    batch: usize,
    cuda_graph: CudaGraph,
    time: Duration,
) -> Result<f64> {
    let options = InferenceOptions {
        model: model.to_owned(),
        cuda_graph,
        batch: Some(batch),
        ..InferenceOptions::default()
    };
    let mut session = ModelSession::open(&options, provider, cuda_graph == CudaGraph::On)?;
    let mut set = session.new_set()?;
    let mut run = |count: usize| -> Result<()> {
        for index in 0..count {
            session.run(index % session.buffer_count(), &mut set, &[])?;
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

/// Streams that run in one pipeline.
pub struct Chain<'c> {
    /// Number of streams.
    pub streams: usize,
    /// The model, its picture and its decoder.
    pub inputs: &'c Inputs,
    /// Width and height of the frames; `None` for the picture's.
    pub size: Option<(u32, u32)>,
    /// Frames per second of a live source, of which a leaky queue keeps the newest; `None` for frames as fast as the
    /// chain takes them.
    pub live: Option<u32>,
    /// Properties of `ortinference`.
    pub properties: &'c str,
}

/// Measurements of a [`Chain`].
pub struct Found {
    /// Frames per second.
    pub rate: f64,
    /// Microseconds from the source to the source pad of `nmsfilter`.
    pub latency: Times,
    /// Frames that the source has made and that did not reach the end, in the time of the measurement.
    pub missed: usize,
    /// Inputs per run of the model.
    pub batch: f64,
    /// Processor time, divided by wall time.
    pub cores: f64,
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
    /// Timestamps of the frames that the source has made, with the times when it did.
    made: HashMap<gst::ClockTime, Instant>,
    /// For each frame that has left: its timestamp, and the time when it left.
    left: Vec<(gst::ClockTime, Instant)>,
}

impl Chain<'_> {
    /// Runs the streams for `time` after a warm-up.
    ///
    /// # Errors
    /// Returns an error if a pipeline fails.
    pub fn run(&self, time: Duration) -> Result<Found> {
        let Inputs { model, decoder, picture } = self.inputs;
        let size = self.size.map_or_else(String::new, |(width, height)| {
            format!(" ! videoscale ! video/x-raw,width={width},height={height}")
        });
        let (is_live, queue) = match self.live {
            Some(rate) => (
                format!("is-live=true ! video/x-raw,framerate={rate}/1"),
                "! queue leaky=downstream max-size-buffers=1 max-size-bytes=0",
            ),
            None => (String::new(), ""),
        };
        let stream = |index: usize| {
            format!(
                "filesrc location={} ! decodebin ! videoconvert ! video/x-raw,format=I420 {size}
                   ! imagefreeze name=source{index} {is_live} {queue}
                   ! ortinference name=inference{index} model={} {}
                   ! queue max-size-buffers=3 max-size-bytes=0
                   ! nmsfilter name=nms{index} keep-tensors=false {decoder} ! fakesink sync=false async=false ",
                picture.display(),
                model.display(),
                self.properties,
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
            pad("source", "src")?.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
                if let Some(pts) = info.buffer().and_then(|buffer| buffer.pts()) {
                    shared.lock().expect("no panic").made.insert(pts, Instant::now());
                }
                gst::PadProbeReturn::Ok
            });
            let shared = passed_here.clone();
            pad("nms", "src")?.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
                if let Some(pts) = info.buffer().and_then(|buffer| buffer.pts()) {
                    shared.lock().expect("no panic").left.push((pts, Instant::now()));
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
        let (mut latency, mut made, mut left) = (Vec::new(), 0, 0);
        for stream in &passed {
            let stream = stream.lock().expect("no panic");
            let is_measured = |at: &Instant| (began..ended).contains(at);
            made += stream.made.values().filter(|at| is_measured(at)).count();
            for (pts, at) in &stream.left {
                let entered = stream.made[pts];
                left += usize::from(is_measured(&entered));
                if is_measured(at) {
                    latency.push((*at - entered).as_secs_f64() * 1e6);
                }
            }
        }
        let seconds = (ended - began).as_secs_f64();
        Ok(Found {
            rate: latency.len() as f64 / seconds,
            latency: Times::new(latency),
            missed: made - left,
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
