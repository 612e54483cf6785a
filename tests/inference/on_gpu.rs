// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models on a GPU: inputs equal the CPU's, outputs are nearly equal, and failures of the GPU are
//! handled. Run with `--include-ignored` and `NMSFILTER_TEST_PROVIDER=cuda`, with an ONNX Runtime
//! library for CUDA.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use gst::prelude::*;
use gst_video::VideoRegionOfInterestMeta;
use gstnmsfilter::input::cuda_memory;
use gstnmsfilter::input::custom_meta::NewTensor;
use nmsfilter_core::cuda::{Device, Module, Stream};

use crate::alone;
use crate::detections::{DetectorCase, Region, ULTRAFACE, YOLOV8, picture, regions};
use crate::element::{self, Tensor, file, has_onnx_runtime, tensors};
use crate::frames::{self, Picture};
use crate::messages;
use crate::support::data;
use crate::support::onnx::{self, Element, Node, OnnxModel, identity, varying_output};
use crate::support::pipeline::{intercept, parse, run, watch};
use crate::support::process::resident;
use crate::support::skip::skip;
use crate::varying;

/// Returns true if there is an ONNX Runtime with CUDA. Otherwise returns false and reports a skip.
fn has_cuda() -> bool {
    let is_set = std::env::var("NMSFILTER_TEST_PROVIDER").is_ok_and(|provider| provider == "cuda");
    if !is_set {
        skip("ONNX Runtime with CUDA: NMSFILTER_TEST_PROVIDER is not cuda");
    }
    is_set && has_onnx_runtime()
}

#[test]
#[ignore = "needs a GPU"]
fn a_model_takes_the_same_input_on_the_gpu_as_on_the_cpu() {
    if !has_cuda() {
        return;
    }
    let picture = Picture::random([161, 91], 5);
    for format in ["RGB", "BGRx", "I420", "NV12", "YUY2", "GRAY8", "I420_10LE"] {
        for letterbox in ["none", "center", "top-left"] {
            let tensors = |provider: &str| {
                let model = file(&identity([1, 3, 96, 128], Element::F32));
                let properties = format!("provider={provider} letterbox={letterbox} mean=0.5");
                let inference = element::inference(&model, &properties);
                let elements = format!("videoconvert ! video/x-raw,format={format} ! {inference}");
                element::run_pipeline(&frames::pipeline_of(&picture, 3, &elements))
            };
            assert_eq!(tensors("cuda"), tensors("cpu"), "{format}, {letterbox}");
        }
    }
}

/// Regions of interest that change from frame to frame, and tiles that share batches.
#[test]
#[ignore = "needs a GPU"]
fn regions_have_the_same_pictures_on_the_gpu_as_on_the_cpu() {
    if !has_cuda() {
        return;
    }
    let picture = Picture::random([320, 180], 5);
    for (properties, count) in
        [("regions=tiles tile-width=128 tile-height=96", 10), ("regions=rois", 5)]
    {
        let tensors = |provider: &str, elements: &str| {
            let model = file(&identity("batch,3,96,128", Element::F32));
            let properties = format!("provider={provider} batch-size=3 {properties}");
            let inference = element::inference(&model, &properties);
            let elements = format!("{elements} ! {inference}");
            let pipeline = frames::pipeline_of(&picture, 4, &elements);
            let number = AtomicU32::new(0);
            intercept(&pipeline, "rois", move |buffer| {
                let number = number.fetch_add(1, Ordering::Relaxed);
                for roi in 0..5 {
                    let rect = (roi * 40 + number * 7, roi * 10, 60 + number, 40 + roi);
                    VideoRegionOfInterestMeta::add(buffer, "person", rect);
                }
            });
            element::run_pipeline(&pipeline)
        };
        for format in ["RGB", "NV12", "I420_10LE"] {
            let elements =
                format!("videoconvert ! video/x-raw,format={format} ! identity name=rois");
            let expected = tensors("cpu", &elements);
            assert!(expected.iter().all(|tensors| tensors.len() == count), "{properties}");
            assert_eq!(tensors("cuda", &elements), expected, "{format}, {properties}");
        }
    }
}

