// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CUDA engine, and the CPU engine, on tensors in device memory.
//!
//! The environment variable `NMSFILTER_TEST_SCENES` sets the number of random scenes (300).

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gstnmsfilter::input::Tensors;
use gstnmsfilter::input::cuda_memory::Uploader;
use gstnmsfilter::input::cuda_memory::from_buffer;
use gstnmsfilter::input::custom_meta::NewTensor;
use nmsfilter_core::device::{Device, DeviceBuffer, Stream};
use nmsfilter_core::engine::{
    Auto, ClassThresholds, Cpu, Cuda, Engine, EngineError, Job, Method, Overlap, Params, Reference,
};
use nmsfilter_core::tensor::{Storage, TensorView};

use crate::foreign_memory;
use crate::outcome::{OnGpu, bytes_downloaded, layout, scenes, tensor_in};
use crate::support::engines::{self, bits};
use crate::support::scene::{Scene, has_class_limits};
use crate::support::{data, pipeline, skip};

/// Copies of host tensors in device memory.
pub fn on_device(uploader: &mut Uploader, tensors: &[TensorView<'_>]) -> Vec<NewTensor> {
    let copy = |tensor: &TensorView<'_>| {
        let Storage::Host(bytes) = tensor.storage else {
            panic!("expected a tensor in host memory")
        };
        let data = gst::Buffer::from_mut_slice(bytes.to_vec());
        let (element, shape) = (tensor.element, tensor.shape.clone());
        uploader.upload(&NewTensor::new(tensor.id, element, &shape, data).unwrap()).unwrap()
    };
    tensors.iter().map(copy).collect()
}

/// Returns tensors as if they had been read from a buffer.
pub fn attached(tensors: &[NewTensor]) -> Tensors<'_> {
    tensors.iter().collect()
}

#[test]
#[ignore = "needs a GPU"]
fn tensors_in_device_memory_equal_reference_and_only_survivors_are_copied_to_the_host() {
    engines::require_gpu();
    pipeline::init();
    let [candidates, left] = engines::in_parts(scenes(), read_in_place);
    println!("{} scenes: {candidates} candidates, {left} survivors", scenes());
    // Even in a small number of scenes, a third of the candidates is suppressed.
    assert!(candidates as u64 > 50 * scenes() && left * 3 < candidates * 2);
}

/// Compares scenes in device memory with the reference. Returns the numbers of candidates and of survivors.
fn read_in_place(seeds: Range<u64>) -> [usize; 2] {
    let (mut reference, mut cuda) = (Reference::default(), Cuda::new(Some(0)).unwrap());
    let mut uploader = Uploader::new(0).unwrap();
    let (mut candidates, mut left) = (0, 0);
    let mut on_gpu = OnGpu::default();
    for seed in seeds {
        let scene = Scene::any(seed);
        let (tensors, layout) = scene.tensors();
        let expected = reference
            .run(Job::new(&tensors, &layout, &scene.params, &scene.places()))
            .unwrap()
            .group(0);
        let copies = on_device(&mut uploader, &tensors);
        let outcome = cuda
            .run(Job::new(&attached(&copies).views(), &layout, &scene.params, &scene.places()))
            .unwrap();
        let found = outcome.group(0);
        assert_eq!(bits(&expected), bits(&found), "seed {seed}: {scene:?}");
        // Tensors are not copied. Class thresholds and class rules are uploaded when they change.
        let (work, uploaded) = (outcome.device, on_gpu.uploaded(&scene.params));
        assert_eq!(work.bytes_uploaded, uploaded, "seed {seed}");
        // With class limits, survivors beyond the limit of their class are copied, too.
        if has_class_limits(&scene.params) {
            assert!(work.bytes_downloaded >= bytes_downloaded(&outcome), "seed {seed}")
        } else {
            assert_eq!(work.bytes_downloaded, bytes_downloaded(&outcome), "seed {seed}");
        }
        // A scene takes at most two launches, and only one if there is enough memory from the
        // start.
        let greatest = if found.candidates <= layout.anchors().min(2_048) { 1 } else { 2 };
        assert!((1..=greatest).contains(&outcome.device.launches), "seed {seed}");
        candidates += found.candidates;
        left += found.survivors.len();
    }
    [candidates, left]
}

