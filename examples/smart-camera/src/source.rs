// SPDX-License-Identifier: MIT OR Apache-2.0
//! The source pipeline: a camera, a file or another origin of frames.
//!
//! In: the source as the user names it. Out: frames, until it ends, fails or, if it is live, gives no frame
//! for some time.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use gst::glib;
use gst::prelude::*;

use crate::frames::Frames;
use crate::options::{Kind, Options};
use crate::{Error, messages};

/// A source that runs.
pub struct Source<'a> {
    pipeline: gst::Pipeline,
    frames: &'a Frames,
    /// How long a live source may give no frame.
    timeout: Option<Duration>,
}

impl<'a> Source<'a> {
    /// Starts the source.
    pub fn start(options: &Options, frames: &'a Frames) -> Result<Self, Error> {
        let elements = match &options.source.kind {
            Kind::Test => "crowdtestsrc is-live=true",
            Kind::Camera(_) => "v4l2src name=camera ! decodebin",
            Kind::Uri(_) => "uridecodebin name=uri",
            Kind::Elements(elements) => elements,
        };
        let description = format!("{elements} ! videoconvert ! appsink name=frames");
        let pipeline = gst::parse::launch(&description)?
            .downcast::<gst::Pipeline>()
            .expect("several elements make a pipeline");
        match &options.source.kind {
            Kind::Camera(device) => element(&pipeline, "camera").set_property("device", device),
            Kind::Uri(uri) => {
                let decoder = element(&pipeline, "uri");
                decoder.set_property("uri", uri);
                decoder.connect("source-setup", false, |values| {
                    let source = values[1].get::<gst::Element>().expect("it passes the source");
                    // Of rtspsrc: 2 s, unless it is set.
                    if source.has_property_with_type("latency", u32::static_type()) {
                        source.set_property("latency", 200_u32);
                    }
                    None
                });
            }
            Kind::Test | Kind::Elements(_) => {}
        }

        let sink = element(&pipeline, "frames")
            .downcast::<gst_app::AppSink>()
            .expect("the description says so");
        // Frames go on as soon as they are there; --live gives those of a file their own speed.
        sink.set_sync(options.live);
        sink.set_max_buffers(1);
        let (target, start) = (frames.clone(), frames.position());
        let callbacks = gst_app::AppSinkCallbacks::builder().new_sample(move |sink| {
            let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
            target.push(&sample, start)
        });
        sink.set_callbacks(callbacks.build());

        messages::start(&pipeline)?;
        let timeout = options.is_live().then_some(options.timeout);
        Ok(Self { pipeline, frames, timeout })
    }

    /// Waits for the end of the source.
    ///
    /// # Errors
    /// If it fails, or is live and gives no frame for some time: a camera can stop without an error.
    pub async fn end(&self) -> Result<(), Error> {
        let mut end = pin!(messages::end(&self.pipeline));
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

impl Drop for Source<'_> {
    fn drop(&mut self) {
        // Closes the device, so that it can be opened again.
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}

/// An element that the description names.
pub fn element(pipeline: &gst::Pipeline, name: &str) -> gst::Element {
    pipeline.by_name(name).expect("the description names it")
}
