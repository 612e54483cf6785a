// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensors of several regions of a frame: tiles, and objects of another detector. Boxes of all regions are compared, in
//! pixels of the frame.

use std::sync::atomic::{AtomicUsize, Ordering};

use gst::prelude::*;
use gst_newer::CustomMeta;
use gst_video::VideoRegionOfInterestMeta;
use gstnmsfilter::input::custom_meta::{META_NAME, NewTensor, attach, attach_of, register};
use gstnmsfilter::input::model::ModelInfo;
use gstnmsfilter::input::region::TensorRegion;
use gstnmsfilter::regions;
use nmsfilter_core::geometry::{FrameRegion, Letterbox};

use crate::support::pipeline::{Ended, init, intercept, parse, run, watch};

/// The id, the parent's id, and left, top, width and height of a region of interest.
type Found = (i32, i32, [u32; 4]);

/// Boxes of one class as corners and scores, in pixels of a model's input of 320x320.
fn windows(id: &str, rows: &[[f32; 5]]) -> Vec<NewTensor> {
    init();
    let model = ModelInfo {
        size: Some([320, 320]),
        letterbox: Some(Letterbox::Center),
        ..ModelInfo::default()
    }
    .to_caps()
    .unwrap();
    let boxes: Vec<f32> = rows.iter().flat_map(|row| row[..4].to_vec()).collect();
    let scores: Vec<f32> = rows.iter().map(|row| row[4]).collect();
    let tensor = |id: &str, shape: &[usize], elements| {
        NewTensor::from_vec(id, shape, elements).unwrap().with_model(model.clone())
    };
    vec![
        tensor(&format!("{id}boxes"), &[rows.len(), 4], boxes),
        tensor(&format!("{id}scores"), &[rows.len(), 1], scores),
    ]
}

/// A region of a frame with its tensors.
type Part = (TensorRegion, Vec<NewTensor>);

fn part([left, top, width, height]: [u32; 4], rows: &[[f32; 5]]) -> Part {
    let pixels = FrameRegion { left, top, width, height };
    (TensorRegion { pixels, parent: None }, windows("", rows))
}

/// Runs a frame of 640x480 pixels with these parts through `nmsfilter`. Returns what it attached, or the error.
fn run_with(
    properties: &str,
    change: impl Fn(&mut gst::BufferRef) + Send + Sync + 'static,
) -> (Vec<Found>, Ended) {
    stream(1, properties, change)
}

/// Runs several frames like [`run_with`].
fn stream(
    frames: u32,
    properties: &str,
    change: impl Fn(&mut gst::BufferRef) + Send + Sync + 'static,
) -> (Vec<Found>, Ended) {
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers={frames} ! video/x-raw,width=640,height=480
           ! nmsfilter name=nms {properties} ! fakesink"
    ));
    intercept(&pipeline, "in", change);
    let seen = watch(&pipeline, "nms", |buffer| {
        regions::iter(buffer)
            .filter(|region| region.confidence.is_some())
            .map(|region| (region.id, region.parent_id, region.rectangle))
            .collect::<Vec<Found>>()
    });
    let ended = run(&pipeline);
    let found = seen.lock().unwrap().pop().unwrap_or_default();
    (found, ended)
}

fn found(properties: &str, parts: Vec<Part>) -> Vec<Found> {
    let (found, ended) = run_with(properties, move |buffer| {
        for (region, tensors) in &parts {
            for tensor in tensors {
                attach_of(buffer, tensor, None, Some(region)).unwrap();
            }
        }
    });
    assert_eq!(ended.error, None);
    assert_eq!(ended.warnings, [""; 0]);
    found
}

#[test]
fn boxes_are_moved_to_their_region_and_scaled_to_its_pixels() {
    let boxes = [[0.0, 80.0, 160.0, 240.0, 0.9]];
    // A region of 320x160 pixels is letterboxed: its first row is row 80 of the model's input.
    assert_eq!(
        found("", vec![part([100, 200, 320, 160], &boxes)]),
        [(0, -1, [100, 200, 160, 160])]
    );
    // One of 160x80 pixels is enlarged by 2.
    assert_eq!(found("", vec![part([100, 200, 160, 80], &boxes)]), [(0, -1, [100, 200, 80, 80])]);
}

