// SPDX-License-Identifier: MIT OR Apache-2.0
//! The detector pipeline: model, decoding and suppression, the report, preview and recording.
//!
//! In: frames. Out: a JSON line per frame, a window, a video file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gst::prelude::*;
use gst_video::VideoRegionOfInterestMeta;

use crate::frames::Frames;
use crate::options::Options;
use crate::report::{Report, Zone};
use crate::source::element;
use crate::{Error, messages};

/// The detector pipeline, which runs.
pub struct Detector {
    /// Where it takes frames.
    pub frames: Frames,
    pipeline: gst::Pipeline,
    lines: Arc<AtomicU64>,
}

impl Detector {
    /// Builds and starts the pipeline, which loads the model.
    pub fn start(options: &Options) -> Result<Self, Error> {
        let pipeline = gst::parse::launch(&description(options))?
            .downcast::<gst::Pipeline>()
            .expect("several elements make a pipeline");
        let nms = element(&pipeline, "nms");
        let inference = pipeline.by_name("inference");
        // Properties with a file name or a list are set here: in a description they would need quotes.
        if let (Some(inference), Some(model)) = (&inference, &options.model) {
            inference.set_property("model", model);
        }
        if let Some(labels) = &options.labels {
            nms.set_property("classes", labels);
        }
        if let Some(file) = &options.record {
            element(&pipeline, "record").set_property("location", file);
        }

        if let Some(overlay) = pipeline.by_name("overlay") {
            draw(options.zones.clone(), &overlay);
        }

        let appsrc = element(&pipeline, "frames")
            .downcast::<gst_app::AppSrc>()
            .expect("the description says so");
        let detector = Self { frames: Frames::new(appsrc), pipeline, lines: Arc::default() };
        detector.write_lines(Report::new(options, inference, nms), options.frames);
        messages::start(&detector.pipeline)?;
        Ok(detector)
    }

    /// Writes a line for each frame, the last of them number `limit`.
    fn write_lines(&self, report: Report, limit: Option<u64>) {
        let (frames, lines) = (self.frames.clone(), self.lines.clone());
        let callbacks = gst_app::AppSinkCallbacks::builder().new_sample(move |sink| {
            let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
            let frame = sample.buffer().ok_or(gst::FlowError::Error)?;
            if limit.is_some_and(|limit| lines.load(Ordering::Relaxed) >= limit) {
                frames.end();
                return Err(gst::FlowError::Eos);
            }
            if let Err(error) = report.write(frame) {
                gst::element_error!(sink, gst::ResourceError::Write, ("standard output: {error}"));
                return Err(gst::FlowError::Error);
            }
            lines.fetch_add(1, Ordering::Relaxed);
            Ok(gst::FlowSuccess::Ok)
        });
        let sink = element(&self.pipeline, "report").downcast::<gst_app::AppSink>();
        sink.expect("the description says so").set_callbacks(callbacks.build());
    }

    /// The number of lines so far.
    pub fn lines(&self) -> u64 {
        self.lines.load(Ordering::Relaxed)
    }

    /// Waits for the end of the stream.
    ///
    /// # Errors
    /// If an element fails.
    pub async fn end(&self) -> Result<(), Error> {
        let result = messages::end(&self.pipeline).await;
        // A source that waits until there is space for its frame does so no longer.
        let _ = self.pipeline.set_state(gst::State::Null);
        result
    }
}

impl Drop for Detector {
    fn drop(&mut self) {
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}

/// The pipeline in the notation of `gst-launch-1.0`.
fn description(options: &Options) -> String {
    // What to do with a frame for which there is no time. A camera cannot wait: the oldest frame is
    // removed, so that each frame that the model sees is the newest, and the latency does not grow. A file
    // can wait, and none of its frames is left out.
    let (full, leaky) = match options.is_live() {
        true => ("leaky-type=downstream", "leaky=downstream"),
        false => ("block=true", ""),
    };
    let inference = match options.model {
        Some(_) => format!("! ortinference name=inference {}", options.inference),
        None => String::new(),
    };
    // The report is written by the thread that detects. Preview and recording have threads of their own, each
    // behind a queue that never waits for them if the source is live.
    let queue = format!("queue {leaky} max-size-buffers=2");
    let mut pictures = String::new();
    if options.preview || options.record.is_some() {
        pictures += &format!("results. ! {queue} ! roioverlay name=overlay ! tee name=pictures");
    }
    if options.preview {
        pictures += &format!(" pictures. ! {queue} ! videoconvert ! autovideosink sync=false");
    }
    if options.record.is_some() {
        pictures += &format!(
            " pictures. ! {queue} ! videoconvert ! jpegenc ! matroskamux ! filesink name=record"
        );
    }
    // async=false: the report does not wait until the other sinks have a frame.
    format!(
        "appsrc name=frames format=time is-live=true max-buffers=1 max-bytes=0 {full}
           {inference} ! nmsfilter name=nms {nms} ! tee name=results
         results. ! appsink name=report sync=false async=false
         {pictures}",
        nms = options.nms,
    )
}

/// Adds the zones to the regions that are drawn. They are not in the report, which has another reference to
/// the frame.
fn draw(zones: Vec<Zone>, overlay: &gst::Element) {
    let pad = overlay.static_pad("sink").expect("a filter has a sink pad");
    pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        let caps = pad.current_caps();
        let video = caps.and_then(|caps| gst_video::VideoInfo::from_caps(&caps).ok());
        if let (Some(video), Some(frame)) = (video, info.buffer_mut()) {
            for zone in &zones {
                let region = zone.pixels([video.width(), video.height()]);
                VideoRegionOfInterestMeta::add(frame.make_mut(), &zone.name, region);
            }
        }
        gst::PadProbeReturn::Ok
    });
}
