// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensors of objects, as nvinfer attaches them with `process-mode=2`: what is found in the objects of a frame is one list,
//! and each detection has the object in which it was found as its parent.

use gstnmsfilter::deepstream::layout::Version;
use gstnmsfilter::regions;
use nmsfilter_core::geometry::Letterbox;
use serde_json::{Value, json};

use crate::batch::TestModel;
use crate::libraries::{is_inside, version};
use crate::object::Object;
use crate::parts::{Part, expected, tensors};
use crate::run::{self, CAPS, Ran, Seen};
use crate::standin::{Batch, Counts, Frame};
use crate::support::pipeline::{intercept, parse, run as run_pipeline, watch};

/// The id of the inference element that ran on objects.
const SECOND: u32 = 7;
/// The id of the element that found the objects.
const FIRST: i32 = 3;
const SIZE: [u32; 2] = [1280, 720];
const THRESHOLD: f32 = 0.25;

/// The rectangles of objects, in the order in which they are attached, and the pixels that nvinfer cuts out of the frame
/// for each, by its sources: edges rounded up, sides rounded down to even numbers.
const OBJECTS: [([f32; 4], [u32; 4]); 4] = [
    ([100.0, 50.0, 400.0, 300.0], [100, 50, 400, 300]),
    // The second object covers most of the first, so that each suppresses boxes of the other.
    ([121.7, 61.2, 399.9, 299.1], [122, 62, 398, 298]),
    ([901.0, 300.9, 101.0, 419.1], [902, 300, 100, 418]),
    ([0.0, 0.0, 1280.0, 720.0], [0, 0, 1280, 720]),
];

fn model(letterbox: Letterbox) -> TestModel {
    TestModel { unique_id: SECOND, input: [416, 352], letterbox, ..TestModel::default() }
}

/// Adds a frame with an object without tensors, and the objects. Those of `with` have tensors, with the seeds `seed` + their
/// index.
fn add_frame(batch: Batch<'_>, model: &TestModel, batch_id: u32, with: &[usize], seed: u64) {
    let frame = Frame { batch_id, source_id: batch_id, pipeline: SIZE, ..Frame::default() };
    let frame = batch.add_frame(&frame);
    frame.add_object(FIRST, 0, [5.0, 5.0, 20.0, 20.0]);
    for (index, (rect, _)) in OBJECTS.iter().enumerate() {
        let object = frame.add_object(FIRST, 1, *rect);
        if with.contains(&index) {
            object.attach(&tensors(model, seed + index as u64), None);
        }
    }
}

/// The detections that are expected in the objects `with` of a frame, with the letterbox that the tensors tell.
fn found(model: &TestModel, with: &[usize], seed: u64) -> Vec<Object> {
    found_with(model.known_letterbox(), model, with, seed)
}

fn found_with(letterbox: Letterbox, model: &TestModel, with: &[usize], seed: u64) -> Vec<Object> {
    let part = |&index: &usize| Part {
        pixels: OBJECTS[index].1,
        parent: Some(index + 1),
        seed: seed + index as u64,
    };
    let parts: Vec<Part> = with.iter().map(part).collect();
    expected(&TestModel { letterbox, ..*model }, SIZE, &parts, THRESHOLD)
}

/// The objects with tensors of each frame of a batch.
const FRAMES: [&[usize]; 4] = [&[0, 1, 2, 3], &[], &[2], &[1, 0]];

fn attach_frames(buffer: &mut gst::BufferRef, model: &TestModel) {
    let batch = Batch::attach(buffer, FRAMES.len() as u32);
    for (index, with) in (0..).zip(FRAMES) {
        add_frame(batch, model, index, with, 10 * u64::from(index));
    }
}

/// Asserts that each frame has the objects before, and after them what is found in them. Returns the number of the latter.
fn assert_found(seen: &Seen, model: &TestModel, tensors: u32) -> usize {
    let mut count = 0;
    for (index, ((state, objects), with)) in seen.frames.iter().zip(FRAMES).enumerate() {
        let mut with = with.to_vec();
        with.sort_unstable();
        let (before, after) = objects.split_at(OBJECTS.len() + 1);
        assert!(before.iter().all(|object| object.component == FIRST && object.parent.is_none()));
        let left = before.iter().map(|object| object.tensors).collect::<Vec<_>>();
        let expected_left = (0..=OBJECTS.len())
            .map(|number| if number > 0 && with.contains(&(number - 1)) { tensors } else { 0 });
        assert_eq!(left, expected_left.collect::<Vec<_>>(), "frame {index}");
        let expected =
            if with.is_empty() { Vec::new() } else { found(model, &with, 10 * index as u64) };
        assert_eq!(after, expected, "frame {index}");
        assert_eq!(state.infer_done != 0, !with.is_empty());
        count += after.len();
    }
    count
}

