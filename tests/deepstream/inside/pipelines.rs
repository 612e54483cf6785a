// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pipelines with queues and tees, labels, objects of other elements, and the other kinds of
//! metadata.

use gst::prelude::*;
use nmsfilter_core::geometry::Letterbox;

use super::objects::assert_objects;
use crate::batch::{Producer, Scene};
use crate::libraries::is_inside;
use crate::object::object;
use crate::run::{self, Seen};
use crate::standin::{Batch, Counts};
use crate::support::pipeline::{self, intercept, parse, run as run_pipeline, watch};
use crate::support::scratch::ScratchFile;

const FILTER: &str = "nmsfilter decoder=yolov8 letterbox=none";

/// The caps say NVMM memory, but the buffers have no surface: the caps have the frame's size.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn frames_in_nvmm_memory_need_no_surface() {
    if !is_inside() {
        return;
    }
    let mut scene = Scene::new(2, 7);
    for frame in &mut scene.frames {
        frame.meta.pipeline = [0; 2];
    }
    let producer = Producer::new(&scene, 6);
    pipeline::init();
    let mut harness = gst_check::Harness::new_parse(&format!("{FILTER} name=nms"));
    if let Ok(backend) = std::env::var("NMSFILTER_TEST_BACKEND") {
        let filter = harness.find_element("nmsfilter").unwrap();
        filter.set_property_from_str("backend", &backend);
    }
    harness.set_src_caps_str(
        "video/x-raw(memory:NVMM),format=NV12,width=1280,height=720,framerate=30/1",
    );
    let mut buffer = gst::Buffer::new();
    producer.attach(buffer.get_mut().unwrap());
    let seen = Seen::read(&harness.push_and_pull(buffer).unwrap());
    for frame in &mut scene.frames {
        frame.meta.pipeline = [1280, 720];
    }
    assert!(assert_objects(&seen, &scene, Letterbox::None) > 20);
    drop(harness);
    Counts::now().assert_nothing_left();
}

