// SPDX-License-Identifier: MIT OR Apache-2.0
//! Warnings of `nmsfilter` that are posted once per run.

use gstnmsfilter::input::custom_meta::{NewTensor, attach, attach_of};
use gstnmsfilter::input::region::TensorRegion;
use nmsfilter_core::geometry::FrameRegion;

use crate::support::pipeline::{Ended, init, intercept, parse, regions, run, watch};

/// Returns `count` windows that do not overlap.
fn windows(count: usize) -> NewTensor {
    init();
    let rows = (0..count).flat_map(|i| [(i % 60) as f32 * 10.0, (i / 60) as f32 * 10.0, 8.0, 0.9]);
    NewTensor::from_vec::<f32>("windows", &[count, 4], rows.collect()).unwrap()
}

/// Runs three frames of 640x480 with these tensors through `elements`, of which the last is named
/// `nms`. Returns the number of regions of each frame, and the messages.
fn frames(elements: &str, tensors: Vec<NewTensor>) -> (Vec<usize>, Ended) {
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=3 ! video/x-raw,width=640,height=480
           ! {elements} ! fakesink"
    ));
    intercept(&pipeline, "in", move |buffer| {
        tensors.iter().for_each(|tensor| attach(buffer, tensor).unwrap());
    });
    let seen = watch(&pipeline, "nms", |buffer| regions(buffer).len());
    let ended = run(&pipeline);
    assert_eq!(ended.error, None, "{elements}");
    let seen = seen.lock().unwrap().clone();
    (seen, ended)
}

fn assert_warns_once(ended: &Ended, parts: &[&str]) {
    let [warning] = &ended.warnings[..] else { panic!("one warning, got {:?}", ended.warnings) };
    for part in parts {
        assert!(warning.contains(part), "expected {part:?} in: {warning}");
    }
}

#[test]
fn a_second_nmsfilter_that_attaches_the_same_regions_gives_a_warning_that_says_what_to_set() {
    let (seen, ended) = frames("nmsfilter ! nmsfilter name=nms", vec![windows(5)]);
    assert_eq!(seen, [10; 3]);
    assert_warns_once(
        &ended,
        &["already carries the best region that is about to be attached", "keep-tensors=false"],
    );
    let elements = "nmsfilter keep-tensors=false ! nmsfilter name=nms";
    let (seen, ended) = frames(elements, vec![windows(5)]);
    assert_eq!(seen, [5; 3]);
    assert_warns_once(&ended, &["no buffer of the stream carried tensors"]);
}

