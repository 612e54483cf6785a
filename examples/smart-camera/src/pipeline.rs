// SPDX-License-Identifier: MIT OR Apache-2.0
//! What both pipelines need: parse, start, find an element, wait for the end.

use futures_util::StreamExt;
use gst::glib;
use gst::prelude::*;

use crate::Error;

/// A pipeline that is stopped when this is dropped.
pub struct Pipeline(gst::Pipeline);

impl Pipeline {
    /// Parses a description in the notation of `gst-launch-1.0`, of more than one element.
    pub fn parse(description: &str) -> Result<Self, Error> {
        let pipeline = gst::parse::launch(description)?;
        Ok(Self(pipeline.downcast().map_err(|_| "expected more than one element")?))
    }

    /// An element that the description names, as its own type or as `gst::Element`.
    pub fn find<T: IsA<gst::Element>>(&self, name: &str) -> Option<T> {
        self.0.by_name(name).and_downcast()
    }

    /// Starts the pipeline. The error is what the element says that cannot be started.
    pub fn start(&self) -> Result<(), Error> {
        let bus = self.0.bus().expect("a pipeline has a bus");
        self.0.set_state(gst::State::Playing).map(drop).map_err(|error| {
            let end = bus.iter().find_map(|message| read(&message));
            end.and_then(Result::err).unwrap_or_else(|| error.into())
        })
    }

    /// Waits for the end of the stream, or the first error.
    pub async fn end(&self) -> Result<(), Error> {
        let mut messages = self.0.bus().expect("a pipeline has a bus").stream();
        while let Some(message) = messages.next().await {
            if let Some(end) = read(&message) {
                return end;
            }
        }
        Ok(())
    }

    /// Stops the pipeline, which closes devices and files.
    pub fn stop(&self) {
        // An element that does not stop has posted why, and nothing can be done about it.
        let _ = self.0.set_state(gst::State::Null);
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.stop();
    }
}

/// How the pipeline ends, if the message says that it does. Warnings go to standard error.
fn read(message: &gst::Message) -> Option<Result<(), Error>> {
    match message.view() {
        gst::MessageView::Eos(_) => Some(Ok(())),
        gst::MessageView::Error(error) => Some(Err(text(error.error(), error.debug()).into())),
        gst::MessageView::Warning(warning) => {
            eprintln!("smart-camera: warning: {}", text(warning.error(), warning.debug()));
            None
        }
        _ => None,
    }
}

/// An error in one line. The last line of the debug information is what the element knows of the cause, as
/// "Connection refused"; the first is a place in its source.
fn text(error: glib::Error, debug: Option<glib::GString>) -> String {
    match debug.as_deref().and_then(|debug| debug.lines().skip(1).last()) {
        Some(cause) => format!("{error} ({cause})"),
        None => error.to_string(),
    }
}
