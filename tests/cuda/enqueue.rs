// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs for which the host does not wait: their results are in device memory, ordered by a stream
//! of the caller.

use std::ffi::c_void;

use fastrand::Rng;
use nmsfilter_core::cuda::{ForeignStream, Stream};
use nmsfilter_core::device::{Device, DeviceBuffer};
use nmsfilter_core::engine::{Cuda, DeviceCounts, Engine, EngineError, Job, Reference};
use nmsfilter_core::nms::{Backend, BoxNms, Detection, DeviceOutcome, KeptBoxes, Nms};
use nmsfilter_core::tensor::TensorView;

use crate::support::engines;
use crate::support::layout_scene::LayoutScene;
use crate::support::scene::has_class_limits;

fn foreign(stream: &Stream) -> ForeignStream {
    // SAFETY: tests keep the stream until the end.
    unsafe { ForeignStream::from_raw(stream.as_raw()) }
}

/// Returns the device memory at `address` as later work on `stream` finds it.
fn downloaded<T: bytemuck::Pod>(stream: &Stream, address: u64, count: usize) -> Vec<T> {
    let mut found = vec![T::zeroed(); count];
    if count > 0 {
        // SAFETY: the outcome owns this memory.
        unsafe { stream.download(address, bytemuck::cast_slice_mut(&mut found)) }.unwrap();
    }
    found
}

/// The counts, the detections and the rows of columns of all groups.
fn results(
    outcome: &DeviceOutcome<'_>,
    stream: &Stream,
) -> (Vec<DeviceCounts>, Vec<Detection>, Vec<f32>) {
    let rows = outcome.groups * outcome.capacity;
    (
        downloaded(stream, outcome.counts, outcome.groups),
        downloaded(stream, outcome.detections, rows),
        downloaded(stream, outcome.columns, rows * outcome.column_components),
    )
}

/// Neither a blocking run in between nor another stream changes the result.
#[test]
#[ignore = "needs a GPU"]
fn random_layouts_give_the_bits_of_the_reference_in_device_memory() {
    engines::require_gpu();
    let device = Device::open(0).unwrap();
    let streams = [Stream::new(&device).unwrap(), Stream::new(&device).unwrap()];
    let (mut reference, mut cuda) = (Reference::default(), Cuda::new(Some(0)).unwrap());
    let (mut survivors, mut refused) = (0, 0);
    let scenes = engines::scene_count(2_000);
    for seed in 0..scenes {
        let mut rng = Rng::with_seed(seed);
        let scene = LayoutScene::new(seed);
        let (layout, params) = (&scene.layout, &scene.params);
        let views = scene.views();
        let stream = &streams[rng.usize(0..2)];
        let needs_host = layout.prototypes.is_some() || has_class_limits(params);
        let outcome = match cuda
            .enqueue(Job::new(&views, layout, params, &scene.places()), foreign(stream))
        {
            Ok(outcome) => outcome,
            Err(EngineError::NeedsHost { .. }) if needs_host => {
                refused += 1;
                continue;
            }
            Err(error) => panic!("seed {seed}: {error}"),
        };
        assert!(!needs_host, "seed {seed}");
        let (counts, detections, columns) = results(&outcome, stream);
        let (capacity, width) = (outcome.capacity, outcome.column_components);
        let expected = reference.run(Job::new(&views, layout, params, &scene.places())).unwrap();
        assert_eq!(outcome.groups, layout.images, "seed {seed}");
        for (index, image) in expected.groups().enumerate() {
            let case = format!("seed {seed}, image {index}: {layout:#?} {params:?}");
            let DeviceCounts { candidates, rejected, survivors: kept, .. } = counts[index];
            let found = [candidates, rejected, kept].map(|count| count as usize);
            assert_eq!(found, [image.candidates, image.rejected, image.survivors.len()], "{case}");
            let detections = &detections[index * capacity..][..capacity];
            let kept = image.survivors.len();
            assert_eq!(bytes(&detections[..kept]), bytes(image.survivors), "{case}");
            assert!(bytes(&detections[kept..]).iter().all(|&byte| byte == 0), "{case}");
            let rows = &columns[index * capacity * width..][..capacity * width];
            assert_eq!(bits(&rows[..kept * width]), bits(image.columns), "{case}");
            assert!(bytes(&rows[kept * width..]).iter().all(|&byte| byte == 0), "{case}");
            survivors += kept;
        }
        if rng.bool() {
            let found = cuda.run(Job::new(&views, layout, params, &scene.places())).unwrap();
            assert_eq!(found.group(0).survivors, expected.group(0).survivors, "seed {seed}");
        }
    }
    assert!(2 * survivors > scenes as usize, "{survivors}");
    assert!(refused > 0 && refused < scenes, "{refused}");
}

