// SPDX-License-Identifier: MIT OR Apache-2.0
//! Batches on the CUDA engine: each image has the result that it has when it is run alone, and
//! memory is allocated only for larger batches.

use std::ops::Range;

use gstnmsfilter::input::cuda_memory::Uploader;
use nmsfilter_core::decoder::{self, Layout, Options};
use nmsfilter_core::engine::{ClassThresholds, Cuda, Engine, Job, Outcome, Params, Reference};
use nmsfilter_core::tensor::TensorView;

use crate::device_tensors::{attached, on_device};
use crate::outcome::{OnGpu, bytes_downloaded, scenes};
use crate::support::emulated::Emulated;
use crate::support::engines::{self, bits};
use crate::support::pipeline;
use crate::support::scene::{Scene, has_class_limits};

#[test]
#[ignore = "needs a GPU"]
fn each_image_of_a_batch_in_device_memory_equals_a_run_of_that_image_alone() {
    engines::require_gpu();
    pipeline::init();
    let [images, survivors] = engines::in_parts(scenes(), images_alone);
    println!("{} batches of {images} images: {survivors} survivors", scenes());
    assert!(images as u64 > 2 * scenes() && survivors > 5 * images);
}

/// Compares batches with runs of their images. Returns the numbers of images and of survivors.
fn images_alone(seeds: Range<u64>) -> [usize; 2] {
    let (mut reference, mut cuda) = (Reference::default(), Cuda::new(Some(0)).unwrap());
    let mut uploader = Uploader::new(0).unwrap();
    let (mut images, mut survivors) = (0, 0);
    let mut on_gpu = OnGpu::default();
    for seed in seeds {
        let batch = Scene::batch(seed, 5);
        let joined = Scene::joined(&batch);
        let (tensors, layout) = joined.tensors();
        let copies = on_device(&mut uploader, &tensors);
        let outcome = cuda
            .run(Job::new(&attached(&copies).views(), &layout, &joined.params, &joined.places()))
            .unwrap();
        assert_eq!(outcome.groups().len(), batch.len(), "seed {seed}");
        for (index, (image, found)) in batch.iter().zip(outcome.groups()).enumerate() {
            let (tensors, layout) = image.tensors();
            let expected = reference
                .run(Job::new(&tensors, &layout, &image.params, &image.places()))
                .unwrap()
                .group(0);
            assert_eq!(bits(&expected), bits(&found), "seed {seed}, image {index}: {image:?}");
            survivors += found.survivors.len();
        }
        // Tensors are not copied. Class thresholds and class rules are uploaded when they change.
        let work = outcome.device;
        assert_eq!(work.bytes_uploaded, on_gpu.uploaded(&joined.params), "seed {seed}");
        assert!((1..=2).contains(&work.launches), "seed {seed}");
        // A first launch that has too little memory for one image still writes the survivors of the
        // other images.
        if work.launches == 1 && !has_class_limits(&joined.params) {
            assert_eq!(work.bytes_downloaded, bytes_downloaded(&outcome), "seed {seed}");
        }
        images += batch.len();
    }
    [images, survivors]
}

/// Windows that do not overlap. `counts` has the number of candidates of each image; all other
/// anchors have a score of zero.
fn windows(counts: &[usize], anchors: usize) -> Vec<f32> {
    let window = |anchor: usize, count: usize| {
        let [x, y] = [anchor % 64, anchor / 64].map(|step| step as f32 * 10.0);
        [x, y, 8.0, if anchor < count { 0.9 - anchor as f32 * 1e-4 } else { 0.0 }]
    };
    let image = |&count: &usize| (0..anchors).flat_map(move |anchor| window(anchor, count));
    counts.iter().flat_map(image).collect()
}

