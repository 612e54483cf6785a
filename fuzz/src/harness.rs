// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs one element between two pads, without a pipeline.
//!
//! In: caps, events and buffers. Out: the element's buffers, and the errors that it posts.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use gst::prelude::*;

/// An element with its input and output.
pub struct Harness {
    pub element: gst::Element,
    source: gst::Pad,
    sink: gst::Pad,
    bus: gst::Bus,
    /// Errors that were taken from the bus.
    errors: RefCell<Vec<String>>,
    out: Arc<Mutex<Vec<gst::Buffer>>>,
}

impl Harness {
    pub fn new(factory: &str) -> Self {
        let element = gst::ElementFactory::make(factory).build().expect("it is registered");
        let out = Arc::new(Mutex::new(Vec::new()));
        let source = gst::Pad::builder(gst::PadDirection::Src)
            .name("source")
            .event_function(|_, _, _| true)
            .query_function(|_, _, _| false)
            .build();
        let sink = gst::Pad::builder(gst::PadDirection::Sink)
            .name("sink")
            .chain_function({
                let out = out.clone();
                move |_, _, buffer| {
                    out.lock().unwrap().push(buffer);
                    Ok(gst::FlowSuccess::Ok)
                }
            })
            .event_function(|_, _, _| true)
            .query_function(|_, _, query| answer(query))
            .build();
        source.link(&element.static_pad("sink").unwrap()).expect("pads without caps link");
        element.static_pad("src").unwrap().link(&sink).expect("pads without caps link");
        let bus = gst::Bus::new();
        element.set_bus(Some(&bus));
        Self { element, source, sink, bus, errors: RefCell::default(), out }
    }

    /// Starts the element. Returns true if it started.
    pub fn start(&self) -> bool {
        self.sink.set_active(true).expect("it can be activated");
        let started = self.element.set_state(gst::State::Playing).is_ok();
        self.source.set_active(true).expect("it can be activated");
        started && self.source.push_event(gst::event::StreamStart::new("fuzz"))
    }

    pub fn stop(&self, to: gst::State) {
        let _ = self.source.set_active(false);
        let _ = self.sink.set_active(false);
        self.element.set_state(to).expect("an element can be stopped");
        // In the state NULL, the bus drops new messages but keeps earlier ones.
        self.bus.set_flushing(true);
        self.bus.set_flushing(false);
    }

    /// Sends caps and a segment. Returns true if the element accepted the caps.
    pub fn caps(&self, caps: &gst::Caps) -> bool {
        let pad = self.element.static_pad("sink").unwrap();
        let _ = pad.query_caps(Some(caps));
        let _ = pad.query_accept_caps(caps);
        let has_caps = self.source.sticky_event::<gst::event::Caps>(0).is_some();
        if !has_caps && self.source.sticky_event::<gst::event::Segment>(0).is_some() {
            // Caps must precede the segment. Flushing removes the old segment.
            self.flush();
        }
        self.source.push_event(gst::event::Caps::new(caps));
        // The result of the push is not enough, because a sticky event that was refused is sent
        // again.
        let taken = pad.current_caps().as_ref() == Some(caps);
        self.segment();
        taken
    }

    fn segment(&self) {
        let segment = gst::FormattedSegment::<gst::ClockTime>::new();
        self.source.push_event(gst::event::Segment::new(&segment));
    }

    pub fn flush(&self) {
        self.source.push_event(gst::event::FlushStart::new());
        self.source.push_event(gst::event::FlushStop::new(true));
    }

    pub fn event(&self, event: gst::Event) -> bool {
        self.source.push_event(event)
    }

    pub fn push(&self, buffer: gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
        if self.source.sticky_event::<gst::event::Segment>(0).is_none() {
            // The element must report the missing caps itself.
            self.segment();
        }
        self.source.push(buffer)
    }

    /// Removes and returns the buffers that were pushed since the last call.
    pub fn take(&self) -> Vec<gst::Buffer> {
        std::mem::take(&mut *self.out.lock().unwrap())
    }

    /// Returns the buffers that were pushed since the last call of `take`.
    pub fn out(&self) -> Vec<gst::Buffer> {
        self.out.lock().unwrap().clone()
    }

    /// Returns true if an error was posted since the last call of `errors`.
    pub fn has_error(&self) -> bool {
        self.take_messages();
        !self.errors.borrow().is_empty()
    }

    /// Returns the errors that were posted since the last call.
    pub fn errors(&self) -> Vec<String> {
        self.take_messages();
        self.errors.take()
    }

    /// Takes all messages from the bus and keeps the errors.
    fn take_messages(&self) {
        let messages = std::iter::from_fn(|| self.bus.pop());
        let errors = messages.filter_map(|message| match message.view() {
            gst::MessageView::Error(error) => Some(error.error().to_string()),
            _ => None,
        });
        self.errors.borrow_mut().extend(errors);
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.stop(gst::State::Null);
        self.element.set_bus(None);
    }
}

fn answer(query: &mut gst::QueryRef) -> bool {
    match query.view_mut() {
        gst::QueryViewMut::Caps(caps) => {
            let any = gst::Caps::new_any();
            let result = caps.filter_owned().unwrap_or(any);
            caps.set_result(&result);
            true
        }
        gst::QueryViewMut::AcceptCaps(accept) => {
            accept.set_result(true);
            true
        }
        _ => false,
    }
}
