// SPDX-License-Identifier: MIT OR Apache-2.0
//! Objects on each frame equal the results of `Reference` and `Mapping`, and have everything that
//! nvinfer writes into an object.

use nmsfilter_core::geometry::Letterbox;

use crate::batch::{Format, FrameSpec, Scene, TestModel};
use crate::libraries::is_inside;
use crate::run::{self, Seen};
use crate::standin::{Frame, FrameState};
use crate::support::scratch::Scratch;

/// Asserts that the frames have the objects that are expected of the first model. Returns their
/// number.
pub fn assert_objects(seen: &Seen, scene: &Scene, letterbox: Letterbox) -> usize {
    assert_eq!(seen.frames.len(), scene.frames.len());
    let mut count = 0;
    for (index, ((state, objects), frame)) in seen.frames.iter().zip(&scene.frames).enumerate() {
        let expected = scene.expected(index, 0, letterbox);
        assert_eq!(*objects, expected, "frame {index} of {scene:?}");
        let FrameSpec { meta: Frame { batch_id, source_id, .. }, seeds } = frame;
        let FrameState { num_obj_meta, listed_objects, infer_done, .. } = *state;
        assert_eq!([state.batch_id, state.source_id], [*batch_id, *source_id]);
        assert_eq!([num_obj_meta, listed_objects], [expected.len() as u32; 2]);
        assert_eq!(infer_done != 0, seeds[0].is_some(), "frame {index}");
        assert_eq!(state.other_user_metas, 1);
        count += expected.len();
    }
    count
}

