//! GStreamer's own decoders on the same tensors, by its own latency tracer.

use std::path::Path;

use anyhow::{Context, Result};
use gst::glib;
use gst::prelude::*;
use gst_analytics::{AnalyticsMetaRefExt, Tensor, TensorDataType, TensorDimOrder, TensorMeta};
use gstnmsfilter::tensor::attached::NewTensor;

use super::{Bench, Section, shown};
use crate::measure::Times;
use crate::report::Table;
use crate::workload::{Workload, apart, rules, windows};

pub const SECTION: Section = Section {
    name: "stock",
    about: "yolov8tensordec on 84x8400, by the element latency tracer",
    run,
};

const FRAMES: usize = 100;

/// The tracer writes to this file; it must be asked for before GStreamer starts.
pub const TRACE: &str = "latency-trace.log";

fn run(bench: &mut Bench) -> Result<()> {
    if gst::ElementFactory::find("yolov8tensordec").is_none() {
        println!("SKIPPED: this GStreamer has no yolov8tensordec");
        return Ok(());
    }
    let windows = windows()?;
    let apart = apart();
    let decoder = "yolov8tensordec box-confidence-threshold=0.25 class-confidence-threshold=0.25 \
                   iou-threshold=0.45 max-detections=100000";
    let ours = "nmsfilter backend=cpu class-agnostic=true";
    let elements = [
        ("yolov8tensordec", decoder.to_owned(), FRAMES),
        ("nmsfilter, analytics", format!("{ours} attach=analytics"), FRAMES),
        ("nmsfilter, roi and analytics", ours.to_owned(), FRAMES),
    ];
    let columns = ["candidates", "element", "objects", "median us", "p10 us", "p90 us", "ratio"];
    let mut table = Table::new(columns);
    for windows in [&[][..], &windows[..360], &windows[..698], &windows, &apart] {
        let workload = Workload::yolov8("yolov8", windows, rules(0.45, 0.25));
        let tensor = workload.new_tensors().remove(0);
        let mut first = 0.0;
        for (i, (name, description, frames)) in elements.iter().enumerate() {
            let frames = if windows.len() > 8000 { frames / 20 } else { *frames };
            let trace = bench.folder.file(TRACE);
            let (objects, times) = traced(description, &tensor, frames, &trace)?;
            if i == 0 {
                first = times.median();
            }
            let ratio = format!("{:.1}", first / times.median());
            let times = [0.5, 0.1, 0.9].map(|share| shown(times.quantile(share)));
            let cells = [windows.len().to_string(), (*name).to_owned(), objects.to_string()];
            table.row(cells.into_iter().chain(times).chain([ratio]));
        }
    }
    bench.folder.table("stock", &table)
}

/// The objects on the last buffer, and the element's latencies but for the first few.
fn traced(
    description: &str,
    tensor: &NewTensor,
    frames: usize,
    trace: &Path,
) -> Result<(usize, Times)> {
    let pipeline = gst::parse::launch(&format!(
        "appsrc name=source format=time ! {description} name=traced ! appsink name=sink sync=false"
    ))?;
    let pipeline = pipeline.downcast::<gst::Pipeline>().ok().context("it is a pipeline")?;
    let source = pipeline.by_name("source").and_downcast::<gst_app::AppSrc>().context("source")?;
    let sink = pipeline.by_name("sink").and_downcast::<gst_app::AppSink>().context("sink")?;
    let caps = "video/x-raw,format=GRAY8,width=1920,height=1080,framerate=50/1,\
                tensors=(structure)\"tensorgroups,yolo-v8-out=(/uniquelist){(GstCaps)[\
                tensor/strided,tensor-id=yolo-v8-out,dims=<1,84,8400>,dims-order=col-major,\
                type=float32]};\"";
    source.set_caps(Some(&caps.parse::<gst::Caps>().context("the tensors' caps")?));
    let before = std::fs::read_to_string(trace).map_or(0, |text| text.len());
    pipeline.set_state(gst::State::Playing)?;
    let mut objects = 0;
    for i in 0..frames {
        source.push_buffer(frame(tensor, i))?;
        let sample = sink.pull_sample().context("the element gives no frame")?;
        objects = count(sample.buffer().context("a frame")?);
    }
    source.end_of_stream()?;
    pipeline.set_state(gst::State::Null)?;
    let text = std::fs::read_to_string(trace).context("the tracer's file")?;
    let times = text[before..].lines().filter_map(|line| {
        let ours = line.contains("element-latency,") && line.contains("element=(string)traced,");
        let time = line.split("time=(guint64)").nth(1).filter(|_| ours)?;
        Some(time.split(',').next()?.parse::<f64>().ok()? / 1e3)
    });
    let times: Vec<f64> = times.skip(frames / 10).collect();
    anyhow::ensure!(!times.is_empty(), "the tracer has written nothing about the element");
    Ok((objects, Times::new(times)))
}

fn frame(tensor: &NewTensor, number: usize) -> gst::Buffer {
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
    TensorMeta::add(writable).set([stock].into());
    buffer
}

fn count(buffer: &gst::BufferRef) -> usize {
    let meta = buffer.meta::<gst_analytics::AnalyticsRelationMeta>();
    meta.map_or(0, |meta| meta.iter::<gst_analytics::AnalyticsODMtd>().count())
}
