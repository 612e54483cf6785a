// SPDX-License-Identifier: MIT OR Apache-2.0
//! Live sources: frames that pass without inference, frames that are dropped because they are late, and the latency
//! that the element reports.

use std::path::Path;

use gst::prelude::*;
use gst_check::Harness;
use gstnmsfilter::input::inference_mark::is_inferred;

use crate::element::{self, file, has_onnx_runtime, ids, inference, stat};
use crate::support::onnx::{Element, OnnxModel, constant, identity};
use crate::support::pipeline::{self, parse, regions, watch};

const DIMS: [i64; 4] = [1, 3, 12, 16];
const CAPS: &str = "video/x-raw,format=RGB,width=16,height=12,framerate=50/1";
/// The time between two frames, in milliseconds.
const STEP: u64 = 20;

/// Returns a model that finds one object.
fn with_one_object() -> OnnxModel {
    constant(DIMS, "found", &[1, 4], &[2.0, 3.0, 8.0, 0.9]).metadata("found", "windows")
}

/// An element with a bus, to which frames are pushed.
struct Camera {
    harness: Harness,
    inference: gst::Element,
    bus: gst::Bus,
}

impl Camera {
    fn new(model: &Path) -> Self {
        Self::with(model, &[])
    }

    fn with(model: &Path, properties: &[(&str, &str)]) -> Self {
        let mut builder = gst::ElementFactory::make("ortinference")
            .property("model", model.to_str().unwrap())
            .property_from_str("provider", "cpu");
        for (name, value) in properties {
            builder = builder.property_from_str(name, value);
        }
        let inference = builder.build().unwrap();
        let bus = gst::Bus::new();
        inference.set_bus(Some(&bus));
        let mut harness = Harness::with_element(&inference, Some("sink"), Some("src"));
        harness.set_src_caps_str(CAPS);
        Self { harness, inference, bus }
    }

    /// Pushes the frame with this number. Returns it as it leaves the element, unless it is dropped.
    fn push(&mut self, number: u64) -> Option<gst::Buffer> {
        let mut frame = gst::Buffer::from_mut_slice(vec![number as u8; 16 * 12 * 3]);
        frame.get_mut().unwrap().set_pts(gst::ClockTime::from_mseconds(number * STEP));
        self.harness.push(frame).unwrap();
        self.harness.try_pull()
    }

    /// Pushes the frames with these numbers. Returns the numbers of those that were inferred. All others must pass.
    fn inferred(&mut self, numbers: std::ops::Range<u64>) -> Vec<u64> {
        let is_inferred = |number: &u64| {
            let frame = self.push(*number).expect("no frame is dropped");
            let inferred = is_inferred(&frame).expect("each frame has a mark");
            assert_eq!(ids(&frame).len(), usize::from(inferred), "frame {number}");
            inferred
        };
        numbers.filter(is_inferred).collect()
    }

    fn stat(&self, name: &str) -> u64 {
        self.inference.property::<gst::Structure>("stats").get(name).unwrap()
    }

    /// Tells the element that a frame was late by this time, as a sink does.
    fn report_late(&mut self, frame: u64, late_by: u64) {
        let event = gst::event::Qos::new(
            gst::QOSType::Underflow,
            0.5,
            late_by as i64 * 1_000_000,
            gst::ClockTime::from_mseconds(frame * STEP),
        );
        assert!(self.harness.push_upstream_event(event));
    }

    /// Returns whether the source is live, and the least and the greatest latency.
    fn latency(&self) -> (bool, gst::ClockTime, Option<gst::ClockTime>) {
        let mut query = gst::query::Latency::new();
        assert!(self.harness.sinkpad().expect("it has one").peer_query(&mut query));
        query.result()
    }

    /// Returns the number of messages LATENCY since the last call.
    fn latency_messages(&self) -> usize {
        std::iter::from_fn(|| self.bus.pop_filtered(&[gst::MessageType::Latency])).count()
    }
}

#[test]
fn by_default_every_frame_is_inferred() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let mut camera = Camera::new(&model);
    assert_eq!(camera.inferred(0..5), [0, 1, 2, 3, 4]);
    assert_eq!(["frames", "frames-skipped", "frames-dropped"].map(|n| camera.stat(n)), [5, 0, 0]);
}

