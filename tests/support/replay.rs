//! Tensors written to files, replayed by `tensorreplay` and decoded by `nmsfilter` in a pipeline.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use gst::prelude::*;
use gstnmsfilter::engine::Params;
use gstnmsfilter::head::BoxFormat;

use super::pipeline::{parse, run};

/// How many rows became candidates, and how many of these survived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counts {
    pub candidates: u64,
    pub survivors: u64,
}

/// Runs one frame of 4096x4096 with recordings through `nmsfilter`, set up by `set_up`.
pub fn frame(recordings: &[String], set_up: impl FnOnce(&gst::Element)) -> Counts {
    let replays: String =
        recordings.iter().map(|recording| format!("! tensorreplay {recording} ")).collect();
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=1 ! video/x-raw,format=GRAY8,width=4096,height=4096
           {replays} ! nmsfilter name=nms ! fakesink"
    ));
    set_up(&pipeline.by_name("nms").unwrap());
    let ended = run(&pipeline);
    assert_eq!(ended.error, None, "{recordings:?}");
    let count = |name| ended.stats[0].get::<u64>(name).unwrap();
    assert_eq!(count("rejected"), 0, "nothing is wrong with these inputs: {recordings:?}");
    Counts { candidates: count("candidates"), survivors: count("survivors") }
}

/// Gives `nmsfilter` the parameters of an engine.
pub fn set_up(nms: &gst::Element, params: &Params, format: BoxFormat) {
    nms.set_property("method", params.method);
    nms.set_property("overlap", params.overlap);
    nms.set_property("iou-threshold", params.iou_threshold);
    nms.set_property("threshold-inclusive", params.threshold_inclusive);
    nms.set_property("pixel-offset", params.pixel_offset as u32);
    nms.set_property("class-agnostic", params.class_agnostic);
    nms.set_property("score-threshold", params.thresholds.default);
    nms.set_property("max-detections", u32::try_from(params.max_detections).unwrap_or(0));
    nms.set_property("box-format", format);
}

/// A recording that is removed in the end.
pub struct File(PathBuf);

impl File {
    /// Writes `bytes`; the ending says how they are read.
    pub fn new(ending: &str, bytes: &[u8]) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::SeqCst);
        let name = format!("recording-{}-{count}.{ending}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }

    pub fn location(&self) -> String {
        format!("location={}", self.0.display())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Boxes and their scores by class, through two files.
pub fn boxes(boxes: &[f32], scores: &[f32], format: BoxFormat, params: &Params) -> Counts {
    let numbers = format.components();
    let rows = boxes.len() / numbers;
    let classes = scores.len().checked_div(rows).unwrap_or(1);
    let files =
        [("boxes", numbers, boxes), ("scores", classes, scores)].map(|(id, columns, all)| {
            let file = File::new("raw", bytemuck::cast_slice(all));
            let recording = format!("{} shape={rows}x{columns} tensor-id={id}", file.location());
            (file, recording)
        });
    let recordings = files.each_ref().map(|(_, recording)| recording.clone());
    frame(&recordings, |nms| set_up(nms, params, format))
}
