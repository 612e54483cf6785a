// SPDX-License-Identifier: MIT OR Apache-2.0
//! nvinfer's letterbox: what the tensors contain of it, by version, and the property.

use gstnmsfilter::internals::deepstream::layout::Version;
use gstnmsfilter::internals::engine::Detection;
use gstnmsfilter::internals::geometry::Letterbox;

use super::objects::assert_objects;
use crate::batch::{Scene, TestModel};
use crate::libraries::{is_inside, version};
use crate::run::{self, Ran};

const SIZES: [[u32; 2]; 4] = [[1280, 720], [1080, 1921], [333, 1000], [640, 640]];

/// Frames of several sizes, whose model nvinfer runs with this letterbox.
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
fn is_that_of_the_tensors_if_they_contain_it() {
    if !is_inside() {
        return;
    }
    let version = version();
    for (letterbox, seed) in Letterbox::ALL.into_iter().zip(1..) {
        let scene = scene(letterbox, seed);
        let ran = run::scenes(std::slice::from_ref(&scene), "letterbox=auto");
        assert_letterbox(&ran, &scene, scene.models[0].known_letterbox());
        // What is assumed is reported once.
        let warning = if version < Version::new(6, 1) {
            Some("do not contain maintain-aspect-ratio")
        } else if version < Version::new(8, 0) && letterbox != Letterbox::None {
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

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn is_that_of_the_property_if_it_is_set() {
    if !is_inside() {
        return;
    }
    for actual in Letterbox::ALL {
        for letterbox in Letterbox::ALL {
            let scene = scene(actual, 9);
            let property = format!("letterbox={}", letterbox.name());
            let ran = run::scenes(std::slice::from_ref(&scene), &property);
            assert_letterbox(&ran, &scene, letterbox);
            // What is only assumed is not contradicted.
            let is_known = version() >= Version::new(8, 0)
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

/// The frames of a batch are judged together.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn and_numbers_that_contradict_the_reading_give_a_warning() {
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

/// Left, top, width and height of a box of the model's input on the frame, as nvinfer computes them
/// (`get_converted_buffer` and `attach_metadata_detector` in gstnvinfer.cpp), without clipping.
fn nvinfers(box_: &Detection, frame: [u32; 2], input: [u32; 2], letterbox: Letterbox) -> [f64; 4] {
    let source = frame.map(|side| side / 2 * 2);
    let (mut size, mut offset) = (input, [0u32; 2]);
    if letterbox != Letterbox::None {
        let height = f64::from(input[0] * source[1]) / f64::from(source[0]);
        let width = f64::from(input[1] * source[0]) / f64::from(source[1]);
        size = match height <= f64::from(input[1]) {
            true => [input[0], height as u32],
            false => [width as u32, input[1]],
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
fn gives_nvinfers_numbers_where_boxes_are_not_clipped() {
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