#[test]
fn regions_of_other_types_or_rectangles_give_no_warning() {
    let pipeline = parse(
        "videotestsrc name=in num-buffers=3 ! video/x-raw,width=640,height=480
           ! nmsfilter name=nms ! fakesink",
    );
    let tensor = windows(2);
    intercept(&pipeline, "in", move |buffer| {
        use gst_video::VideoRegionOfInterestMeta as Region;
        Region::add(buffer, "truth", (0, 0, 8, 8));
        Region::add(buffer, "object", (0, 0, 8, 9));
        attach(buffer, &tensor).unwrap();
    });
    let ended = run(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
}

/// A detector on the regions of another one finds the box of the region, with a label that both have.
#[test]
fn a_box_in_a_region_of_its_size_is_no_repetition() {
    let run_with = |elements: &str, parent: i32| {
        let pipeline = parse(&format!(
            "videotestsrc name=in num-buffers=3 ! video/x-raw,width=640,height=480
               ! {elements} ! fakesink"
        ));
        intercept(&pipeline, "in", move |buffer| {
            use gst_video::VideoRegionOfInterestMeta as Region;
            Region::add(buffer, "object", (0, 0, 8, 8)).set_id(parent);
            let pixels = FrameRegion { left: 0, top: 0, width: 64, height: 64 };
            let region = TensorRegion { pixels, parent: Some(parent) };
            attach_of(buffer, &windows(1), None, Some(&region)).unwrap();
        });
        let seen = watch(&pipeline, "nms", |buffer| {
            gstnmsfilter::regions::iter(buffer)
                .map(|it| (it.rectangle, it.parent_id))
                .collect::<Vec<_>>()
        });
        let ended = run(&pipeline);
        assert_eq!(ended.error, None);
        (seen.lock().unwrap()[0].clone(), ended)
    };
    for parent in [0, 4] {
        let (seen, ended) = run_with("nmsfilter name=nms model-width=64 model-height=64", parent);
        assert_eq!(seen, [([0, 0, 8, 8], -1), ([0, 0, 8, 8], parent)]);
        assert_eq!(ended.warnings, [""; 0]);
        let elements = "nmsfilter model-width=64 model-height=64
           ! nmsfilter name=nms model-width=64 model-height=64";
        let (seen, ended) = run_with(elements, parent);
        assert_eq!(seen.len(), 3);
        assert_warns_once(&ended, &["already carries the best region"]);
    }
}

#[test]
fn more_tensors_than_the_limit_give_a_warning_with_their_number() {
    let other = |i: usize| NewTensor::from_vec(&format!("other-{i}"), &[1], vec![0.0f32]).unwrap();
    let with_others = |count: usize| {
        let mut tensors = vec![windows(2)];
        tensors.extend((0..count).map(other));
        frames("nmsfilter name=nms", tensors)
    };
    let (seen, ended) = with_others(15);
    assert_eq!((seen, ended.warnings), (vec![2; 3], vec![]));
    let (seen, ended) = with_others(19);
    assert_eq!(seen, [2; 3]);
    assert_warns_once(&ended, &["carries 20 tensors, of which 16 are read"]);
}

#[test]
fn reaching_the_default_max_detections_gives_a_warning() {
    let with = |properties: &str, count| {
        frames(&format!("nmsfilter name=nms {properties}"), vec![windows(count)])
    };
    let (seen, ended) = with("", 1200);
    assert_eq!(seen, [1000; 3]);
    assert_warns_once(
        &ended,
        &["1000 detections or more", "set max-detections to a larger number, or to 0"],
    );

    for (properties, count, left) in [
        ("", 999, 999),
        ("max-detections=0", 1200, 1200),
        ("max-detections=1100", 1200, 1100),
        ("max-detections=10", 1200, 10),
    ] {
        let (seen, ended) = with(properties, count);
        assert_eq!((seen, ended.warnings), (vec![left; 3], vec![]), "{properties}");
    }
}

#[test]
fn reaching_a_max_detections_that_was_set_is_only_logged() {
    use std::sync::{Arc, Mutex};
    init();
    let lines = Arc::new(Mutex::new(Vec::new()));
    gst::log::set_active(true);
    gst::log::set_threshold_for_name("nmsfilter", gst::DebugLevel::Info);
    let function = gst::log::add_log_function({
        let lines = lines.clone();
        move |category, level, _, _, _, object, message| {
            let named = object.is_some_and(|object| object.to_string().contains("bounded"));
            let text = message.get().map(|text| text.to_string()).unwrap_or_default();
            if category.name() == "nmsfilter" && named && text.contains("max-detections=7") {
                lines.lock().unwrap().push((level, text));
            }
        }
    });
    let pipeline = parse(
        "videotestsrc name=in num-buffers=3 ! video/x-raw,width=640,height=480
           ! nmsfilter name=bounded max-detections=7 ! fakesink",
    );
    let tensor = windows(9);
    intercept(&pipeline, "in", move |buffer| attach(buffer, &tensor).unwrap());
    let ended = run(&pipeline);
    gst::log::remove_log_function(function);
    gst::log::unset_threshold_for_name("nmsfilter");
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
    let expected = (gst::DebugLevel::Info, "max-detections=7 is reached".to_owned());
    assert_eq!(*lines.lock().unwrap(), [expected]);
}

#[test]
fn each_run_gives_the_warning_again() {
    let pipeline = parse(
        "videotestsrc name=in num-buffers=3 ! video/x-raw,width=640,height=480
           ! nmsfilter ! nmsfilter name=nms ! fakesink",
    );
    let tensor = windows(2);
    intercept(&pipeline, "in", move |buffer| attach(buffer, &tensor).unwrap());
    for _ in 0..2 {
        assert_warns_once(&run(&pipeline), &["keep-tensors=false"]);
    }
}
