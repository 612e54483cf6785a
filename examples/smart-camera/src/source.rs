// SPDX-License-Identifier: MIT OR Apache-2.0
//! The source pipeline. In: the source from the command line. Out: upright frames. The source runs
//! until it ends or fails. A live source also fails if it gives no frame for some time.

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

/// Makes the pipeline of a source, without starting it.
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
    // With sync=false, the source does not wait for a clock, and neither does the detector.
    let sink = "appsink name=frames sync=false max-buffers=1";
    let pipeline = Pipeline::parse(&format!("{elements} ! videoconvert ! {sink}"))?;
    if let Some(flip) = pipeline.find::<gst::Element>("upright") {
        // The value auto follows the tags of the stream. The direction is first set to another
        // value, because GStreamer 1.22 copies every frame, even if it need not be turned, until
        // the direction has changed once.
        let direction = orientation::jpeg_direction(&files::path(source)).unwrap_or("auto");
        flip.set_property_from_str("video-direction", "horiz");
        flip.set_property_from_str("video-direction", direction);
    }
    Ok(pipeline)
}

/// Refuses a path that exists but is not a camera or must not be opened. A missing camera may be
/// plugged in later.
fn check_device(path: &str) -> Result<(), Failure> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    if !metadata.file_type().is_char_device() {
        return Err(Failure::permanent(format!(
            "{path}: expected a camera, but it is not a device"
        )));
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
    /// Maximum time without a frame, for a live source.
    timeout: Option<Duration>,
}

impl<'a> Source<'a> {
    /// Makes a source that does not run yet.
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

    /// Starts the source, and waits until it ends or fails. A camera can stop without an error, so
    /// it is also an error if a live source gives no frame for some time.
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
