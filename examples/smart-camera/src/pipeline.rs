// SPDX-License-Identifier: MIT OR Apache-2.0
//! What both pipelines need: parse, start, find an element, wait for the end, stop.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::select;
use gst::glib;
use gst::prelude::*;

use crate::messages;

/// How long an element may take to stop. One that waits in a system call, as for a FIFO, never does; it ends with
/// the program.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a pipeline does not run.
#[derive(Debug)]
pub struct Failure {
    text: String,
    /// Whether the same will happen again: an element is missing, a password is wrong.
    pub is_permanent: bool,
}

impl Failure {
    /// A failure that another attempt does not help.
    pub fn permanent(text: String) -> Self {
        Self { text, is_permanent: true }
    }

    /// A failure that can be over at the next attempt.
    pub fn temporary(text: String) -> Self {
        Self { text, is_permanent: false }
    }

    /// The error of an element with its debug information.
    ///
    /// The last line of the debug information is what the element knows of the cause, as "Connection refused";
    /// the first is a place in its source.
    fn new(error: &glib::Error, debug: Option<&str>) -> Self {
        let debug = debug.unwrap_or_default();
        let text = match debug.lines().skip(1).last() {
            Some(cause) => format!("{error} ({cause})"),
            None => error.to_string(),
        };
        let cannot_be_linked = ["reason not-negotiated", "reason not-linked"];
        let is_permanent = error.kind::<gst::ParseError>().is_some()
            || error.kind::<gst::URIError>().is_some()
            || error.matches(gst::CoreError::MissingPlugin)
            || error.matches(gst::StreamError::CodecNotFound)
            || error.matches(gst::ResourceError::NotAuthorized)
            || cannot_be_linked.iter().any(|reason| debug.contains(reason));
        Self { text, is_permanent }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

/// A pipeline, which [`stop`](Self::stop) stops.
pub struct Pipeline(gst::Pipeline);

impl Pipeline {
    /// Parses a description in the notation of `gst-launch-1.0`, of more than one element.
    pub fn parse(description: &str) -> Result<Self, Failure> {
        let pipeline =
            gst::parse::launch(description).map_err(|error| Failure::new(&error, None))?;
        let one_element = |_| Failure::permanent("expected more than one element".to_owned());
        Ok(Self(pipeline.downcast().map_err(one_element)?))
    }

    /// An element that the description names, as its own type or as `gst::Element`.
    pub fn find<T: IsA<gst::Element>>(&self, name: &str) -> Option<T> {
        self.0.by_name(name).and_downcast()
    }

    /// The values of all properties that are texts, of all elements.
    pub fn text_properties(&self) -> Vec<String> {
        let elements = self.0.iterate_recurse().into_iter().filter_map(Result::ok);
        let texts = |element: gst::Element| {
            let readable = |spec: &&glib::ParamSpec| {
                glib::ParamSpec::value_type(spec) == glib::Type::STRING
                    && spec.flags().contains(glib::ParamFlags::READABLE)
            };
            let specs = element.list_properties();
            let values =
                specs.iter().filter(readable).map(|spec| element.property_value(spec.name()));
            values.filter_map(|value| value.get::<String>().ok()).collect::<Vec<_>>()
        };
        elements.flat_map(texts).collect()
    }

    /// Starts the pipeline, in another thread: an element can wait then, as for a connection. The error is what
    /// the element says that cannot be started.
    pub async fn start(&self) -> Result<(), Failure> {
        let started = self.0.call_async_future(|pipeline| pipeline.set_state(gst::State::Playing));
        let started = started.await;
        started.map(drop).map_err(|error| {
            let bus = self.0.bus().expect("a pipeline has a bus");
            let end = bus.iter().find_map(|message| read(&message));
            let unknown = || Failure::temporary(error.to_string());
            end.and_then(Result::err).unwrap_or_else(unknown)
        })
    }

    /// Waits for the end of the stream, or the first error.
    pub async fn end(&self) -> Result<(), Failure> {
        let mut messages = self.0.bus().expect("a pipeline has a bus").stream();
        while let Some(message) = messages.next().await {
            if let Some(end) = read(&message) {
                return end;
            }
        }
        Ok(())
    }

    /// Stops the pipeline, which closes devices and files.
    pub async fn stop(&self) {
        // An element that does not stop has posted why, and nothing can be done about it.
        let stopped = self.0.call_async_future(|pipeline| pipeline.set_state(gst::State::Null));
        select(stopped, glib::timeout_future(STOP_TIMEOUT)).await;
    }
}

/// How the pipeline ends, if the message says that it does. Warnings go to standard error.
fn read(message: &gst::Message) -> Option<Result<(), Failure>> {
    match message.view() {
        gst::MessageView::Eos(_) => Some(Ok(())),
        gst::MessageView::Error(error) => {
            Some(Err(Failure::new(&error.error(), error.debug().as_deref())))
        }
        gst::MessageView::Warning(warning) => {
            let failure = Failure::new(&warning.error(), warning.debug().as_deref());
            messages::print(&format!("warning: {failure}"));
            None
        }
        _ => None,
    }
}