fn properties(more: &str) -> String {
    format!("decoder=yolov8 score-threshold={THRESHOLD} unique-id={SECOND} {more}")
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn detections_in_the_objects_of_a_frame_are_one_list_with_parents() {
    if !is_inside() {
        return;
    }
    for letterbox in Letterbox::ALL {
        let model = model(letterbox);
        let ran = run::with(&properties(""), 3, move |buffer| attach_frames(buffer, &model));
        assert_eq!(ran.ended.error, None);
        // Versions that do not tell the letterbox give a warning.
        let is_known = version() >= Version::new(7, 1)
            || version() >= Version::new(6, 1) && letterbox == Letterbox::None;
        assert_eq!(ran.ended.warnings.len(), usize::from(!is_known), "{:?}", ran.ended.warnings);
        assert_eq!(ran.seen.len(), 3);
        for seen in &ran.seen {
            assert!(assert_found(seen, &model, 1) > 60);
        }
        assert_eq!(ran.stat("frames"), 3 * 4);
        assert_eq!(ran.stat("frames-without-tensors"), 3);
    }
    // The objects of the last frame overlap, and both have detections: without suppression there are more.
    let model = model(Letterbox::None);
    let each = [0, 1].map(|index| found(&model, &[index], 30).len());
    let both = found(&model, &[0, 1], 30);
    assert!(both.len() < each[0] + each[1], "{each:?} and {}", both.len());
    let of = |parent| both.iter().filter(|object| object.parent == Some(parent)).count();
    assert!(of(1) > 5 && of(2) > 5, "{both:?}");
}

/// Only the tensors that were decoded are removed, and no tensors of another inference element on the object.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn tensors_of_objects_are_removed_if_they_are_not_to_be_kept() {
    if !is_inside() {
        return;
    }
    let model = model(Letterbox::None);
    let more = properties("letterbox=none keep-tensors=false");
    let alone = run::with(&more, 2, move |buffer| attach_frames(buffer, &model)).well();
    assert!(assert_found(&alone.seen[1], &model, 0) > 60);
    let both = run::with(&more, 2, move |buffer| {
        attach_frames(buffer, &model);
        // A classifier has tensors on these objects.
        let classifier = tensors(&TestModel { unique_id: 2, ..model }, 99);
        let frames = Batch::find(buffer).unwrap().frames();
        let objects = frames.flat_map(|frame| frame.objects_with_tensors());
        objects.for_each(|object| object.attach(&classifier, None));
    })
    .well();
    assert!(assert_found(&both.seen[1], &model, 1) > 60);
}

/// Frames often have no objects, also at the start of a stream.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn frames_without_objects_with_tensors_are_no_reason_for_a_warning() {
    if !is_inside() {
        return;
    }
    let model = model(Letterbox::None);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let ran = run::with(&properties("letterbox=none"), 3, move |buffer| {
        let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let batch = Batch::attach(buffer, 1);
        add_frame(batch, &model, 0, if index == 1 { &[0] } else { &[] }, 5);
        // The frame has the tensors of the first model, too.
        let first = TestModel { unique_id: 1, ..model };
        batch.frames().next().unwrap().attach(&tensors(&first, 77), None);
    })
    .well();
    let counts = ran.seen.iter().map(|seen| seen.frames[0].1.len() - OBJECTS.len() - 1);
    let expected = found(&model, &[0], 5).len();
    assert!(expected > 5);
    assert_eq!(counts.collect::<Vec<_>>(), [0, expected, 0]);
    assert_eq!(ran.stat("frames-without-tensors"), 2);
}

/// nvinfer scales something that its sources do not tell.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn objects_outside_the_frame_are_left_out_with_a_warning() {
    if !is_inside() {
        return;
    }
    let model = model(Letterbox::None);
    for rect in [
        [-2.0, 10.0, 100.0, 100.0],
        [1200.0, 10.0, 100.0, 100.0],
        [10.0, 700.0, 100.0, 100.0],
        [10.0, 10.0, 1.5, 100.0],
        [f32::NAN, 10.0, 100.0, 100.0],
    ] {
        let ran = run::with(&properties("letterbox=none"), 2, move |buffer| {
            let batch = Batch::attach(buffer, 1);
            add_frame(batch, &model, 0, &[0], 5);
            let outside = batch.frames().next().unwrap().add_object(FIRST, 0, rect);
            outside.attach(&tensors(&model, 6), None);
        });
        assert_eq!(ran.ended.error, None);
        let [warning] = &ran.ended.warnings[..] else { panic!("{:?}", ran.ended.warnings) };
        assert!(warning.contains("is not inside its frame of 1280x720"), "{warning}");
        let objects = &ran.seen[1].frames[0].1;
        assert_eq!(objects[OBJECTS.len() + 2..], found(&model, &[0], 5)[..]);
    }
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn a_copy_that_the_element_makes_keeps_the_tensors_of_objects() {
    if !is_inside() {
        return;
    }
    let model = model(Letterbox::Center);
    let Ran { ended, seen } = copied(&model, "", false);
    assert_eq!(ended.error, None);
    assert_same(&seen, &model, model.known_letterbox());
    // If another element made the copy, nvinfer up to 7.1 leaves the model's size out, and nothing else tells it.
    if version() < Version::new(8, 0) {
        let error = copied(&model, "letterbox=center", true).ended.error.unwrap();
        assert!(error.contains("set model-width, model-height and letterbox"), "{error}");
        let set = "letterbox=center model-width=416 model-height=352";
        let Ran { ended, seen } = copied(&model, set, true);
        assert_eq!(ended.error, None);
        assert_same(&seen, &model, Letterbox::Center);
    }
}