#[test]
fn one_object_in_two_tiles_is_one_region() {
    let tile = |left, rows: &[[f32; 5]]| part([left, 0, 320, 320], rows);
    // The object is at 250,100 of the frame, and 1 pixel off in the second tile.
    let parts = vec![
        tile(0, &[[250.0, 100.0, 300.0, 150.0, 0.8], [10.0, 10.0, 30.0, 30.0, 0.5]]),
        tile(200, &[[51.0, 100.0, 101.0, 150.0, 0.9], [200.0, 200.0, 220.0, 220.0, 0.7]]),
    ];
    let expected =
        [(0, -1, [251, 100, 50, 50]), (1, -1, [400, 200, 20, 20]), (2, -1, [10, 10, 20, 20])];
    assert_eq!(found("", parts), expected);
}

#[test]
fn a_box_beside_the_pixels_of_its_region_is_no_region() {
    // Rows 0 to 79 of the model's input are border.
    let boxes = [[0.0, 10.0, 50.0, 80.0, 0.9], [0.0, 60.0, 50.0, 100.0, 0.8]];
    assert_eq!(found("", vec![part([100, 200, 320, 160], &boxes)]), [(0, -1, [100, 180, 50, 40])]);
}

#[test]
fn a_region_may_occur_twice() {
    let boxes = [[0.0, 0.0, 20.0, 20.0, 0.9]];
    let twice = vec![part([0, 0, 320, 320], &boxes), part([0, 0, 320, 320], &boxes)];
    assert_eq!(found("", twice.clone()), [(0, -1, [0, 0, 20, 20])]);
    assert_eq!(found("method=none", twice).len(), 2);
}

#[test]
fn limits_count_for_the_whole_frame() {
    let boxes = [[0.0, 0.0, 20.0, 20.0, 0.9], [50.0, 50.0, 70.0, 70.0, 0.6]];
    let parts = vec![part([0, 0, 320, 320], &boxes), part([320, 0, 320, 320], &boxes)];
    let kept = found("max-detections=3", parts.clone());
    assert_eq!(kept.iter().map(|(_, _, rect)| rect[0]).collect::<Vec<_>>(), [0, 320, 50]);
    // 20 pixels in a region of 320, and 10 in one of 160.
    let parts = vec![parts[0].clone(), part([320, 0, 160, 160], &boxes)];
    assert_eq!(found("min-size=15", parts).len(), 2);
}

#[test]
fn a_region_of_an_object_has_the_objects_id_as_parent() {
    let (found, ended) = run_with("", |buffer| {
        for (id, left) in [(0, 0), (7, 320)] {
            let mut roi = VideoRegionOfInterestMeta::add(buffer, "person", (left, 0, 320, 320));
            roi.set_id(id);
        }
        for (id, left, score) in [(0, 0, 0.5), (7, 320, 0.9)] {
            let pixels = FrameRegion { left, top: 0, width: 320, height: 320 };
            let region = TensorRegion { pixels, parent: Some(id) };
            for tensor in windows("", &[[100.0, 100.0, 150.0, 150.0, score]]) {
                attach_of(buffer, &tensor, Some("faces"), Some(&region)).unwrap();
            }
        }
    });
    assert_eq!(ended.error, None);
    assert_eq!(found, [(8, 7, [420, 100, 50, 50]), (9, 0, [100, 100, 50, 50])]);
}

#[test]
fn a_frame_without_a_detection_counts_once() {
    let boxes = [[0.0, 0.0, 20.0, 20.0, 0.1]];
    let (found, ended) = run_with("", move |buffer| {
        for left in [0, 320] {
            let pixels = FrameRegion { left, top: 0, width: 320, height: 320 };
            let region = TensorRegion { pixels, parent: None };
            for tensor in windows("", &boxes) {
                attach_of(buffer, &tensor, None, Some(&region)).unwrap();
            }
        }
    });
    assert_eq!(found, []);
    assert!(
        ended.warnings[0].starts_with("no detection in 1 image with decoder "),
        "{:?}",
        ended.warnings
    );
}

#[test]
fn regions_whose_tensors_differ_are_an_error() {
    let boxes = [[0.0, 0.0, 20.0, 20.0, 0.9]; 2];
    let (_, ended) = run_with("", move |buffer| {
        for (left, rows) in [(0, &boxes[..1]), (320, &boxes[..])] {
            let pixels = FrameRegion { left, top: 0, width: 320, height: 320 };
            let region = TensorRegion { pixels, parent: None };
            for tensor in windows("", rows) {
                attach_of(buffer, &tensor, Some("tiles"), Some(&region)).unwrap();
            }
        }
    });
    let expected = "the tensors of the frame's regions differ: boxes (f32 1x4), scores (f32 1x1), and boxes (f32 2x4), \
                    scores (f32 2x1)";
    assert!(ended.error().contains(expected), "{}", ended.error());
}

