// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images whose candidates the CUDA engine sorts instead of comparing all pairs. These tests set a
//! low limit for sorting, and small chunks.

use fastrand::Rng;
use nmsfilter_core::engine::{
    ClassThresholds, Cpu, Cuda, Engine, Job, Method, Overlap, Params, Reference,
};
use nmsfilter_core::tensor::TensorView;

use crate::groups;
use crate::outcome::layout;
use crate::support::emulated::Emulated;
use crate::support::engines::{self, bits};
use crate::support::scene::Scene;

/// Returns an engine that sorts the candidates of images with more than `limit`.
pub fn sorting(limit: u32, first_chunk: u32) -> Cuda {
    let mut cuda = Cuda::new(Some(0)).unwrap();
    cuda.sort_above(limit, first_chunk);
    cuda
}

#[test]
#[ignore = "needs a GPU"]
fn sorted_scenes_and_batches_equal_reference() {
    engines::require_gpu();
    let mut reference = Reference::default();
    let (mut survivors, mut suppressed) = (0, 0);
    for seed in 0..engines::scene_count(1_000) {
        let mut rng = Rng::with_seed(seed);
        let limit = *rng.choice(&[0, 0, 3, 20]).unwrap();
        let mut cuda = sorting(limit, *rng.choice(&[1, 5, 40, 300]).unwrap());
        let batch = if seed % 2 == 0 { vec![Scene::any(seed)] } else { Scene::batch(seed, 5) };
        let joined = if batch.len() == 1 { batch[0].clone() } else { Scene::joined(&batch) };
        let (tensors, layout) = joined.tensors();
        let outcome =
            cuda.run(Job::new(&tensors, &layout, &joined.params, &joined.places())).unwrap();
        for (index, (image, found)) in batch.iter().zip(outcome.groups()).enumerate() {
            let (tensors, layout) = image.tensors();
            let expected = reference
                .run(Job::new(&tensors, &layout, &image.params, &image.places()))
                .unwrap()
                .group(0);
            assert_eq!(bits(&expected), bits(&found), "seed {seed}, image {index}: {image:?}");
            survivors += found.survivors.len();
            suppressed += found.candidates - found.survivors.len();
        }
    }
    assert!(survivors > 10 && suppressed > 10, "{survivors} survivors, {suppressed} suppressed");
}

/// Boxes and their scores.
#[derive(Default)]
pub struct Boxes {
    corners: Vec<[f32; 4]>,
    scores: Vec<f32>,
}

impl Boxes {
    pub fn push(&mut self, [x, y]: [f32; 2], [width, height]: [f32; 2], score: f32) {
        self.corners.push([x, y, x + width, y + height]);
        self.scores.push(score);
    }
}

