// SPDX-License-Identifier: MIT OR Apache-2.0
//! The detector pipeline: model, decoding and suppression, tracker, report, preview and recording.
//!
//! In: frames. Out: a JSON line per frame, a preview window, a video file.

use std::sync::Arc;

use gst::prelude::*;

use crate::frames::Frames;
use crate::options::Options;
use crate::pipeline::{Failure, Pipeline};
use crate::report::Report;
use crate::view::{self, Values};
use crate::{Error, overlay, record, tracker};

/// The detector pipeline.
pub struct Detector {
    /// The entry for frames.
    pub frames: Frames,
    /// What the page of --view shows.
    pub view: Option<Arc<Values>>,
    pipeline: Pipeline,
}

impl Detector {
    /// Builds the pipeline.
    pub fn new(options: &Options) -> Result<Self, Error> {
        if let Some(tracker) = &options.tracker {
            tracker::check(tracker)?;
        }
        let pipeline = Pipeline::parse(&description(options))?;
        let inference: Option<gst::Element> = pipeline.find("inference");
        let nms: gst::Element = pipeline.find("nms").expect("it is in the description");
        // File names and lists are set as properties here, because they would need quotes in a
        // description.
        if let (Some(inference), Some(model)) = (&inference, &options.model) {
            inference.set_property("model", model);
        }
        if let Some(labels) = &options.labels {
            nms.set_property("classes", labels);
        }
        for overlay in ["overlay", "view-overlay"].into_iter().filter_map(|it| pipeline.find(it)) {
            overlay::draw(options, &overlay);
        }

        let appsrc = pipeline.find("frames").expect("it is in the description");
        let frames = Frames::new(appsrc, options.restarts());
        let view = options.view.map(|_| Arc::new(Values::new(frames.clone())));
        if let (Some(queue), Some(sink), Some(view)) =
            (pipeline.find("viewed"), pipeline.find("view"), &view)
        {
            view::connect(&queue, &sink, view);
        }
        let mut report = Report::new(options, inference, nms, frames.clone(), view.clone())?;
        let sink: gst_app::AppSink = pipeline.find("report").expect("it is in the description");
        let callbacks = gst_app::AppSinkCallbacks::builder()
            .new_sample(move |sink| {
                let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
                report.write(sample.buffer().ok_or(gst::FlowError::Error)?).map_err(|error| {
                    gst::element_error!(sink, gst::ResourceError::Write, ("{error}"));
                    gst::FlowError::Error
                })
            })
            .build();
        sink.set_callbacks(callbacks);
        Ok(Self { frames, view, pipeline })
    }

    /// Records the video to this file, and to others if the frames change.
    pub fn record_to(&self, file: &str) -> Result<(), Error> {
        let encoder: Option<gst::Element> = self.pipeline.find("recorded");
        record::start(&encoder.expect("--record is set"), file)
    }

    /// Returns the pipeline.
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
        // A source may be blocked until there is space for its frame. Stopping the pipeline
        // unblocks it.
        self.pipeline.stop().await;
        end
    }
}

/// Returns the pipeline in the notation of `gst-launch-1.0`.
fn description(options: &Options) -> String {
    let Options { inference, nms, tracker, .. } = options;
    let tracker = tracker.iter().map(|tracker| format!(" ! {tracker}")).collect::<String>();
    // Decides which frames are dropped when there is too little time. A camera cannot wait, so the
    // oldest frame is dropped. Each frame that the model sees is therefore the newest, and the
    // latency does not grow. A file can wait, and all of its frames are processed.
    let (full, leaky) = if options.is_live() {
        ("leaky-type=downstream", "leaky=downstream")
    } else {
        ("block=true", "")
    };
    let mut text =
        format!("appsrc name=frames format=time is-live=true max-buffers=1 max-bytes=0 {full}");
    if options.model.is_some() {
        text += &format!(" ! ortinference name=inference {inference}");
    }
    // The thread that runs the detector also writes the report. With async=false, the report does
    // not wait for the other sinks to get a frame.
    text += &format!(
        " ! nmsfilter name=nms {nms}{tracker} ! tee name=results
         results. ! detectionjson ! appsink name=report sync=false async=false"
    );
    // Preview and recording run in their own threads, behind queues. If the source is live, the
    // queues drop frames instead of blocking. With sync=false, a frame is shown as soon as it is
    // drawn.
    let queue = format!("queue max-size-buffers=2 max-size-bytes=0 max-size-time=0 {leaky}");
    if options.preview || options.record.is_some() {
        // The overlay needs videoconvert, because it draws only in formats of 8 bits.
        text += &format!(
            " results. ! {queue} ! videoconvert ! roioverlay name=overlay ! tee name=pictures"
        );
    }
    if options.preview {
        text += &format!(" pictures. ! {queue} ! videoconvert ! autovideosink sync=false");
    }
    if options.view.is_some() {
        // Frames are dropped for the page, also those of a file, so that nothing waits for it.
        text += &format!(
            " results. ! queue name=viewed leaky=downstream max-size-buffers=1 max-size-bytes=0 max-size-time=0
             ! videoconvert ! roioverlay name=view-overlay ! {}",
            view::PICTURES
        );
    }
    if options.record.is_some() {
        text += &format!(" pictures. ! {queue} ! videoconvert ! jpegenc name=recorded");
    }
    text
}
