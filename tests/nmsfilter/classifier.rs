// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classifiers: the classes of frames, regions and objects, as regions of interest and as JSON, and what a user is told
//! about tensors, labels and settings that do not go together.

use std::collections::HashSet;
use std::path::Path;

use gst_video::VideoRegionOfInterestMeta;
use gstnmsfilter::input::custom_meta::{NewTensor, attach, attach_of};
use gstnmsfilter::input::model::ModelInfo;
use gstnmsfilter::input::region::TensorRegion;
use gstnmsfilter::regions;
use nmsfilter_core::geometry::FrameRegion;
use serde_json::{Value, json};

use crate::support::pipeline::{Ended, init, intercept, parse, run, watch};
use crate::support::scratch::ScratchFile;

const LOGITS: &str = "classification-generic-out";
const PROBABILITIES: &str = "classification-generic-softmaxed-out";

/// A label and a score of a region.
type Class = (String, f64);

/// Label, rectangle, id and classes of a region of interest.
#[derive(Clone, Debug, PartialEq)]
struct Found {
    label: String,
    rectangle: [u32; 4],
    id: i32,
    classes: Vec<Class>,
}

fn tensor(id: &str, shape: &[usize], numbers: &[f32]) -> NewTensor {
    init();
    NewTensor::from_vec(id, shape, numbers.to_vec()).unwrap()
}

/// Runs two frames of 640x480 pixels through `nmsfilter` and `detectionjson`. Returns the regions and the objects of the
/// line of the last frame.
fn filter(
    properties: &str,
    prepare: impl Fn(&mut gst::BufferRef) + Send + Sync + 'static,
) -> (Vec<Found>, Value, Ended) {
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=2 ! video/x-raw,width=640,height=480
           ! nmsfilter name=nms {properties} ! detectionjson name=json ! fakesink"
    ));
    intercept(&pipeline, "in", prepare);
    let seen = watch(&pipeline, "nms", |buffer| {
        let class = |class: regions::AttachedClass<'_>| {
            let label = class.label.unwrap().to_str().unwrap().to_owned();
            assert!(class.class.is_some_and(|class| class >= 0));
            (label, class.confidence.unwrap())
        };
        let found = |region: regions::AttachedRegion<'_>| Found {
            label: region.label.to_str().unwrap().to_owned(),
            rectangle: region.rectangle,
            id: region.id,
            classes: region.classes().map(class).collect(),
        };
        regions::iter(buffer).map(found).collect::<Vec<_>>()
    });
    let lines = watch(&pipeline, "json", |buffer| {
        serde_json::from_slice::<Value>(&buffer.map_readable().unwrap()).unwrap()
    });
    let ended = run(&pipeline);
    let found = seen.lock().unwrap().pop().unwrap_or_default();
    let line = lines.lock().unwrap().pop().unwrap_or_default();
    (found, line["objects"].clone(), ended)
}

/// Returns the regions of a frame with this tensor; warnings and errors fail the test.
fn of_frame(properties: &str, tensor: NewTensor) -> Vec<Found> {
    let (found, _, ended) = filter(properties, move |buffer| attach(buffer, &tensor).unwrap());
    assert_eq!((ended.error, ended.warnings), (None, vec![]), "{properties}");
    found
}

fn class(label: &str, score: f64) -> Class {
    (label.to_owned(), score)
}

fn labels(text: &str) -> ScratchFile {
    ScratchFile::new("txt", text.as_bytes())
}

fn label_file(file: &Path) -> String {
    format!("label-file={}", file.display())
}

