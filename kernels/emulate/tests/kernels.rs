//! The CUDA kernels, run on the host, held to `engine::Reference` bit for bit and in order.

#[path = "../../../tests/data/mod.rs"]
mod data;
mod emulated;
#[path = "../../../tests/scene/mod.rs"]
#[allow(dead_code, reason = "made for more tests than these")]
mod scene;

use emulated::Emulated;
use gstnmsfilter::engine::{
    ClassThresholds, Detection, Engine, Method, Outcome, Overlap, Params, Reference,
};
use gstnmsfilter::head::{self, Layout, Options};
use gstnmsfilter::tensor::Tensor;
use nmsfilter_emulated_kernels::{Device, paper};
use scene::Scene;

/// Survivors to the last bit, with the counts.
fn bits(outcome: &Outcome<'_>) -> (Vec<[u32; 7]>, usize, usize) {
    let survivors = outcome.survivors.iter().map(|d| {
        let [x1, y1, x2, y2, score] = [d.x1, d.y1, d.x2, d.y2, d.score].map(f32::to_bits);
        [x1, y1, x2, y2, score, d.class, d.anchor]
    });
    (survivors.collect(), outcome.candidates, outcome.rejected)
}

/// A device and an order of threads for each seed: from one multiprocessor to more blocks than
/// there are candidates, few or all of them running at a time.
fn device(seed: u64) -> Device {
    Device {
        multiprocessors: [1, 2, 3, 5][seed as usize % 4],
        resident: [1, 2, 3, 8, 64][seed as usize % 5],
        seed,
    }
}

#[test]
fn kernels_equal_reference_bit_for_bit_and_in_order() {
    let mut reference = Reference::default();
    let (mut candidates, mut left, mut rejected) = (0, 0, 0);
    for seed in 0..1_500 {
        let scene = Scene::any(seed);
        let (tensors, layout) = scene.tensors();
        let expected = reference.run(&tensors, &layout, &scene.params).unwrap();
        let mut kernels = Emulated::on(device(seed));
        // Twice: a frame leaves the workspace ready for the next.
        for _ in 0..2 {
            let found = kernels.run(&tensors, &layout, &scene.params).unwrap();
            assert_eq!(bits(&expected), bits(&found), "seed {seed}: {scene:?}");
        }
        candidates += expected.candidates;
        left += expected.survivors.len();
        rejected += expected.rejected;
    }
    println!("{candidates} candidates, {left} survivors, {rejected} rejected");
    assert!(candidates > 100_000 && left > 10_000 && rejected > 1_000);
}

#[test]
fn thousands_of_candidates_are_equal_too() {
    let mut reference = Reference::default();
    for seed in 0..4 {
        let scene = Scene::large(seed, 3_000);
        let (tensors, layout) = scene.tensors();
        let expected = reference.run(&tensors, &layout, &scene.params).unwrap();
        let mut kernels = Emulated::on(device(seed));
        let found = kernels.run(&tensors, &layout, &scene.params).unwrap();
        assert_eq!(bits(&expected), bits(&found), "seed {seed}: {scene:?}");
    }
}

/// Boxes slide along by half a pixel, so that each meets some 150 others.
#[test]
fn more_hits_than_are_listed_are_looked_for_again() {
    let count = 700;
    let mut reference = Reference::default();
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let boxes: Vec<f32> = (0..count)
            .flat_map(|i| {
                let x = i as f32 / 2.0;
                [x, 0.0, x + 100.0, 50.0]
            })
            .collect();
        let scores: Vec<f32> = (0..count).map(|_| random.f32().max(0.3)).collect();
        let tensors = [
            Tensor::from_slice("boxes", &[count, 4], &boxes),
            Tensor::from_slice("scores", &[count], &scores),
        ];
        let expected = reference.run(&tensors, &layout(&tensors), &Params::default()).unwrap();
        let mut kernels = Emulated::on(device(seed));
        let found = kernels.run(&tensors, &layout(&tensors), &Params::default()).unwrap();
        assert_eq!(bits(&expected), bits(&found), "seed {seed}");
    }
}

