// SPDX-License-Identifier: MIT OR Apache-2.0
//! Labels, letterbox and size of the model that arrive with the tensors. They apply unless a
//! property is set, and may change in mid-stream.

use gst::prelude::*;
use gstnmsfilter::input::custom_meta::{NewTensor, attach};
use gstnmsfilter::input::model::{Letterbox, MEDIA_TYPE, ModelInfo};

use crate::support::pipeline::{Ended, Region, init, intercept, parse, regions, run, watch};

/// Returns a window of 64 x 64 pixels in a model's input of 640 x 640.
fn window() -> NewTensor {
    init();
    NewTensor::from_vec("windows", &[1, 4], vec![160.0f32, 200.0, 64.0, 0.9]).unwrap()
}

/// Returns the window with this model description.
fn window_of(info: &ModelInfo) -> NewTensor {
    window().with_model(info.to_caps().unwrap())
}

/// Returns a model description with all fields.
fn model() -> ModelInfo {
    init();
    let info = ModelInfo {
        size: Some([640, 640]),
        letterbox: Some(Letterbox::Center),
        ..ModelInfo::default()
    };
    ModelInfo { labels: ["person"].map(Into::into).into(), ..info }
}

/// Returns the regions of each frame of 1920 x 1080 pixels. `tensors` has the tensors of each frame
/// in turn.
fn stream(properties: &str, tensors: Vec<Vec<NewTensor>>) -> (Vec<Vec<Region>>, Ended) {
    stream_of([1920, 1080], properties, tensors)
}

/// Runs [`stream`] with frames of this size.
fn stream_of(
    [width, height]: [u32; 2],
    properties: &str,
    tensors: Vec<Vec<NewTensor>>,
) -> (Vec<Vec<Region>>, Ended) {
    let frames = tensors.len();
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers={frames} ! video/x-raw,width={width},height={height},framerate=50/1
           ! nmsfilter name=nms {properties} ! fakesink"
    ));
    intercept(&pipeline, "in", move |buffer| {
        let frame = buffer.offset() as usize;
        tensors[frame].iter().for_each(|tensor| attach(buffer, tensor).unwrap());
    });
    let seen = watch(&pipeline, "nms", regions);
    let ended = run(&pipeline);
    let seen = seen.lock().unwrap().clone();
    (seen, ended)
}

/// Returns the regions of one frame.
fn frame(properties: &str, tensors: Vec<NewTensor>) -> Vec<Region> {
    let (mut seen, ended) = stream(properties, vec![tensors]);
    assert_eq!((ended.error, ended.warnings), (None, vec![]), "{properties}");
    seen.remove(0)
}

/// Returns the regions of one frame whose properties contradict the model. Each item of `texts`
/// must be in a warning.
fn contradicting(properties: &str, tensors: Vec<NewTensor>, texts: &[&str]) -> Vec<Region> {
    let (mut seen, ended) = stream(properties, vec![tensors]);
    assert_eq!(ended.error, None, "{properties}");
    assert_eq!(ended.warnings.len(), texts.len(), "{properties}: {:?}", ended.warnings);
    for (warning, text) in ended.warnings.iter().zip(texts) {
        assert!(warning.contains(text), "{properties}: {warning}");
    }
    seen.remove(0)
}

/// Returns the error for one frame.
fn error(properties: &str, tensors: Vec<NewTensor>) -> String {
    stream(properties, vec![tensors]).1.error().to_owned()
}

fn region(label: &str, rect: [u32; 4]) -> Vec<Region> {
    vec![(label.to_owned(), rect)]
}

// The window in the frame: scaled by 3 and 1.6875 if it is stretched, or by 3 and 3 below 140 rows
// of border if it is letterboxed.
const UNSCALED: [u32; 4] = [160, 200, 64, 64];
const STRETCHED: [u32; 4] = [480, 338, 192, 108];
const CENTER: [u32; 4] = [480, 180, 192, 192];
const TOP_LEFT: [u32; 4] = [480, 600, 192, 192];

#[test]
fn size_letterbox_and_labels_of_the_tensors_are_used_without_properties() {
    assert_eq!(frame("", vec![window()]), region("object", UNSCALED));
    assert_eq!(frame("", vec![window_of(&model())]), region("person", CENTER));
    let top_left = ModelInfo { letterbox: Some(Letterbox::TopLeft), ..model() };
    assert_eq!(frame("", vec![window_of(&top_left)]), region("person", TOP_LEFT));
}