#[test]
fn a_frame_has_the_best_class_as_a_region_of_its_size() {
    let file = labels("cat\ndog\nbird\n");
    let numbers = [0.125, 0.75, 0.125];
    let tensor = tensor(PROBABILITIES, &[1, 3], &numbers);
    let (found, objects, ended) =
        filter(&label_file(&file), move |buffer| attach(buffer, &tensor).unwrap());
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
    let dog = Found {
        label: "dog".to_owned(),
        rectangle: [0, 0, 640, 480],
        id: 0,
        classes: vec![class("dog", 0.75)],
    };
    assert_eq!(found, [dog]);
    assert_eq!(
        objects,
        json!([{
            "x": 0, "y": 0, "w": 640, "h": 480, "region_id": 0, "roi_type": "dog",
            "detection": {
                "bounding_box": {"x_min": 0.0, "y_min": 0.0, "x_max": 1.0, "y_max": 1.0},
                "confidence": 0.75, "label_id": 1, "label": "dog"
            },
            "classification": [
                {"label": "dog", "label_id": 1, "confidence": 0.75, "attribute_name": PROBABILITIES}
            ]
        }])
    );
    let stats = &ended.stats[0];
    for (name, count) in [("frames", 2), ("candidates", 2), ("survivors", 2), ("rejected", 0)] {
        assert_eq!(stats.get(name), Ok(count as u64), "{name}");
    }
    assert_eq!(stats.get("engine"), Ok("cpu"));
    let counted = stats.get::<gst::Array>("labels").unwrap();
    assert_eq!(counted.iter().map(|it| it.get::<String>().unwrap()).collect::<Vec<_>>(), ["dog"]);
}

#[test]
fn multi_label_attaches_every_class_that_reaches_the_threshold() {
    let scores = |properties: &str| -> Vec<Class> {
        let tensor = tensor("output0", &[1, 4], &[2.0, -1.0, 3.0, 0.0]);
        let properties = format!("decoder=classifier score-activation=sigmoid {properties}");
        of_frame(&properties, tensor).into_iter().flat_map(|region| region.classes).collect()
    };
    let rounded = |classes: Vec<Class>| -> Vec<String> {
        classes.iter().map(|(label, score)| format!("{label} {score:.3}")).collect()
    };
    let all = ["class-2 0.953", "class-0 0.881", "class-3 0.500", "class-1 0.269"];
    assert_eq!(rounded(scores("multi-label=true")), all);
    assert_eq!(rounded(scores("multi-label=true score-threshold=0.5")), all[..3]);
    assert_eq!(rounded(scores("multi-label=true max-detections=2")), all[..2]);
    assert_eq!(rounded(scores("")), all[..1]);
}

fn add_roi(buffer: &mut gst::BufferRef, id: i32, rect: (u32, u32, u32, u32)) {
    VideoRegionOfInterestMeta::add(buffer, "person", rect).set_id(id);
}

fn attach_to(buffer: &mut gst::BufferRef, parent: Option<i32>, pixels: [u32; 4], best: usize) {
    let [left, top, width, height] = pixels;
    let region = TensorRegion { pixels: FrameRegion { left, top, width, height }, parent };
    let mut numbers = [0.0f32; 3];
    numbers[best] = 8.0;
    attach_of(buffer, &tensor(LOGITS, &[1, 3], &numbers), None, Some(&region)).unwrap();
}