/// Asserts that the frames have the expected detections. A copy has the objects of a frame in reverse order, so parents
/// are not compared.
fn assert_same(seen: &[Seen], model: &TestModel, letterbox: Letterbox) {
    assert_eq!(seen.len(), 3);
    for seen in seen {
        let of_first = &seen.frames[0].1[OBJECTS.len() + 1..];
        let without = |objects: &[Object]| -> Vec<Object> {
            objects.iter().map(|object| Object { parent: None, ..object.clone() }).collect()
        };
        let expected = found_with(letterbox, model, &[0, 1, 2, 3], 0);
        assert!(expected.len() > 30, "{}", expected.len());
        assert_eq!(without(of_first), without(&expected));
    }
}

/// Runs three buffers that are copied, by another element if `before` is true.
fn copied(model: &TestModel, more: &str, before: bool) -> Ran {
    let model = *model;
    // A copy that another element makes has the size of its frames in the caps only.
    let source = run::source(3, "video/x-raw,format=GRAY8,width=1280,height=720");
    run::copied(&source, &properties(more), before, move |buffer| attach_frames(buffer, &model))
}

/// A batch of one frame: the first model's detections are regions of interest, too, and their ids are the parents' ids.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn regions_of_interest_and_json_have_the_ids_of_parents() {
    use gst::prelude::*;
    if !is_inside() {
        return;
    }
    let first = TestModel { anchors: 40, ..TestModel::default() };
    let second = model(Letterbox::None);
    let pipeline = parse(&format!(
        "{} ! nmsfilter name=first unique-id=1 decoder=yolov8 letterbox=none
           ! nmsfilter name=second {} ! detectionjson name=json ! fakesink",
        run::source(1, CAPS),
        properties("letterbox=none"),
    ));
    intercept(&pipeline, "in", move |buffer| {
        // A region of another element, so that regions and objects have different ids.
        gst_video::VideoRegionOfInterestMeta::add(buffer, "other", (0, 0, 9, 9)).set_id(20);
        let frame = Frame { pipeline: SIZE, ..Frame::default() };
        Batch::attach(buffer, 1).add_frame(&frame).attach(&tensors(&first, 1), None);
    });
    // Every large object gets tensors of the second model.
    let large = |object: &Object| object.rect[2] > 60.0 && object.rect[3] > 60.0;
    let pad = pipeline.by_name("first").unwrap().static_pad("src").unwrap();
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let buffer = info.buffer_mut().unwrap().make_mut();
        let frame = Batch::find(buffer).unwrap().frames().next().unwrap();
        for (number, (object, meta)) in frame.objects().iter().zip(frame.object_metas()).enumerate()
        {
            if large(object) {
                meta.attach(&tensors(&second, number as u64), None);
            }
        }
        gst::PadProbeReturn::Ok
    });
    let seen = watch(&pipeline, "second", |buffer| {
        let ids = regions::iter(buffer).map(|region| (region.id, region.parent_id));
        (Seen::read(buffer), ids.collect::<Vec<_>>())
    });
    let lines = watch(&pipeline, "json", |line| {
        serde_json::from_slice::<Value>(&line.map_readable().unwrap()).expect("a line is JSON")
    });
    let ended = run_pipeline(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
    drop(pipeline);
    let (seen, lines) = (seen.lock().unwrap(), lines.lock().unwrap());
    let (objects, ids) = (&seen[0].0.frames[0].1, &seen[0].1);
    let in_objects = objects.iter().filter(|object| object.parent.is_some()).count();
    assert!(in_objects > 10, "{in_objects}");
    // The regions are the objects', after the region of the other element.
    assert_eq!(ids.len(), objects.len() + 1);
    let json = lines[0]["streams"][0]["objects"].as_array().unwrap();
    assert_eq!(json.len(), objects.len());
    let mut from_regions = 0;
    for (index, object) in objects.iter().enumerate() {
        let expected = object.parent.map_or(Value::Null, |parent| json!(parent));
        assert_eq!(json[index]["parent_id"], expected);
        let Some(parent) = object.parent else { continue };
        let [(_, parent_id), (id, _)] = [index, parent].map(|index| ids[index + 1]);
        assert_eq!(parent_id, id);
        from_regions += 1;
    }
    assert_eq!(from_regions, in_objects);
    Counts::now().assert_nothing_left();
}