/// The paper's windows, in host and in device memory, in single and in half precision.
#[test]
#[ignore = "needs a GPU"]
fn the_papers_windows_in_host_and_device_memory_equal_reference() {
    engines::require_gpu();
    pipeline::init();
    let windows = data::oscars();
    let halves: Vec<half::f16> =
        windows.iter().map(|&number| half::f16::from_f32(number)).collect();
    let (mut reference, mut cuda) = (Reference::default(), Cuda::new(Some(0)).unwrap());
    let mut uploader = Uploader::new(0).unwrap();
    let greedy = |iou_threshold| Params { iou_threshold, ..paper_params(Method::Greedy) };
    let all = [paper_params(Method::MapReduce), greedy(0.3), greedy(0.5)];
    for (turn, n) in [1, 200, 360, 698, 1_027, 2_048, 2_895, 2_997].into_iter().enumerate() {
        for (setting, params) in all.iter().enumerate() {
            for (kind, tensor) in [
                TensorView::from_slice("windows", &[n, 4], &windows[..n * 4]),
                TensorView::from_slice("windows", &[n, 4], &halves[..n * 4]),
            ]
            .into_iter()
            .enumerate()
            {
                if !engines::runs_combination(turn + setting + kind) {
                    continue;
                }
                let tensors = [tensor];
                let layout = layout(&tensors);
                let expected = reference
                    .run(Job::new(&tensors, &layout, params, &engines::places(&layout)))
                    .unwrap()
                    .group(0);
                let outcome = cuda
                    .run(Job::new(&tensors, &layout, params, &engines::places(&layout)))
                    .unwrap();
                let found = outcome.group(0);
                assert_eq!(bits(&expected), bits(&found), "{n} in host memory");
                let copies = on_device(&mut uploader, &tensors);
                let outcome = cuda
                    .run(Job::new(
                        &attached(&copies).views(),
                        &layout,
                        params,
                        &engines::places(&layout),
                    ))
                    .unwrap();
                let found = outcome.group(0);
                assert_eq!(bits(&expected), bits(&found), "{n} in device memory");
            }
        }
    }
}

fn paper_params(method: Method) -> Params {
    Params {
        method,
        overlap: Overlap::Representative,
        iou_threshold: 0.3,
        pixel_offset: 1.0,
        threshold_inclusive: true,
        thresholds: ClassThresholds::uniform(f32::MIN),
        ..Params::default()
    }
}

/// Wraps zeroed device memory in a buffer whose release increments `released`.
fn wrapped(device: &Arc<Device>, bytes: usize, released: &Arc<AtomicUsize>) -> gst::Buffer {
    let released = released.clone();
    let buffer = DeviceBuffer::new(device, bytes).unwrap();
    let stream = Stream::new(device).unwrap();
    stream.zero(&buffer).unwrap();
    stream.synchronize().unwrap();
    let memory = from_buffer(buffer, bytes, move |_| {
        released.fetch_add(1, Ordering::SeqCst);
    });
    let mut data = gst::Buffer::new();
    data.make_mut().append_memory(memory);
    data
}

#[test]
#[ignore = "needs a GPU"]
fn device_memory_is_released_once_with_its_last_reference() {
    engines::require_gpu();
    pipeline::init();
    let released = Arc::new(AtomicUsize::new(0));
    let buffer = wrapped(&Device::open(0).unwrap(), 64, &released);
    let copy = buffer.copy();
    drop(buffer);
    assert_eq!(released.load(Ordering::SeqCst), 0, "the copy shares the memory");
    assert!(copy.peek_memory(0).map_readable().is_ok_and(|map| map.len() == 64));
    assert!(copy.peek_memory(0).flags().contains(gst::MemoryFlags::READONLY));
    drop(copy);
    assert_eq!(released.load(Ordering::SeqCst), 1);
}

#[test]
#[ignore = "needs a GPU"]
fn the_cpu_engine_reads_device_memory_through_a_copy() {
    engines::require_gpu();
    pipeline::init();
    let mut uploader = Uploader::new(0).unwrap();
    let (mut reference, mut cpu) = (Reference::default(), Cpu::default());
    for seed in 0..50 {
        let scene = Scene::any(seed);
        let (tensors, layout) = scene.tensors();
        let expected = reference
            .run(Job::new(&tensors, &layout, &scene.params, &scene.places()))
            .unwrap()
            .group(0);
        let copies = on_device(&mut uploader, &tensors);
        let found = cpu
            .run(Job::new(&attached(&copies).views(), &layout, &scene.params, &scene.places()))
            .unwrap()
            .group(0);
        assert_eq!(bits(&expected), bits(&found), "seed {seed}: {scene:?}");
    }
}