/// For a frame of 640x427, inference elements of earlier versions scaled 426 rows, which begin at
/// row 107. If all rows are scaled, they begin at row 106.
#[test]
fn a_frame_with_an_odd_side_is_mapped_as_its_inference_element_scaled_it() {
    let rect = |properties: &str, fields: &str| {
        init();
        let caps = format!("{MEDIA_TYPE}, width=640, height=640{fields}");
        let tensors = vec![vec![window().with_model(caps.parse().unwrap())]];
        let (seen, ended) = stream_of([640, 427], properties, tensors);
        assert_eq!((ended.error, ended.warnings), (None, vec![]), "{fields}");
        seen[0][0].1
    };
    assert_eq!(rect("", ", letterbox=center"), [160, 93, 64, 64]);
    assert_eq!(rect("letterbox=center", ", letterbox=center"), [160, 93, 64, 64]);
    assert_eq!(rect("", ", letterbox=center-exact"), [160, 94, 64, 64]);
    assert_eq!(rect("letterbox=center", ", letterbox=center-exact"), [160, 94, 64, 64]);
    // Without a description, all rows are scaled, as in programs that evaluate models.
    assert_eq!(rect("letterbox=center", ""), [160, 94, 64, 64]);
    // The frame is displayed as 320x427, with 80 columns of border at the left.
    let tall = ", letterbox=center-exact, pixel-aspect-ratio=1/2";
    assert_eq!(rect("", tall), [107, 133, 85, 43]);
}

#[test]
fn each_field_of_a_description_can_be_missing() {
    let none = ModelInfo::default();
    for (info, expected) in [
        (none.clone(), region("object", UNSCALED)),
        (
            ModelInfo { labels: ["person"].map(Into::into).into(), ..none.clone() },
            region("person", UNSCALED),
        ),
        (
            ModelInfo { labels: [""].map(Into::into).into(), ..none.clone() },
            region("class-0", UNSCALED),
        ),
        (ModelInfo { size: Some([640, 640]), ..none.clone() }, region("object", STRETCHED)),
        (ModelInfo { letterbox: Some(Letterbox::None), ..none }, region("object", UNSCALED)),
    ] {
        assert_eq!(frame("", vec![window_of(&info)]), expected, "{info:?}");
    }
}

#[test]
fn properties_override_the_model_description() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("model-labels.txt");
    std::fs::write(&file, "dog\n").unwrap();
    let tensors = || vec![window_of(&model())];
    let file = format!("label-file={}", file.display());
    assert_eq!(frame(&file, tensors()), region("dog", CENTER));
    for (letterbox, expected) in [("none", STRETCHED), ("top-left", TOP_LEFT)] {
        let properties = format!("letterbox={letterbox}");
        let text = format!("{properties}, but the tensors' model has letterbox center");
        let found = contradicting(&properties, tensors(), &[&text]);
        assert_eq!(found, region("person", expected));
    }
    for letterbox in ["auto", "center"] {
        assert_eq!(frame(&format!("letterbox={letterbox}"), tensors()), region("person", CENTER));
    }
    let size = |letterbox: &str, warnings: &[&str]| {
        let properties = format!("model-width=1280 model-height=1280 letterbox={letterbox}");
        contradicting(&properties, tensors(), warnings)
    };
    let (box_, input) = ("the tensors' model has letterbox", "has an input of 640x640");
    // The window is in the border, which has 280 rows.
    assert_eq!(size("auto", &[input, "all 1 anchors are rejected"]), []);
    assert_eq!(size("top-left", &[box_, input]), region("person", [240, 300, 96, 96]));
    assert_eq!(size("none", &[box_, input]), region("person", [240, 169, 96, 54]));
}

#[test]
fn the_letterbox_of_the_tensors_applies_to_a_size_from_the_properties() {
    let info = ModelInfo { letterbox: Some(Letterbox::Center), ..ModelInfo::default() };
    let size = "model-width=640 model-height=640";
    assert_eq!(frame(size, vec![window_of(&info)]), region("object", CENTER));
    let size = ModelInfo { size: Some([640, 640]), ..ModelInfo::default() };
    assert_eq!(frame("letterbox=center", vec![window_of(&size)]), region("object", CENTER));
}