#[test]
fn inference_interval_is_the_number_of_frames_that_pass_between_inferred_frames() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let mut camera = Camera::with(&model, &[("inference-interval", "2")]);
    assert_eq!(camera.inferred(0..10), [0, 3, 6, 9]);
    assert_eq!(["frames", "frames-skipped", "frames-dropped"].map(|n| camera.stat(n)), [4, 6, 0]);
}

#[test]
fn max_rate_is_the_number_of_inferred_frames_per_second_of_timestamps() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let mut camera = Camera::with(&model, &[("max-rate", "12.5")]);
    // Due each 80 ms.
    assert_eq!(camera.inferred(0..13), [0, 4, 8, 12]);
    assert_eq!(camera.stat("frames-skipped"), 9);
}

#[test]
fn frames_without_inference_keep_pixels_and_timestamps_and_have_no_tensors() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let mut camera = Camera::with(&model, &[("inference-interval", "1")]);
    camera.push(0).unwrap();
    let frame = camera.push(1).unwrap();
    assert_eq!(frame.pts(), Some(gst::ClockTime::from_mseconds(STEP)));
    assert!(frame.map_readable().unwrap().iter().all(|&byte| byte == 1));
    assert_eq!(ids(&frame), [""; 0]);
}

#[test]
fn both_limits_can_change_while_playing() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let mut camera = Camera::new(&model);
    assert_eq!(camera.inferred(0..3), [0, 1, 2]);
    camera.inference.set_property("inference-interval", 3u32);
    assert_eq!(camera.inferred(3..9), [6]);
    camera.inference.set_property("inference-interval", 0u32);
    assert_eq!(camera.inferred(9..11), [9, 10]);
    camera.inference.set_property("max-rate", 5.0);
    assert_eq!(camera.inferred(11..21), [20]);
    camera.inference.set_property("max-rate", 0.0);
    assert_eq!(camera.inferred(21..23), [21, 22]);
    let warnings = [gst::MessageType::Warning];
    assert!(camera.bus.pop_filtered(&warnings).is_none(), "no value needs a restart");
}

#[test]
fn the_first_frame_after_a_seek_is_inferred() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let mut camera = Camera::with(&model, &[("inference-interval", "9")]);
    assert_eq!(camera.inferred(0..3), [0]);
    assert!(camera.harness.push_event(gst::event::FlushStart::new()));
    assert!(camera.harness.push_event(gst::event::FlushStop::new(true)));
    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
    assert!(camera.harness.push_event(gst::event::Segment::new(&segment)));
    assert_eq!(camera.inferred(50..53), [50]);
}

#[test]
fn late_frames_are_dropped_before_inference_counted_and_reported() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let mut camera = Camera::with(&model, &[("qos", "true")]);
    assert!(camera.push(0).is_some());
    // Frame 0 was 50 ms late at the sink, so frames up to 50 ms come too late, too.
    camera.report_late(0, 50);
    let passed: Vec<u64> = (1..6).filter(|&number| camera.push(number).is_some()).collect();
    assert_eq!(passed, [3, 4, 5]);
    assert_eq!(["frames", "frames-skipped", "frames-dropped"].map(|n| camera.stat(n)), [4, 0, 2]);

    let messages: Vec<_> =
        std::iter::from_fn(|| camera.bus.pop_filtered(&[gst::MessageType::Qos])).collect();
    let timestamps = messages.iter().map(|message| match message.view() {
        gst::MessageView::Qos(qos) => qos.get().3.map(gst::ClockTime::mseconds),
        other => panic!("{other:?}"),
    });
    assert_eq!(timestamps.collect::<Vec<_>>(), [Some(20), Some(40)]);
}

#[test]
fn without_qos_late_frames_are_inferred() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let mut camera = Camera::new(&model);
    camera.push(0).unwrap();
    camera.report_late(0, 50);
    assert_eq!(camera.inferred(1..4), [1, 2, 3]);
    assert_eq!(camera.stat("frames-dropped"), 0);
}