/// The kernels would mix the rows of two images. The CPU compares their numbers.
#[test]
#[ignore = "needs a GPU"]
fn rows_that_name_their_image_are_compared_on_the_cpu() {
    engines::require_gpu();
    pipeline::init();
    let mut uploader = Uploader::new(0).unwrap();
    for (images, is_read) in [([0.0f32, 0.0], true), ([0.0, 1.0], false)] {
        let rows = images.map(|image| [image, 10.0, 20.0, 30.0, 40.0, 2.0, 0.9]).concat();
        let tensors = [TensorView::from_slice("yolov7-end2end-rows", &[2, 7], &rows)];
        let layout = layout(&tensors);
        let (params, places) = (Params::default(), engines::places(&layout));
        let copies = on_device(&mut uploader, &tensors);
        let copies = attached(&copies);
        let views = copies.views();
        let job = Job::new(&views, &layout, &params, &places);
        let error = Cuda::new(Some(0)).unwrap().run(job).unwrap_err();
        assert!(matches!(error, EngineError::ImagesOnDevice { .. }), "{error}");
        let mut auto = Auto::new(Some(0));
        let found = auto.run(job).map(|outcome| (outcome.engine, outcome.group(0).candidates));
        match is_read {
            true => assert_eq!(found, Ok(("cpu", 2))),
            false => {
                let text = found.unwrap_err().to_string();
                assert!(text.contains(": row 1 is of image "), "{text}");
            }
        }
    }
}

/// The number of candidates of a run says where the next one is. Memory without a copy on the host stays on the GPU.
#[test]
#[ignore = "needs a GPU"]
fn auto_runs_sequential_methods_on_the_cpu_while_there_are_many_candidates() {
    engines::require_gpu();
    pipeline::init();
    let mut uploader = Uploader::new(0).unwrap();
    let (few, many) = (Scene::large(5, 200), Scene::large(5, 3_000));
    let scenes = [&few, &many, &many, &few, &few];
    for (method, runs_on) in [
        (Method::SoftLinear, ["cuda", "cuda", "cpu", "cpu", "cuda"]),
        (Method::WeightedFusion, ["cpu"; 5]),
        (Method::MatrixLinear, ["cuda"; 5]),
    ] {
        let [mut auto, mut unmapped] = [0, 1].map(|_| Auto::new(Some(0)));
        for (scene, runs_on) in scenes.into_iter().zip(runs_on) {
            let (tensors, layout) = scene.tensors();
            let params = Params { method, ..scene.params.clone() };
            let places = scene.places();
            let copies = on_device(&mut uploader, &tensors);
            let copies = attached(&copies);
            let views = copies.views();
            let outcome = auto.run(Job::new(&views, &layout, &params, &places)).unwrap();
            assert_eq!(outcome.engine, runs_on, "{}", method.name());
            let mut cpu = Cpu::default();
            let expected = cpu.run(Job::new(&tensors, &layout, &params, &places)).unwrap();
            assert_eq!(bits(&expected.group(0)), bits(&outcome.group(0)), "{}", method.name());
            let in_place = |view: &TensorView<'_>| {
                let storage = Storage::Device(view.device().unwrap().unwrap());
                TensorView::new("in place", view.element, view.shape.clone(), storage)
            };
            let views: Vec<_> = views.iter().map(in_place).collect();
            let outcome = unmapped.run(Job::new(&views, &layout, &params, &places)).unwrap();
            assert_eq!(outcome.engine, "cuda", "{}", method.name());
        }
    }
}

/// Memory of GStreamer's CUDA elements and memory of this plugin are mapped with one protocol.
#[test]
#[ignore = "needs a GPU"]
fn device_memory_of_another_allocator_is_read_in_place() {
    engines::require_gpu();
    pipeline::init();
    let windows = [10.0f32, 10.0, 20.0, 0.9, 12.0, 10.0, 20.0, 0.8];
    let device = Device::open(0).unwrap();
    for needs_sync in [false, true] {
        let data = foreign_memory::buffer(&device, bytemuck::cast_slice(&windows), needs_sync);
        let windows = [tensor_in("windows", &[2, 4], &data)];
        let attached = attached(&windows);
        let tensors = attached.views();
        assert!(tensors[0].is_on_device());
        let mut cuda = Cuda::new(Some(0)).unwrap();
        let outcome = cuda
            .run(Job::new(
                &tensors,
                &layout(&tensors),
                &Params::default(),
                &engines::places(&layout(&tensors)),
            ))
            .unwrap();
        let found = outcome.group(0);
        assert_eq!((found.candidates, found.survivors.len()), (2, 1));
        assert_eq!(outcome.device.bytes_uploaded, 0);
    }
}

