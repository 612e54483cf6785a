// SPDX-License-Identifier: MIT OR Apache-2.0
//! The demonstration: a crowd with known people passes through `nmsfilter`, and the detections are
//! compared with the true positions.
//!
//! The program writes `out/crowd.png` (raw windows on the left, survivors on the right) and
//! `out/crowd.avi`. It prints how many people are found, missed and found twice, and the time per
//! frame. It is also an example of an application that embeds the plugin: it registers the
//! elements, builds a pipeline, and reads the regions in a pad probe.

mod score;

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use gst::prelude::*;
use gst_video::VideoRegionOfInterestMeta;

use score::{Region, Score};

const FRAMES: u32 = 100;
/// Number of the frame that is saved as a picture.
const PICTURED: u32 = FRAMES / 2;
const OUT: &str = "out";

fn main() -> Result<(), Box<dyn Error>> {
    gst::init()?;
    gstnmsfilter::plugin_register_static()?;
    gstnmsfilterdemo::plugin_register_static()?;
    std::fs::create_dir_all(OUT)?;

    // Both halves show the middle of one frame.
    let pipeline = gst::parse::launch(&format!(
        "compositor name=halves sink_1::xpos=960 ! videoconvert ! tee name=out
           out. ! queue ! videoconvert ! video/x-raw,format=I420 ! jpegenc quality=75 ! avimux ! filesink location={OUT}/crowd.avi
           out. ! queue ! videoconvert ! video/x-raw,format=RGB ! appsink name=pictures sync=false emit-signals=true
         crowdtestsrc truth=true num-buffers={FRAMES} ! tee name=crowd
           crowd. ! queue ! nmsfilter name=raw method=none max-detections=0 ! roioverlay labels=never
             ! videocrop left=480 right=480 ! halves.sink_0
           crowd. ! queue ! nmsfilter name=nms ! roioverlay
             ! videocrop left=480 right=480 ! halves.sink_1"
    ))?
    .downcast::<gst::Pipeline>()
    .expect("several elements make a pipeline");

    let total = Arc::new(Mutex::new(Score::default()));
    probe(&pipeline, "nms", {
        let total = total.clone();
        move |truth, found| {
            let mut total = total.lock().expect("no probe panics");
            total.add(&truth, &found);
            if total.frames % 10 == 0 {
                eprintln!("  frame {:3} of {FRAMES}", total.frames);
            }
        }
    });
    probe(&pipeline, "raw", |_, _| {});
    save_picture(&pipeline);

    println!("A crowd of 1920x1080 at 50 frames a second through nmsfilter:");
    pipeline.set_state(gst::State::Playing)?;
    let bus = pipeline.bus().expect("a pipeline has a bus");
    for message in bus.iter_timed(gst::ClockTime::NONE) {
        match message.view() {
            gst::MessageView::Eos(_) => break,
            gst::MessageView::Error(error) => {
                pipeline.set_state(gst::State::Null)?;
                return Err(format!("{} ({:?})", error.error(), error.debug()).into());
            }
            _ => {}
        }
    }
    let nms = pipeline.by_name("nms").expect("the pipeline names it");
    let stats = nms.property::<gst::Structure>("stats");
    pipeline.set_state(gst::State::Null)?;

    let total = total.lock().expect("no probe panics");
    let milliseconds = |name: &str| stats.get::<u64>(name).map(|ns| ns as f64 / 1e6);
    let mut out = std::io::stdout().lock();
    writeln!(out, "people present   {:6}", total.present)?;
    writeln!(out, "       found     {:6}  {:.2} %", total.found, total.percent(total.found))?;
    writeln!(out, "       missed    {:6}  {:.2} %", total.missed(), total.percent(total.missed()))?;
    writeln!(
        out,
        "       duplicated{:6}  {:.2} %",
        total.duplicated,
        total.percent(total.duplicated)
    )?;
    writeln!(out, "false windows    {:6}", total.unmatched)?;
    writeln!(
        out,
        "per frame: {:.0} raw windows, {:.0} survivors, {:.3} ms in nmsfilter (99 %: {:.3} ms), engine {}",
        stats.get::<u64>("candidates")? as f64 / f64::from(FRAMES),
        stats.get::<u64>("survivors")? as f64 / f64::from(FRAMES),
        milliseconds("time-mean")?,
        milliseconds("time-p99")?,
        stats.get::<String>("engine")?,
    )?;
    writeln!(out, "pictures: {OUT}/crowd.png, {OUT}/crowd.avi")?;
    Ok(())
}

/// Calls `each` with the true and the detected regions of every frame that leaves `element`.
/// Removes the true regions from the buffer, so that they are not drawn.
fn probe(
    pipeline: &gst::Pipeline,
    element: &str,
    each: impl FnMut(Vec<Region>, Vec<Region>) + Send + Sync + 'static,
) {
    let element = pipeline.by_name(element).expect("the pipeline names it");
    let pad = element.static_pad("src").expect("a filter has a source pad");
    let each = Mutex::new(each);
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let Some(buffer) = info.buffer_mut() else {
            return gst::PadProbeReturn::Ok;
        };
        let (mut truth, mut found) = (Vec::new(), Vec::new());
        for region in buffer.iter_meta::<VideoRegionOfInterestMeta>() {
            let is_truth = region.roi_type() == "truth";
            let (x, y, w, h) = region.rect();
            let list = if is_truth { &mut truth } else { &mut found };
            list.push(Region { x1: x, y1: y, x2: x + w, y2: y + h });
        }
        (each.lock().expect("no probe panics"))(truth, found);

        buffer.make_mut().foreach_meta_mut(|mut meta| {
            let is_truth = meta
                .downcast_ref::<VideoRegionOfInterestMeta>()
                .is_some_and(|region| region.roi_type() == "truth");
            std::ops::ControlFlow::Continue(if is_truth {
                gst::buffer::BufferMetaForeachAction::Remove
            } else {
                gst::buffer::BufferMetaForeachAction::Keep
            })
        });
        gst::PadProbeReturn::Ok
    });
}

/// Writes one of the frames that reach the sink `pictures` as a PNG file.
fn save_picture(pipeline: &gst::Pipeline) {
    let sink = pipeline.by_name("pictures").expect("the pipeline names it");
    let frame = AtomicU32::new(0);
    sink.connect("new-sample", false, move |values| {
        let sink = values[0].get::<gst::Element>().expect("the signal passes the sink");
        let sample = sink.emit_by_name::<Option<gst::Sample>>("pull-sample", &[]);
        if let Some(sample) = sample
            && frame.fetch_add(1, Ordering::Relaxed) + 1 == PICTURED
            && let Err(error) = write_png(&sample)
        {
            gst::element_error!(sink, gst::ResourceError::Write, ("{error}"));
            return Some(gst::FlowReturn::Error.to_value());
        }
        Some(gst::FlowReturn::Ok.to_value())
    });
}

fn write_png(sample: &gst::Sample) -> Result<(), Box<dyn Error>> {
    let png = gst::Caps::new_empty_simple("image/png");
    let png = gst_video::convert_sample(sample, &png, Some(gst::ClockTime::from_seconds(10)))?;
    let buffer = png.buffer().ok_or("the encoder gave no picture")?;
    std::fs::write(Path::new(OUT).join("crowd.png"), buffer.map_readable()?)?;
    Ok(())
}
