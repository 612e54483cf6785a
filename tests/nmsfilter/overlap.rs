// SPDX-License-Identifier: MIT OR Apache-2.0
//! `overlap=diou` with each backend. The kernels do not support this measure, and the CPU engine
//! does.

use gst::prelude::*;
use gstnmsfilter::input::custom_meta::{NewTensor, attach};

use crate::support::engines;
use crate::support::pipeline::{init, intercept, parse, regions, run, watch};

/// Two boxes of 100 x 100 pixels with centers 40 pixels apart. Their IoU is 6000 / 14000 = 0.429.
/// DIoU is smaller by 40^2 / (140^2 + 100^2) = 0.054, which gives 0.375.
fn windows() -> NewTensor {
    init();
    let windows = vec![10.0f32, 10.0, 100.0, 0.9, 50.0, 10.0, 100.0, 0.8];
    NewTensor::from_vec("windows", &[2, 4], windows).unwrap()
}

#[test]
fn overlap_diou_keeps_a_box_that_iou_suppresses_with_backend_cpu() {
    let rectangles = |overlap: &str| {
        let pipeline = parse(&format!(
            "videotestsrc name=in num-buffers=1 ! video/x-raw,width=640,height=480
               ! nmsfilter name=nms backend=cpu iou-threshold=0.4 overlap={overlap} ! fakesink"
        ));
        let tensor = windows();
        intercept(&pipeline, "in", move |buffer| attach(buffer, &tensor).unwrap());
        let seen = watch(&pipeline, "nms", regions);
        assert_eq!(run(&pipeline).error, None, "{overlap}");
        let regions = seen.lock().unwrap().remove(0);
        regions.into_iter().map(|(_, rectangle)| rectangle).collect::<Vec<_>>()
    };
    assert_eq!(rectangles("iou"), [[10, 10, 100, 100]]);
    assert_eq!(rectangles("diou"), [[10, 10, 100, 100], [50, 10, 100, 100]]);
}

#[test]
#[ignore = "needs a GPU"]
fn overlap_diou_with_backend_cuda_is_an_error_before_the_first_decoded_frame() {
    engines::require_gpu();
    let pipeline = parse(
        "crowdtestsrc num-buffers=3 memory=cuda ! video/x-raw,width=320,height=240
           ! nmsfilter name=nms backend=cuda overlap=diou ! fakesink",
    );
    let seen = watch(&pipeline, "nms", |_| ());
    let ended = run(&pipeline);
    let expected =
        "the engine cuda does not support the overlap measure diou; choose the backend cpu";
    assert!(ended.error().contains(expected), "{}", ended.error());
    assert_eq!(seen.lock().unwrap().len(), 0, "no frame was decoded");
}

#[test]
#[ignore = "needs a GPU"]
fn overlap_diou_set_while_playing_with_backend_cuda_gives_a_warning_and_iou_stays_in_force() {
    engines::require_gpu();
    let pipeline = parse(
        "videotestsrc name=in num-buffers=120
           ! video/x-raw,width=640,height=480,framerate=50/1
           ! nmsfilter name=nms backend=cuda iou-threshold=0.4 ! fakesink",
    );
    let tensor = windows();
    let nms = pipeline.by_name("nms").unwrap();
    intercept(&pipeline, "in", move |buffer| {
        attach(buffer, &tensor).unwrap();
        if buffer.offset() == 3 {
            nms.set_property_from_str("overlap", "diou");
        }
    });
    let seen = watch(&pipeline, "nms", |buffer| regions(buffer).len());
    let ended = run(&pipeline);
    assert_eq!(ended.error, None);
    assert_eq!(*seen.lock().unwrap(), [1; 120]);
    let [warning] = &ended.warnings[..] else { panic!("one warning, got {:?}", ended.warnings) };
    assert!(warning.starts_with("the engine cuda does not support the overlap measure diou"));
}

#[test]
#[ignore = "needs a GPU"]
fn backend_auto_decodes_device_tensors_on_the_cpu_with_diou_and_on_the_gpu_with_iou() {
    engines::require_gpu();
    let pipeline = parse(
        "crowdtestsrc num-buffers=9 memory=cuda ! video/x-raw,width=320,height=240
           ! nmsfilter name=nms backend=auto overlap=diou ! fakesink",
    );
    let nms = pipeline.by_name("nms").unwrap();
    let frame = std::sync::atomic::AtomicU32::new(0);
    nms.static_pad("sink").unwrap().add_probe(gst::PadProbeType::BUFFER, {
        let nms = nms.clone();
        move |_, _| {
            match frame.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                3 => nms.set_property_from_str("overlap", "iou"),
                6 => nms.set_property_from_str("overlap", "diou"),
                _ => {}
            }
            gst::PadProbeReturn::Ok
        }
    });
    // Collects the engine of each frame, and the number of launches so far.
    let seen = watch(&pipeline, "nms", move |_| {
        let stats = nms.property::<gst::Structure>("stats");
        (stats.get::<String>("engine").unwrap(), stats.get::<u64>("launches").unwrap())
    });
    let ended = run(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
    let seen = seen.lock().unwrap();
    let expected = [0, 0, 0, 1, 2, 3, 3, 3, 3];
    assert_eq!(seen.iter().map(|(_, launches)| *launches).collect::<Vec<_>>(), expected);
    let engines: Vec<&str> = seen.iter().map(|(engine, _)| engine.as_str()).collect();
    assert_eq!(engines, ["cpu", "cpu", "cpu", "cuda", "cuda", "cuda", "cpu", "cpu", "cpu"]);
}
