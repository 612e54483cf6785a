// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CUDA engine on tensors in host memory, compared with the reference engine.
//!
//! The environment variable `NMSFILTER_TEST_SCENES` sets the number of random scenes (300).

use std::ops::Range;

use nmsfilter_core::engine::{ClassThresholds, Cuda, Engine, Job, Params, Reference};
use nmsfilter_core::tensor::TensorView;

use crate::outcome::{bytes_downloaded, layout, scenes};
use crate::support::engines::{self, bits};
use crate::support::scene::Scene;

#[test]
#[ignore = "needs a GPU"]
fn tensors_in_host_memory_equal_reference_and_are_uploaded_once() {
    engines::require_gpu();
    let [candidates] = engines::in_parts(scenes(), uploaded_once);
    assert!(candidates as u64 > 50 * scenes());
}

/// Compares scenes in host memory with the reference. Returns the number of candidates.
fn uploaded_once(seeds: Range<u64>) -> [usize; 1] {
    let (mut reference, mut cuda) = (Reference::default(), Cuda::new(Some(0)).unwrap());
    let mut candidates = 0;
    for seed in seeds {
        let scene = Scene::any(seed);
        let (tensors, layout) = scene.tensors();
        let params = Params {
            thresholds: ClassThresholds::uniform(0.3),
            class_rules: Vec::new(),
            ..scene.params.clone()
        };
        let expected = reference
            .run(Job::new(&tensors, &layout, &params, &engines::places(&layout)))
            .unwrap()
            .group(0);
        let outcome =
            cuda.run(Job::new(&tensors, &layout, &params, &engines::places(&layout))).unwrap();
        let found = outcome.group(0);
        assert_eq!(bits(&expected), bits(&found), "seed {seed}: {scene:?}");
        let read: usize =
            layout.tensors().into_iter().map(|index| tensors[index].checked_len().unwrap()).sum();
        assert_eq!(outcome.device.bytes_uploaded, read as u64, "seed {seed}");
        assert_eq!(outcome.device.bytes_downloaded, bytes_downloaded(&outcome), "seed {seed}");
        candidates += found.candidates;
    }
    [candidates]
}

/// Each box is half a pixel to the right of the previous one, so that it conflicts with about 150
/// others: more than the kernel `map` stores per candidate.
#[test]
#[ignore = "needs a GPU"]
fn more_conflicts_than_are_stored_are_computed_again() {
    engines::require_gpu();
    const COUNT: usize = 700;
    let (mut reference, mut cuda) = (Reference::default(), Cuda::new(Some(0)).unwrap());
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let corners = |i| [i as f32 / 2.0, 0.0, i as f32 / 2.0 + 100.0, 50.0];
        let boxes: Vec<f32> = (0..COUNT).flat_map(corners).collect();
        let scores: Vec<f32> = (0..COUNT).map(|_| random.f32().max(0.3)).collect();
        let tensors = [
            TensorView::from_slice("boxes", &[COUNT, 4], &boxes),
            TensorView::from_slice("scores", &[COUNT], &scores),
        ];
        let layout = layout(&tensors);
        let expected = reference
            .run(Job::new(&tensors, &layout, &Params::default(), &engines::places(&layout)))
            .unwrap()
            .group(0);
        let outcome = cuda
            .run(Job::new(&tensors, &layout, &Params::default(), &engines::places(&layout)))
            .unwrap();
        let found = outcome.group(0);
        assert_eq!(bits(&expected), bits(&found), "seed {seed}");
    }
}