/// Attaches a tensor as a program in another language does, with the fields that `set` sets.
fn foreign(
    buffer: &mut gst::BufferRef,
    id: &str,
    shape: [u64; 2],
    elements: &[f32],
    set: impl Fn(&mut gst::StructureRef),
) {
    register();
    let added = CustomMeta::new(META_NAME, &[]).add(buffer, |structure| {
        structure.set("id", id);
        structure.set("type", "f32");
        structure.set("dims", gst::Array::new(shape));
        structure.set("data", gst::Buffer::from_slice(bytemuck::cast_slice(elements).to_vec()));
        set(structure);
    });
    added.unwrap();
}

/// The error of a frame with two tensors that have these fields.
fn error(set: impl Fn(&mut gst::StructureRef) + Clone + Send + Sync + 'static) -> String {
    let (_, ended) = run_with("", move |buffer| {
        foreign(buffer, "boxes", [1, 4], &[0.0, 0.0, 9.0, 9.0], &set);
        foreign(buffer, "scores", [1, 1], &[0.9], &set);
    });
    ended.error().to_owned()
}

#[test]
fn another_programs_region_is_read_and_checked() {
    let (found, ended) = run_with("", |buffer| {
        for left in [0, 300] {
            let set = move |structure: &mut gst::StructureRef| {
                structure.set("region", gst::Array::new([left, 100, 300, 200]));
            };
            foreign(buffer, "boxes", [1, 4], &[30.0, 0.0, 60.0, 30.0], set);
            foreign(buffer, "scores", [1, 1], &[0.9], set);
        }
    });
    assert_eq!(ended.error, None);
    // Without a model description, the model's input has the size of the region.
    assert_eq!(found, [(0, -1, [30, 100, 30, 30]), (1, -1, [330, 100, 30, 30])]);

    for (array, shown) in [
        (vec![0, 0, 320], "0, 0, 320"),
        (vec![0, 0, 0, 240], "0, 0, 0, 240"),
        (vec![-1, 0, 320, 240], "-1, 0, 320, 240"),
    ] {
        let error = error(move |structure| structure.set("region", gst::Array::new(array.clone())));
        assert!(error.contains("expected region as an array of four int"), "{error}");
        let numbers = error.replace("(gint) ", "");
        assert!(numbers.contains(shown), "{error}");
    }
    let wrong_type = error(|structure| structure.set("region", "0,0,320,240"));
    assert!(wrong_type.contains("got gchararray"), "{wrong_type}");
    let outside = error(|structure| structure.set("region", gst::Array::new([600, 0, 320, 240])));
    assert!(
        outside.contains("the region 600,0,320,240 is not inside the frame of 640x480"),
        "{outside}"
    );
    let parent = error(|structure| {
        structure.set("region", gst::Array::new([0, 0, 320, 240]));
        structure.set("parent", "7");
    });
    assert!(parent.contains("expected parent of type int, got gchararray"), "{parent}");
}

#[test]
fn a_source_whose_tensors_have_a_region_only_in_part_is_an_error() {
    let region = |structure: &mut gst::StructureRef| {
        structure.set("region", gst::Array::new([0, 0, 320, 240]));
    };
    for is_first in [true, false] {
        let (_, ended) = run_with("", move |buffer| {
            let set = |structure: &mut gst::StructureRef, is_set| {
                if is_set {
                    region(structure);
                }
            };
            foreign(buffer, "boxes", [1, 4], &[0.0, 0.0, 9.0, 9.0], |it| set(it, is_first));
            foreign(buffer, "scores", [1, 1], &[0.9], |it| set(it, !is_first));
        });
        let expected =
            "tensor scores: expected the field region in all tensors of a source, or in none";
        assert!(ended.error().contains(expected), "{}", ended.error());
    }
}