/// Each branch of a tee has its own copy of the batch, so objects attached to one copy are not on
/// the other.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn each_branch_of_a_tee_has_its_own_batch() {
    if !is_inside() {
        return;
    }
    let scene = Scene::new(5, 1);
    let producer = Producer::new(&scene, 6);
    let pool = producer.pool(0);
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=20 ! {} ! tee name=t
           t. ! queue max-size-buffers=2 ! {FILTER} name=nms keep-tensors=false ! queue max-size-buffers=2 ! fakesink
           t. ! queue max-size-buffers=2 ! identity name=other ! fakesink",
        run::CAPS
    ));
    intercept(&pipeline, "in", move |buffer| producer.attach(buffer));
    let [with, without] = ["nms", "other"].map(|name| watch(&pipeline, name, Seen::read));
    let ended = run_pipeline(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
    drop(pipeline);
    let (with, without) = (with.lock().unwrap(), without.lock().unwrap());
    assert_eq!([with.len(), without.len()], [20, 20]);
    for seen in &*with {
        assert!(assert_objects(seen, &scene, Letterbox::None) > 50);
        assert!(seen.frames.iter().all(|(state, _)| state.tensors == 0));
    }
    for (state, objects) in without.iter().flat_map(|seen| &seen.frames) {
        assert_eq!((state.tensors, state.infer_done, objects.len()), (1, 0, 0));
    }
    assert_eq!(pool.in_use(), 0);
    Counts::now().assert_nothing_left();
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn objects_of_other_elements_stay() {
    if !is_inside() {
        return;
    }
    let scene = Scene::new(2, 2);
    let producer = Producer::new(&scene, 6);
    let ran = run::with("decoder=yolov8 letterbox=none", 2, move |buffer| {
        producer.attach(buffer);
        let frames: Vec<_> = Batch::find(buffer).unwrap().frames().collect();
        frames[1].add_object(77, 4, [1.0, 2.0, 3.0, 4.0]);
    });
    for seen in &ran.well().seen {
        let expected = [0, 1].map(|index| scene.expected(index, 0, Letterbox::None));
        assert_eq!(seen.frames[0].1, expected[0]);
        let (state, objects) = &seen.frames[1];
        assert_eq!((objects[0].component, objects[0].rect), (77, [1.0, 2.0, 3.0, 4.0]));
        assert_eq!(objects[1..], expected[1]);
        assert_eq!(state.num_obj_meta as usize, 1 + expected[1].len());
    }
}

/// DeepStream has 128 bytes for a label. A longer label is cut between characters; the text of the
/// object is complete.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn objects_have_the_labels_of_the_label_file() {
    if !is_inside() {
        return;
    }
    let long = "ä".repeat(100);
    let labels = ["person", "traffic light", &long];
    let file = ScratchFile::new("txt", labels.join("\n").as_bytes());
    let scene = Scene::new(3, 3);
    let ran = run::scenes(std::slice::from_ref(&scene), &format!("label-file={}", file.display()));
    let mut cut = 0;
    for (index, (_, objects)) in ran.well().seen[1].frames.iter().enumerate() {
        let expected = scene.expected(index, 0, Letterbox::None).into_iter().map(|found| {
            let label = labels[found.class as usize];
            let mut new = object(1, found.class, found.confidence, found.rect, label);
            if label == long {
                new.label = "ä".repeat(63);
                cut += 1;
            }
            new
        });
        assert_eq!(*objects, expected.collect::<Vec<_>>());
    }
    assert!(cut > 5, "{cut}");
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn a_batch_of_one_has_regions_of_interest_too() {
    if !is_inside() {
        return;
    }
    for (attach, objects, regions) in
        [("", true, true), ("attach=nvds", true, false), ("attach=roi", false, true)]
    {
        let scene = Scene::new(1, 4);
        let ran = run::scenes(std::slice::from_ref(&scene), attach).well();
        for seen in &ran.seen {
            let expected = scene.expected(0, 0, Letterbox::None);
            assert!(expected.len() > 10);
            let found = &seen.frames[0].1;
            assert_eq!(found.len(), if objects { expected.len() } else { 0 }, "{attach}");
            assert_eq!(seen.regions.len(), if regions { expected.len() } else { 0 }, "{attach}");
            for ((label, [x, y, w, h]), object) in seen.regions.iter().zip(&expected) {
                assert_eq!(*label, object.label);
                let [left, top, width, height] = object.rect;
                for (whole, exact) in
                    [(*x, left), (*y, top), (x + w, left + width), (y + h, top + height)]
                {
                    assert!((whole as f32 - exact).abs() <= 1.0, "{whole} {exact}");
                }
            }
        }
    }
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn regions_of_interest_of_a_batch_of_several_are_not_attached() {
    if !is_inside() {
        return;
    }
    let ran = run::scenes(&[Scene::new(2, 5)], "").well();
    assert!(ran.seen.iter().all(|seen| seen.regions.is_empty()));
    let ran = run::scenes(&[Scene::new(2, 5)], "attach=roi");
    let error = ran.ended.error();
    assert!(error.contains("attach=roi") && error.contains("nvds"), "{error}");
}

/// A warning is posted if two elements decode the tensors of one model.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn two_elements_with_the_same_tensors_give_a_warning() {
    if !is_inside() {
        return;
    }
    // The second element has nothing to decode if the first one removes the tensors.
    for (keep, expected) in
        [(true, "keep-tensors=false"), (false, "no buffer of the stream carried tensors")]
    {
        let scene = Scene::new(2, 6);
        let producer = Producer::new(&scene, 6);
        let pipeline = parse(&format!(
            "videotestsrc name=in num-buffers=3 ! {} ! {FILTER} keep-tensors={keep}
               ! {FILTER} name=nms ! fakesink",
            run::CAPS
        ));
        intercept(&pipeline, "in", move |buffer| producer.attach(buffer));
        let seen = watch(&pipeline, "nms", Seen::read);
        let ended = run_pipeline(&pipeline);
        assert_eq!(ended.error, None);
        let [warning] = &*ended.warnings else { panic!("{:?}", ended.warnings) };
        assert!(warning.contains(expected), "{warning}");
        let times = if keep { 2 } else { 1 };
        for (index, (state, _)) in seen.lock().unwrap()[2].frames.iter().enumerate() {
            let expected = scene.expected(index, 0, Letterbox::None).len();
            assert_eq!(state.num_obj_meta as usize, times * expected);
        }
    }
}