/// Makes a pipeline of `count` RGB frames with this picture in GPU memory, like the frames of
/// GStreamer's CUDA elements.
pub fn in_device_memory(picture: &Picture, count: usize, elements: &str) -> gst::Pipeline {
    let [width, height] = picture.size;
    assert_eq!(width % 4, 0, "rows without padding");
    let pipeline = parse(&format!(
        "appsrc name=frames format=time caps=\"video/x-raw(memory:CUDAMemory),format=RGB,width={width},\
         height={height},framerate=25/1\" ! {elements} ! fakesink"
    ));
    let mut bytes = Vec::new();
    for (x, y) in (0..height).flat_map(|y| (0..width).map(move |x| (x, y))) {
        bytes.extend(picture.at(x, y));
    }
    // The uploader copies tensors, so the bytes are passed as numbers.
    let numbers: Vec<f32> =
        bytes.chunks_exact(4).map(|b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect();
    let tensor = NewTensor::from_vec("frame", &[numbers.len()], numbers).unwrap();
    let mut uploader = cuda_memory::Uploader::new(0).unwrap();
    let source = pipeline.by_name("frames").unwrap();
    for number in 0..count as u64 {
        let mut frame = uploader.upload(&tensor).unwrap().data;
        frame.get_mut().unwrap().set_pts(number * 40 * gst::ClockTime::MSECOND);
        let pushed: gst::FlowReturn = source.emit_by_name("push-buffer", &[&frame]);
        assert_eq!(pushed, gst::FlowReturn::Ok);
    }
    let ended: gst::FlowReturn = source.emit_by_name("end-of-stream", &[]);
    assert_eq!(ended, gst::FlowReturn::Ok);
    pipeline
}

/// With the provider `cpu`, frames in device memory are copied to the host.
#[test]
#[ignore = "needs a GPU"]
fn frames_in_device_memory_give_the_same_input() {
    if !has_onnx_runtime() {
        return;
    }
    let picture = Picture::random([160, 91], 6);
    let cuda = std::env::var("NMSFILTER_TEST_PROVIDER").is_ok_and(|provider| provider == "cuda");
    let providers: &[&str] = if cuda { &["cpu", "cuda"] } else { &["cpu"] };
    let model = file(&identity([1, 3, 96, 128], Element::F32));
    let expected = element::run_pipeline(&frames::pipeline_of(
        &picture,
        3,
        &element::inference(&model, "provider=cpu"),
    ));
    for provider in providers {
        let inference = element::inference(&model, &format!("provider={provider}"));
        let pipeline = in_device_memory(&picture, 3, &inference);
        assert_eq!(element::run_pipeline(&pipeline), expected, "{provider}");
        assert_eq!(element::stat(&pipeline, "bytes-uploaded"), 0, "{provider}");
    }
}

/// The first of several frames.
struct Frame {
    tensors: Vec<Tensor>,
    regions: Vec<Region>,
    /// Regions that `nmsfilter` finds when it decodes the tensors on the CPU.
    on_cpu: Vec<Region>,
}

/// Runs a detector on a picture. Decodes its tensors where they are, and also on the CPU.
fn detect(model: &DetectorCase, source: &str, provider: &str, letterbox: &str) -> Frame {
    let path = data::path(model.file).expect("it was there before");
    let properties = format!("provider={provider} letterbox={letterbox}");
    let inference = element::inference(&path, &properties);
    let pipeline = parse(&format!(
        "{source} ! imagefreeze num-buffers=5 ! {inference} ! tee name=t
           t. ! queue ! nmsfilter name=nms ! fakesink
           t. ! queue ! nmsfilter name=cpu backend=cpu ! fakesink"
    ));
    let both = watch(&pipeline, "nms", |buffer| (tensors(buffer), regions(buffer)));
    let on_cpu = watch(&pipeline, "cpu", regions);
    let ended = run(&pipeline);
    assert_eq!((ended.error, ended.warnings.len()), (None, 0));
    let (both, on_cpu) = (std::mem::take(&mut *both.lock().unwrap()), on_cpu.lock().unwrap());
    assert!(both.iter().all(|frame| *frame == both[0]), "every run gives the same bits");
    assert_eq!(both.len(), 5);
    if provider == "cuda" {
        let stats = ended.stats.iter().find(|stats| stats.get("engine") == Ok("cuda")).unwrap();
        let count = |name: &str| stats.get::<u64>(name).unwrap();
        assert_eq!(count("bytes-uploaded"), 0);
        let expected = 32 * count("launches") + 28 * count("survivors");
        assert_eq!(count("bytes-downloaded"), expected, "counts and survivors");
    }
    let (tensors, regions) = both.into_iter().next().expect("there are five");
    Frame { tensors, regions, on_cpu: on_cpu[0].clone() }
}

/// Returns the greatest difference between corresponding elements.
fn difference(a: &Tensor, b: &Tensor) -> f32 {
    assert_eq!((&a.id, &a.shape), (&b.id, &b.shape));
    a.f32().iter().zip(b.f32()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn check_detections(model: &DetectorCase, file: &str, letterbox: &str) {
    let Some(source) = picture(file) else { return };
    let [cpu, cuda] = ["cpu", "cuda"].map(|provider| detect(model, &source, provider, letterbox));
    for frame in [&cpu, &cuda] {
        assert_eq!(frame.regions, frame.on_cpu, "nmsfilter is exact on each processor's tensors");
    }
    let differences: Vec<f32> =
        cpu.tensors.iter().zip(&cuda.tensors).map(|(a, b)| difference(a, b)).collect();
    // A region of one result is also in the other, unless its score is near the threshold.
    let nearest = |region: &Region| {
        let all = cuda.regions.iter().filter_map(|other| region.difference(other));
        all.min_by(|a, b| a[1].total_cmp(&b[1]))
    };
    let found: Vec<[f64; 2]> = cpu.regions.iter().filter_map(nearest).collect();
    let same = found.iter().filter(|[score, edge]| *score < 0.02 && *edge < 0.01).count();
    let greatest = |i: usize| {
        let same = found.iter().filter(|[score, edge]| *score < 0.02 && *edge < 0.01);
        same.map(|differences| differences[i]).fold(0.0, f64::max)
    };
    println!(
        "{file}, {letterbox}: outputs differ by at most {differences:?}; {} regions on the CPU, {} on the \
         GPU, {same} the same, their scores within {:.2e}, edges within {:.2e} of the frame's side",
        cpu.regions.len(),
        cuda.regions.len(),
        greatest(0),
        greatest(1),
    );
    assert!(same * 100 >= cpu.regions.len() * 90, "{same} of {}", cpu.regions.len());
}

#[test]
#[ignore = "needs a GPU"]
fn faces_of_a_crowd_equal_the_cpus_except_for_rounding() {
    if has_cuda() {
        check_detections(&ULTRAFACE, "data/images/crowd_selfie.jpg", "none");
        check_detections(&ULTRAFACE, "data/oscars/oscars.png", "center");
    }
}

/// Integer operations of this model run on the CPU even with CUDA, so its input is read in host
/// memory.
#[test]
#[ignore = "needs a GPU"]
fn objects_of_a_street_equal_the_cpus_except_for_rounding() {
    if has_cuda() {
        check_detections(&YOLOV8, "data/images/street.png", "center");
    }
}

/// Returns the bytes of GPU memory that are in use.
fn device_memory() -> u64 {
    let output = Command::new("nvidia-smi")
        .args(["--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.trim().parse::<u64>().unwrap_or_else(|_| panic!("nvidia-smi: {text}")) << 20
}

#[test]
#[ignore = "needs a GPU"]
fn ten_thousand_frames_do_not_grow_the_memory() {
    if !has_cuda() {
        return;
    }
    if !alone::is_alone() {
        let name = "on_gpu::ten_thousand_frames_do_not_grow_the_memory";
        print!("{}", alone::run(name, &[("NMSFILTER_TEST_PROVIDER", Some("cuda"))]).stdout);
        return;
    }
    let Some(source) = picture("data/images/crowd_selfie.jpg") else { return };
    let path = data::path(ULTRAFACE.file).unwrap();
    let inference = element::inference(&path, "provider=cuda");
    let pipeline = parse(&format!(
        "{source} ! imagefreeze num-buffers=10000 ! {inference} ! nmsfilter name=nms ! fakesink"
    ));
    let frames = Arc::new(Mutex::new((0, 0, 0)));
    let counted = frames.clone();
    let pad = pipeline.by_name("nms").unwrap().static_pad("src").unwrap();
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
        let mut counted = counted.lock().unwrap();
        counted.0 += 1;
        if counted.0 == 1000 {
            (counted.1, counted.2) = (resident(), device_memory());
        } else if counted.0 == 10_000 {
            counted.1 = resident().saturating_sub(counted.1);
            counted.2 = device_memory().saturating_sub(counted.2);
        }
        gst::PadProbeReturn::Ok
    });
    assert_eq!(run(&pipeline).error, None);
    let (count, host, device) = *frames.lock().unwrap();
    println!("{count} frames; from 1000 on: host grown by {host} KiB, GPU by {} MiB", device >> 20);
    assert_eq!(count, 10_000);
    assert!(host < 4096, "the host's memory has grown by {host} KiB");
    assert_eq!(device, 0, "the GPU's memory has grown");
}

/// A kernel that stores to an inaccessible address. Afterwards, all work on the GPU fails in this
/// process.
const FAULT: &std::ffi::CStr = c".version 6.3
.target sm_60
.address_size 64
.visible .entry fault() {
    .reg .b64 %address;
    .reg .b32 %value;
    mov.u64 %address, 16;
    mov.u32 %value, 1;
    st.global.u32 [%address], %value;
    ret;
}
";

fn break_the_gpu() {
    let device = Device::open(0).unwrap();
    let stream = Stream::new(&device).unwrap();
    let kernel = Module::load(&device, FAULT).unwrap().kernel(c"fault").unwrap();
    // SAFETY: the kernel has no parameters, and its failure is the purpose of the test.
    unsafe { kernel.launch(&stream, [1, 1, 1], [1, 1, 1], &mut []) }.unwrap();
    stream.synchronize().unwrap_err();
}

/// Runs a stream whose GPU fails at frame 50. Returns the number of regions of each frame, and the
/// end of the pipeline.
fn with_a_failing_gpu(
    provider: &str,
    backend: &str,
) -> Option<(Vec<usize>, Vec<String>, Option<String>)> {
    let source = picture("data/images/crowd_selfie.jpg")?;
    let path = data::path(ULTRAFACE.file)?;
    let inference = element::inference(&path, &format!("provider={provider} letterbox=none"));
    let pipeline = parse(&format!(
        "{source} ! imagefreeze num-buffers=100 ! {inference} ! nmsfilter name=nms backend={backend} ! fakesink"
    ));
    let number = AtomicU32::new(0);
    let pad = pipeline.by_name("inference").unwrap().static_pad("sink").unwrap();
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
        if number.fetch_add(1, Ordering::Relaxed) == 50 {
            break_the_gpu();
        }
        gst::PadProbeReturn::Ok
    });
    let counts = watch(&pipeline, "nms", |buffer| regions(buffer).len());
    let ended = run(&pipeline);
    let counts = std::mem::take(&mut *counts.lock().unwrap());
    Some((counts, ended.warnings, ended.error))
}

#[test]
#[ignore = "needs a GPU"]
fn a_gpu_that_fails_is_replaced_by_the_cpu_with_one_warning_of_each_element() {
    if !has_cuda() {
        return;
    }
    if !alone::is_alone() {
        let name =
            "on_gpu::a_gpu_that_fails_is_replaced_by_the_cpu_with_one_warning_of_each_element";
        print!("{}", alone::run(name, &[("NMSFILTER_TEST_PROVIDER", Some("cuda"))]).stdout);
        return;
    }
    let Some((counts, warnings, error)) = with_a_failing_gpu("auto", "auto") else { return };
    println!("{warnings:?}");
    assert_eq!((error, counts.len()), (None, 100));
    let lost = counts.iter().filter(|&&count| count == 0).count();
    println!("{lost} frames without regions, then {} regions after {}", counts[99], counts[0]);
    assert!(lost <= 2, "{counts:?}");
    assert!(counts[99].abs_diff(counts[0]) <= 3, "the CPU finds the same: {counts:?}");
    assert!((1..=2).contains(&warnings.len()), "{warnings:?}");
    assert!(warnings.iter().any(|text| text.contains("the model runs on the CPU")), "{warnings:?}");
}

#[test]
#[ignore = "needs a GPU"]
fn a_gpu_that_fails_is_an_error_with_cuda() {
    if !has_cuda() {
        return;
    }
    if !alone::is_alone() {
        let name = "on_gpu::a_gpu_that_fails_is_an_error_with_cuda";
        print!("{}", alone::run(name, &[("NMSFILTER_TEST_PROVIDER", Some("cuda"))]).stdout);
        return;
    }
    let Some((counts, _, error)) = with_a_failing_gpu("cuda", "cuda") else { return };
    let error = error.expect("the stream ends");
    println!("after {} frames: {error}", counts.len());
    assert!(counts.len() < 100);
    assert!(
        error.contains("CUDA_ERROR_ILLEGAL_ADDRESS") || error.contains("illegal memory access"),
        "{error}"
    );
}

#[test]
#[ignore = "needs a GPU"]
fn another_model_runs_after_ready() {
    if !has_cuda() {
        return;
    }
    let Some(source) = picture("data/images/street.png") else { return };
    let [first, second] =
        [&ULTRAFACE, &YOLOV8].map(|model| data::path(model.file).expect("models are together"));
    let inference = element::inference(&first, "provider=cuda");
    let pipeline = parse(&format!(
        "{source} ! imagefreeze num-buffers=5 ! {inference} ! nmsfilter ! fakesink"
    ));
    for turn in 0..6 {
        let model = if turn % 2 == 0 { &first } else { &second };
        pipeline.by_name("inference").unwrap().set_property("model", model.to_str());
        let seen = watch(&pipeline, "inference", element::ids);
        assert_eq!(run(&pipeline).error, None);
        assert_eq!(seen.lock().unwrap()[0].len(), if turn % 2 == 0 { 2 } else { 1 });
    }
}

#[test]
#[ignore = "needs a GPU"]
fn models_with_graphs_open_at_the_same_time() {
    if !has_cuda() {
        return;
    }
    let start = Arc::new(Barrier::new(8));
    let threads = (0..8).map(|_| {
        let start = start.clone();
        thread::spawn(move || {
            let model = file(&identity([1, 3, 12, 16], Element::F32));
            for _ in 0..5 {
                let inference = element::inference(&model, "provider=cuda cuda-graph=on");
                let pipeline = parse(&format!(
                    "videotestsrc num-buffers=20 ! video/x-raw,format=RGB,width=16,height=12 ! {inference} ! fakesink"
                ));
                start.wait();
                assert_eq!(run(&pipeline).error, None);
            }
        })
    });
    let threads: Vec<_> = threads.collect();
    threads.into_iter().for_each(|thread| thread.join().expect("the model runs with a graph"));
}

#[test]
#[ignore = "needs a GPU"]
fn tensors_that_are_kept_are_not_changed_by_later_runs() {
    if !has_cuda() {
        return;
    }
    // The model returns its input, and has intermediate results of the output's size.
    let dims = [1, 3, 12, 16];
    let mut model = OnnxModel::new()
        .input("input", Element::F32, dims)
        .initializer("2", &onnx::Tensor::f32(&[1], &[2.0]))
        .initializer("half", &onnx::Tensor::f32(&[1], &[0.5]));
    let names = ["input", "a", "b", "c", "d", "e", "output"];
    for (index, pair) in names.windows(2).enumerate() {
        let factor = if index % 2 == 0 { "2" } else { "half" };
        model = model.node(Node::new("Mul", &[pair[0], factor], &[pair[1]]));
    }
    let model = file(&model.output("output", Element::F32, dims));
    let inference = element::inference(&model, "provider=cuda cuda-graph=on range=0,255");
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=40 ! video/x-raw,format=RGB,width=16,height=12 ! {inference} ! fakesink"
    ));
    let picture = |offset: u64| Picture::solid([16, 12], [offset as u8, 7, 255 - offset as u8]);
    intercept(&pipeline, "in", move |buffer| {
        frames::write(buffer, &picture(buffer.offset()));
    });
    let kept = Arc::new(Mutex::new(Vec::new()));
    let pad = pipeline.by_name("inference").unwrap().static_pad("src").unwrap();
    let to = kept.clone();
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        to.lock().unwrap().push(info.buffer().expect("it is a probe for buffers").clone());
        gst::PadProbeReturn::Ok
    });
    assert_eq!(run(&pipeline).error, None);
    let kept = kept.lock().unwrap();
    assert_eq!(kept.len(), 40);
    for buffer in kept.iter() {
        assert_eq!(Picture::from_planes(&tensors(buffer)[0]), picture(buffer.offset()));
    }
}

