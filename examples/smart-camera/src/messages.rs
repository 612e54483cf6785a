// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the messages of a pipeline mean to the program: warnings are lines on standard error, an error or the
//! end of the stream is the end of the pipeline.

use futures_util::StreamExt;
use gst::glib;
use gst::prelude::*;

use crate::Error;

/// Starts a pipeline.
///
/// # Errors
/// What the element says that cannot be started.
pub fn start(pipeline: &gst::Pipeline) -> Result<(), Error> {
    let Err(error) = pipeline.set_state(gst::State::Playing) else {
        return Ok(());
    };
    let bus = pipeline.bus().expect("a pipeline has a bus");
    let why = bus.iter().find_map(|message| read(&message));
    // A pipeline may not be dropped in any other state.
    let _ = pipeline.set_state(gst::State::Null);
    Err(why.and_then(Result::err).unwrap_or_else(|| error.into()))
}

/// Waits for the end of a pipeline.
///
/// # Errors
/// The first error that an element posts.
pub async fn end(pipeline: &gst::Pipeline) -> Result<(), Error> {
    let mut messages = pipeline.bus().expect("a pipeline has a bus").stream();
    while let Some(message) = messages.next().await {
        if let Some(end) = read(&message) {
            return end;
        }
    }
    Ok(())
}

/// How the pipeline ends, if the message says that it does.
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
/// "Connection refused".
fn text(error: glib::Error, debug: Option<glib::GString>) -> String {
    match debug.as_deref().and_then(|debug| debug.lines().last()) {
        Some(cause) => format!("{error} ({cause})"),
        None => error.to_string(),
    }
}