fn layout(tensors: &[TensorView<'_>]) -> Layout {
    let options = Options { batch: true, ..Options::default() };
    decoder::choose(tensors, None, options).unwrap().layout
}

fn survivors(outcome: &Outcome<'_>) -> Vec<usize> {
    outcome.groups().map(|image| image.survivors.len()).collect()
}

#[test]
#[ignore = "needs a GPU"]
fn a_batch_of_more_candidates_than_memory_is_launched_twice_and_the_next_of_that_size_once() {
    engines::require_gpu();
    const ANCHORS: usize = 2_500;
    // A batch begins with memory for 2048 candidates per image.
    let counts = [10, 2_048, 2_100, 0];
    let windows = windows(&counts, ANCHORS);
    let tensors = [TensorView::from_slice("windows", &[counts.len(), ANCHORS, 4], &windows)];
    let layout = layout(&tensors);
    let mut cuda = Cuda::new(Some(0)).unwrap();
    for launches in [2, 1, 1] {
        let outcome = cuda
            .run(Job::new(&tensors, &layout, &Params::default(), &engines::places(&layout)))
            .unwrap();
        assert_eq!(survivors(&outcome), counts);
        let candidates: Vec<usize> = outcome.groups().map(|image| image.candidates).collect();
        assert_eq!(candidates, counts);
        assert_eq!(outcome.device.launches, launches);
        // The counts of each image, and each survivor.
        let expected = 32 * 4 + 28 * (10 + 2_048 + 2_100);
        // The first launch also wrote the survivors of the images for which it had memory.
        let first = if launches == 2 { 32 * 4 + 28 * (10 + 2_048) } else { 0 };
        assert_eq!(outcome.device.bytes_downloaded, first + expected);
    }
}

#[test]
#[ignore = "needs a GPU"]
fn batches_of_changing_size_on_one_engine_equal_reference() {
    engines::require_gpu();
    let (mut reference, mut cuda) = (Reference::default(), Cuda::new(Some(0)).unwrap());
    let mut random = fastrand::Rng::with_seed(4);
    // Few large images alternate with many small ones; each size is run twice.
    let sizes = [(1, 900), (40, 12), (2, 700), (9, 100), (1, 1), (40, 12), (3, 0), (1, 900)];
    for (images, anchors) in sizes {
        for turn in 0..2 {
            let mut windows = Vec::new();
            for _ in 0..images * anchors {
                let [x, y] = [0, 1].map(|_| random.f32() * 200.0);
                windows.extend([x, y, 5.0 + random.f32() * 30.0, random.f32()]);
            }
            let tensors = [TensorView::from_slice("windows", &[images, anchors, 4], &windows)];
            let layout = layout(&tensors);
            let params = Params { thresholds: ClassThresholds::uniform(0.2), ..Params::default() };
            let expected = reference
                .run(Job::new(&tensors, &layout, &params, &engines::places(&layout)))
                .unwrap();
            let outcome =
                cuda.run(Job::new(&tensors, &layout, &params, &engines::places(&layout))).unwrap();
            let case = format!("{images} images of {anchors} anchors, turn {turn}");
            assert_eq!(outcome.groups().len(), images, "{case}");
            for (expected, found) in expected.groups().zip(outcome.groups()) {
                assert_eq!(bits(&expected), bits(&found), "{case}");
            }
            assert_eq!(outcome.device.launches, 1, "{case}");
            assert_eq!(outcome.device.bytes_downloaded, bytes_downloaded(&outcome), "{case}");
        }
    }
}

/// Returns the output of a YOLOv5 with 640x640 pixels. Only the first anchors, `candidates` of
/// them, have a score above the threshold.
fn yolov5(candidates: usize) -> Vec<f32> {
    let mut numbers = vec![0.0; 25_200 * 85];
    for (anchor, row) in numbers.chunks_exact_mut(85).take(candidates).enumerate() {
        let [x, y] = [anchor % 160, anchor / 160].map(|step| 2.0 + step as f32 * 4.0);
        row[..6].copy_from_slice(&[x, y, 3.0, 3.0, 1.0, 0.9 - anchor as f32 * 2e-5]);
    }
    numbers
}

/// Memory grows with the number of candidates, not with the number of anchors: 64 engines need less
/// than 100 MB.
#[test]
#[ignore = "needs a GPU"]
fn an_engine_has_memory_for_the_candidates_that_came_and_not_for_all_anchors() {
    engines::require_gpu();
    pipeline::init();
    const LIMIT: i64 = 100_000_000 / 64;
    let Some(emulated) = Emulated::get() else { return };
    let mut uploader = Uploader::new(0).unwrap();
    let frames = [300, 3_000, 300].map(|candidates| {
        let numbers = yolov5(candidates);
        let tensors = [TensorView::from_slice("yolo-v5-out", &[1, 25_200, 85], &numbers)];
        (candidates, on_device(&mut uploader, &tensors), layout(&tensors))
    });
    let before = emulated.device_bytes();
    let mut cuda = Cuda::new(Some(0)).unwrap();
    for (turn, (candidates, copies, layout)) in frames.iter().enumerate() {
        let params = Params { max_detections: 0, ..Params::default() };
        let outcome = cuda
            .run(Job::new(&attached(copies).views(), layout, &params, &engines::places(layout)))
            .unwrap();
        let image = outcome.group(0);
        assert_eq!((image.candidates, image.survivors.len()), (*candidates, *candidates));
        assert_eq!(outcome.device.launches, if turn == 1 { 2 } else { 1 });
        let allocated = emulated.device_bytes() - before;
        assert!(allocated < LIMIT, "{allocated} bytes after {candidates} candidates");
    }
}