#[test]
fn a_letterbox_without_any_size_is_an_error() {
    let info = ModelInfo { letterbox: Some(Letterbox::Center), ..ModelInfo::default() };
    let message = error("", vec![window_of(&info)]);
    assert!(message.contains("letterbox needs the size of the model's input"), "{message}");
    let message = error("model-width=640", vec![window_of(&model())]);
    assert!(message.contains("go together; got 640 and 0"), "{message}");
}

#[test]
fn the_first_tensor_with_a_model_is_used() {
    init();
    let other = NewTensor::from_vec("other", &[1], vec![0.0f32]).unwrap();
    let cat = ModelInfo { labels: ["cat"].map(Into::into).into(), ..ModelInfo::default() }
        .to_caps()
        .unwrap();
    let tensors = vec![other.clone(), window_of(&model()), other.with_model(cat)];
    assert_eq!(frame("", tensors), region("person", CENTER));
}

/// Returns three boxes of YOLOv8, one of each class, with an unknown id.
fn yolov8(labels: &[&str]) -> NewTensor {
    init();
    let mut elements = vec![0.0f32; 7 * 10];
    for class in 0..3 {
        let column = [100.0 * (class + 1) as f32, 100.0, 40.0, 40.0];
        for (number, value) in column.into_iter().enumerate() {
            elements[number * 10 + class] = value;
        }
        elements[(4 + class) * 10 + class] = 0.9 - 0.1 * class as f32;
    }
    let info = ModelInfo {
        labels: labels.iter().map(ToString::to_string).collect(),
        ..ModelInfo::default()
    };
    let tensor = NewTensor::from_vec("out", &[1, 7, 10], elements).unwrap();
    tensor.with_model(info.to_caps().unwrap())
}

fn kinds(properties: &str, labels: &[&str]) -> Vec<String> {
    frame(properties, vec![yolov8(labels)]).into_iter().map(|(kind, _)| kind).collect()
}

#[test]
fn the_number_of_labels_is_the_number_of_classes() {
    assert_eq!(kinds("", &["person", "bicycle", "car"]), ["person", "bicycle", "car"]);
    let message = error("", vec![yolov8(&[])]);
    assert!(message.contains("set decoder to the right one"), "{message}");
    let message = error("", vec![yolov8(&["person", "bicycle"])]);
    assert!(message.contains("there are 2 labels"), "{message}");
    let two = vec![yolov8(&["person", "bicycle"])];
    let found = contradicting("num-classes=3", two, &["has 2 labels, but decoder yolov8 reads 3"]);
    let names: Vec<_> = found.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(names, ["person", "bicycle", "class-2"]);
}

#[test]
fn rules_for_classes_take_labels_of_the_tensors() {
    let labels = ["person", "traffic light", "car"];
    assert_eq!(kinds("classes=car,person", &labels), ["person", "car"]);
    let thresholds = "class-thresholds=\"traffic light:0.85\"";
    assert_eq!(kinds(thresholds, &labels), ["person", "car"]);
    let message = error("classes=cat", vec![yolov8(&labels)]);
    let expected = "classes: there is no class \"cat\"; expected a number below 65536, or a label that \
                    regions have (3 labels loaded)";
    assert!(message.contains(expected), "{message}");
}

#[test]
fn a_model_that_changes_in_mid_stream_applies_from_its_first_frame_on() {
    let other = ModelInfo {
        size: Some([960, 540]),
        labels: ["cat"].map(Into::into).into(),
        ..ModelInfo::default()
    };
    let (model, other) = (model().to_caps().unwrap(), other.to_caps().unwrap());
    // Caps are equal but at another address, as from a producer that makes new caps for each frame.
    let copy = || model.copy();
    let with = |caps: &gst::Caps| vec![window().with_model(caps.clone())];
    let frames = vec![
        vec![window()],
        with(&model),
        with(&copy()),
        with(&copy()),
        with(&other),
        with(&other),
        with(&model),
        vec![window()],
        vec![],
        with(&other),
    ];
    let (seen, ended) = stream("", frames);
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
    let none = region("object", UNSCALED);
    let (person, cat) = (region("person", CENTER), region("cat", [320, 400, 128, 128]));
    let expected = [&none, &person, &person, &person, &cat, &cat, &person, &none, &vec![], &cat];
    assert_eq!(seen.iter().collect::<Vec<_>>(), expected);
}

