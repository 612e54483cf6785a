// SPDX-License-Identifier: MIT OR Apache-2.0
//! GStreamer's own tensor decoders on equal tensors, measured with GStreamer's latency tracer.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use gst::glib;
use gst::prelude::*;
use gst_newer::{Tensor, TensorDataType, TensorDimOrder, TensorMeta};
use gstnmsfilter::input::custom_meta::NewTensor;

use super::{Bench, Section, format_us};
use crate::measure::Times;
use crate::report::Table;
use crate::workload::{Workload, data, disjoint_windows, greedy_params, windows};

pub const SECTION: Section = Section {
    name: "stock",
    about: "GStreamer's own tensor decoders, by its element latency tracer",
    run,
};

const FRAMES: usize = 100;

/// Output file of the tracer, which must be enabled before GStreamer is initialized.
pub const TRACE_FILE: &str = "latency-trace.log";

fn run(bench: &mut Bench) -> Result<()> {
    if gst::ElementFactory::find("yolov8tensordec").is_none() {
        println!("SKIPPED: this GStreamer has no yolov8tensordec");
        return Ok(());
    }
    let windows = windows()?;
    let disjoint = disjoint_windows();
    let decoder = "yolov8tensordec box-confidence-threshold=0.25 class-confidence-threshold=0.25 \
                   iou-threshold=0.45 max-detections=100000";
    let ours = "nmsfilter backend=cpu class-agnostic=true max-detections=0";
    let columns = ["input", "element", "objects", "median us", "p10 us", "p90 us", "ratio"];
    let mut table = Table::new(columns);
    let trace = bench.folder.file(TRACE_FILE);
    let mut compare = |input: String, elements: &[(&str, String, usize)], source: Source<'_>| {
        let mut first = None;
        for (name, description, frames) in elements {
            let (objects, times) = measure_element(description, source, *frames, &trace)?;
            let first = *first.get_or_insert(times.median());
            let ratio = format!("{:.1}", first / times.median());
            let times = [0.5, 0.1, 0.9].map(|share| format_us(times.quantile(share)));
            let cells = [input.clone(), (*name).to_owned(), objects.to_string()];
            table.row(cells.into_iter().chain(times).chain([ratio]));
        }
        anyhow::Ok(())
    };
    for windows in [&[][..], &windows[..360], &windows[..698], &windows, &disjoint] {
        let tensor =
            Workload::yolov8("yolov8", windows, greedy_params(0.45, 0.25)).new_tensors().remove(0);
        // yolov8tensordec needs several seconds for a frame with 8400 objects.
        let decoder_frames = if windows.len() > 8000 { 5 } else { FRAMES };
        let elements = [
            ("yolov8tensordec", decoder.to_owned(), decoder_frames),
            ("nmsfilter, analytics", format!("{ours} attach=analytics"), FRAMES),
            ("nmsfilter, roi and analytics", ours.to_owned(), FRAMES),
        ];
        let input = format!("84x8400, {} candidates", windows.len());
        compare(input, &elements, Source::Tensor(&tensor))?;
    }
    match ultraface_source() {
        Some(source) => {
            for threshold in [0.25, 0.05] {
                let theirs = format!(
                    "ultralightfacedetectortensordec score-threshold={threshold} iou-threshold=0.45"
                );
                let ours = format!("{ours} score-threshold={threshold} iou-threshold=0.45");
                let elements = [
                    ("ultralightfacedetectortensordec", theirs, 10),
                    ("nmsfilter, analytics", format!("{ours} attach=analytics"), 10),
                    ("nmsfilter, roi and analytics", ours, 10),
                ];
                let input = format!("faces over {threshold}");
                compare(input, &elements, Source::Elements(&source))?;
            }
        }
        None => println!("SKIPPED: faces need onnxinference, the recorded model and picture"),
    }
    bench.folder.table("stock", &table)
}

