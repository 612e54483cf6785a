// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs `nmsfilter` without a pipeline. In: tensors. Out: buffers.

use gst_check::Harness;
use gstnmsfilter::input::custom_meta::{NewTensor, attach};

/// Makes a harness that contains one `nmsfilter`.
pub fn harness(backend: &str) -> Harness {
    // The backend is set before the harness starts the element, which reads it then.
    let element = gst::ElementFactory::make("nmsfilter").property_from_str("backend", backend);
    // The number of regions is unlimited.
    let element = element.property("max-detections", 0u32);
    let element = element.build().expect("nmsfilter is registered");
    harness_of(&element)
}

/// Makes a harness that contains one element.
pub fn harness_of(element: &gst::Element) -> Harness {
    let mut harness = Harness::with_element(element, Some("sink"), Some("src"));
    harness.set_src_caps_str("video/x-raw,format=GRAY8,width=1920,height=1080,framerate=50/1");
    harness
}

/// Makes a buffer with this tensor.
pub fn buffer(tensor: &NewTensor) -> gst::Buffer {
    let mut buffer = gst::Buffer::new();
    let writable = buffer.get_mut().expect("it is new");
    attach(writable, tensor).expect("the plugin's metadata can be added");
    buffer
}
