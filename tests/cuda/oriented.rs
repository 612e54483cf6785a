// SPDX-License-Identifier: MIT OR Apache-2.0
//! Oriented boxes on the CUDA engine: the result equals the reference engine's to the bit.
//! tests/engine/oriented.rs has random scenes with one tensor. The tests here cover random layouts,
//! images in separate allocations, crowds that overflow the conflict lists, and launches that
//! alternate with upright boxes.

use std::ops::Range;

use fastrand::Rng;
use nmsfilter_core::decoder::MAX_INPUTS;
use nmsfilter_core::decoder::layout::{
    BoxFormat, BoxRule, Field, Group, Layout, Reference as BoxReference, ScoreRule,
};
use nmsfilter_core::engine::{
    ClassThresholds, Cuda, Engine, Job, Method, Overlap, Params, Reference,
};
use nmsfilter_core::tensor::{Storage, TensorView};

use crate::layouts::assert_equal;
use crate::support::engines::{self, bits};
use crate::support::layout_scene::LayoutScene;

const MEASURES: [Overlap; 4] =
    [Overlap::Iou, Overlap::Representative, Overlap::Smaller, Overlap::ProbIou];

/// Capacity of the conflict list that the kernel `map` stores per candidate
/// (kernels/workspace.cuh).
const CONFLICT_LIST_CAPACITY: usize = 62;

fn engines() -> (Reference, Cuda) {
    engines::require_gpu();
    (Reference::default(), Cuda::new(Some(0)).unwrap())
}

/// Compares scenes with the reference. Returns the numbers of candidates, of survivors, of rejected anchors and of batches.
fn compare(seeds: Range<u64>) -> [usize; 4] {
    let (mut reference, mut cuda) = engines();
    let (mut candidates, mut survivors, mut rejected, mut batches) = (0, 0, 0, 0);
    for seed in seeds {
        let scene = LayoutScene::oriented(seed);
        let (layout, params) = (&scene.layout, &scene.params);
        // Every second scene has images in separate allocations.
        let images: Vec<Vec<Storage<'_>>> =
            scene.tensors.iter().map(|tensor| tensor.image_storages()).collect();
        let mut views = scene.views();
        for (index, view) in views.iter_mut().enumerate() {
            if seed % 2 == 1 && !scene.is_shared(index) {
                view.storage = Storage::Images(&images[index]);
            }
        }
        let expected = match reference.run(Job::new(&views, layout, params, &scene.places())) {
            Ok(expected) => expected,
            // Some layouts have more tensors than engines accept.
            Err(error) => {
                assert!(scene.tensors.len() > MAX_INPUTS, "seed {seed}: {error}");
                assert_eq!(
                    cuda.run(Job::new(&views, layout, params, &scene.places())).unwrap_err(),
                    error,
                    "seed {seed}"
                );
                continue;
            }
        };
        let found = cuda.run(Job::new(&views, layout, params, &scene.places())).unwrap();
        assert_equal(&expected, &found, &format!("seed {seed}: {layout:#?} {params:?}"));
        for image in found.groups() {
            candidates += image.candidates;
            survivors += image.survivors.len();
            rejected += image.rejected;
        }
        batches += usize::from(layout.images > 1);
    }
    [candidates, survivors, rejected, batches]
}

#[test]
#[ignore = "needs a GPU"]
fn random_layouts_of_oriented_boxes_equal_reference() {
    let scenes = engines::scene_count(20_000);
    let [candidates, survivors, rejected, batches] = engines::in_parts(scenes, compare);
    println!(
        "{scenes} scenes: {candidates} candidates, {survivors} survivors, {rejected} rejected"
    );
    let scenes = scenes as usize;
    assert!(candidates > 5 * scenes && rejected > scenes / 2, "{candidates} {rejected}");
    assert!(survivors > 2 * scenes && batches > scenes / 4, "{survivors} {batches}");
}

/// Boxes around objects, in `images` images. Each row has center, size, angle and the scores of two
/// classes.
fn crowd(rng: &mut Rng, images: usize, boxes: usize, objects: usize) -> (Vec<f32>, Layout) {
    const WIDTH: usize = 7;
    let mut numbers = Vec::new();
    for _ in 0..images {
        let objects: Vec<[f32; 5]> = (0..objects)
            .map(|_| {
                let [x, y, w, h] = [0; 4].map(|_| rng.f32());
                [1_000.0 * x, 600.0 * y, 20.0 + 60.0 * w, 10.0 + 20.0 * h, 6.3 * rng.f32()]
            })
            .collect();
        for _ in 0..boxes {
            let [x, y, w, h, angle] = *rng.choice(&objects).unwrap();
            let mut near = |number: f32, by: f32| number + (rng.f32() - 0.5) * by;
            numbers.extend([near(x, 8.0), near(y, 8.0), near(w, 6.0), near(h, 6.0)]);
            numbers.push(near(angle, 0.2));
            // The scores have few distinct values, so that some are equal.
            numbers.extend([0; 2].map(|_| rng.u16(1..4_000) as f32 / 4_000.0));
        }
    }
    let field = |offset| Field {
        tensor: 0,
        offset,
        image_stride: boxes * WIDTH,
        anchor_stride: WIDTH,
        component_stride: 1,
    };
    let group = Group {
        sizes: None,
        anchors: boxes,
        boxes: field(0),
        angle: Some(field(4)),
        scores: field(5),
        objectness: None,
        class: None,
        reference: BoxReference::None,
        columns: Vec::new(),
    };
    let layout = Layout {
        decoder: "crowd",
        images,
        classes: 2,
        groups: [group].into_iter().collect(),
        score: ScoreRule::of_classes(2),
        boxes: BoxRule::decoded(BoxFormat::Center),
        count: None,
        columns: Vec::new(),
        pairs: None,
        image: None,
        prototypes: None,
        priors: None,
        normalized: false,
    };
    (numbers, layout)
}