/// Color and type of a vehicle: each output has its own classes, and outputs share no labels.
#[test]
fn each_output_has_classes_of_its_own() {
    let colors = [0.9f32, 0.05, 0.05];
    let types = [0.1f32, 0.7, 0.15, 0.05];
    let cases = [
        // Labels of all outputs, of one, of none.
        ("white\ngray\nred\ncar\nvan\ntruck\nbus\n", ["white", "van"], None),
        ("white\ngray\nred\n", ["white", "class-1"], Some("type (f32 1x4) has no labels")),
        (
            "a\nb\n",
            ["class-0", "class-1"],
            Some("the label file has 2 labels, but the model has 7 classes"),
        ),
    ];
    for (text, expected, warning) in cases {
        for parent in [Some(5), None] {
            let file = labels(text);
            let properties =
                format!("decoder=classifier score-activation=none {}", label_file(&file));
            let (found, objects, ended) = filter(&properties, move |buffer| {
                let pixels = FrameRegion { left: 10, top: 10, width: 100, height: 200 };
                let region = TensorRegion { pixels, parent };
                if let Some(parent) = parent {
                    add_roi(buffer, parent, (10, 10, 100, 200));
                }
                for tensor in [tensor("color", &[1, 3], &colors), tensor("type", &[1, 4], &types)] {
                    attach_of(buffer, &tensor, None, Some(&region)).unwrap();
                }
            });
            assert_eq!(ended.error, None);
            assert_eq!(
                ended.warnings.len(),
                usize::from(warning.is_some()),
                "{:?}",
                ended.warnings
            );
            if let Some(warning) = warning {
                assert!(ended.warnings[0].contains(warning), "{:?}", ended.warnings);
            }
            let classes: Vec<_> = found.iter().flat_map(|it| it.classes.clone()).collect();
            let exact = [f64::from(0.9f32), f64::from(0.7f32)];
            let expected_classes = [class(expected[0], exact[0]), class(expected[1], exact[1])];
            assert_eq!(classes, expected_classes);
            assert_eq!(found.len(), 1, "{found:?}");
            let ids = [0, 1].map(|it| objects[0]["classification"][it]["label_id"].clone());
            assert_eq!(ids, [0, 1]);
            let names = [0, 1].map(|it| objects[0]["classification"][it]["attribute_name"].clone());
            assert_eq!(names, ["color", "type"]);
            if parent.is_none() {
                assert_eq!(found[0].label, expected[0]);
            }
            let counted = ended.stats[0].get::<gst::Array>("labels").unwrap();
            let counted: HashSet<String> = counted.iter().map(|it| it.get().unwrap()).collect();
            assert_eq!(counted, HashSet::from(expected.map(str::to_owned)));
        }
    }
}

/// The fields without which DL Streamer's `gvametaconvert` skips a classification.
#[test]
fn a_classification_names_its_model_and_its_output() {
    let pipeline = parse(
        "videotestsrc name=in num-buffers=1 ! video/x-raw,width=640,height=480
           ! nmsfilter name=nms decoder=classifier ! fakesink",
    );
    let color = tensor("color", &[1, 2], &[0.0, 9.0]);
    intercept(&pipeline, "in", move |buffer| attach(buffer, &color).unwrap());
    let seen = watch(&pipeline, "nms", |buffer| {
        let roi = buffer.meta::<VideoRegionOfInterestMeta>().unwrap();
        let found = roi.param("classification").unwrap();
        ["model_name", "attribute_name"].map(|name| found.get::<String>(name).unwrap())
    });
    assert_eq!(run(&pipeline).error, None);
    assert_eq!(seen.lock().unwrap()[0], ["nms", "color"]);
}

/// A second `nmsfilter` for the second output reads the first one again.
#[test]
fn classes_that_are_attached_twice_are_told() {
    for parent in [Some(5), None] {
        let pipeline = parse(
            "videotestsrc name=in num-buffers=2 ! video/x-raw,width=640,height=480
               ! nmsfilter decoder=classifier ! nmsfilter name=nms decoder=classifier ! fakesink",
        );
        intercept(&pipeline, "in", move |buffer| {
            for (id, numbers) in [("color", [0.0, 9.0]), ("type", [9.0, 0.0])] {
                let tensor = tensor(id, &[1, 2], &numbers);
                let Some(parent) = parent else {
                    attach(buffer, &tensor).unwrap();
                    continue;
                };
                add_roi(buffer, parent, (10, 10, 100, 200));
                let pixels = FrameRegion { left: 10, top: 10, width: 100, height: 200 };
                let region = TensorRegion { pixels, parent: Some(parent) };
                attach_of(buffer, &tensor, None, Some(&region)).unwrap();
            }
        });
        let ended = run(&pipeline);
        assert_eq!((ended.error, ended.warnings.len()), (None, 1), "{:?}", ended.warnings);
        assert!(ended.warnings[0].contains("an object already has the class"));
    }
}

#[test]
fn an_output_that_is_not_read_is_told() {
    let (found, _, ended) = filter("", |buffer| {
        attach(buffer, &tensor("color", &[1, 2], &[0.0, 9.0])).unwrap();
        attach(buffer, &tensor(LOGITS, &[1, 3], &[9.0, 0.0, 0.0])).unwrap();
    });
    assert_eq!(found[0].classes[0].0, "class-0");
    assert_eq!(ended.warnings.len(), 1);
    let expected = "(f32 1x3): it alone is read as scores of classes, and not color (f32 1x2)";
    assert!(ended.warnings[0].contains(expected), "{:?}", ended.warnings);
}

