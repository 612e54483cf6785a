// SPDX-License-Identifier: MIT OR Apache-2.0
//! The times for which warnings wait: running times of the stream, which seeks and flushes start again.

use gst::prelude::*;

use crate::support::pipeline::{init, parse};

/// A pipeline of frames without tensors, ten a second, that is paused.
struct Frames {
    pipeline: gst::Pipeline,
    sink: gst::Element,
}

impl Frames {
    fn new(properties: &str) -> Self {
        init();
        let pipeline = parse(&format!(
            "videotestsrc num-buffers=1000000 {properties} ! video/x-raw,width=64,height=48,framerate=10/1
               ! nmsfilter ! appsink name=out sync=false max-buffers=1"
        ));
        let sink = pipeline.by_name("out").unwrap();
        pipeline.set_state(gst::State::Paused).unwrap();
        pipeline.state(gst::ClockTime::from_seconds(20)).0.unwrap();
        pipeline.set_state(gst::State::Playing).unwrap();
        Self { pipeline, sink }
    }

    fn seek(&self, seconds: u64) {
        let flags = gst::SeekFlags::FLUSH | gst::SeekFlags::ACCURATE;
        self.pipeline.seek_simple(flags, gst::ClockTime::from_seconds(seconds)).unwrap();
    }

    /// Takes frames. Returns the number of warnings since the last call.
    fn take(&self, frames: usize) -> usize {
        for _ in 0..frames {
            self.sink.emit_by_name::<Option<gst::Sample>>("pull-sample", &[]).unwrap();
        }
        let bus = self.pipeline.bus().unwrap();
        std::iter::from_fn(|| bus.pop_filtered(&[gst::MessageType::Warning])).count()
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.pipeline.set_state(gst::State::Null).unwrap();
    }
}

#[test]
fn a_second_without_tensors_is_one_of_the_stream() {
    let frames = Frames::new("");
    // The element can be a few frames ahead of the sink.
    assert_eq!(frames.take(6), 0);
    assert_eq!(frames.take(8), 1);
    assert_eq!(frames.take(20), 0);
}

#[test]
fn a_seek_forward_over_a_gap_is_no_time_without_tensors() {
    let frames = Frames::new("");
    assert_eq!(frames.take(5), 0);
    for seconds in [3600, 7200, 60, 0] {
        frames.seek(seconds);
        assert_eq!(frames.take(5), 0, "to {seconds} s");
    }
    assert_eq!(frames.take(10), 1);
}

#[test]
fn a_flush_starts_the_second_again() {
    let frames = Frames::new("");
    for _ in 0..4 {
        assert_eq!(frames.take(5), 0);
        let src = frames.pipeline.iterate_sources().next().unwrap().unwrap();
        let pad = src.static_pad("src").unwrap();
        // Like a seek to the current position.
        let position = pad.query_position::<gst::ClockTime>().unwrap();
        frames.pipeline.seek_simple(gst::SeekFlags::FLUSH, position).unwrap();
    }
    assert_eq!(frames.take(12), 1);
}

#[test]
fn without_timestamps_the_second_is_of_the_system_clock() {
    init();
    let mut harness = gst_check::Harness::new("nmsfilter");
    harness.set_src_caps_str("video/x-raw,format=GRAY8,width=64,height=48");
    let bus = gst::Bus::new();
    harness.element().unwrap().set_bus(Some(&bus));
    let warnings = || {
        std::iter::from_fn(|| bus.pop())
            .filter(|it| it.type_() == gst::MessageType::Warning)
            .count()
    };
    let mut push = || {
        harness.push(gst::Buffer::new()).unwrap();
        harness.pull().unwrap();
    };
    (0..100).for_each(|_| push());
    assert_eq!(warnings(), 0);
    std::thread::sleep(std::time::Duration::from_millis(1010));
    push();
    assert_eq!(warnings(), 1);
}
