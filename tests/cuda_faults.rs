// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams in which calls of the CUDA driver fail. Run with `--include-ignored` and
//! `NMSFILTER_TEST_BACKEND=cuda`.
//!
//! This is a separate program with one test: it injects failures into every driver call of the
//! process, and counts the driver objects and the memory of the process.
//!
//! The environment variable `NMSFILTER_TEST_FAULTS` sets the number of runs, each with one failure
//! (200).

#[path = "support/mod.rs"]
mod support;

use gst::prelude::*;
use gstnmsfilter::input::cuda_memory;
use gstnmsfilter::input::custom_meta::{self, NewTensor};
use nmsfilter_core::device::Device;
use nmsfilter_core::device::fault::{Fault, inject, injected, outstanding};

use crate::support::engines;
use crate::support::pipeline::{self, Ended, parse, run};
use crate::support::process::resident;

const OUT_OF_MEMORY: u32 = 2;
const DEVICE_UNAVAILABLE: u32 = 46;
const INVALID_PTX: u32 = 218;
const ILLEGAL_ADDRESS: u32 = 700;

/// A kind of failure: its name, the error code, and the calls that return it.
const KINDS: [(&str, u32, &[&str]); 5] = [
    ("no memory on the GPU", OUT_OF_MEMORY, &["cuMemAlloc_v2"]),
    ("no pinned memory", OUT_OF_MEMORY, &["cuMemHostAlloc"]),
    ("a corrupt module", INVALID_PTX, &["cuModuleLoadData"]),
    ("a launch that fails", ILLEGAL_ADDRESS, &["cuGraphLaunch"]),
    (
        "a GPU that is lost",
        DEVICE_UNAVAILABLE,
        &[
            "cuGraphLaunch",
            "cuMemAlloc_v2",
            "cuMemHostAlloc",
            "cuMemcpyHtoDAsync_v2",
            "cuStreamQuery",
            "cuStreamSynchronize",
        ],
    ),
];

const FRAMES: u64 = 20;

fn stream(backend: &str) -> gst::Pipeline {
    parse(&format!(
        "crowdtestsrc num-buffers={FRAMES} ! video/x-raw,width=160,height=90
           ! nmsfilter backend={backend} ! fakesink"
    ))
}

/// Returns the numbers of frames, candidates and survivors.
fn counts(ended: &Ended) -> [u64; 3] {
    ["frames", "candidates", "survivors"].map(|name| ended.stats[0].get(name).unwrap())
}

#[test]
#[ignore = "needs a GPU"]
fn every_driver_failure_continues_on_the_cpu_with_auto_or_is_an_error_with_cuda() {
    assert!(engines::on_gpu(), "set NMSFILTER_TEST_BACKEND=cuda");
    let value = std::env::var("NMSFILTER_TEST_FAULTS").ok();
    let runs: usize = value.map_or(200, |value| value.parse().expect("a number of runs"));
    pipeline::init();
    let expected = counts(&run(&stream("cpu")));
    // The device is opened once, because creating a context takes long.
    let device = Device::open(0).unwrap();
    assert_eq!(run(&stream("cuda")).error, None);
    let before = outstanding();

    let mut failures = [[0usize; 2]; KINDS.len()];
    let mut resident_early = 0;
    for turn in 0..runs {
        let kind = turn % KINDS.len();
        let (name, code, calls) = KINDS[kind];
        // The failure occurs at the start, at the first frame, or later.
        let after = turn / KINDS.len() % 7;
        let faults: Vec<Fault> =
            calls.iter().map(|&call| Fault { call, after, times: usize::MAX, code }).collect();
        for (i, backend) in ["auto", "cuda"].into_iter().enumerate() {
            let pipeline = stream(backend);
            inject(&faults);
            let ended = run(&pipeline);
            let failed = injected() > 0;
            inject(&[]);
            let case = format!("{name}, after {after} calls, backend={backend}");
            if backend == "auto" {
                // The stream continues on the CPU, with one warning.
                assert_eq!(ended.error, None, "{case}");
                assert_eq!(counts(&ended), expected, "{case}");
                assert_eq!(ended.warnings.len(), usize::from(failed), "{case}: {ended:?}");
                assert!(
                    ended.warnings.iter().all(|text| names_call(text, calls)),
                    "{case}: {ended:?}"
                );
            } else if failed {
                assert!(names_call(ended.error(), calls), "{case}: {ended:?}");
            } else {
                assert_eq!((ended.error.as_ref(), counts(&ended)), (None, expected), "{case}");
            }
            failures[kind][i] += usize::from(failed);
            // Without the failure, the element runs again.
            if turn % 10 == 0 {
                let again = run(&pipeline);
                assert_eq!((again.error.as_ref(), counts(&again)), (None, expected), "{case}");
            }
        }
        assert_eq!(outstanding(), before, "{name}, after {after} calls");
        if turn == runs / 4 {
            resident_early = resident();
        }
    }
    let grown = resident().saturating_sub(resident_early);
    println!("{runs} runs with each backend; failures by kind: {failures:?}; grown by {grown} KiB");
    // Every kind of failure occurred with each backend, and at least half of the streams had one.
    assert!(failures.iter().flatten().all(|&count| count > 0), "{failures:?}");
    assert!(failures.iter().flatten().sum::<usize>() >= runs, "{failures:?}");
    tensors_that_are_lost_with_the_gpu_end_the_stream_after_a_second();
    drop(device);
}