/// Numbers such as license-plate-recognition-barrier-0001's.
#[test]
fn a_sequence_is_an_error() {
    let mut numbers = vec![-1.0; 88];
    numbers[..4].copy_from_slice(&[12.0, 30.0, 1.0, 2.0]);
    let plate = tensor("decode", &[1, 88, 1, 1], &numbers);
    let error = error("decoder=classifier", plate);
    let expected = "tensor decode (f32 1x88x1x1) is no score for each class: it has whole numbers (4), then -1";
    assert!(error.contains(expected), "{error}");
}

/// The region of the tensors has a margin.
#[test]
fn objects_get_the_classes_of_their_pictures() {
    let file = labels("red\ngreen\nblue\n");
    let (found, objects, ended) = filter(&label_file(&file), |buffer| {
        add_roi(buffer, 4, (100, 100, 50, 50));
        add_roi(buffer, 9, (300, 100, 50, 50));
        attach_to(buffer, Some(9), [290, 90, 70, 70], 2);
        attach_to(buffer, Some(4), [90, 90, 70, 70], 1);
    });
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
    let labels = |found: &[Found]| -> Vec<(i32, String, Vec<String>)> {
        let classes = |it: &Found| it.classes.iter().map(|(label, _)| label.clone()).collect();
        found.iter().map(|it| (it.id, it.label.clone(), classes(it))).collect()
    };
    let expected = [(4, "green"), (9, "blue")]
        .map(|(id, class)| (id, "person".to_owned(), vec![class.to_owned()]));
    assert_eq!(labels(&found), expected);
    assert_eq!(objects[0]["roi_type"], "person");
    assert_eq!(objects[0]["classification"][0]["label"], "green");

    // Elements that set no ids leave all of them 0.
    let (found, ..) = filter(&label_file(&file), |buffer| {
        add_roi(buffer, 0, (100, 100, 50, 50));
        add_roi(buffer, 0, (120, 100, 50, 50));
        attach_to(buffer, Some(0), [110, 90, 70, 70], 0);
    });
    assert_eq!(found[0].classes, []);
    assert_eq!(found[1].classes[0].0, "red");
}

#[test]
fn a_region_that_is_no_object_becomes_one() {
    let (found, ..) = filter("", |buffer| {
        add_roi(buffer, 4, (100, 100, 50, 50));
        attach_to(buffer, None, [320, 0, 320, 240], 1);
        // The region with this id was removed.
        attach_to(buffer, Some(7), [0, 0, 64, 64], 2);
    });
    let found: Vec<_> =
        found.iter().map(|it| (it.label.as_str(), it.rectangle, it.id, it.classes.len())).collect();
    let expected = [
        ("person", [100, 100, 50, 50], 4, 0),
        ("class-1", [320, 0, 320, 240], 5, 1),
        ("class-2", [0, 0, 64, 64], 6, 1),
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_classes_of_two_classifiers_follow_one_another() {
    let (color, size) = (labels("red\nblue\n"), labels("large\nsmall\n"));
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=1 ! video/x-raw,width=640,height=480
           ! nmsfilter tensors-from=color label-file={} keep-tensors=false
           ! nmsfilter name=nms tensors-from=size label-file={} ! fakesink",
        color.display(),
        size.display(),
    ));
    intercept(&pipeline, "in", |buffer| {
        add_roi(buffer, 3, (100, 100, 50, 50));
        let pixels = FrameRegion { left: 100, top: 100, width: 50, height: 50 };
        let region = TensorRegion { pixels, parent: Some(3) };
        for (source, numbers) in [("color", [0.0, 9.0]), ("size", [9.0, 0.0])] {
            attach_of(buffer, &tensor(LOGITS, &[2], &numbers), Some(source), Some(&region))
                .unwrap();
        }
    });
    let seen = watch(&pipeline, "nms", |buffer| {
        let classes = regions::iter(buffer).flat_map(|region| region.classes());
        classes.map(|it| it.label.unwrap().to_str().unwrap().to_owned()).collect::<Vec<_>>()
    });
    assert_eq!(run(&pipeline).error, None);
    assert_eq!(seen.lock().unwrap()[0], ["blue", "large"]);
}

