// SPDX-License-Identifier: MIT OR Apache-2.0
//! nvinfer's letterbox: which part of it the tensors contain, by version, and the property
//! `letterbox`.

use gstnmsfilter::deepstream::layout::Version;
use nmsfilter_core::engine::Detection;
use nmsfilter_core::geometry::Letterbox;

use super::objects::assert_objects;
use crate::batch::{Producer, Scene, TestModel};
use crate::libraries::{is_inside, version};
use crate::run::{self, Ran};

const SIZES: [[u32; 2]; 4] = [[1280, 720], [1080, 1921], [333, 1000], [640, 640]];

/// Frames of several sizes. nvinfer runs their model with this letterbox.
fn scene(letterbox: Letterbox, seed: u64) -> Scene {
    let model = TestModel { letterbox, input: [416, 352], ..TestModel::default() };
    let mut scene = Scene::new(SIZES.len(), seed).with_model(model);
    for (frame, size) in scene.frames.iter_mut().zip(SIZES) {
        frame.meta.pipeline = size;
    }
    scene
}

fn assert_letterbox(ran: &Ran, scene: &Scene, letterbox: Letterbox) {
    assert_eq!(ran.ended.error, None);
    for seen in &ran.seen {
        assert!(assert_objects(seen, scene, letterbox) > 20);
    }
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn the_letterbox_in_the_tensors_is_used() {
    if !is_inside() {
        return;
    }
    let version = version();
    for (letterbox, seed) in Letterbox::ALL.into_iter().zip(1..) {
        let scene = scene(letterbox, seed);
        let ran = run::scenes(std::slice::from_ref(&scene), "letterbox=auto");
        assert_letterbox(&ran, &scene, scene.models[0].known_letterbox());
        // The element reports once what it assumes.
        let warning = if version < Version::new(6, 1) {
            Some("do not contain maintain-aspect-ratio")
        } else if version < Version::new(7, 1) && letterbox != Letterbox::None {
            Some("do not contain symmetric-padding")
        } else {
            None
        };
        assert_eq!(ran.ended.warnings.len(), usize::from(warning.is_some()), "{:?}", ran.ended);
        for (found, expected) in ran.ended.warnings.iter().zip(warning) {
            assert!(found.contains(expected) && found.contains("letterbox=center"), "{found}");
        }
    }
}

/// Runs four buffers that are copied, by another element if `before` is true.
fn copied(scene: &Scene, properties: &str, before: bool) -> Ran {
    let producer = Producer::new(scene, 6);
    let properties = format!("decoder=yolov8 {properties}");
    run::copied(&run::source(4, run::CAPS), &properties, before, move |buffer| {
        producer.attach(buffer);
    })
}

/// nvinfer up to 7.1 copies tensors without their model description. The element adds it to the
/// copies that it makes itself.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn a_copy_that_the_element_makes_keeps_the_letterbox() {
    if !is_inside() {
        return;
    }
    for (letterbox, seed) in Letterbox::ALL.into_iter().zip(1..) {
        let scene = scene(letterbox, seed);
        let Ran { ended, seen } = copied(&scene, "letterbox=auto", false);
        let ran = Ran { ended, seen };
        assert_eq!(ran.seen.len(), 4);
        assert_letterbox(&ran, &scene, scene.models[0].known_letterbox());
        let direct = run::scenes(std::slice::from_ref(&scene), "letterbox=auto");
        assert_eq!(ran.ended.warnings, direct.ended.warnings);
    }
}

/// If another element made the copy, no invalid number is taken for a model description.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn the_letterbox_of_a_copy_without_it_is_unknown() {
    if !is_inside() || version() >= Version::new(8, 0) {
        return;
    }
    // This frame size equals the size in the caps.
    let mut scene = scene(Letterbox::Center, 3);
    for frame in &mut scene.frames {
        frame.meta.pipeline = [96, 64];
    }
    let Ran { ended, .. } = copied(&scene, "", true);
    let warning = |part: &str| ended.warnings.iter().filter(|text| text.contains(part)).count();
    assert_eq!(ended.error, None);
    assert_eq!(warning("the tensors do not contain the size of the model's input"), 1, "{ended:?}");
    assert_eq!(warning("the tensors do not contain maintain-aspect-ratio"), 1, "{ended:?}");
    let properties = "model-width=416 model-height=352 letterbox=center";
    let Ran { ended, seen } = copied(&scene, properties, true);
    assert_eq!(ended.error, None);
    assert_eq!(ended.warnings.iter().filter(|text| text.contains("the tensors")).count(), 0);
    for seen in &seen {
        assert!(assert_objects(seen, &scene, Letterbox::Center) > 20);
    }
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn the_property_replaces_the_letterbox_in_the_tensors() {
    if !is_inside() {
        return;
    }
    for actual in Letterbox::ALL {
        for letterbox in Letterbox::ALL {
            let scene = scene(actual, 9);
            let property = format!("letterbox={}", letterbox.name());
            let ran = run::scenes(std::slice::from_ref(&scene), &property);
            assert_letterbox(&ran, &scene, letterbox);
            // A letterbox that is only assumed cannot contradict the property.
            let is_known = version() >= Version::new(7, 1)
                || (version() >= Version::new(6, 1) && actual == Letterbox::None);
            let warnings = usize::from(is_known && actual != letterbox);
            assert_eq!(
                ran.ended.warnings.len(),
                warnings,
                "{actual:?} {property}: {:?}",
                ran.ended
            );
            let text =
                format!("{property}, but the tensors' model has letterbox {}", actual.name());
            assert!(ran.ended.warnings.iter().all(|warning| warning.contains(&text)));
        }
    }
}