fn bytes(detections: &[impl bytemuck::NoUninit]) -> &[u8] {
    bytemuck::cast_slice(detections)
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

/// Class thresholds stay in pinned memory until they are copied, and the second run has different
/// ones.
#[test]
#[ignore = "needs a GPU"]
fn runs_that_are_not_waited_for_keep_their_own_parameters() {
    engines::require_gpu();
    let device = Device::open(0).unwrap();
    let stream = Stream::new(&device).unwrap();
    let output = [100.0, 50.0, 80.0, 0.9, 400.0, 54.0, 80.0, 0.6f32];
    let tensors = [TensorView::from_slice("windows", &[2, 4], &output)];
    let mut engines = [0.5, 0.7].map(|threshold| {
        let mut nms = Nms::new(Backend::Cuda, Some(0)).unwrap();
        nms.params.thresholds.per_class = vec![threshold];
        nms
    });
    for (nms, survivors) in engines.iter_mut().zip([2, 1]) {
        for _ in 0..3 {
            let outcome = nms.enqueue(&tensors, foreign(&stream)).unwrap();
            let counts: Vec<DeviceCounts> = downloaded(&stream, outcome.counts, 1);
            assert_eq!(counts[0].survivors, survivors);
        }
    }
    let [first, second] = &mut engines;
    std::mem::swap(&mut first.params, &mut second.params);
    for (nms, survivors) in engines.iter_mut().zip([1, 2]) {
        let _ = nms.enqueue(&tensors, foreign(&stream)).unwrap();
        let outcome = nms.enqueue(&tensors, foreign(&stream)).unwrap();
        let counts: Vec<DeviceCounts> = downloaded(&stream, outcome.counts, 1);
        assert_eq!(counts[0].survivors, survivors);
    }
}

#[test]
#[ignore = "needs a GPU"]
fn indices_of_boxes_are_the_anchors_and_boxes_left_out_show_in_the_counts() {
    engines::require_gpu();
    let device = Device::open(0).unwrap();
    let stream = Stream::new(&device).unwrap();
    let mut nms = BoxNms::new(Backend::Auto, Some(0)).unwrap();
    let boxes =
        [0.0, 0.0, 10.0, 10.0, 1.0, 1.0, 11.0, 11.0, 20.0, 20.0, 30.0, 30.0, 5.0, 5.0, 5.0, 9.0f32];
    let scores = TensorView::from_slice("scores", &[3], &[0.8, 0.9, 0.7f32]);
    let three = TensorView::from_slice("boxes", &[3, 4], &boxes[..12]);
    let outcome = nms.enqueue(&three, &scores, None, foreign(&stream)).unwrap();
    let (counts, detections, _) = results(&outcome, &stream);
    assert_eq!((counts[0].candidates, counts[0].survivors), (3, 2));
    assert_eq!([detections[0].anchor, detections[1].anchor], [1, 2]);

    let scores = TensorView::from_slice("scores", &[4], &[0.8, 0.9, 0.7, 0.6f32]);
    let four = TensorView::from_slice("boxes", &[4, 4], &boxes);
    let outcome = nms.enqueue(&four, &scores, None, foreign(&stream)).unwrap();
    let (counts, ..) = results(&outcome, &stream);
    assert_eq!((counts[0].candidates, counts[0].survivors), (3, 2));
    assert_eq!(nms.run(&four, &scores, None).unwrap(), [1, 2, 3]);
}

/// Returns the kept boxes of a run in `stream`, read from device memory where the GPU wrote them, and whether it did.
fn kept_in_stream(nms: &mut BoxNms, scene: &Scene, stream: &Stream) -> (Vec<u32>, bool) {
    const UNWRITTEN: i64 = -1;
    let memory = DeviceBuffer::new(stream.device(), scene.scores.len() * size_of::<i64>()).unwrap();
    let count = scene.scores.len();
    // SAFETY: the memory has room for an index of each box, and is freed after the work of the stream.
    unsafe { stream.write(bytemuck::cast_slice(&vec![UNWRITTEN; count]), memory.address()) }
        .unwrap();
    let boxes = TensorView::from_slice("boxes", &[count, 4], &scene.boxes);
    let scores = TensorView::from_slice("scores", &[count], &scene.scores);
    let mut calls = 0;
    let indices = || {
        calls += 1;
        Some(memory.address())
    };
    // SAFETY: as above.
    let kept = unsafe { nms.run_in_stream(&boxes, &scores, None, foreign(stream), indices) };
    let kept = kept.unwrap();
    let found = match kept {
        KeptBoxes::OnHost(kept) => (kept.to_vec(), false),
        KeptBoxes::OnDevice(kept) => {
            let indices: Vec<i64> = downloaded(stream, memory.address(), kept);
            (indices.iter().map(|&index| u32::try_from(index).unwrap()).collect(), true)
        }
    };
    assert_eq!(calls, 1);
    found
}

/// Boxes of random positions.
struct Scene {
    boxes: Vec<f32>,
    scores: Vec<f32>,
}

impl Scene {
    fn new(count: usize, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let boxes = (0..count).flat_map(|_| {
            let [x, y] = [rng.f32() * 200.0, rng.f32() * 200.0];
            [x, y, x + 20.0 + rng.f32() * 60.0, y + 20.0 + rng.f32() * 60.0]
        });
        let boxes = boxes.collect();
        Self { boxes, scores: (0..count).map(|_| rng.f32()).collect() }
    }

    fn kept(&self, nms: &mut BoxNms) -> Vec<u32> {
        let count = self.scores.len();
        let boxes = TensorView::from_slice("boxes", &[count, 4], &self.boxes);
        let scores = TensorView::from_slice("scores", &[count], &self.scores);
        nms.run(&boxes, &scores, None).unwrap().to_vec()
    }
}

/// The memory for the candidates grows with the second size. Other runs, and runs in other streams, come in between.
#[test]
#[ignore = "needs a GPU"]
fn indices_in_the_order_of_a_stream_are_those_of_the_cpu() {
    engines::require_gpu();
    let device = Device::open(0).unwrap();
    let streams = [Stream::new(&device).unwrap(), Stream::new(&device).unwrap()];
    // SAFETY: the default stream always exists.
    let default = unsafe { ForeignStream::from_raw(std::ptr::null_mut::<c_void>()) };
    let default = Stream::of_other_code(&device, default);
    let mut cpu = BoxNms::new(Backend::Cpu, None).unwrap();
    for backend in [Backend::Cuda, Backend::Auto] {
        let mut nms = BoxNms::new(backend, Some(0)).unwrap();
        for (seed, count) in (0..).zip([40, 2500, 1, 700]) {
            let scene = Scene::new(count, seed);
            let expected = scene.kept(&mut cpu);
            for stream in [&streams[0], &streams[1], &default, &default, &streams[0]] {
                let found = kept_in_stream(&mut nms, &scene, stream);
                assert_eq!(found, (expected.clone(), true), "{count} boxes, {backend:?}");
            }
            assert_eq!(scene.kept(&mut nms), expected);
        }
        nms.max_detections = 5;
        let scene = Scene::new(300, 9);
        let (kept, is_on_device) = kept_in_stream(&mut nms, &scene, &streams[1]);
        assert_eq!((kept.len(), is_on_device), (5, true));
        nms.max_detections = 0;
        // A box without area, which the GPU leaves out.
        let mut scene = Scene::new(50, 10);
        scene.boxes[6] = scene.boxes[4];
        let expected = scene.kept(&mut cpu);
        assert_eq!(kept_in_stream(&mut nms, &scene, &streams[0]), (expected, false));
    }
}

/// The caller's stream can be the legacy default stream, which programs of the CUDA runtime use.
#[test]
#[ignore = "needs a GPU"]
fn the_default_stream_is_a_stream_of_the_callers() {
    engines::require_gpu();
    let device = Device::open(0).unwrap();
    let output = [100.0, 50.0, 80.0, 0.9, 400.0, 54.0, 80.0, 0.6f32];
    let tensors = [TensorView::from_slice("windows", &[2, 4], &output)];
    let mut nms = Nms::new(Backend::Cuda, Some(0)).unwrap();
    // SAFETY: the default stream always exists.
    let default = unsafe { ForeignStream::from_raw(std::ptr::null_mut::<c_void>()) };
    let outcome = nms.enqueue(&tensors, default).unwrap();
    let stream = Stream::new(&device).unwrap();
    stream.wait_for_stream(default).unwrap();
    let counts: Vec<DeviceCounts> = downloaded(&stream, outcome.counts, 1);
    assert_eq!(counts[0].survivors, 2);
}
