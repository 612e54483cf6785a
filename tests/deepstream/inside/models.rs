// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several inference elements on one buffer, which the property `unique-id` distinguishes.

use nmsfilter_core::geometry::Letterbox;

use super::objects::assert_objects;
use crate::batch::{Format, Producer, Scene, TestModel};
use crate::libraries::is_inside;
use crate::object::Object;
use crate::run::{self, Seen};
use crate::standin::Counts;
use crate::support::pipeline::{intercept, parse, run as run_pipeline, watch};

/// A scene with the models 5 and 8. Each has tensors on some of the frames.
fn scene(seed: u64) -> Scene {
    let mut scene = Scene::new(6, seed);
    let second = TestModel {
        unique_id: 8,
        format: Format::Yolov5,
        input: [320, 320],
        ..TestModel::default()
    };
    scene.models = vec![TestModel { unique_id: 5, ..TestModel::default() }, second];
    for (index, frame) in scene.frames.iter_mut().enumerate() {
        frame.seeds = vec![Some(seed + index as u64), Some(seed + 50 + index as u64)];
    }
    scene.frames[1].seeds[0] = None;
    scene.frames[2].seeds[1] = None;
    scene
}

/// Returns the scene with its second model only.
fn second(scene: &Scene) -> Scene {
    let mut scene = scene.clone();
    scene.models.remove(0);
    for frame in &mut scene.frames {
        frame.seeds.remove(0);
    }
    scene
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn the_selected_model_is_decoded() {
    if !is_inside() {
        return;
    }
    let scene = scene(1);
    let ran = run::scenes(std::slice::from_ref(&scene), "unique-id=5").well();
    assert!(assert_objects(&ran.seen[1], &scene, Letterbox::None) > 50);
    // By default, the scene sets the decoder of its first model.
    let ran = run::scenes(&[second(&scene)], "unique-id=8").well();
    assert!(assert_objects(&ran.seen[1], &second(&scene), Letterbox::None) > 50);
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn the_first_model_is_decoded_by_default_and_a_warning_names_both() {
    if !is_inside() {
        return;
    }
    let scene = scene(2);
    let ran = run::scenes(std::slice::from_ref(&scene), "");
    assert_eq!(ran.ended.error, None);
    assert!(assert_objects(&ran.seen[1], &scene, Letterbox::None) > 50);
    let [warning] = &ran.ended.warnings[..] else { panic!("{:?}", ran.ended.warnings) };
    assert!(warning.contains("5 and 8") && warning.contains("unique-id"), "{warning}");
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn a_missing_model_gives_a_warning_that_names_the_available_models() {
    if !is_inside() {
        return;
    }
    let scene = scene(3);
    let ran = run::scenes(std::slice::from_ref(&scene), "unique-id=7");
    assert_eq!(ran.ended.error, None);
    assert!(ran.seen.iter().flat_map(|seen| &seen.frames).all(|(_, objects)| objects.is_empty()));
    let [warning, ..] = &ran.ended.warnings[..] else { panic!("no warning") };
    assert!(warning.contains("none of 7") && warning.contains("unique-id"), "{warning}");
    assert_eq!(ran.stat("frames-without-tensors"), 12);
}

/// A second muxer muxes batches of several inference elements that have one unique-id. The models
/// have equal outputs, but different inputs and letterboxes.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn frames_of_one_unique_id_are_mapped_by_the_inputs_of_their_models() {
    if !is_inside() {
        return;
    }
    let models = [
        TestModel { input: [640, 384], letterbox: Letterbox::Center, ..TestModel::default() },
        TestModel { input: [384, 640], letterbox: Letterbox::Center, ..TestModel::default() },
        TestModel { input: [640, 384], letterbox: Letterbox::TopLeft, ..TestModel::default() },
        TestModel { input: [640, 384], letterbox: Letterbox::None, ..TestModel::default() },
    ];
    let mut scene = Scene::new(9, 6);
    scene.models = models.to_vec();
    let model_of = |index: usize| index % models.len();
    for (index, frame) in scene.frames.iter_mut().enumerate() {
        frame.seeds = vec![None; models.len()];
        frame.seeds[model_of(index)] = Some(index as u64);
        frame.meta.pipeline = if index < 6 { [1280, 720] } else { [720, 1280] };
    }
    let ran = run::scenes(std::slice::from_ref(&scene), "letterbox=auto");
    assert_eq!(ran.ended.error, None);
    assert_eq!(ran.seen.len(), 2);
    for seen in &ran.seen {
        for (index, (_, objects)) in seen.frames.iter().enumerate() {
            let model = model_of(index);
            let expected = scene.expected(index, model, models[model].known_letterbox());
            assert!(expected.len() > 5, "{}", expected.len());
            assert_eq!(*objects, expected, "frame {index}");
        }
    }
}

/// Two elements decode one model each. Both attach their objects, and each removes its own tensors
/// only.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn two_elements_decode_two_models() {
    if !is_inside() {
        return;
    }
    let scene = scene(4);
    let producer = Producer::new(&scene, 6);
    let pools = [producer.pool(0), producer.pool(1)];
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=3 ! {}
           ! nmsfilter name=first unique-id=5 decoder=yolov8 letterbox=none keep-tensors=false
           ! nmsfilter name=second unique-id=8 decoder=yolov5 letterbox=none ! fakesink enable-last-sample=false",
        run::CAPS
    ));
    intercept(&pipeline, "in", move |buffer| producer.attach(buffer));
    let between = {
        let pools = pools.clone();
        watch(&pipeline, "first", move |buffer| {
            (Seen::read(buffer), pools.each_ref().map(|pool| pool.in_use()))
        })
    };
    let seen = watch(&pipeline, "second", Seen::read);
    let ended = run_pipeline(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
    drop(pipeline);
    for (seen, in_use) in &*between.lock().unwrap() {
        assert!(assert_objects(seen, &scene, Letterbox::None) > 50);
        assert_eq!(*in_use, [0, 1]);
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 3);
    for seen in &*seen {
        for (index, (state, objects)) in seen.frames.iter().enumerate() {
            let expected_of = |model| scene.expected(index, model, Letterbox::None);
            let expected: Vec<Object> = expected_of(0).into_iter().chain(expected_of(1)).collect();
            assert_eq!(*objects, expected, "frame {index}");
            let left = u32::from(scene.frames[index].seeds[1].is_some());
            assert_eq!(state.tensors, left, "frame {index}");
        }
    }
    Counts::now().assert_nothing_left();
}