fn tensor<'a>(numbers: &'a [f32], layout: &Layout) -> [TensorView<'a>; 1] {
    let shape = [layout.images, numbers.len() / layout.images];
    [TensorView::from_slice("crowd", &shape, numbers)]
}

/// A candidate whose conflict list overflowed is compared with all candidates that outrank it.
#[test]
#[ignore = "needs a GPU"]
fn hundreds_of_boxes_on_each_other_equal_reference() {
    let (mut reference, mut cuda) = engines();
    let mut rng = Rng::with_seed(5);
    let turns = engines::scene_count(160).max(8);
    let mut dense = 0;
    for turn in 0..turns {
        let (images, boxes) = (rng.usize(1..=3), rng.usize(300..700));
        let (numbers, layout) = crowd(&mut rng, images, boxes, 1 + turn as usize % 3);
        let tensors = tensor(&numbers, &layout);
        for overlap in MEASURES {
            let mut params = Params {
                overlap,
                thresholds: ClassThresholds::uniform(0.0),
                iou_threshold: *rng.choice(&[0.0, 0.2, 0.5, 0.7]).unwrap(),
                threshold_inclusive: rng.bool(),
                class_agnostic: rng.bool(),
                multi_label: rng.u8(0..4) == 0,
                max_detections: 0,
                max_candidates: 0,
                ..Params::default()
            };
            for method in [Method::Greedy, Method::MapReduce] {
                params.method = method;
                let expected = reference
                    .run(Job::new(&tensors, &layout, &params, &engines::places(&layout)))
                    .unwrap();
                let found = cuda
                    .run(Job::new(&tensors, &layout, &params, &engines::places(&layout)))
                    .unwrap();
                assert_equal(&expected, &found, &format!("turn {turn}: {params:?}"));
                // On average, each survivor suppresses more candidates than a list holds.
                let is_dense = |all: usize, left: usize| all > (CONFLICT_LIST_CAPACITY + 1) * left;
                let is_greedy = method == Method::Greedy;
                dense += found
                    .groups()
                    .filter(|image| is_greedy && is_dense(image.candidates, image.survivors.len()))
                    .count();
            }
        }
    }
    assert!(dense > turns as usize, "{dense} dense images in {turns} turns");
}

/// Many candidates are compared in tiles, and few by groups of warps.
#[test]
#[ignore = "needs a GPU"]
fn thousands_of_oriented_boxes_equal_reference() {
    let (mut reference, mut cuda) = engines();
    let mut rng = Rng::with_seed(6);
    let sizes = [(1, 1_536), (1, 1_537), (3, 1_000), (1, 2_100), (2, 3_100), (1, 6_500)];
    for (turn, (images, boxes)) in sizes.into_iter().enumerate() {
        let (numbers, layout) = crowd(&mut rng, images, boxes, boxes / 12);
        let tensors = tensor(&numbers, &layout);
        let measures = MEASURES.into_iter().enumerate();
        for (_, overlap) in measures.filter(|(i, _)| engines::runs_combination(turn + i)) {
            let params = Params {
                overlap,
                thresholds: ClassThresholds::uniform(0.0),
                max_detections: 0,
                ..Params::default()
            };
            let expected = reference
                .run(Job::new(&tensors, &layout, &params, &engines::places(&layout)))
                .unwrap();
            let found =
                cuda.run(Job::new(&tensors, &layout, &params, &engines::places(&layout))).unwrap();
            assert_equal(&expected, &found, &format!("{images} x {boxes}, {overlap:?}"));
            let image = found.group(0);
            assert_eq!(image.candidates, boxes);
            assert!((boxes / 40..boxes / 2).contains(&image.survivors.len()), "{overlap:?}");
        }
    }
}

/// One tensor, alternately read with and without its angles: each reading has its own kernels and
/// workspace.
#[test]
#[ignore = "needs a GPU"]
fn upright_and_oriented_boxes_in_turn_equal_reference() {
    let (mut reference, mut cuda) = engines();
    let mut rng = Rng::with_seed(7);
    let (numbers, oriented) = crowd(&mut rng, 1, 200, 20);
    let mut upright = oriented.clone();
    upright.groups[0].angle = None;
    let tensors = tensor(&numbers, &oriented);
    let mut survivors = Vec::new();
    for (turn, layout) in [&oriented, &upright, &oriented, &upright].into_iter().enumerate() {
        let params = Params { multi_label: turn > 1, ..Params::default() };
        let expected =
            reference.run(Job::new(&tensors, layout, &params, &engines::places(layout))).unwrap();
        let found =
            cuda.run(Job::new(&tensors, layout, &params, &engines::places(layout))).unwrap();
        assert_equal(&expected, &found, &format!("turn {turn}"));
        let image = found.group(0);
        let work = found.device;
        assert_eq!(work.bytes_downloaded, 32 + 28 * image.survivors.len() as u64, "turn {turn}");
        survivors.push(bits(&image));
    }
    assert_ne!(survivors[0], survivors[1]);
    assert_ne!(survivors[2], survivors[3]);
}
