// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties that change in turn while frames are decoded: the values in force, and the warnings.

use gst::glib;
use gst::glib::translate::IntoGlib;
use gst::prelude::*;
use gstnmsfilter::elements::nmsfilter::enums;
use gstnmsfilter::input::custom_meta::{NewTensor, attach};
use nmsfilter_core::decoder::BoxFormat;
use nmsfilter_core::engine::{Method, Overlap, RegionEdges};

use crate::support::pipeline::{Ended, init, intercept, parse, regions, run, watch};

/// The number of a frame, and the property and value that are set before it.
type Change = (u64, &'static str, &'static str);

/// Returns a box of 40 x 40 pixels with class 0 of two.
fn output() -> NewTensor {
    init();
    let mut elements = vec![0.0; 6 * 10];
    for (number, value) in [100.0, 100.0, 40.0, 40.0, 0.9].into_iter().enumerate() {
        elements[number * 10] = value;
    }
    NewTensor::from_vec("yolo-v8-out", &[1, 6, 10], elements).unwrap()
}

/// Runs a stream at 50 frames per second with these changes. Returns the regions of each frame, and
/// the messages.
fn stream(frames: u64, changes: &'static [Change]) -> (Vec<String>, Ended) {
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers={frames} ! video/x-raw,width=640,height=480,\
         framerate=50/1 ! nmsfilter name=nms ! fakesink"
    ));
    let tensor = output();
    intercept(&pipeline, "in", move |buffer| attach(buffer, &tensor).unwrap());
    let nms = pipeline.by_name("nms").unwrap();
    nms.static_pad("sink").unwrap().add_probe(gst::PadProbeType::BUFFER, {
        let nms = nms.clone();
        move |_, info| {
            let frame = info.buffer().unwrap().offset();
            for (_, property, value) in changes.iter().filter(|change| change.0 == frame) {
                nms.set_property_from_str(property, value);
            }
            gst::PadProbeReturn::Ok
        }
    });
    let seen = watch(&pipeline, "nms", |buffer| {
        let found = regions(buffer)
            .into_iter()
            .map(|(kind, [x, y, w, h])| format!("{kind} {x},{y} {w}x{h}"));
        found.collect::<Vec<_>>().join(" ")
    });
    let ended = run(&pipeline);
    let seen = seen.lock().unwrap().clone();
    (seen, ended)
}

const UNSCALED: &str = "class-0 80,80 40x40";

#[test]
fn model_width_and_model_height_can_be_set_at_different_frames() {
    let (seen, ended) = stream(
        60,
        &[
            (2, "model-width", "320"),
            (5, "model-height", "240"),
            (8, "model-height", "0"),
            (9, "model-width", "0"),
        ],
    );
    assert_eq!(ended.error, None);
    assert_eq!(ended.warnings, [] as [&str; 0], "for less than a second");
    let scaled = "class-0 160,160 80x80";
    let expected: Vec<&str> =
        (0..60).map(|frame| if (5..9).contains(&frame) { scaled } else { UNSCALED }).collect();
    assert_eq!(seen, expected);
}

/// Invalid settings, and the beginning of the warning.
const INVALID: [(&[Change], &str); 11] = [
    (&[(3, "model-width", "320")], "model-width and model-height go together; got 320 and 0"),
    (
        &[(3, "letterbox", "center")],
        "letterbox needs the size of the model's input: set model-width",
    ),
    (&[(3, "classes", "cat")], "classes: there is no class \"cat\""),
    (&[(3, "class-thresholds", "cat:0.5")], "class-thresholds: there is no class \"cat\""),
    (&[(3, "class-iou-thresholds", "0:1.5")], "class-iou-thresholds: cannot read \"0:1.5\""),
    (&[(3, "class-max-detections", "0:-1")], "class-max-detections: cannot read \"0:-1\""),
    (&[(3, "class-sizes", "0:9x9..8x8")], "class-sizes: cannot read \"0:9x9..8x8\""),
    (&[(3, "max-size", "8"), (3, "min-size", "9")], "min-size is 9 and max-size 8"),
    (
        &[(3, "num-classes", "80")],
        "tensor yolo-v8-out (f32 1x6x10): read by decoder yolov8 it has 2",
    ),
    (&[(3, "decoder", "boxes")], "no tensor fits decoder boxes"),
    (&[(3, "model-height", "320")], "model-width and model-height go together; got 0 and 320"),
];

#[test]
fn invalid_settings_leave_the_earlier_ones_in_force_and_give_one_warning() {
    for (changes, expected) in INVALID {
        // 150 frames take three seconds.
        let (seen, ended) = stream(150, changes);
        assert_eq!(ended.error, None, "{changes:?}");
        assert_eq!(seen, [UNSCALED; 150], "{changes:?}");
        let [warning] = &ended.warnings[..] else {
            panic!("{changes:?}: one warning, got {:?}", ended.warnings)
        };
        assert!(warning.starts_with(expected), "{changes:?}: {warning}");
        assert!(warning.ends_with("; the settings from before the change stay in force"));
        let (_, ended) = stream(53, changes);
        assert_eq!(ended.warnings, [] as [&str; 0], "{changes:?}: not before a second is over");
    }
}