/// Two tiles cut an object, and each part has a higher score than the object in the whole frame.
#[test]
fn boxes_at_edges_between_tiles_are_kept_dropped_or_lowered() {
    let parts = vec![
        part([0, 0, 320, 320], &[[200.0, 100.0, 320.0, 200.0, 0.9]]),
        part([280, 0, 320, 320], &[[0.0, 100.0, 140.0, 200.0, 0.8]]),
        // The whole frame has half the size in the model's input, below 40 rows of border.
        part([0, 0, 640, 480], &[[100.0, 90.0, 210.0, 140.0, 0.7]]),
    ];
    let [left, right, whole] = [[200, 100, 120, 100], [280, 100, 140, 100], [200, 100, 220, 100]];
    let rectangles = |properties: &str| -> Vec<[u32; 4]> {
        found(properties, parts.clone()).iter().map(|(_, _, rectangle)| *rectangle).collect()
    };
    assert_eq!(rectangles("region-edges=keep method=none"), [left, right, whole]);
    assert_eq!(rectangles("region-edges=keep"), [left, right]);
    assert_eq!(rectangles("region-edges=drop"), [whole]);
    assert_eq!(rectangles("region-edges=lower method=none"), [whole, left, right]);
    assert_eq!(rectangles("region-edges=lower"), [whole]);
    assert_eq!(rectangles("region-edges=lower edge-score=0.85"), [left, right]);
    // No edge is farther from the frame's edge.
    assert_eq!(rectangles("region-edges=drop edge-margin=320 method=none"), [left, right, whole]);
}

#[test]
fn the_rule_for_edges_changes_while_the_stream_plays() {
    let pipeline = parse(
        "videotestsrc name=in num-buffers=6 ! video/x-raw,width=640,height=480
           ! nmsfilter name=nms ! fakesink",
    );
    let (region, tensors) = part([0, 0, 320, 320], &[[200.0, 100.0, 310.0, 200.0, 0.9]]);
    intercept(&pipeline, "in", move |buffer| {
        for tensor in &tensors {
            attach_of(buffer, tensor, None, Some(&region)).unwrap();
        }
    });
    let nms = pipeline.by_name("nms").unwrap();
    let changes = [
        ("region-edges", "drop"),
        ("edge-margin", "10"),
        ("region-edges", "lower"),
        ("edge-score", "0.5"),
        ("edge-margin", "9"),
        ("edge-margin", "10"),
    ];
    let frame = AtomicUsize::new(0);
    nms.static_pad("sink").unwrap().add_probe(gst::PadProbeType::BUFFER, {
        let nms = nms.clone();
        move |_, _| {
            let (property, value) = changes[frame.fetch_add(1, Ordering::SeqCst)];
            nms.set_property_from_str(property, value);
            gst::PadProbeReturn::Ok
        }
    });
    let seen = watch(&pipeline, "nms", |buffer| {
        regions::iter(buffer).map(|region| region.confidence.unwrap() as f32).collect::<Vec<_>>()
    });
    assert_eq!(run(&pipeline).error, None);
    let expected = [vec![0.9], vec![], vec![0.6], vec![0.5], vec![0.9], vec![0.5]];
    assert_eq!(*seen.lock().unwrap(), expected);
}

/// The property is for regions; a user who sets it for whole frames loses nothing.
#[test]
fn boxes_at_the_edges_of_a_whole_frame_are_kept() {
    let boxes = [[0.0, 0.0, 320.0, 320.0, 0.9], [0.0, 40.0, 10.0, 50.0, 0.8]];
    for properties in ["region-edges=drop", "region-edges=drop edge-margin=1"] {
        let (whole, ended) = run_with(properties, move |buffer| {
            for tensor in windows("", &boxes) {
                attach(buffer, &tensor).unwrap();
            }
        });
        assert_eq!((whole.len(), ended.error, ended.warnings), (2, None, vec![]), "{properties}");
    }
}

/// The warning names the rule because of which nothing is found.
#[test]
fn a_stream_whose_boxes_are_all_at_edges_gives_a_warning() {
    let boxes = [[0.0, 100.0, 140.0, 200.0, 0.8]];
    let (_, ended) = stream(20, "region-edges=drop min-size=9", move |buffer| {
        let (region, tensors) = part([280, 0, 320, 320], &boxes);
        for tensor in &tensors {
            attach_of(buffer, tensor, None, Some(&region)).unwrap();
        }
    });
    let expected = "1 boxes with scores up to 0.8 are at inner edges of regions and dropped; if they are objects, correct \
                    region-edges, or enlarge the regions or their overlap";
    assert!(
        ended.warnings.len() == 1 && ended.warnings[0].contains(expected),
        "{:?}",
        ended.warnings
    );
}
