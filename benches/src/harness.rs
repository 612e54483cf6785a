// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs `nmsfilter` without a pipeline. In: tensors. Out: buffers and times.

use std::time::{Duration, Instant};

use gst_check::Harness;
use gstnmsfilter::input::custom_meta::{NewTensor, attach};

use crate::measure::Times;

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

/// Pushes `count` buffers through `harness`: one per `interval`, beginning at `start`. The buffers
/// use `tensors` in turn. Returns the times.
pub fn push_paced(
    harness: &mut Harness,
    tensors: &[NewTensor],
    start: Instant,
    interval: Duration,
    count: u32,
) -> Times {
    let times = (0..count).map(|i| {
        let due = start + interval * i;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let buffer = buffer(&tensors[i as usize % tensors.len()]);
        let began = Instant::now();
        harness.push_and_pull(buffer).expect("the element takes buffers");
        began.elapsed().as_secs_f64() * 1e6
    });
    Times::new(times.collect())
}