/// GStreamer's decoders and overlays have it, too.
mod analytics {
    use gst_newer::{AnalyticsClassificationMtd, AnalyticsODMtd, AnalyticsRelationMeta, RelTypes};

    use super::*;

    /// For each `GstAnalyticsClsMtd` of a frame: its labels, and the ids of its objects.
    type Classes = Vec<(Vec<String>, Vec<u32>)>;

    fn classes(buffer: &gst::BufferRef) -> Classes {
        let meta = buffer.meta::<AnalyticsRelationMeta>().unwrap();
        let all = meta.iter::<AnalyticsClassificationMtd>().map(|found| {
            let labels =
                (0..found.len()).map(|it| found.quark(it).unwrap().as_str().to_string()).collect();
            let kind = RelTypes::RELATE_TO;
            let objects = meta.iter_direct_related::<AnalyticsODMtd>(found.id(), kind);
            let objects: Vec<u32> = objects.map(|object| object.id()).collect();
            for object in &objects {
                let back = meta.iter_direct_related::<AnalyticsClassificationMtd>(*object, kind);
                assert!(back.map(|it| it.id()).any(|id| id == found.id()));
            }
            (labels, objects)
        });
        all.collect()
    }

    /// Returns the classes on a frame, and the objects of its line.
    fn run_frame(
        properties: &str,
        prepare: impl Fn(&mut gst::BufferRef) + Send + Sync + 'static,
    ) -> (Classes, Value) {
        let pipeline = parse(&format!(
            "videotestsrc name=in num-buffers=1 ! video/x-raw,width=640,height=480
               ! nmsfilter name=nms {properties} ! detectionjson name=json ! fakesink"
        ));
        intercept(&pipeline, "in", prepare);
        let seen = watch(&pipeline, "nms", classes);
        let lines = watch(&pipeline, "json", |buffer| {
            serde_json::from_slice::<Value>(&buffer.map_readable().unwrap()).unwrap()
        });
        let ended = run(&pipeline);
        assert_eq!((ended.error, ended.warnings), (None, vec![]));
        let line = lines.lock().unwrap().remove(0);
        (seen.lock().unwrap().remove(0), line["objects"].clone())
    }

    fn add_object(buffer: &mut gst::BufferRef, x: i32) {
        let person = gst::glib::Quark::from_str("person");
        let mut meta = AnalyticsRelationMeta::add(buffer).unwrap();
        meta.add_od_mtd(person, x, 100, 50, 50, 0.5).unwrap();
    }

    fn class(label: &str, objects: &[u32]) -> (Vec<String>, Vec<u32>) {
        (vec![label.to_owned()], objects.to_vec())
    }

    #[test]
    fn classes_are_related_to_their_objects() {
        crate::support::needs::needs!(relations);
        for attach in ["analytics", "roi+analytics"] {
            let (classes, objects) = run_frame(&format!("attach={attach}"), |buffer| {
                for x in [100, 300] {
                    add_object(buffer, x);
                }
                attach_to(buffer, Some(1), [300, 100, 50, 50], 2);
                attach_to(buffer, Some(0), [100, 100, 50, 50], 1);
            });
            assert_eq!(classes, [class("class-2", &[1]), class("class-1", &[0])], "{attach}");
            let labels = |index: usize| objects[index]["classification"][0]["label"].clone();
            assert_eq!([labels(0), labels(1)], ["class-1", "class-2"], "{attach}: {objects}");
            assert_eq!(objects.as_array().unwrap().len(), 2, "{attach}: {objects}");
        }
    }

