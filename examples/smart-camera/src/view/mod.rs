// SPDX-License-Identifier: MIT OR Apache-2.0
//! The view in a browser.
//!
//! In: pictures, the lines of the report, and failures of the source. Out: a page over HTTP with the
//! live picture (MJPEG), the counts and the state of the program (server-sent events).

mod access;
mod server;
mod values;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use gst::glib;
use gst::prelude::*;

use crate::options::Options;
use crate::{Error, messages};

use access::Access;
pub use access::check;
pub use values::Values;

/// The end of the pictures' branch in the notation of `gst-launch-1.0`: JPEG of a size that fits to a page.
pub const PICTURES: &str = "videoscale ! video/x-raw,width=[1,1280],height=[1,720],pixel-aspect-ratio=1/1 \
    ! videoconvert ! jpegenc quality=75 ! appsink name=view sync=false async=false max-buffers=1 drop=true";

/// The address of the page, at which nobody is served yet.
pub struct View(TcpListener, Access);

impl View {
    /// Occupies the address of `--view`, if it is set.
    pub fn new(options: &Options) -> Result<Option<Self>, Error> {
        let Some(address) = options.view else { return Ok(None) };
        let access = Access::new(options.token.as_deref())?;
        let listener =
            TcpListener::bind(address).map_err(|error| format!("--view {address}: {error}"))?;
        messages::print(&format!("the view is at http://{}/", listener.local_addr()?));
        Ok(Some(Self(listener, access)))
    }

    /// Serves the page, until the program ends.
    pub fn serve(self, values: &Arc<Values>) {
        let clock = Arc::clone(values);
        glib::timeout_add(Duration::from_secs(1), move || {
            clock.tick();
            glib::ControlFlow::Continue
        });
        server::start(self.0, self.1, Arc::clone(values));
    }
}

/// Gives the pictures of `sink` to the values. Other frames than those that are wanted do not pass `queue`, so that they are
/// neither drawn nor encoded.
pub fn connect(queue: &gst::Element, sink: &gst_app::AppSink, values: &Arc<Values>) {
    let viewed = Arc::clone(values);
    let pad = queue.static_pad("sink").expect("a queue has a sink pad");
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| match viewed.takes_frame() {
        true => gst::PadProbeReturn::Ok,
        false => gst::PadProbeReturn::Handled,
    });
    let values = Arc::clone(values);
    let callbacks = gst_app::AppSinkCallbacks::builder()
        .new_sample(move |sink| {
            let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
            let picture =
                sample.buffer_owned().and_then(|it| it.into_mapped_buffer_readable().ok());
            values.show(picture.ok_or(gst::FlowError::Error)?);
            Ok(gst::FlowSuccess::Ok)
        })
        .build();
    sink.set_callbacks(callbacks);
}