/// Runs each scene twice and checks the objects.
fn assert_right(scenes: &[Scene], properties: &str) {
    let ran = run::scenes(scenes, properties).well();
    assert_eq!(ran.seen.len(), 2 * scenes.len());
    let mut survivors = 0;
    for (index, seen) in ran.seen.iter().enumerate() {
        survivors += assert_objects(seen, &scenes[index % scenes.len()], Letterbox::None);
    }
    let tensors =
        |scene: &Scene| scene.frames.iter().filter(|frame| frame.seeds[0].is_some()).count() as u64;
    let frames = |scene: &Scene| scene.frames.len() as u64;
    assert_eq!(ran.stat("frames"), 2 * scenes.iter().map(frames).sum::<u64>());
    let without = scenes.iter().map(|scene| frames(scene) - tensors(scene)).sum::<u64>();
    assert_eq!(ran.stat("frames-without-tensors"), 2 * without);
    assert_eq!(ran.stat("survivors"), survivors as u64);
    assert!(
        survivors as u64 > 10 * scenes.iter().map(tensors).sum::<u64>(),
        "{survivors} survivors"
    );
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn objects_of_every_decoder_are_right_in_single_and_half_precision() {
    if !is_inside() {
        return;
    }
    for (format, seed) in [Format::Yolov8, Format::Yolov5, Format::Boxes].into_iter().zip(1..) {
        for half in [false, true] {
            let model = TestModel { format, half, ..TestModel::default() };
            assert_right(&[Scene::new(3, seed).with_model(model)], "");
        }
    }
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn objects_have_the_colors_and_the_unique_id_of_an_nvinfer_configuration() {
    if !is_inside() {
        return;
    }
    let scene = Scene::new(2, 24);
    let folder = Scratch::new();
    let path = folder.join("config.txt");
    let text = format!(
        "[property]\ngie-unique-id={}\ncluster-mode=2\nnetwork-type=100\n\
         [class-attrs-all]\nborder-color=0;1;0;0.5\nnms-iou-threshold=0.45\n\
         [class-attrs-1]\nborder-color=0;0;1;1\nbg-color=1;1;0;0.25\n",
        scene.models[0].unique_id
    );
    std::fs::write(&path, &text).unwrap();
    let property = format!("nvinfer-config={}", path.display());
    let ran = run::scenes(std::slice::from_ref(&scene), &property);
    let mut of_class_1 = 0;
    for seen in &ran.well().seen {
        for (index, (_, objects)) in seen.frames.iter().enumerate() {
            let mut expected = scene.expected(index, 0, Letterbox::None);
            for object in &mut expected {
                let is_1 = object.class == 1;
                of_class_1 += usize::from(is_1);
                object.border_color =
                    if is_1 { [0.0, 0.0, 1.0, 1.0] } else { [0.0, 1.0, 0.0, 0.5] };
                object.has_background = is_1.into();
                object.background = if is_1 { [1.0, 1.0, 0.0, 0.25] } else { [0.0; 4] };
            }
            assert_eq!(*objects, expected, "frame {index}");
        }
    }
    assert!(of_class_1 > 3, "{of_class_1} objects of class 1");
    std::fs::write(&path, text.replace("network-type=100", "network-type=0")).unwrap();
    let ran = run::scenes(std::slice::from_ref(&scene), &property);
    let [warning] = &ran.ended.warnings[..] else { panic!("{:?}", ran.ended.warnings) };
    assert!(warning.starts_with("with this network-type nvinfer attaches objects"), "{warning}");
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn objects_of_batches_of_1_to_64_frames_are_right() {
    if !is_inside() {
        return;
    }
    let model = TestModel { anchors: 120, ..TestModel::default() };
    let scenes = [1, 2, 64, 3, 16, 33, 1].map(|count| Scene::new(count, 20).with_model(model));
    // By default, a batch with a single frame gets regions of interest, too.
    assert_right(&scenes, "attach=nvds");
    assert_right(&scenes, "attach=nvds keep-tensors=false");
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn objects_are_right_if_frames_or_tensors_are_missing() {
    if !is_inside() {
        return;
    }
    let mut scene = Scene::new(9, 30);
    // Frames can come in any order. The frames of sources 101 and 104 are missing.
    for index in [4, 1] {
        scene.frames.remove(index);
    }
    scene.frames.swap(0, 5);
    for index in [0, 2, 6] {
        scene.frames[index].seeds[0] = None;
    }
    let mut empty = Scene::new(2, 31);
    empty.frames.clear();
    let mut last = Scene::new(4, 32);
    for frame in &mut last.frames[..3] {
        frame.seeds[0] = None;
    }
    assert_right(&[scene, empty, last], "");
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn objects_on_frames_of_different_sizes_are_right() {
    if !is_inside() {
        return;
    }
    let mut scene = Scene::new(7, 40);
    let sizes = [[1280, 720], [641, 481], [1280, 720], [3, 2000], [641, 481]];
    for (frame, size) in scene.frames.iter_mut().zip(sizes.into_iter().cycle()) {
        frame.meta.pipeline = size;
    }
    assert_right(&[scene], "");
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn frames_have_the_size_of_the_caps_if_the_muxer_sets_none() {
    if !is_inside() {
        return;
    }
    let mut scene = Scene::new(2, 50);
    for frame in &mut scene.frames {
        frame.meta.pipeline = [0; 2];
    }
    let ran = run::scenes(std::slice::from_ref(&scene), "");
    assert_eq!(ran.ended.error, None);
    let [warning] = &ran.ended.warnings[..] else { panic!("{:?}", ran.ended.warnings) };
    assert!(warning.contains("that of the caps, 96x64, is used"), "{warning}");
    for frame in &mut scene.frames {
        frame.meta.pipeline = [96, 64];
    }
    assert!(assert_objects(&ran.seen[0], &scene, Letterbox::None) > 20);
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn objects_of_scattered_tensors_are_right() {
    if !is_inside() {
        return;
    }
    for format in [Format::Yolov8, Format::Boxes] {
        let model = TestModel { format, ..TestModel::default() };
        let mut scene = Scene::new(12, 60).with_model(model);
        scene.scattered = true;
        scene.frames[5].seeds[0] = None;
        assert_right(&[scene], "");
    }
}