#[test]
fn the_latency_of_a_frame_is_added_to_the_latency_of_the_source() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let mut camera = Camera::new(&model);
    let source = gst::ClockTime::from_mseconds(30);
    camera.harness.set_upstream_latency(source);
    let (is_live, least, greatest) = camera.latency();
    assert_eq!((is_live, least), (true, source), "before the first frame");
    assert_eq!(camera.latency_messages(), 0);
    // The first frame is not measured, since it can be slow.
    camera.push(0).unwrap();
    assert_eq!((camera.latency().1, camera.latency_messages()), (source, 0));
    camera.push(1).unwrap();
    assert_eq!(camera.latency_messages(), 1, "the pipeline distributes the new latency");
    let (_, least_now, greatest_now) = camera.latency();
    let added = least_now - least;
    assert!(!added.is_zero());
    assert_eq!(greatest_now, greatest.map(|greatest| greatest + added));
}

#[test]
fn a_file_needs_no_message_about_latency() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let mut camera = Camera::new(&model);
    let sink = camera.harness.element().unwrap().static_pad("sink").unwrap();
    sink.add_probe(gst::PadProbeType::QUERY_UPSTREAM, |_, info| {
        let query = info.query_mut().map(|query| query.view_mut());
        let Some(gst::QueryViewMut::Latency(query)) = query else { return gst::PadProbeReturn::Ok };
        query.set(false, gst::ClockTime::ZERO, None);
        gst::PadProbeReturn::Handled
    });
    assert!(!camera.latency().0);
    assert_eq!(camera.inferred(0..3), [0, 1, 2]);
    assert_eq!(camera.latency_messages(), 0);
}

#[test]
fn batch_timeout_is_part_of_the_latency_where_streams_share_a_batch() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity("n,3,12,16", Element::F32));
    let timeout = ("batch-timeout", "700");
    let shared = [("model-instance-id", "latency"), ("batch-size", "2"), timeout];
    let cases: [(&[(&str, &str)], u64); 3] =
        [(&shared, 700), (&[timeout], 0), (&[("model-instance-id", "one"), timeout], 0)];
    for (properties, expected) in cases {
        let camera = Camera::with(&model, properties);
        let expected = gst::ClockTime::from_mseconds(expected);
        assert_eq!(camera.latency().1, expected, "{properties:?}");
    }
}

#[test]
fn lines_of_json_say_which_frames_were_inferred() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&with_one_object());
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=4 ! {CAPS} ! {} ! nmsfilter name=nms attach=roi
           ! videoconvert ! video/x-raw,format=I420 ! detectionjson name=lines ! fakesink",
        inference(&model, "provider=cpu inference-interval=1")
    ));
    let found = watch(&pipeline, "nms", |buffer| regions(buffer).len());
    let lines = watch(&pipeline, "lines", |line| {
        let line: serde_json::Value =
            serde_json::from_slice(&line.map_readable().unwrap()).unwrap();
        (line["inferred"].clone(), line["objects"].as_array().unwrap().len())
    });
    assert_eq!(pipeline::run(&pipeline).error, None);
    assert_eq!(*found.lock().unwrap(), [1, 0, 1, 0]);
    let expected = [(true.into(), 1), (false.into(), 0)];
    assert_eq!(*lines.lock().unwrap(), [expected.clone(), expected].concat());
    assert_eq!([stat(&pipeline, "frames"), stat(&pipeline, "frames-skipped")], [2, 2]);
}

#[test]
fn one_of_two_models_is_enough_for_an_inferred_frame() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&with_one_object());
    let other = format!("ortinference model={} provider=cpu inference-interval=1", model.display());
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=6 ! {CAPS} ! {other} ! {} ! fakesink",
        inference(&model, "provider=cpu inference-interval=2")
    ));
    let marks = watch(&pipeline, "inference", is_inferred);
    assert_eq!(pipeline::run(&pipeline).error, None);
    let expected = [true, false, true, true, true, false].map(Some);
    assert_eq!(*marks.lock().unwrap(), expected);
}

#[test]
fn a_line_of_a_frame_that_passed_no_inference_element_does_not_say_it() {
    element::init();
    let pipeline =
        parse("crowdtestsrc num-buffers=1 ! nmsfilter ! detectionjson name=lines ! fakesink");
    let lines = watch(&pipeline, "lines", |line| {
        let line: serde_json::Value =
            serde_json::from_slice(&line.map_readable().unwrap()).unwrap();
        line.get("inferred").cloned()
    });
    assert_eq!(pipeline::run(&pipeline).error, None);
    assert_eq!(*lines.lock().unwrap(), [None]);
}
