// SPDX-License-Identifier: MIT OR Apache-2.0
//! Methods that change boxes or scores, or read a column, on a GPU. The tests of the program `engine` also run on it.

use fastrand::Rng;
use nmsfilter_core::cuda::{ForeignStream, Stream};
use nmsfilter_core::device::Device;
use nmsfilter_core::engine::{
    Auto, ClassThresholds, Cuda, Detection, DeviceCounts, Engine, Job, Method, Overlap, Params,
    Reference,
};
use nmsfilter_core::tensor::TensorView;

use crate::outcome::layout;
use crate::sorted::{Boxes, assert_equal, kinds, sorting};
use crate::support::engines::{self, bits};
use crate::support::methods::{
    add_column, changing, column_numbers, with_any_method, with_column_method,
};
use crate::support::scene::Scene;

/// The method, the limit above which candidates are sorted, and the number of groups change from
/// run to run.
#[test]
#[ignore = "needs a GPU"]
fn random_scenes_that_are_merged_after_each_other_equal_reference() {
    engines::require_gpu();
    let (mut reference, mut cuda) = (Reference::default(), sorting(20, 5));
    let (mut survivors, mut left_out) = (0, 0);
    for seed in 0..engines::scene_count(1_000) {
        let mut rng = Rng::with_seed(seed);
        if rng.u8(0..4) == 0 {
            cuda.sort_above(*rng.choice(&[0, 3, 20, 2_000]).unwrap(), 5);
        }
        let batch = if seed % 2 == 0 { vec![Scene::any(seed)] } else { Scene::batch(seed, 5) };
        let joined = if batch.len() == 1 { batch[0].clone() } else { Scene::joined(&batch) };
        let (tensors, layout) = joined.tensors();
        let params = with_any_method(&mut rng, &joined.params);
        let expected =
            reference.run(Job::new(&tensors, &layout, &params, &joined.places())).unwrap();
        let outcome = cuda.run(Job::new(&tensors, &layout, &params, &joined.places())).unwrap();
        for (image, (expected, found)) in expected.groups().zip(outcome.groups()).enumerate() {
            assert_eq!(bits(&expected), bits(&found), "seed {seed}, image {image}: {params:?}");
            survivors += found.survivors.len();
            left_out += found.candidates - found.survivors.len();
        }
    }
    assert!(survivors > 10 && left_out > 10, "{survivors} survivors, {left_out} left out");
}

#[test]
#[ignore = "needs a GPU"]
fn auto_does_not_try_sequential_methods_on_the_gpu() {
    engines::require_gpu();
    let scene = Scene::any(3);
    let (tensors, layout) = scene.tensors();
    for (method, tries) in [
        (Method::SoftLinear, 0),
        (Method::SoftGaussian, 0),
        (Method::WeightedFusion, 0),
        (Method::MatrixLinear, 8),
    ] {
        let mut auto = Auto::new(None);
        let params = Params { method, ..scene.params.clone() };
        let places = scene.places();
        let on_gpu = (0..16).filter(|_| {
            let outcome = auto.run(Job::new(&tensors, &layout, &params, &places)).unwrap();
            outcome.engine == "cuda"
        });
        assert_eq!(on_gpu.count(), tries, "{}", method.name());
    }
}

/// The method, the number of components, the tensors' addresses, the limit above which candidates
/// are sorted, and the number of groups change from run to run.
#[test]
#[ignore = "needs a GPU"]
fn random_scenes_with_columns_after_each_other_equal_reference() {
    engines::require_gpu();
    let (mut reference, mut cuda) = (Reference::default(), sorting(20, 5));
    let (mut survivors, mut left_out) = (0, 0);
    for seed in 0..engines::scene_count(1_000) {
        let mut rng = Rng::with_seed(seed);
        if rng.u8(0..4) == 0 {
            cuda.sort_above(*rng.choice(&[0, 3, 20, 2_000]).unwrap(), 5);
        }
        let scene = match seed % 3 {
            0 => Scene::any(seed),
            1 => Scene::joined(&Scene::batch(seed, 5)),
            // A pass of a block has 512 boxes.
            _ => Scene::large(seed, 1_100),
        };
        let (mut tensors, mut layout) = scene.tensors();
        let params = with_column_method(&mut rng, &scene.params);
        let kind = params.method.column().unwrap();
        let components = if params.method == Method::Feature { rng.usize(1..40) } else { 1 };
        let shape = [layout.images, layout.anchors(), components];
        let numbers = column_numbers(&mut rng, shape.iter().product());
        add_column(&mut layout, tensors.len(), kind, components);
        tensors.push(TensorView::from_slice("column", &shape, &numbers));
        let expected =
            reference.run(Job::new(&tensors, &layout, &params, &scene.places())).unwrap();
        let outcome = cuda.run(Job::new(&tensors, &layout, &params, &scene.places())).unwrap();
        for (image, (expected, found)) in expected.groups().zip(outcome.groups()).enumerate() {
            assert_eq!(bits(&expected), bits(&found), "seed {seed}, image {image}: {params:?}");
            survivors += found.survivors.len();
            left_out += found.candidates - found.survivors.len();
        }
    }
    assert!(survivors > 10 && left_out > 10, "{survivors} survivors, {left_out} left out");
}

