// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pipelines with batches: `videotestsrc`, a probe that attaches batches as nvstreammux and nvinfer
//! do, `nmsfilter`, and a probe that reads the batch afterwards.

use std::sync::atomic::{AtomicUsize, Ordering};

use gst::prelude::*;

use crate::batch::{Producer, Scene, Sizes};
use crate::object::Object;
use crate::standin::{Batch, Counts, FrameState};
use crate::support::pipeline::{Ended, Region, intercept, parse, regions, run, watch};

/// The content of a buffer that leaves the element.
#[derive(Clone, Debug)]
pub struct Seen {
    pub frames: Vec<(FrameState, Vec<Object>)>,
    pub regions: Vec<Region>,
}

impl Seen {
    pub fn read(buffer: &gst::BufferRef) -> Self {
        let frames = Batch::find(buffer)
            .map(|batch| batch.frames().map(|frame| (frame.state(), frame.objects())).collect());
        Self { frames: frames.unwrap_or_default(), regions: regions(buffer) }
    }
}

/// The end of a pipeline, and the buffers that left the element.
#[derive(Debug)]
pub struct Ran {
    pub ended: Ended,
    pub seen: Vec<Seen>,
}

impl Ran {
    /// Asserts that there was neither an error nor a warning.
    pub fn well(self) -> Self {
        assert_eq!(self.ended.error, None);
        assert_eq!(self.ended.warnings, [""; 0]);
        self
    }

    /// Asserts that there was no error, and only the warning that no buffer had tensors.
    pub fn without_tensors(self) -> Self {
        assert_eq!(self.ended.error, None);
        let [warning] = &*self.ended.warnings else { panic!("{:?}", self.ended.warnings) };
        assert!(warning.starts_with("no buffer of the stream carried tensors, so "), "{warning}");
        self
    }

    /// Returns a number from the property `stats`.
    pub fn stat(&self, name: &str) -> u64 {
        self.ended.stats.last().expect("stats were posted").get(name).unwrap()
    }
}

/// Caps of the frames. Their size differs from the sizes in all scenes.
pub const CAPS: &str = "video/x-raw,format=GRAY8,width=96,height=64";

/// Caps like [`CAPS`], for buffers in NVMM memory.
pub const NVMM_CAPS: &str =
    "video/x-raw(memory:NVMM),format=NV12,width=96,height=64,framerate=30/1";

/// Returns a source named `in` for `buffers` buffers with these caps. For NVMM caps, the buffers
/// are empty until the test adds memory.
pub fn source(buffers: usize, caps: &str) -> String {
    if caps.contains("memory:NVMM") {
        format!("fakesrc name=in num-buffers={buffers} sizetype=empty format=time ! {caps}")
    } else {
        format!("videotestsrc name=in num-buffers={buffers} ! {caps}")
    }
}

/// Returns the description of a pipeline with `buffers` buffers and these properties of
/// `nmsfilter`.
pub fn description(buffers: usize, caps: &str, properties: &str) -> String {
    format!("{} ! nmsfilter name=nms {properties} ! fakesink", source(buffers, caps))
}

/// Runs `buffers` buffers, to which `prepare` attaches a batch. Fails if anything is not released
/// in the end.
pub fn with(
    properties: &str,
    buffers: usize,
    prepare: impl Fn(&mut gst::BufferRef) + Send + Sync + 'static,
) -> Ran {
    with_caps(CAPS, properties, buffers, prepare)
}

/// Runs buffers like [`with`], with other caps.
pub fn with_caps(
    caps: &str,
    properties: &str,
    buffers: usize,
    prepare: impl Fn(&mut gst::BufferRef) + Send + Sync + 'static,
) -> Ran {
    let pipeline = parse(&description(buffers, caps, properties));
    intercept(&pipeline, "in", prepare);
    finish(pipeline)
}

/// Runs the buffers of `source` in a pipeline that copies them after `prepare`: the element `copied` if `before` is true,
/// otherwise `nmsfilter`, which is behind a tee.
pub fn copied(
    source: &str,
    properties: &str,
    before: bool,
    prepare: impl Fn(&mut gst::BufferRef) + Send + Sync + 'static,
) -> Ran {
    let pipeline = parse(&format!(
        "{source} ! identity name=copied ! tee name=t
           t. ! queue max-size-buffers=2 ! nmsfilter name=nms {properties} ! fakesink
           t. ! queue max-size-buffers=2 ! fakesink"
    ));
    intercept(&pipeline, "in", prepare);
    if before {
        let pad = pipeline.by_name("copied").unwrap().static_pad("src").unwrap();
        pad.add_probe(gst::PadProbeType::BUFFER, |_, info| {
            let buffer = info.buffer_mut().unwrap();
            *buffer = buffer.copy();
            gst::PadProbeReturn::Ok
        });
    }
    finish(pipeline)
}

/// Runs the pipeline, and reads the buffers that leave `nmsfilter`. Fails if anything is not released in the end.
fn finish(pipeline: gst::Pipeline) -> Ran {
    let seen = watch(&pipeline, "nms", Seen::read);
    let ended = run(&pipeline);
    drop(pipeline);
    Counts::now().assert_nothing_left();
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    Ran { ended, seen }
}

/// Runs a pipeline with two batches of each scene. The decoder and the score threshold are the
/// first scene's, and the letterbox is `none` unless `properties` set it.
pub fn scenes(scenes: &[Scene], properties: &str) -> Ran {
    let first = &scenes[0];
    let mut all = format!(
        "decoder={} score-threshold={}",
        first.models[0].format.decoder(),
        first.score_threshold
    );
    if !properties.contains("letterbox=") {
        all += " letterbox=none";
    }
    let producers: Vec<Producer> = scenes.iter().map(|scene| Producer::new(scene, 6)).collect();
    let next = AtomicUsize::new(0);
    let caps = if first.sizes == Sizes::Metadata { CAPS } else { NVMM_CAPS };
    with_caps(caps, &format!("{all} {properties}"), 2 * scenes.len(), move |buffer| {
        let index = next.fetch_add(1, Ordering::Relaxed) % producers.len();
        producers[index].attach(buffer);
    })
}
