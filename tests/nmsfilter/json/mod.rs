// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element `detectionjson`: lines agree with the metadata of any element, and are always valid
//! JSON.

mod analytics;
mod details;
mod foreign;
mod frames;
mod reader;
mod stream;

use crate::support::pipeline::init;

/// Caps of the frames that [`line_of`] pushes.
const CAPS: &str = "video/x-raw,format=GRAY8,width=640,height=480,framerate=50/1";

/// Returns a harness of `detectionjson` with these properties, after caps were pushed.
fn harness(properties: &[(&str, &str)]) -> gst_check::Harness {
    init();
    // Properties are read when the element starts, and the harness starts it immediately.
    let element = gst::ElementFactory::make("detectionjson").build().unwrap();
    for (name, value) in properties {
        gst::prelude::GObjectExtManualGst::set_property_from_str(&element, name, value);
    }
    let mut harness = gst_check::Harness::with_element(&element, Some("sink"), Some("src"));
    harness.set_src_caps_str(CAPS);
    harness
}

/// Returns the text of a line without its end. Asserts that the buffer has exactly one line.
fn text(buffer: &gst::BufferRef) -> String {
    let bytes = buffer.map_readable().unwrap();
    let text = std::str::from_utf8(&bytes).expect("a line is UTF-8");
    let line = text.strip_suffix('\n').expect("a line ends with a line feed");
    assert!(!line.contains('\n') && !line.contains('\r'), "{line:?}");
    line.to_owned()
}

/// Returns the line for a frame of 640x480, to which `prepare` adds metadata.
fn line_of(prepare: impl FnOnce(&mut gst::BufferRef)) -> String {
    let mut harness = harness(&[]);
    let mut buffer = gst::Buffer::with_size(640 * 480).unwrap();
    prepare(buffer.get_mut().unwrap());
    text(&harness.push_and_pull(buffer).unwrap())
}