/// The rules for misread tensors add up all frames of a batch.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn numbers_that_contradict_the_reading_give_a_warning() {
    if !is_inside() {
        return;
    }
    let scene = Scene::new(SIZES.len(), 4).with_model(TestModel::default());
    for (property, text) in [
        ("coordinates=normalized", "coordinates are read as normalized: set coordinates=pixels"),
        ("score-threshold=50", "score-threshold is 50 or more"),
    ] {
        let ran = run::scenes(std::slice::from_ref(&scene), property);
        assert_eq!(ran.ended.error, None);
        let [warning] = &ran.ended.warnings[..] else { panic!("{property}: {:?}", ran.ended) };
        assert!(warning.contains(text), "{warning}");
    }
}

/// Maps a box of the model's input to the frame: left, top, width and height, without clipping. The
/// steps are nvinfer's (`get_converted_buffer` and `attach_metadata_detector` in gstnvinfer.cpp).
fn nvinfers(box_: &Detection, frame: [u32; 2], input: [u32; 2], letterbox: Letterbox) -> [f64; 4] {
    let source = frame.map(|side| side / 2 * 2);
    let (mut size, mut offset) = (input, [0u32; 2]);
    if letterbox != Letterbox::None {
        let height = f64::from(input[0] * source[1]) / f64::from(source[0]);
        let width = f64::from(input[1] * source[0]) / f64::from(source[1]);
        size = if height <= f64::from(input[1]) {
            [input[0], height as u32]
        } else {
            [width as u32, input[1]]
        };
        if letterbox == Letterbox::Center {
            offset = [(input[0] - size[0]) / 2, (input[1] - size[1]) / 2];
        }
    }
    let ratio = [0, 1].map(|axis| f64::from(size[axis]) / f64::from(source[axis]));
    let [x1, y1, x2, y2] = [box_.x1, box_.y1, box_.x2, box_.y2].map(f64::from);
    let left = (x1 - f64::from(offset[0])) / ratio[0];
    let top = (y1 - f64::from(offset[1])) / ratio[1];
    [left, top, (x2 - x1) / ratio[0], (y2 - y1) / ratio[1]]
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn boxes_that_are_not_clipped_have_nvinfers_numbers() {
    if !is_inside() {
        return;
    }
    for letterbox in Letterbox::ALL {
        let scene = scene(letterbox, 3);
        let property = format!("letterbox={}", letterbox.name());
        let ran = run::scenes(std::slice::from_ref(&scene), &property).well();
        let mut compared = 0;
        for (index, (_, objects)) in ran.seen[0].frames.iter().enumerate() {
            let (survivors, _) = scene.survivors(index, 0, letterbox);
            assert_eq!(objects.len(), survivors.len());
            let (size, input) = (scene.frames[index].meta.pipeline, scene.models[0].input);
            for (object, survivor) in objects.iter().zip(&survivors) {
                let expected = nvinfers(survivor, size, input, letterbox);
                let [left, top, width, height] = expected;
                let [right, bottom] = [left + width, top + height];
                let limits = size.map(|side| f64::from(side & !1));
                if left < 0.0 || top < 0.0 || right > limits[0] || bottom > limits[1] {
                    continue;
                }
                for (found, expected) in object.rect.into_iter().zip(expected) {
                    let difference = (f64::from(found) - expected).abs();
                    assert!(difference < 2e-3, "{:?} {expected:?} {size:?}", object.rect);
                }
                compared += 1;
            }
        }
        assert!(compared > 20, "{compared}");
    }
}