/// Returns `count` boxes for each kind of scene that can be difficult for a sort by position.
pub fn kinds(count: usize, rng: &mut Rng) -> Vec<(&'static str, Boxes)> {
    let mut all = Vec::new();
    let mut add = |name, make: &mut dyn FnMut(usize, &mut Boxes)| {
        let mut boxes = Boxes::default();
        (0..count).for_each(|i| make(i, &mut boxes));
        all.push((name, boxes));
    };
    let centers: Vec<[f32; 2]> = (0..9).map(|_| [rng.f32() * 1e3, rng.f32() * 600.0]).collect();
    let rng = std::cell::RefCell::new(rng);
    let unit = || rng.borrow_mut().f32();
    let at = |width: f32, height: f32| [unit() * width, unit() * height];
    let sides = || [20.0 + unit() * 60.0, 20.0 + unit() * 60.0];
    add("uniform", &mut |_, boxes| boxes.push(at(1e3, 600.0), sides(), unit()));
    add("clustered", &mut |i, boxes| {
        let ([x, y], [dx, dy]) = (centers[i % 9], at(30.0, 30.0));
        boxes.push([x + dx, y + dy], sides(), unit());
    });
    add("one box", &mut |_, boxes| boxes.push([5.0, 6.0], [30.0, 40.0], unit()));
    add("one box and one score", &mut |_, boxes| boxes.push([5.0, 6.0], [30.0, 40.0], 0.5));
    add("equal scores", &mut |_, boxes| boxes.push(at(500.0, 300.0), sides(), 0.5));
    add("scores that ascend", &mut |i, boxes| {
        boxes.push(at(500.0, 300.0), sides(), 0.1 + i as f32 / (2 * count) as f32);
    });
    add("all sizes", &mut |_, boxes| {
        let side = || 2.0f32.powf(unit() * 34.0 - 6.0);
        boxes.push(at(4e3, 4e3).map(|edge| edge - 2e3), [side(), side()], unit());
    });
    add("far apart", &mut |i, boxes| {
        let far = 10.0f32.powi((i % 37) as i32) * if i % 2 == 0 { 1.0 } else { -1.0 };
        let side = (far.abs() * 0.3).clamp(1.0, 9e8);
        boxes.push([far, far * 0.5], [side, side * (1.0 + unit())], unit());
    });
    add("degenerate and infinite", &mut |i, boxes| {
        let odd = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, 0.0, -0.0, -1.0, 1e-40];
        let mut corners = [at(200.0, 100.0), sides()];
        if i % 3 == 0 {
            corners[i / 3 % 2][i / 6 % 2] = odd[i / 12 % 8];
        }
        boxes.push(corners[0], corners[1], if i % 50 == 7 { f32::NAN } else { unit() });
    });
    add("thin", &mut |i, boxes| {
        let sides = if i % 2 == 0 { [900.0, 1.0] } else { [1.0, 500.0] };
        boxes.push(at(100.0, 100.0), sides, unit());
    });
    all
}

/// Runs the boxes as one image, and compares the result with the CPU engine's.
pub fn assert_equal(cuda: &mut Cuda, boxes: &Boxes, params: &Params, what: &str) {
    let count = boxes.scores.len();
    let classes = if params.class_agnostic { 1 } else { 3 };
    let scores: Vec<f32> = (0..count * classes)
        .map(|i| if i / classes % classes == i % classes { boxes.scores[i / classes] } else { 0.0 })
        .collect();
    let corners = boxes.corners.concat();
    let tensors = [
        TensorView::from_slice("boxes", &[count, 4], &corners),
        TensorView::from_slice("scores", &[count, classes], &scores),
    ];
    let layout = layout(&tensors);
    let mut cpu = Cpu::default();
    let expected =
        cpu.run(Job::new(&tensors, &layout, params, &engines::places(&layout))).unwrap().group(0);
    let outcome = cuda.run(Job::new(&tensors, &layout, params, &engines::places(&layout))).unwrap();
    assert_eq!(bits(&expected), bits(&outcome.group(0)), "{count} boxes, {what}: {params:?}");
}

#[test]
#[ignore = "needs a GPU"]
fn sorted_boxes_of_any_spread_equal_the_cpu() {
    engines::require_gpu();
    let mut rng = Rng::with_seed(7);
    // With a first chunk of 1, more than 512 candidates make four chunks. Each candidate has a list
    // of up to 62 conflicts.
    for (count, first_chunk) in [(1, 1), (33, 1), (700, 1), (700, 100), (1_500, 10_000)] {
        let mut cuda = sorting(0, first_chunk);
        for (name, boxes) in kinds(count, &mut rng) {
            let params = Params {
                method: *rng.choice(&[Method::Greedy, Method::Greedy, Method::MapReduce]).unwrap(),
                overlap: *rng
                    .choice(&[Overlap::Iou, Overlap::Representative, Overlap::Smaller])
                    .unwrap(),
                iou_threshold: *rng.choice(&[0.0, 0.1, 0.45, 0.7]).unwrap(),
                pixel_offset: *rng.choice(&[0.0, 1.0]).unwrap(),
                threshold_inclusive: rng.bool(),
                class_agnostic: rng.bool(),
                thresholds: ClassThresholds::uniform(0.05),
                max_candidates: *rng.choice(&[0, 0, 50, 600]).unwrap(),
                max_detections: *rng.choice(&[0, 0, 20]).unwrap(),
                ..Params::default()
            };
            assert_equal(&mut cuda, &boxes, &params, name);
        }
    }
}