/// Returns a frame at this time with a window in host or device memory.
fn frame(window: &NewTensor, mseconds: u64) -> gst::Buffer {
    let mut buffer = gst::Buffer::with_size(160 * 90 * 3 / 2).unwrap();
    let frame = buffer.get_mut().unwrap();
    frame.set_pts(gst::ClockTime::from_mseconds(mseconds));
    custom_meta::attach(frame, window).unwrap();
    buffer
}

/// The GPU is lost while tensors in its memory are in flight. The stream continues without them
/// until the producer has changed to tensors in host memory. If the producer does not change within
/// a second, the stream ends with an error.
fn tensors_that_are_lost_with_the_gpu_end_the_stream_after_a_second() {
    let window = NewTensor::from_vec("windows", &[1, 4], vec![20.0f32, 30.0, 16.0, 0.9]).unwrap();
    let mut uploader = cuda_memory::Uploader::new(0).unwrap();
    let on_device = |uploader: &mut cuda_memory::Uploader| uploader.upload(&window).unwrap();
    let mut harness = gst_check::Harness::new("nmsfilter");
    harness.element().unwrap().set_property_from_str("backend", "auto");
    harness.set_src_caps_str("video/x-raw,format=I420,width=160,height=90,framerate=25/1");
    let regions = |harness: &mut gst_check::Harness| {
        let buffer = harness.pull().unwrap();
        buffer.iter_meta::<gst_video::VideoRegionOfInterestMeta>().count()
    };

    let first = frame(&on_device(&mut uploader), 0);
    let on_the_way = [40, 80].map(|mseconds| frame(&on_device(&mut uploader), mseconds));
    let late = frame(&on_device(&mut uploader), 2_000);
    assert_eq!(harness.push(first), Ok(gst::FlowSuccess::Ok));
    assert_eq!(regions(&mut harness), 1);

    let calls = ["cuGraphLaunch", "cuMemcpyDtoHAsync_v2"];
    let lost = |call| Fault { call, after: 0, times: usize::MAX, code: DEVICE_UNAVAILABLE };
    inject(&calls.map(lost));
    for frame in on_the_way {
        assert_eq!(harness.push(frame), Ok(gst::FlowSuccess::Ok));
        assert_eq!(regions(&mut harness), 0, "the tensors are lost");
    }
    assert_eq!(harness.push(frame(&window, 120)), Ok(gst::FlowSuccess::Ok));
    assert_eq!(regions(&mut harness), 1, "tensors in host memory are decoded on the CPU");
    let stats = harness.element().unwrap().property::<gst::Structure>("stats");
    assert_eq!(stats.get("frames-lost"), Ok(2u64));
    assert_eq!(harness.push(late), Err(gst::FlowError::Error), "the producer has not noticed");
    inject(&[]);
}

/// Returns true if the text names one of the calls that failed.
fn names_call(text: &str, calls: &[&str]) -> bool {
    calls.iter().any(|call| text.contains(&format!("{call} failed: CUDA_ERROR_")))
}