#[test]
#[ignore = "needs a GPU"]
fn many_boxes_of_any_spread_equal_the_cpu_with_each_method() {
    engines::require_gpu();
    let mut rng = Rng::with_seed(11);
    // Blocks have up to 512 threads.
    for (count, sort_limit) in [(1, 0), (33, 100), (700, 0), (1_500, 1 << 20)] {
        let mut cuda = sorting(sort_limit, 100);
        for (name, boxes) in kinds(count, &mut rng) {
            let params = Params {
                iou_threshold: *rng.choice(&[0.0, 0.1, 0.3, 0.5]).unwrap(),
                pixel_offset: *rng.choice(&[0.0, 1.0]).unwrap(),
                threshold_inclusive: rng.bool(),
                class_agnostic: rng.bool(),
                thresholds: ClassThresholds::uniform(0.05),
                max_candidates: *rng.choice(&[0, 0, 50, 600]).unwrap(),
                max_detections: *rng.choice(&[0, 0, 20]).unwrap(),
                ..Params::default()
            };
            // Each method is emulated on some of the spreads.
            for method in changing() {
                if engines::scene_count(20) > 1 || rng.u8(0..4) == 0 {
                    let params = Params { method, ..with_any_method(&mut rng, &params) };
                    assert_equal(&mut cuda, &boxes, &params, name);
                }
            }
        }
    }
}

/// A long chain of claims, a claim with many members that are released in turn, and a cluster with
/// many boxes.
#[test]
#[ignore = "needs a GPU"]
fn chains_and_large_claims_equal_the_cpu() {
    engines::require_gpu();
    let (mut chain, mut released) = (Boxes::default(), Boxes::default());
    for i in 0..400 {
        let score = 1.0 - i as f32 / 500.0;
        chain.push([i as f32 * 50.0, 0.0], [100.0, 50.0], score);
        // All intersect the first, and few one another.
        let [x, y] = [i % 20, i / 20].map(|step| step as f32 * 10.0);
        let size = if i == 0 { [200.0, 200.0] } else { [12.0, 12.0] };
        released.push([x, y], size, score);
    }
    let mut cuda = Cuda::new(Some(0)).unwrap();
    for method in changing() {
        for (what, boxes, overlap, iou_threshold) in [
            ("a chain", &chain, Overlap::Iou, 0.3),
            ("a large claim", &released, Overlap::Smaller, 0.1),
            ("released members", &released, Overlap::Iou, 0.0),
        ] {
            let thresholds = ClassThresholds::uniform(0.01);
            let params = Params { method, overlap, iou_threshold, thresholds, ..Params::default() };
            assert_equal(&mut cuda, boxes, &params, what);
        }
    }
}

#[test]
#[ignore = "needs a GPU"]
fn enqueued_runs_of_an_engine_have_the_scores_of_their_own_sigma() {
    engines::require_gpu();
    let device = Device::open(0).unwrap();
    let stream = Stream::new(&device).unwrap();
    // SAFETY: the stream exists until the end.
    let foreign = || unsafe { ForeignStream::from_raw(stream.as_raw()) };
    let corners = [0.0, 0.0, 10.0, 10.0, 5.0, 0.0, 15.0, 10.0f32];
    let tensors = [
        TensorView::from_slice("boxes", &[2, 4], &corners),
        TensorView::from_slice("scores", &[2, 1], &[0.9, 0.6f32]),
    ];
    let layout = layout(&tensors);
    let places = engines::places(&layout);
    let (mut reference, mut cuda) = (Reference::default(), Cuda::new(Some(0)).unwrap());
    for method in [Method::SoftGaussian, Method::MatrixGaussian] {
        for sigma in [0.5, 0.1, 0.5] {
            let thresholds = ClassThresholds::uniform(0.1);
            let params = Params { method, sigma, thresholds, ..Params::default() };
            let expected = reference.run(Job::new(&tensors, &layout, &params, &places)).unwrap();
            let outcome =
                cuda.enqueue(Job::new(&tensors, &layout, &params, &places), foreign()).unwrap();
            let mut counts = [DeviceCounts::default()];
            let mut found = [Detection::default(); 2];
            // SAFETY: the outcome owns this memory.
            unsafe {
                stream.download(outcome.counts, bytemuck::cast_slice_mut(&mut counts)).unwrap();
                stream.download(outcome.detections, bytemuck::cast_slice_mut(&mut found)).unwrap();
            }
            assert_eq!(counts[0].survivors, 2);
            assert_eq!(found, expected.group(0).survivors, "{method:?}, sigma {sigma}");
        }
    }
}
