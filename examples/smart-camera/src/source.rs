// SPDX-License-Identifier: MIT OR Apache-2.0
//! The source pipeline. In: the source as the user names it. Out: upright frames, until it ends, fails or, if it is
//! live, gives none for some time.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use gst::glib;
use gst::prelude::*;

use crate::files;
use crate::frames::Frames;
use crate::options::Options;
use crate::orientation;
use crate::pipeline::{Failure, Pipeline};

/// The pipeline of a source, which has not been started.
pub fn pipeline(options: &Options) -> Result<Pipeline, Failure> {
    let source = &options.source;
    let decoded =
        |uri: &str| format!("uridecodebin uri=\"{uri}\" ! videoconvert ! videoflip name=upright");
    let elements = match source.strip_prefix("bin:") {
        Some(elements) => elements.to_owned(),
        None if source == "test" => "crowdtestsrc is-live=true".to_owned(),
        None if source.starts_with("/dev/") => {
            check_device(source)?;
            format!("v4l2src device={source} ! decodebin")
        }
        None if source.contains("://") => decoded(source),
        None => {
            let path = std::path::absolute(source);
            let uri = path.map(|path| glib::filename_to_uri(path, None));
            let uri = uri.map_err(|error| Failure::permanent(format!("{source}: {error}")))?;
            let uri = uri.map_err(|error| Failure::permanent(format!("{source}: {error}")))?;
            decoded(&uri)
        }
    };
    // The detector waits for no clock, and so does the source: sync=false.
    let sink = "appsink name=frames sync=false max-buffers=1";
    let pipeline = Pipeline::parse(&format!("{elements} ! videoconvert ! {sink}"))?;
    if let Some(flip) = pipeline.find::<gst::Element>("upright") {
        // auto: as the tags of the stream have it. GStreamer 1.22 copies every frame until the direction has changed
        // once, even if nothing is to be turned.
        let direction = orientation::of_jpeg(&files::path(source)).unwrap_or("auto");
        flip.set_property_from_str("video-direction", "horiz");
        flip.set_property_from_str("video-direction", direction);
    }
    Ok(pipeline)
}

/// Refuses what is there but is no camera, or may not be opened. A camera that is not there can be plugged in.
fn check_device(path: &str) -> Result<(), Failure> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    if !metadata.file_type().is_char_device() {
        return Err(Failure::permanent(format!("{path}: expected a camera; it is no device")));
    }
    match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(Failure::permanent(
            format!("{path}: {error}; expected a camera that may be opened"),
        )),
        _ => Ok(()),
    }
}

/// A source.
pub struct Source<'a> {
    pipeline: Pipeline,
    frames: &'a Frames,
    /// How long a live source may give no frame.
    timeout: Option<Duration>,
}

impl<'a> Source<'a> {
    /// A source that does not run yet.
    pub fn new(options: &Options, frames: &'a Frames) -> Result<Self, Failure> {
        let pipeline = pipeline(options)?;
        let sink: gst_app::AppSink = pipeline.find("frames").expect("it is in the description");
        let target = frames.clone();
        let callbacks = gst_app::AppSinkCallbacks::builder()
            .new_sample(move |sink| {
                target.push(&sink.pull_sample().map_err(|_| gst::FlowError::Eos)?)
            })
            .build();
        sink.set_callbacks(callbacks);
        Ok(Self { pipeline, frames, timeout: options.is_live().then_some(options.timeout) })
    }

    /// Starts the source and waits for its end, or an error. A camera can stop without one: that a live source
    /// gives no frame for some time is an error, too.
    pub async fn run(&self) -> Result<(), Failure> {
        self.pipeline.start().await?;
        let mut end = pin!(self.pipeline.end());
        let Some(timeout) = self.timeout else {
            return end.await;
        };
        loop {
            let before = self.frames.count();
            if let Either::Left((end, _)) = select(&mut end, glib::timeout_future(timeout)).await {
                return end;
            }
            if self.frames.count() == before {
                return Err(Failure::temporary(format!("no frame for {timeout:?}")));
            }
        }
    }

    /// Stops the source.
    pub async fn stop(&self) {
        self.pipeline.stop().await;
    }
}
