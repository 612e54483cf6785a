// SPDX-License-Identifier: MIT OR Apache-2.0
//! The size of a frame is its surface's, which nvinfer scales. Metadata of frames behind the new
//! nvstreammux, and metadata of copies, has no size.

use gst::prelude::*;
use gstnmsfilter::deepstream::layout::Version;
use nmsfilter_core::geometry::Letterbox;

use super::objects::assert_objects;
use crate::batch::{Producer, Scene, Sizes, TestModel};
use crate::libraries::{is_inside, version};
use crate::run::{self, NVMM_CAPS, Ran, Seen};
use crate::standin::{Counts, Surfaces};
use crate::support::pipeline::{intercept, parse, run as run_pipeline, watch};

const FILTER: &str = "nmsfilter decoder=yolov8 letterbox=none";

const SIZES: [[u32; 2]; 5] = [[1920, 1080], [640, 480], [1080, 1921], [640, 480], [3, 2000]];

/// A scene with frames of several sizes.
fn scene(seed: u64, sizes: Sizes) -> Scene {
    let mut scene = Scene::new(SIZES.len(), seed).with_sizes(sizes);
    for (frame, size) in scene.frames.iter_mut().zip(SIZES) {
        frame.meta.pipeline = size;
    }
    scene
}

fn assert_right(scene: &Scene, letterbox: Letterbox) {
    let ran = run::scenes(
        std::slice::from_ref(scene),
        &format!("attach=nvds letterbox={}", letterbox.name()),
    );
    let ran = ran.well();
    assert_eq!(ran.seen.len(), 2);
    for seen in &ran.seen {
        assert!(assert_objects(seen, scene, letterbox) > 10);
    }
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn the_surface_has_the_size_if_the_metadata_has_none() {
    if !is_inside() {
        return;
    }
    for letterbox in Letterbox::ALL {
        let model = TestModel { letterbox, input: [416, 352], ..TestModel::default() };
        assert_right(&scene(1, Sizes::Surfaces).with_model(model), letterbox);
    }
    let mut one = Scene::new(1, 2).with_sizes(Sizes::Surfaces);
    assert_right(&one, Letterbox::None);
    one.frames[0].meta.pipeline = [641, 481];
    assert_right(&one, Letterbox::None);
}

/// The old nvstreammux wrote the size into the metadata, then an element scaled the buffers in
/// place.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn the_size_of_the_surface_replaces_the_size_in_the_metadata() {
    if !is_inside() {
        return;
    }
    assert_right(&scene(3, Sizes::SurfacesBeside([1280, 720])), Letterbox::None);
}

/// A frame's surface is at the index `batch_id`, no matter where the frame is in the list.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn each_frame_has_the_size_of_the_surface_that_it_names() {
    if !is_inside() {
        return;
    }
    let mut scene = scene(4, Sizes::Surfaces);
    scene.frames.remove(1);
    scene.frames.swap(0, 2);
    scene.frames[1].seeds = vec![None];
    assert_right(&scene, Letterbox::None);
}