#[test]
fn invalid_settings_before_the_first_decoded_frame_are_an_error() {
    for (changes, expected) in INVALID {
        let pipeline = parse(
            "videotestsrc name=in num-buffers=3 ! video/x-raw,width=640,height=480
               ! nmsfilter name=nms ! fakesink",
        );
        let tensor = output();
        intercept(&pipeline, "in", move |buffer| attach(buffer, &tensor).unwrap());
        let nms = pipeline.by_name("nms").unwrap();
        for (_, property, value) in changes {
            nms.set_property_from_str(property, value);
        }
        let seen = watch(&pipeline, "nms", regions);
        let ended = run(&pipeline);
        assert!(ended.error().contains(expected), "{changes:?}: {}", ended.error());
        assert_eq!(seen.lock().unwrap().len(), 0);
    }
}

#[test]
fn settings_that_become_valid_come_into_force_together() {
    let (seen, ended) = stream(
        300,
        &[(3, "letterbox", "center"), (4, "score-threshold", "0.95"), (200, "letterbox", "none")],
    );
    assert_eq!(ended.error, None);
    let [_, silence] = &ended.warnings[..] else { panic!("{:?}", ended.warnings) };
    assert!(silence.contains("below the threshold 0.95"), "{silence}");
    let expected: Vec<&str> =
        (0..300).map(|frame| if frame < 200 { UNSCALED } else { "" }).collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_second_invalid_setting_gives_a_second_warning() {
    let (_, ended) = stream(
        200,
        &[(3, "letterbox", "center"), (100, "classes", "cat"), (101, "letterbox", "none")],
    );
    assert_eq!(ended.error, None);
    let [first, second] = &ended.warnings[..] else { panic!("two: {:?}", ended.warnings) };
    assert!(first.starts_with("letterbox needs") && second.starts_with("classes:"), "{second}");
}

#[test]
fn tensors_that_fit_neither_the_old_nor_the_new_settings_give_the_error_of_the_new() {
    let pipeline = parse(
        "videotestsrc name=in num-buffers=9 ! video/x-raw,width=640,height=480
           ! nmsfilter name=nms ! fakesink",
    );
    let (two, four) =
        (output(), NewTensor::from_vec("out", &[1, 8, 10], vec![0.0f32; 80]).unwrap());
    let nms = pipeline.by_name("nms").unwrap();
    intercept(&pipeline, "in", move |buffer| {
        let early = buffer.offset() < 3;
        attach(buffer, if early { &two } else { &four }).unwrap();
        if buffer.offset() == 2 {
            nms.set_property("num-classes", 5u32);
        }
    });
    let ended = run(&pipeline);
    assert!(ended.error().contains("set num-classes=4 too"), "{}", ended.error());
}

#[test]
fn settings_for_another_model_come_into_force_with_the_first_tensors_that_fit() {
    let pipeline = parse(
        "videotestsrc name=in num-buffers=9 ! video/x-raw,width=640,height=480
           ! nmsfilter name=nms ! fakesink",
    );
    let first = output();
    let boxes = NewTensor::from_vec("a", &[1, 4], vec![10.0f32, 10.0, 30.0, 40.0]).unwrap();
    let scores = NewTensor::from_vec("b", &[1], vec![0.9f32]).unwrap();
    let nms = pipeline.by_name("nms").unwrap();
    intercept(&pipeline, "in", move |buffer| {
        match buffer.offset() {
            frame if frame < 5 => attach(buffer, &first).unwrap(),
            _ => [&boxes, &scores].into_iter().for_each(|tensor| attach(buffer, tensor).unwrap()),
        }
        if buffer.offset() == 2 {
            nms.set_property_from_str("decoder", "boxes");
        }
    });
    let seen = watch(&pipeline, "nms", |buffer| regions(buffer).remove(0).1);
    let ended = run(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
    let (seen, first, second) = (seen.lock().unwrap(), [80, 80, 40, 40], [10, 10, 20, 30]);
    assert_eq!(*seen, [first, first, first, first, first, second, second, second, second]);
}

#[test]
fn names_of_enumerations_of_the_core_equal_the_nicks_of_the_properties() {
    let formats = glib::EnumClass::new::<enums::BoxFormat>();
    for format in [enums::BoxFormat::Corners, enums::BoxFormat::Center, enums::BoxFormat::Square] {
        let nick = formats.value(format.into_glib()).unwrap().nick();
        assert_eq!(nick, BoxFormat::from(format).name());
    }
    let methods = glib::EnumClass::new::<enums::Method>();
    let nicks: Vec<&str> = methods.values().iter().map(|value| value.nick()).collect();
    assert_eq!(nicks, Method::ALL.map(Method::name));
    init();
    let nms = gst::ElementFactory::make("nmsfilter").build().unwrap();
    for method in Method::ALL {
        nms.set_property_from_str("method", method.name());
        assert_eq!(Method::from(nms.property::<enums::Method>("method")), method);
    }
    let edges = glib::EnumClass::new::<enums::RegionEdges>();
    use enums::RegionEdges::{Drop, Keep, Lower};
    for edge in [Keep, Drop, Lower] {
        let nick = edges.value(edge.into_glib()).unwrap().nick();
        assert_eq!(nick, RegionEdges::from(edge).name());
    }
    let overlaps = glib::EnumClass::new::<enums::Overlap>();
    use enums::Overlap::{Diou, Iou, Representative, Smaller};
    for overlap in [Iou, Representative, Smaller, Diou] {
        let nick = overlaps.value(overlap.into_glib()).unwrap().nick();
        assert_eq!(nick, Overlap::from(overlap).name());
    }
}