#[test]
fn a_class_by_the_label_of_a_later_model_comes_into_force_with_that_model() {
    let pipeline = parse(
        "videotestsrc name=in num-buffers=9 ! video/x-raw,width=640,height=480,framerate=50/1
           ! nmsfilter name=nms ! fakesink",
    );
    let (first, second) = (yolov8(&["a", "b", "c"]), yolov8(&["a", "cat", "c"]));
    let nms = pipeline.by_name("nms").unwrap();
    intercept(&pipeline, "in", move |buffer| {
        let frame = buffer.offset();
        attach(buffer, if frame < 5 { &first } else { &second }).unwrap();
        if frame == 2 {
            nms.set_property("classes", "cat");
        }
    });
    let seen = watch(&pipeline, "nms", |buffer| {
        let kinds: Vec<String> = regions(buffer).into_iter().map(|(kind, _)| kind).collect();
        kinds.join(" ")
    });
    let ended = run(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
    let expected = ["a b c", "a b c", "a b c", "a b c", "a b c", "cat", "cat", "cat", "cat"];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[test]
fn malformed_caps_are_an_error_with_what_was_expected() {
    for (caps, expected) in [
        ("video/x-raw", "expected caps application/x-nmsfilter-model, got video/x-raw"),
        (
            &format!("{MEDIA_TYPE}, width=0, height=9"),
            "expected width of type int, 1 to 65535, got 0",
        ),
        (
            &format!("{MEDIA_TYPE}, letterbox=left"),
            "expected letterbox as one of none, center-exact",
        ),
        (
            &format!("{MEDIA_TYPE}, labels=person"),
            "expected labels as an array of strings, got gch",
        ),
    ] {
        let tensor = window().with_model(caps.parse().unwrap());
        let message = error("", vec![tensor]);
        assert!(message.starts_with(&format!("the tensors' model: {expected}")), "{message}");
    }
}

#[test]
fn after_malformed_caps_the_element_can_start_again() {
    init();
    let mut harness = gst_check::Harness::new("nmsfilter");
    harness.set_src_caps_str("video/x-raw,format=GRAY8,width=1920,height=1080,framerate=50/1");
    let buffer = |caps: &str| {
        let mut buffer = gst::Buffer::new();
        let tensor = window().with_model(caps.parse().unwrap());
        attach(buffer.get_mut().unwrap(), &tensor).unwrap();
        buffer
    };
    assert!(harness.push(buffer(MEDIA_TYPE)).is_ok());
    let malformed = buffer(&format!("{MEDIA_TYPE}, width=1"));
    assert_eq!(harness.push(malformed), Err(gst::FlowError::Error));
    let element = harness.element().unwrap();
    element.set_state(gst::State::Ready).unwrap();
    element.set_state(gst::State::Playing).unwrap();
    harness.set_src_caps_str("video/x-raw,format=GRAY8,width=1920,height=1080,framerate=50/1");
    assert!(harness.push(buffer(&format!("{MEDIA_TYPE}, labels=<a>"))).is_ok());
}

/// The buffer behind a tee is shared, so the element attaches regions to a copy.
#[test]
fn a_copy_of_a_shared_buffer_keeps_the_model() {
    let pipeline = parse(
        "videotestsrc name=in num-buffers=3 ! video/x-raw,width=1920,height=1080 ! tee name=t
           t. ! queue ! nmsfilter name=one ! fakesink
           t. ! queue ! nmsfilter name=two letterbox=top-left ! fakesink",
    );
    let tensor = window_of(&model());
    intercept(&pipeline, "in", move |buffer| attach(buffer, &tensor).unwrap());
    let (one, two) = (watch(&pipeline, "one", regions), watch(&pipeline, "two", regions));
    assert_eq!(run(&pipeline).error, None);
    assert_eq!(*one.lock().unwrap(), vec![region("person", CENTER); 3]);
    assert_eq!(*two.lock().unwrap(), vec![region("person", TOP_LEFT); 3]);
}
