// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions that both pipelines need: parsing, starting, finding elements, waiting for the end,
//! and stopping.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::select;
use gst::glib;
use gst::prelude::*;

use crate::messages;

/// Time that an element may take to stop. An element that is blocked in a system call, for example
/// on a FIFO, never stops. It ends together with the program.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// The reason why a pipeline does not run.
#[derive(Debug)]
pub struct Failure {
    text: String,
    /// True if another attempt would fail, too, because an element is missing or a password is
    /// wrong.
    pub is_permanent: bool,
}

impl Failure {
    /// Makes a failure that is certain to recur.
    pub fn permanent(text: String) -> Self {
        Self { text, is_permanent: true }
    }

    /// Makes a failure that may not recur at the next attempt.
    pub fn temporary(text: String) -> Self {
        Self { text, is_permanent: false }
    }

    /// Makes a failure from an element's error and its debug information.
    ///
    /// The last line of the debug information is what the element knows about the cause, such as
    /// "Connection refused". The first line is a location in the element's source.
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
    /// Parses a description in the notation of `gst-launch-1.0`. It must have more than one
    /// element.
    pub fn parse(description: &str) -> Result<Self, Failure> {
        let pipeline =
            gst::parse::launch(description).map_err(|error| Failure::new(&error, None))?;
        let one_element = |_| Failure::permanent("expected more than one element".to_owned());
        let pipeline: gst::Pipeline = pipeline.downcast().map_err(one_element)?;
        pipeline.connect_deep_element_added(|_, _, element| decode_jpeg_accurately(element));
        Ok(Self(pipeline))
    }

    /// Returns the element with this name in the description, either with its own type or as
    /// `gst::Element`.
    pub fn find<T: IsA<gst::Element>>(&self, name: &str) -> Option<T> {
        self.0.by_name(name).and_downcast()
    }

    /// Returns the values of all string properties of all elements.
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

    /// Starts the pipeline in another thread, because an element may block, for example while it
    /// connects. If it fails, the error comes from the element that cannot be started.
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

    /// Waits for the end of the stream, or for the first error.
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
        // An element that does not stop has posted the reason, and nothing can be done about it.
        let stopped = self.0.call_async_future(|pipeline| pipeline.set_state(gst::State::Null));
        select(stopped, glib::timeout_future(STOP_TIMEOUT)).await;
    }
}

/// Sets `jpegdec` to its accurate transform, when `decodebin` adds it with the default, which is
/// the fast one. Elements in a user's description are not added later, so they keep their
/// properties.
fn decode_jpeg_accurately(element: &gst::Element) {
    if element.factory().is_some_and(|factory| factory.name() == "jpegdec") {
        element.set_property_from_str("idct-method", "islow");
    }
}

/// Returns how the pipeline ended, if the message says so. Warnings are printed to standard error.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jpeg_is_decoded_with_the_accurate_transform_unless_the_user_sets_another() {
        gst::init().unwrap();
        for (decoder, expected) in
            [("decodebin", "islow"), ("jpegdec", "ifast"), ("jpegdec idct-method=float", "float")]
        {
            let description =
                format!("videotestsrc num-buffers=1 ! jpegenc ! {decoder} ! fakesink");
            let pipeline = Pipeline::parse(&description).unwrap();
            glib::MainContext::default().block_on(async {
                pipeline.start().await.unwrap();
                pipeline.end().await.unwrap();
            });
            let elements = pipeline.0.iterate_recurse().into_iter().filter_map(Result::ok);
            let is_decoder = |element: &gst::Element| {
                element.factory().is_some_and(|factory| factory.name() == "jpegdec")
            };
            let [jpegdec] = &elements.filter(is_decoder).collect::<Vec<_>>()[..] else {
                panic!("{decoder}: expected one jpegdec");
            };
            let method = jpegdec.property_value("idct-method");
            let (_, method) = glib::EnumValue::from_value(&method).expect("it is an enumeration");
            assert_eq!(method.nick(), expected, "{decoder}");
            pipeline.0.set_state(gst::State::Null).unwrap();
        }
    }
}