    /// A detection of `nmsfilter` is a region and an object, also where their ids differ.
    #[test]
    fn regions_and_objects_of_one_detection_have_the_same_classes() {
        crate::support::needs::needs!(relations);
        for id in [0, 5] {
            let (classes, objects) = run_frame("", move |buffer| {
                add_object(buffer, 100);
                add_roi(buffer, id, (100, 100, 50, 50));
                attach_to(buffer, Some(id), [100, 100, 50, 50], 2);
            });
            assert_eq!(classes, [class("class-2", &[0])], "{id}");
            assert_eq!(objects.as_array().unwrap().len(), 1, "{objects}");
            assert_eq!(objects[0]["classification"].as_array().unwrap().len(), 1, "{objects}");
            assert_eq!(objects[0]["classification"][0]["label_id"], 2);
        }
    }

    #[test]
    fn a_region_that_is_no_object_becomes_an_object_with_classes() {
        crate::support::needs::needs!(relations);
        let (classes, objects) = run_frame("attach=analytics", |buffer| {
            add_object(buffer, 100);
            attach_to(buffer, None, [320, 0, 320, 240], 1);
        });
        assert_eq!(classes, [class("class-1", &[1])]);
        assert_eq!(objects[1]["roi_type"], "class-1");
        assert_eq!(objects[1]["x"], 320);
    }

    /// GStreamer's classifiertensordecoder attaches it in this way.
    #[test]
    fn the_classes_of_a_frame_have_no_object() {
        crate::support::needs::needs!(relations);
        for attach in ["analytics", "roi+analytics"] {
            let (classes, objects) = run_frame(&format!("attach={attach}"), |buffer| {
                let tensor = tensor(LOGITS, &[1, 3], &[0.0, 0.0, 8.0]);
                gstnmsfilter::input::custom_meta::attach(buffer, &tensor).unwrap();
            });
            assert_eq!(classes, [class("class-2", &[])], "{attach}");
            assert_eq!(objects.as_array().unwrap().len(), 1, "{attach}: {objects}");
            assert_eq!(objects[0]["w"], 640);
            assert_eq!(objects[0]["classification"][0]["label"], "class-2");
        }
        let (_, objects) = run_frame("attach=analytics", |buffer| {
            // It has the id 0.
            AnalyticsRelationMeta::add(buffer).unwrap().add_tracking_mtd(7, None).unwrap();
            let tensor = tensor(LOGITS, &[1, 3], &[0.0, 0.0, 8.0]);
            gstnmsfilter::input::custom_meta::attach(buffer, &tensor).unwrap();
        });
        assert_eq!(objects[0]["region_id"], 1);
    }
}

/// Ultralytics' classifiers have their task and labels in their metadata, and end with softmax.
#[test]
fn a_model_with_the_task_classify_needs_no_property() {
    let model = ModelInfo {
        task: Some("classify".to_owned()),
        labels: ["cat", "dog"].map(Into::into).into(),
        ..ModelInfo::default()
    };
    let tensor = tensor("output0", &[1, 2], &[0.25, 0.75]).with_model(model.to_caps().unwrap());
    assert_eq!(of_frame("", tensor)[0].classes, [class("dog", 0.75)]);
}

/// Returns the error for a frame with this tensor.
fn error(properties: &str, tensor: NewTensor) -> String {
    let (_, _, ended) = filter(properties, move |buffer| attach(buffer, &tensor).unwrap());
    ended.error().to_owned()
}

#[test]
fn tensors_and_settings_that_do_not_go_together_are_errors() {
    let logits = || tensor("logits", &[1, 10], &[0.0; 10]);
    let boxes = || tensor("yolo-v8-out", &[1, 84, 10], &[0.0; 840]);
    for (properties, tensor, expected) in [
        ("decoder=classifier", boxes(), "set the decoder of the detector"),
        ("decoder=yolov8", logits(), "set decoder=classifier for the classes of images"),
        ("", logits(), "set decoder=classifier for the classes of images"),
        ("decoder=classifier num-classes=3", logits(), "correct num-classes, or set it to 0"),
        ("decoder=classifier classes=3", logits(), "classes is for detectors"),
        ("decoder=classifier attach=nvds", logits(), "add roi"),
    ] {
        let error = error(properties, tensor);
        assert!(error.contains(expected), "{properties}: {error}");
    }
    let tensor = logits();
    let attach = move |buffer: &mut gst::BufferRef| attach(buffer, &tensor).unwrap();
    let (_, _, ended) = filter("decoder=classifier attach=nvds+analytics", attach);
    let has_analytics = gst_newer::Capabilities::get().relations.is_ok();
    assert_eq!(ended.error.is_none(), has_analytics, "{:?}", ended.error);
}