/// Each box overlaps half of the previous one, so that every decision depends on the previous one.
#[test]
#[ignore = "needs a GPU"]
fn rounds_is_the_dependency_depth_of_overlapping_boxes_in_a_line() {
    engines::require_gpu();
    let mut cuda = Cuda::new(Some(0)).unwrap();
    for count in [2, 33, 100, 1_100, 2_500] {
        let corners = |i| [i as f32, 0.0, i as f32 + 2.0, 2.0];
        let boxes: Vec<f32> = (0..count).flat_map(corners).collect();
        let scores: Vec<f32> = (0..count).map(|i| 1.0 - i as f32 / 4_096.0).collect();
        let tensors = [
            TensorView::from_slice("boxes", &[count, 4], &boxes),
            TensorView::from_slice("scores", &[count], &scores),
        ];
        let params = Params { iou_threshold: 0.3, ..Params::default() };
        let outcome = cuda
            .run(Job::new(
                &tensors,
                &layout(&tensors),
                &params,
                &engines::places(&layout(&tensors)),
            ))
            .unwrap();
        let found = outcome.group(0);
        let kept: Vec<u32> = found.survivors.iter().map(|survivor| survivor.anchor).collect();
        let expected: Vec<u32> = (0..count as u32).step_by(2).collect();
        assert_eq!(kept, expected, "{count} boxes");
        assert_eq!(outcome.device.rounds, count.div_ceil(2) as u64, "{count} boxes");
    }
}

/// With `multi_label`, an anchor becomes one candidate for each of its classes.
#[test]
#[ignore = "needs a GPU"]
fn candidates_beyond_the_memory_are_counted_and_the_run_is_repeated_with_more_memory() {
    engines::require_gpu();
    const CLASSES: usize = 60;
    let (mut reference, mut cuda) = (Reference::default(), Cuda::new(Some(0)).unwrap());
    let params = |threshold| Params {
        multi_label: true,
        thresholds: ClassThresholds::uniform(threshold),
        ..Params::default()
    };
    let mut random = fastrand::Rng::with_seed(9);
    let mut frame = |anchors: usize, threshold| {
        let corners = |i| [i as f32 * 3.0, 0.0, i as f32 * 3.0 + 5.0, 5.0];
        let boxes: Vec<f32> = (0..anchors).flat_map(corners).collect();
        let scores: Vec<f32> = (0..anchors * CLASSES).map(|_| random.f32()).collect();
        let tensors = [
            TensorView::from_slice("boxes", &[anchors, 4], &boxes),
            TensorView::from_slice("scores", &[anchors, CLASSES], &scores),
        ];
        let layout = layout(&tensors);
        let expected = reference
            .run(Job::new(&tensors, &layout, &params(threshold), &engines::places(&layout)))
            .unwrap()
            .group(0);
        let outcome = cuda
            .run(Job::new(&tensors, &layout, &params(threshold), &engines::places(&layout)))
            .unwrap();
        let found = outcome.group(0);
        assert_eq!(bits(&expected), bits(&found));
        assert_eq!(outcome.device.bytes_downloaded, bytes_downloaded(&outcome));
        (found.candidates, outcome.device.launches)
    };
    // Memory grows in steps of 2048 candidates.
    assert_eq!(frame(40, 0.0), (2_400, 2));
    // The memory is kept for the next frames.
    assert_eq!(frame(40, 0.0), (2_400, 1));
    assert_eq!(frame(68, 0.0), (4_080, 1));
    assert!(matches!(frame(100, 0.5), (2_500..3_500, 1)));
    assert_eq!(frame(100, 0.0), (6_000, 2));
    assert_eq!(frame(100, 0.0), (6_000, 1));
}

#[test]
#[ignore = "needs a GPU"]
fn many_engines_on_one_gpu_equal_reference() {
    engines::require_gpu();
    let work = |thread: u64| {
        let (mut reference, mut cuda) = (Reference::default(), Cuda::new(None).unwrap());
        for seed in thread * 1_000..thread * 1_000 + 20 {
            let scene = Scene::any(seed);
            let (tensors, layout) = scene.tensors();
            let expected = reference
                .run(Job::new(&tensors, &layout, &scene.params, &scene.places()))
                .unwrap()
                .group(0);
            let outcome =
                cuda.run(Job::new(&tensors, &layout, &scene.params, &scene.places())).unwrap();
            let found = outcome.group(0);
            assert_eq!(bits(&expected), bits(&found), "seed {seed}: {scene:?}");
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