/// A copy of a buffer shares its surfaces, but DeepStream does not copy the sizes in the metadata.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn a_copy_has_the_size_of_its_surface() {
    if !is_inside() {
        return;
    }
    for sizes in [Sizes::Surfaces, Sizes::SurfacesBeside([1280, 720])] {
        let scene = scene(5, sizes);
        // nvinfer up to 7.1 does not copy the size of the model's input.
        let [width, height] = scene.models[0].input;
        let filter = if version() < Version::new(8, 0) {
            format!("{FILTER} model-width={width} model-height={height}")
        } else {
            FILTER.to_owned()
        };
        let producer = Producer::new(&scene, 6);
        let source = run::source(8, NVMM_CAPS);
        // The first filter and the probe on the second branch each have a copy; one of them is a
        // copy of a copy.
        let pipeline = parse(&format!(
            "{source} ! identity name=copied ! tee name=t
               t. ! queue max-size-buffers=2 ! {filter} name=first ! fakesink
               t. ! queue max-size-buffers=2 ! {filter} name=second ! fakesink"
        ));
        intercept(&pipeline, "in", move |buffer| producer.attach(buffer));
        let pad = pipeline.by_name("copied").unwrap().static_pad("src").unwrap();
        pad.add_probe(gst::PadProbeType::BUFFER, |_, info| {
            let buffer = info.buffer_mut().unwrap();
            *buffer = buffer.copy();
            gst::PadProbeReturn::Ok
        });
        let branches = ["first", "second"].map(|name| watch(&pipeline, name, Seen::read));
        let ended = run_pipeline(&pipeline);
        assert_eq!((ended.error, ended.warnings), (None, vec![]));
        drop(pipeline);
        for branch in branches {
            let branch = branch.lock().unwrap();
            assert_eq!(branch.len(), 8);
            for seen in &*branch {
                assert!(assert_objects(seen, &scene, Letterbox::None) > 50);
            }
        }
        Counts::now().assert_nothing_left();
    }
}

/// Runs the scene, whose metadata has sizes, with these surfaces.
fn with_surfaces(caps: &str, scene: &Scene, surfaces: Surfaces) -> Ran {
    let producer = Producer::new(scene, 6);
    run::with_caps(caps, "decoder=yolov8 letterbox=none attach=nvds", 2, move |buffer| {
        producer.attach(buffer);
        surfaces.replace_memory(buffer);
    })
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn the_metadata_has_the_size_if_the_memory_has_no_such_surface() {
    if !is_inside() {
        return;
    }
    let scene = scene(6, Sizes::Metadata);
    let other = Surfaces { sizes: vec![[320, 240]; SIZES.len()], ..Surfaces::default() };
    let cases = [
        // The memory is too small for the structure.
        Surfaces { bytes: 32, ..other.clone() },
        Surfaces { bytes: 63, ..other.clone() },
        // The structure is damaged.
        Surfaces { null: true, ..other.clone() },
        Surfaces { claimed: Some([4, 5]), ..other.clone() },
        Surfaces { claimed: Some([u32::MAX; 2]), ..other.clone() },
        // No surface is filled, or none has pixels.
        Surfaces { claimed: Some([5, 0]), ..other.clone() },
        Surfaces { sizes: vec![[0, 240]; SIZES.len()], ..other.clone() },
        Surfaces { sizes: vec![[320, u32::MAX]; SIZES.len()], ..other.clone() },
    ];
    for surfaces in cases {
        let ran = with_surfaces(NVMM_CAPS, &scene, surfaces.clone()).well();
        for seen in &ran.seen {
            assert!(assert_objects(seen, &scene, Letterbox::None) > 50, "{surfaces:?}");
        }
    }
    // Surfaces outside of NVMM memory are ignored.
    let ran = with_surfaces(run::CAPS, &scene, other.clone()).well();
    assert!(assert_objects(&ran.seen[0], &scene, Letterbox::None) > 50);
    // Valid surfaces in NVMM memory have precedence over the metadata.
    let ran = with_surfaces(NVMM_CAPS, &scene, other).well();
    let mut resized = scene.clone();
    for frame in &mut resized.frames {
        frame.meta.pipeline = [320, 240];
    }
    assert!(assert_objects(&ran.seen[0], &resized, Letterbox::None) > 50);
}

/// If a frame has no filled surface, the size in its metadata is used.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn a_frame_without_a_surface_has_the_size_in_the_metadata() {
    if !is_inside() {
        return;
    }
    let mut scene = scene(7, Sizes::Metadata);
    let surfaces = Surfaces { sizes: vec![[320, 240], [640, 360]], ..Surfaces::default() };
    let ran = with_surfaces(NVMM_CAPS, &scene, surfaces.clone()).well();
    for (frame, size) in scene.frames.iter_mut().zip(surfaces.sizes) {
        frame.meta.pipeline = size;
    }
    assert!(assert_objects(&ran.seen[0], &scene, Letterbox::None) > 50);
}