#[test]
#[ignore = "needs a GPU"]
fn a_tensor_on_another_gpu_is_an_error_with_a_fixed_gpu_and_else_selects_its_gpu() {
    engines::require_gpu();
    pipeline::init();
    if Device::open(1).is_err() {
        skip::skip("a second GPU");
        return;
    }
    let windows = [10.0f32, 10.0, 20.0, 0.9];
    let tensors = [TensorView::from_slice("windows", &[1, 4], &windows)];
    let layout = layout(&tensors);
    let places = engines::places(&layout);
    let copies = on_device(&mut Uploader::new(1).unwrap(), &tensors);
    let mut fixed = Cuda::new(Some(0)).unwrap();
    let error = fixed
        .run(Job::new(&attached(&copies).views(), &layout, &Params::default(), &places))
        .unwrap_err();
    assert!(matches!(error, EngineError::OtherDevice { is: 1, expected: 0, .. }), "{error}");
    assert!(
        error.to_string().contains("is on GPU 1, and the engine is on GPU 0; set `ordinal = 1`")
    );
    // The error of one frame does not affect the next.
    assert_eq!(
        fixed
            .run(Job::new(&tensors, &layout, &Params::default(), &places))
            .unwrap()
            .group(0)
            .candidates,
        1
    );
    let mut free = Cuda::new(None).unwrap();
    assert_eq!(
        free.run(Job::new(&attached(&copies).views(), &layout, &Params::default(), &places))
            .unwrap()
            .group(0)
            .candidates,
        1
    );
    assert_eq!(free.device().ordinal(), 1);
}

#[test]
#[ignore = "needs a GPU"]
fn a_tensor_whose_memory_is_too_short_is_an_error() {
    engines::require_gpu();
    pipeline::init();
    let data = wrapped(&Device::open(0).unwrap(), 64, &Arc::default());
    let windows = [tensor_in("windows", &[5, 4], &data)];
    let attached = attached(&windows);
    let tensors = attached.views();
    let mut cuda = Cuda::new(Some(0)).unwrap();
    let error = cuda
        .run(Job::new(
            &tensors,
            &layout(&tensors),
            &Params::default(),
            &engines::places(&layout(&tensors)),
        ))
        .unwrap_err();
    let expected = "tensor windows (f32 5x4): its shape needs 80 bytes, but its memory holds 64";
    assert!(error.to_string().starts_with(expected), "{error}");
}

/// Runs a pipeline and returns its frames, candidates, survivors, bytes uploaded, bytes downloaded
/// and launches.
fn counts(description: &str) -> [u64; 6] {
    let ended = pipeline::run(&pipeline::parse(description));
    assert_eq!(ended.error, None, "{description}");
    assert_eq!(ended.warnings, Vec::<String>::new(), "{description}");
    ["frames", "candidates", "survivors", "bytes-uploaded", "bytes-downloaded", "launches"]
        .map(|name| ended.stats[0].get(name).unwrap())
}

#[test]
#[ignore = "needs a GPU"]
fn tensors_of_crowdtestsrc_in_device_memory_are_decoded_without_upload() {
    engines::require_gpu();
    for decoder in ["windows", "yolov5", "yolov8"] {
        let source = format!(
            "crowdtestsrc num-buffers=4 decoder={decoder} memory=%
                ! video/x-raw,width=320,height=240 ! nmsfilter backend="
        );
        let run = |memory: &str, backend| {
            counts(&format!("{}{backend} ! fakesink", source.replace('%', memory)))
        };
        let on_cpu = run("system", "cpu");
        assert_eq!(on_cpu[3..], [0, 0, 0], "{decoder}");
        for backend in ["cuda", "auto"] {
            let [frames, candidates, survivors, uploaded, downloaded, launches] =
                run("cuda", backend);
            assert_eq!([frames, candidates, survivors], on_cpu[..3], "{decoder}");
            let expected = [0, 32 * frames + 28 * survivors, frames];
            assert_eq!([uploaded, downloaded, launches], expected, "{decoder}, backend={backend}");
        }
        assert_eq!(run("cuda", "cpu"), on_cpu, "{decoder}");
    }
}

#[test]
#[ignore = "needs a GPU"]
fn recordings_in_device_memory_are_decoded_without_upload() {
    engines::require_gpu();
    let file = data::fixture("oscars/detections.txt");
    let [frames, candidates, survivors, uploaded, downloaded, launches] = counts(&format!(
        "videotestsrc num-buffers=3 ! video/x-raw,format=GRAY8,width=1920,height=744
           ! tensorreplay memory=cuda location={} ! nmsfilter score-threshold=0 ! fakesink",
        file.display()
    ));
    assert_eq!([frames, candidates], [3, 3 * 2_997]);
    // The first frame is run again, with memory for all of its candidates.
    assert_eq!([uploaded, downloaded, launches], [0, 32 * 4 + 28 * survivors, 4]);
}