/// One row of boxes, each half over the last one: every decision waits for the one before.
#[test]
fn a_chain_is_decided_link_by_link() {
    for count in [2, 33, 100, 1_100, 2_500] {
        let boxes: Vec<f32> =
            (0..count).flat_map(|i| [i as f32, 0.0, i as f32 + 2.0, 2.0]).collect();
        let scores: Vec<f32> = (0..count).map(|i| 1.0 - i as f32 / 4_096.0).collect();
        let tensors = [
            Tensor::from_slice("boxes", &[count, 4], &boxes),
            Tensor::from_slice("scores", &[count], &scores),
        ];
        let layout = layout(&tensors);
        let params = Params { iou_threshold: 0.3, ..Params::default() };
        for seed in 0..5 {
            let mut kernels = Emulated::on(device(seed));
            let kept = kernels.run(&tensors, &layout, &params).unwrap().survivors.to_vec();
            let expected: Vec<u32> = (0..count as u32).step_by(2).collect();
            assert_eq!(anchors(&kept), expected, "{count} links, seed {seed}");
            assert_eq!(kernels.rounds, count.div_ceil(2), "{count} links, seed {seed}");
        }
    }
}

fn anchors(detections: &[Detection]) -> Vec<u32> {
    detections.iter().map(|d| d.anchor).collect()
}

fn layout(tensors: &[Tensor<'_>]) -> Layout {
    head::choose(tensors, None, Options::default()).unwrap().layout
}

/// What the paper's program does, in this project's terms.
fn as_the_paper(method: Method) -> Params {
    Params {
        method,
        overlap: Overlap::Representative,
        iou_threshold: 0.3,
        pixel_offset: 1.0,
        threshold_inclusive: true,
        thresholds: ClassThresholds::uniform(0.0),
        ..Params::default()
    }
}

#[test]
fn map_reduce_leaves_what_the_papers_kernels_leave() {
    let Some(windows) = data::oscars() else {
        return;
    };
    for (n, left) in [(200, 26), (360, 51), (698, 95), (1_027, 132), (2_997, 145)] {
        let windows = &windows[..n * 4];
        let tensors = [Tensor::from_slice("windows", &[n, 4], windows)];
        let mut kernels = Emulated::on(device(n as u64));
        let outcome = kernels.run(&tensors, &layout(&tensors), &as_the_paper(Method::MapReduce));
        let mut found = anchors(outcome.unwrap().survivors);
        found.sort_unstable();
        assert_eq!(found.len(), left, "of the first {n} windows");
        // The paper's matrix has room for 4096, which takes the emulation long.
        if n <= 1_027 {
            let capacity = if n <= 512 { 512 } else { 2_048 };
            let kept = paper(windows, 0.3, capacity, 16, n as u64);
            let kept: Vec<u32> =
                (0..).zip(kept).filter(|&(_, kept)| kept).map(|(i, _)| i).collect();
            assert_eq!(found, kept, "of the first {n} windows");
        }
    }
}

#[test]
fn greedy_keeps_what_reference_keeps_of_the_papers_windows() {
    let Some(windows) = data::oscars() else {
        return;
    };
    for n in [200, 1_027, 2_997] {
        let tensors = [Tensor::from_slice("windows", &[n, 4], &windows[..n * 4])];
        for iou_threshold in [0.3, 0.5] {
            let params = Params {
                iou_threshold,
                thresholds: ClassThresholds::uniform(0.0),
                ..Params::default()
            };
            let mut reference = Reference::default();
            let expected = reference.run(&tensors, &layout(&tensors), &params).unwrap();
            let mut kernels = Emulated::on(device(n as u64));
            let found = kernels.run(&tensors, &layout(&tensors), &params).unwrap();
            assert_eq!(bits(&expected), bits(&found), "the first {n}, IoU {iou_threshold}");
        }
    }
}
