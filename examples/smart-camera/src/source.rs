// SPDX-License-Identifier: MIT OR Apache-2.0
//! The source pipeline. In: the source as the user names it. Out: frames, until it ends, fails or, if it is
//! live, gives none for some time.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use gst::glib;

use crate::Error;
use crate::frames::Frames;
use crate::options::Options;
use crate::pipeline::Pipeline;

/// A source that runs.
pub struct Source<'a> {
    pipeline: Pipeline,
    frames: &'a Frames,
    /// How long a live source may give no frame.
    timeout: Option<Duration>,
}

impl<'a> Source<'a> {
    /// Starts the source.
    pub fn start(options: &Options, frames: &'a Frames) -> Result<Self, Error> {
        let source = &options.source;
        let elements = match source.strip_prefix("bin:") {
            Some(elements) => elements.to_owned(),
            None if source == "test" => "crowdtestsrc is-live=true".to_owned(),
            None if source.starts_with("/dev/") => format!("v4l2src device={source} ! decodebin"),
            None if source.contains("://") => format!("uridecodebin uri=\"{source}\""),
            None => {
                let uri = glib::filename_to_uri(std::path::absolute(source)?, None)?;
                format!("uridecodebin uri={uri}")
            }
        };
        // The detector waits for no clock, and so does the source: sync=false.
        let sink = "appsink name=frames sync=false max-buffers=1";
        let pipeline = Pipeline::parse(&format!("{elements} ! videoconvert ! {sink}"))?;
        let sink: gst_app::AppSink = pipeline.find("frames").expect("it is in the description");
        let target = frames.clone();
        let callbacks = gst_app::AppSinkCallbacks::builder()
            .new_sample(move |sink| {
                target.push(&sink.pull_sample().map_err(|_| gst::FlowError::Eos)?)
            })
            .build();
        sink.set_callbacks(callbacks);
        pipeline.start()?;
        Ok(Self { pipeline, frames, timeout: options.is_live().then_some(options.timeout) })
    }

    /// Waits for the end of the source, or an error. A camera can stop without one: that a live source gives
    /// no frame for some time is an error, too.
    pub async fn end(&self) -> Result<(), Error> {
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
                return Err(format!("no frame for {timeout:?}").into());
            }
        }
    }
}
