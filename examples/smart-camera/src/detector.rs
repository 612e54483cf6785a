// SPDX-License-Identifier: MIT OR Apache-2.0
//! The detector pipeline: model, decoding and suppression, the report, preview and recording.
//!
//! In: frames. Out: a JSON line per frame, a window, a video file.

use gst::prelude::*;
use gst_video::VideoRegionOfInterestMeta;

use crate::Error;
use crate::frames::Frames;
use crate::options::Options;
use crate::pipeline::{Failure, Pipeline};
use crate::report::{Report, Zone};

/// The detector pipeline.
pub struct Detector {
    /// Where it takes frames.
    pub frames: Frames,
    pipeline: Pipeline,
}

impl Detector {
    /// Builds the pipeline.
    pub fn new(options: &Options) -> Result<Self, Error> {
        let pipeline = Pipeline::parse(&description(options))?;
        let inference: Option<gst::Element> = pipeline.find("inference");
        let nms: gst::Element = pipeline.find("nms").expect("it is in the description");
        // File names and lists are set here: in a description they would need quotes.
        if let (Some(inference), Some(model)) = (&inference, &options.model) {
            inference.set_property("model", model);
        }
        if let Some(labels) = &options.labels {
            nms.set_property("classes", labels);
        }
        if let Some(overlay) = pipeline.find("overlay") {
            draw(&options.zones, &overlay);
        }

        let appsrc = pipeline.find("frames").expect("it is in the description");
        let frames = Frames::new(appsrc, options.restarts());
        let mut report = Report::new(options, inference, nms, frames.clone())?;
        let sink: gst_app::AppSink = pipeline.find("report").expect("it is in the description");
        let callbacks = gst_app::AppSinkCallbacks::builder()
            .new_sample(move |sink| {
                let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
                report.write(sample.buffer().ok_or(gst::FlowError::Error)?).map_err(|error| {
                    gst::element_error!(sink, gst::ResourceError::Write, ("output: {error}"));
                    gst::FlowError::Error
                })
            })
            .build();
        sink.set_callbacks(callbacks);
        Ok(Self { frames, pipeline })
    }

    /// Records to a file with this name.
    pub fn record_to(&self, file: &str) {
        let sink: Option<gst::Element> = self.pipeline.find("record");
        sink.expect("--record is set").set_property("location", file);
    }

    /// The pipeline.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Starts the pipeline, which loads the model.
    pub async fn start(&self) -> Result<(), Failure> {
        let started = self.pipeline.start().await;
        if started.is_err() {
            self.pipeline.stop().await;
        }
        started
    }

    /// Waits for the end of the stream, or an error.
    pub async fn end(&self) -> Result<(), Failure> {
        let end = self.pipeline.end().await;
        // A source that waits until there is space for its frame waits no longer.
        self.pipeline.stop().await;
        end
    }
}

/// The pipeline in the notation of `gst-launch-1.0`.
fn description(options: &Options) -> String {
    let Options { inference, nms, .. } = options;
    // What to do with a frame for which there is no time. A camera cannot wait: the oldest frame is
    // removed, so that each frame that the model sees is the newest, and the latency does not grow. A file
    // can wait, and none of its frames is left out.
    let (full, leaky) = match options.is_live() {
        true => ("leaky-type=downstream", "leaky=downstream"),
        false => ("block=true", ""),
    };
    let mut text =
        format!("appsrc name=frames format=time is-live=true max-buffers=1 max-bytes=0 {full}");
    if options.model.is_some() {
        text += &format!(" ! ortinference name=inference {inference}");
    }
    // The report is written by the thread that detects. async=false: it does not wait until the other sinks
    // have a frame.
    text += &format!(
        " ! nmsfilter name=nms {nms} ! tee name=results
         results. ! detectionjson ! appsink name=report sync=false async=false"
    );
    // Preview and recording have threads of their own, behind queues that never wait for them if the source
    // is live. sync=false: a frame is shown as soon as it is drawn.
    let queue = format!("queue max-size-buffers=2 max-size-bytes=0 max-size-time=0 {leaky}");
    if options.preview || options.record.is_some() {
        // videoconvert: the overlay draws in formats of 8 bits only.
        text += &format!(
            " results. ! {queue} ! videoconvert ! roioverlay name=overlay ! tee name=pictures"
        );
    }
    if options.preview {
        text += &format!(" pictures. ! {queue} ! videoconvert ! autovideosink sync=false");
    }
    if options.record.is_some() {
        text += &format!(
            " pictures. ! {queue} ! videoconvert ! jpegenc ! matroskamux ! filesink name=record"
        );
    }
    text
}

/// Adds the zones to the regions that are drawn. The report has a buffer of its own, without them.
fn draw(zones: &[Zone], overlay: &gst::Element) {
    let zones = zones.to_vec();
    let pad = overlay.static_pad("sink").expect("a filter has a sink pad");
    pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        let video = pad.current_caps().and_then(|caps| gst_video::VideoInfo::from_caps(&caps).ok());
        if let (Some(video), Some(frame)) = (video, info.buffer_mut()) {
            for zone in &zones {
                let region = zone.pixels([video.width(), video.height()]);
                VideoRegionOfInterestMeta::add(frame.make_mut(), &zone.name, region);
            }
        }
        gst::PadProbeReturn::Ok
    });
}