/// A candidate conflicts with all that outrank it, so its list is full. Each survivor is the last
/// of its chunk.
#[test]
#[ignore = "needs a GPU"]
fn sorted_boxes_with_more_conflicts_than_are_stored_equal_the_cpu() {
    engines::require_gpu();
    for (step, iou_threshold) in [(0.5, 0.45), (0.01, 0.0), (0.3, 0.9)] {
        let mut boxes = Boxes::default();
        for i in 0..900 {
            boxes.push([i as f32 * step, 0.0], [100.0, 50.0], 1.0 - i as f32 / 1_000.0);
        }
        let params = Params {
            iou_threshold,
            thresholds: ClassThresholds::uniform(0.01),
            ..Params::default()
        };
        for first_chunk in [50, 2_000] {
            assert_equal(&mut sorting(0, first_chunk), &boxes, &params, "a line");
        }
    }
}

/// In a later chunk, the first candidate survives and is in few lists.
#[test]
#[ignore = "needs a GPU"]
fn sorted_boxes_of_a_later_chunk_on_each_other_equal_the_cpu() {
    engines::require_gpu();
    let mut rng = Rng::with_seed(2);
    let mut boxes = Boxes::default();
    for i in 0..60 {
        boxes.push([100.0 + i as f32 * 50.0, 300.0], [20.0, 20.0], 0.9 + rng.f32() * 0.1);
    }
    for _ in 0..600 {
        boxes.push([rng.f32(), rng.f32()], [50.0, 50.0], 0.1 + rng.f32() * 0.5);
    }
    assert_equal(&mut sorting(0, 40), &boxes, &Params::default(), "on each other");
}

/// Windows x, y, side and score, of which the first `counts[image]` are candidates. Corners are within `extent`, and a side
/// is `least` plus a random part of `more`.
pub fn windows(
    rng: &mut Rng,
    counts: &[usize],
    anchors: usize,
    [width, height]: [f32; 2],
    [least, more]: [f32; 2],
) -> Vec<f32> {
    let mut numbers = Vec::new();
    for &count in counts {
        for anchor in 0..anchors {
            let score = if anchor < count { 0.5 + rng.f32() * 0.5 } else { 0.0 };
            numbers.extend([
                rng.f32() * width,
                rng.f32() * height,
                least + rng.f32() * more,
                score,
            ]);
        }
    }
    numbers
}

/// An image with exactly as many candidates as the limit is not sorted; one more candidate, and it
/// is.
#[test]
#[ignore = "needs a GPU"]
fn images_above_the_limit_are_sorted_and_others_of_the_batch_are_not() {
    engines::require_gpu();
    const LIMIT: usize = 40;
    const ANCHORS: usize = 200;
    let emulated = Emulated::get();
    let sorted_launches = || emulated.map_or(0, Emulated::sorted_launches);
    let mut rng = Rng::with_seed(3);
    let mut cuda = sorting(LIMIT as u32, 16);
    let mut reference = Reference::default();
    let frames: [&[usize]; 6] = [
        &[LIMIT - 1, LIMIT, 0],
        &[LIMIT + 1],
        &[LIMIT],
        &[ANCHORS, LIMIT + 1, LIMIT, 1, 0],
        &[0, ANCHORS],
        &[LIMIT, LIMIT - 1],
    ];
    for counts in frames {
        let numbers = windows(&mut rng, counts, ANCHORS, [90.0, 90.0], [5.0, 20.0]);
        let tensors = [TensorView::from_slice("windows", &[counts.len(), ANCHORS, 4], &numbers)];
        let layout = groups::layout(&tensors);
        let params = Params { thresholds: ClassThresholds::uniform(0.3), ..Params::default() };
        let expected =
            reference.run(Job::new(&tensors, &layout, &params, &engines::places(&layout))).unwrap();
        let before = sorted_launches();
        let outcome =
            cuda.run(Job::new(&tensors, &layout, &params, &engines::places(&layout))).unwrap();
        for (expected, found) in expected.groups().zip(outcome.groups()) {
            assert_eq!(bits(&expected), bits(&found), "{counts:?}");
        }
        let is_sorted = counts.iter().any(|&count| count > LIMIT);
        if emulated.is_some() {
            assert_eq!(sorted_launches() - before, i32::from(is_sorted), "{counts:?}");
        }
    }
}