/// Returns the warnings for two frames with this tensor, and the number of rejected images.
fn warnings(properties: &str, tensor: NewTensor) -> (Vec<String>, u64) {
    let (_, _, ended) = filter(properties, move |buffer| attach(buffer, &tensor).unwrap());
    assert_eq!(ended.error, None, "{properties}");
    (ended.warnings, ended.stats[0].get("rejected").unwrap())
}

#[test]
fn readings_that_are_probably_wrong_are_warnings_that_come_once() {
    let (file, all) = (labels("cat\ndog\n"), labels("cat\ndog\ncow\n"));
    let file = label_file(&file);
    let with_labels = format!("score-threshold=0.9 {}", label_file(&all));
    let logits = |numbers: &[f32]| tensor(LOGITS, &[1, numbers.len()], numbers);
    let probabilities = |numbers: &[f32]| tensor(PROBABILITIES, &[1, numbers.len()], numbers);
    for (properties, tensor, expected, rejected) in [
        (file.as_str(), logits(&[8.0, 0.0, 0.0]), "the label file has 2 labels, but tensor", 0),
        ("", logits(&[1.0, f32::NAN]), "the score of class 1 is NaN", 2),
        ("", logits(&[0.1, 0.8, 0.1]), "set score-activation=none, or give the tensor the id", 0),
        ("", probabilities(&[7.0, -2.0]), "set score-activation to softmax or sigmoid", 0),
        (
            "score-threshold=0.9",
            logits(&[1.0, 2.0, 1.5]),
            "none of 2 images has a class: the best score is 0.506",
            0,
        ),
        (&with_labels, logits(&[1.0, 2.0, 1.5]), "; the label of class 1 is dog", 0),
    ] {
        let (warnings, count) = warnings(properties, tensor);
        assert_eq!(warnings.len(), 1, "{properties}: {warnings:?}");
        assert!(warnings[0].contains(expected), "{properties}: {warnings:?}");
        assert_eq!(count, rejected);
    }
    // Final scores of any size are what the user has set.
    let (warnings, _) = warnings("score-activation=none", probabilities(&[7.0, -2.0]));
    assert_eq!(warnings, [""; 0]);
}

/// A playing element takes a classifier's setting, and refuses what a classifier cannot have.
#[test]
fn the_decoder_changes_while_the_stream_runs() {
    init();
    let element = gst::ElementFactory::make("nmsfilter").build().unwrap();
    let mut harness = gst_check::Harness::with_element(&element, Some("sink"), Some("src"));
    harness.set_src_caps_str("video/x-raw,format=GRAY8,width=64,height=48,framerate=25/1");
    let set = |name: &str, value: &str| {
        gst::prelude::GObjectExtManualGst::set_property_from_str(&element, name, value);
    };
    let mut found = || {
        let mut frame = gst::Buffer::from_mut_slice(vec![0u8; 64 * 48]);
        // Four windows, or the logits of four classes.
        let tensor = tensor("windows", &[1, 4], &[8.0, 8.0, 16.0, 12.0]);
        attach(frame.get_mut().unwrap(), &tensor).unwrap();
        let frame = harness.push_and_pull(frame).unwrap();
        regions::iter(&frame).map(|it| (it.rectangle, it.classes().count())).collect::<Vec<_>>()
    };
    set("decoder", "windows");
    assert_eq!(found(), [([8, 8, 16, 16], 0)]);
    set("decoder", "classifier");
    assert_eq!(found(), [([0, 0, 64, 48], 1)]);
    set("num-classes", "3");
    assert_eq!(found(), [([0, 0, 64, 48], 1)], "the earlier settings are in force");
    set("num-classes", "0");
    set("decoder", "windows");
    assert_eq!(found(), [([8, 8, 16, 16], 0)]);
}