#[test]
#[ignore = "needs a GPU"]
fn outputs_with_a_varying_number_of_rows_have_the_detections_of_each_frame() {
    if !has_cuda() {
        return;
    }
    varying::assert_detected(&varying::like_torchvision(&[], 0.5), "provider=cuda");
    varying::assert_detected(&varying::like_torchvision(&[1], -0.5), "provider=cuda range=-1,0");
}

/// A node with outputs of varying size would write outside of the memory of a CUDA graph, and then
/// no work would run on the GPU in this process. A node with random numbers would repeat them in
/// each run of a graph. For such models `cuda-graph=on` is an error.
#[test]
#[ignore = "needs a GPU"]
fn cuda_graph_on_is_an_error_for_a_model_that_a_graph_would_change() {
    if !has_cuda() {
        return;
    }
    let dims = [1, 3, 12, 16];
    let random = OnnxModel::new()
        .input("input", Element::F32, dims)
        .node(Node::new("RandomUniformLike", &["input"], &["noise"]))
        .node(Node::new("Add", &["input", "noise"], &["output"]))
        .output("output", Element::F32, dims);
    for (model, problem) in [
        (varying_output(dims), "the outputs of the model's node NonZero have sizes"),
        (random, "the output output is different with a CUDA graph"),
    ] {
        let model = file(&model);
        let on = format!("model={} provider=cuda cuda-graph=on", model.display());
        let error = messages::error(&on);
        assert!(error.starts_with("cuda-graph=on: ") && error.contains(problem), "{error}");
    }
    let model = file(&identity(dims, Element::F32));
    let inference = element::inference(&model, "provider=cuda cuda-graph=on");
    let pipeline = frames::pipeline_of(&Picture::random([16, 12], 7), 3, &inference);
    assert_eq!(element::run_pipeline(&pipeline).len(), 3, "the GPU still works");
}