/// A source of frames with tensors.
#[derive(Clone, Copy)]
enum Source<'a> {
    /// An appsrc, with this tensor on all buffers.
    Tensor(&'a NewTensor),
    /// Elements that run inference.
    Elements(&'a str),
}

/// Returns a source that repeats a picture of many faces with the output of UltraFace RFB-640.
/// Returns `None` if a file or an element is missing.
fn ultraface_source() -> Option<String> {
    let (picture, model) =
        (data("data/images/crowd_selfie.jpg")?, data("data/models/version-RFB-640.onnx")?);
    gst::ElementFactory::find("onnxinference")?;
    Some(format!(
        "filesrc location={} ! jpegdec ! videoconvert ! videoscale
           ! video/x-raw,format=RGB,width=640,height=480,pixel-aspect-ratio=1/1 ! imagefreeze
           ! onnxinference model-file={}",
        picture.display(),
        model.display()
    ))
}

/// Returns the number of objects on the last buffer, and the element's latencies. The first tenth
/// of the frames is ignored.
fn measure_element(
    description: &str,
    source: Source<'_>,
    frames: usize,
    trace: &Path,
) -> Result<(usize, Times)> {
    let elements = match source {
        Source::Tensor(_) => "appsrc name=source format=time",
        Source::Elements(elements) => elements,
    };
    let pipeline = gst::parse::launch(&format!(
        "{elements} ! {description} name=traced ! fakesink name=sink sync=false num-buffers={frames}"
    ))?;
    let pipeline = pipeline.downcast::<gst::Pipeline>().ok().context("expected a pipeline")?;
    let objects = Arc::new(AtomicUsize::new(0));
    let pad = pipeline.by_name("sink").and_then(|sink| sink.static_pad("sink")).context("a pad")?;
    pad.add_probe(gst::PadProbeType::BUFFER, {
        let objects = objects.clone();
        move |_, info| {
            objects
                .store(info.buffer().map_or(0, |buffer| count_objects(buffer)), Ordering::SeqCst);
            gst::PadProbeReturn::Ok
        }
    });
    let before = std::fs::read_to_string(trace).map_or(0, |text| text.len());
    if let Source::Tensor(tensor) = source {
        push_frames(&pipeline, tensor, frames)?;
    }
    pipeline.set_state(gst::State::Playing)?;
    let ends = [gst::MessageType::Eos, gst::MessageType::Error];
    let bus = pipeline.bus().context("a pipeline has a bus")?;
    let end = bus.timed_pop_filtered(gst::ClockTime::from_seconds(600), &ends);
    pipeline.set_state(gst::State::Null)?;
    if let Some(gst::MessageView::Error(error)) = end.as_ref().map(|end| end.view()) {
        anyhow::bail!("{} ({:?})", error.error(), error.debug());
    }
    let text = std::fs::read_to_string(trace).context("the tracer's file")?;
    let times = text[before..].lines().filter_map(|line| {
        let ours = line.contains("element-latency,") && line.contains("element=(string)traced,");
        let time = line.split("time=(guint64)").nth(1).filter(|_| ours)?;
        Some(time.split(',').next()?.parse::<f64>().ok()? / 1e3)
    });
    let times: Vec<f64> = times.skip(frames / 10).collect();
    anyhow::ensure!(!times.is_empty(), "the tracer has logged no latency of the element");
    Ok((objects.load(Ordering::SeqCst), Times::new(times)))
}

/// Pushes all frames into the pipeline's `appsrc`.
fn push_frames(pipeline: &gst::Pipeline, tensor: &NewTensor, frames: usize) -> Result<()> {
    let source = pipeline.by_name("source").and_downcast::<gst_app::AppSrc>().context("source")?;
    let caps = "video/x-raw,format=GRAY8,width=1920,height=1080,framerate=50/1,\
                tensors=(structure)\"tensorgroups,yolo-v8-out=(/uniquelist){(GstCaps)[\
                tensor/strided,tensor-id=yolo-v8-out,dims=<1,84,8400>,dims-order=col-major,\
                type=float32]};\"";
    source.set_caps(Some(&caps.parse::<gst::Caps>().context("the tensors' caps")?));
    source.set_max_bytes(u64::MAX);
    for number in 0..frames {
        source.push_buffer(frame_with_tensor(tensor, number))?;
    }
    source.end_of_stream()?;
    Ok(())
}

fn frame_with_tensor(tensor: &NewTensor, number: usize) -> gst::Buffer {
    let mut buffer = gst::Buffer::with_size(1920 * 1080).expect("there is memory for a frame");
    let writable = buffer.get_mut().expect("it is new");
    writable.set_pts(gst::ClockTime::from_mseconds(20 * number as u64));
    let stock = Tensor::new_simple(
        glib::Quark::from_str(&tensor.id),
        TensorDataType::Float32,
        tensor.data.clone(),
        TensorDimOrder::ColMajor,
        &tensor.shape,
    );
    TensorMeta::add(writable).expect("the decoders need it").set(vec![stock]);
    buffer
}

fn count_objects(buffer: &gst::BufferRef) -> usize {
    let meta = buffer.meta::<gst_newer::AnalyticsRelationMeta>();
    meta.map_or(0, |meta| meta.iter::<gst_newer::AnalyticsODMtd>().count())
}
