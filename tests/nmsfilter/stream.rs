// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams in which caps, tensors or properties change; seeks; `stats`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use gst::prelude::*;
use gstnmsfilter::input::Tensors;
use gstnmsfilter::input::custom_meta::{NewTensor, attach};

use crate::support::engines;
use crate::support::pipeline::{init, intercept, parse, regions, run, watch};

fn windows(rows: &[[f32; 4]]) -> NewTensor {
    init();
    NewTensor::from_vec("windows", &[rows.len(), 4], rows.as_flattened().to_vec()).unwrap()
}

fn count(buffer: &gst::BufferRef) -> usize {
    regions(buffer).len()
}

#[test]
fn tensors_of_other_shapes_and_decoders_are_decoded_from_frame_to_frame() {
    // There are ten anchors, of which the first two are candidates.
    let yolov8 = |id: &str| {
        let mut elements = vec![0.0; 60];
        for (number, columns) in
            [[50.0, 150.0], [50.0, 50.0], [20.0, 20.0], [20.0, 20.0], [0.9, 0.8]].iter().enumerate()
        {
            elements[number * 10..number * 10 + 2].copy_from_slice(columns);
        }
        NewTensor::from_vec(id, &[1, 6, 10], elements).unwrap()
    };
    let tensors = [
        windows(&[[10.0, 10.0, 20.0, 0.9]]),
        windows(&[[10.0, 10.0, 20.0, 0.9], [50.0, 10.0, 20.0, 0.9], [90.0, 10.0, 20.0, 0.9]]),
        yolov8("yolo-v8-out"),
        windows(&[]),
    ];
    let pipeline = parse(
        "videotestsrc name=in num-buffers=12 ! video/x-raw,width=640,height=480
           ! nmsfilter name=nms ! fakesink",
    );
    let frame = AtomicU32::new(0);
    intercept(&pipeline, "in", move |buffer| {
        let frame = frame.fetch_add(1, Ordering::SeqCst) as usize;
        attach(buffer, &tensors[frame % tensors.len()]).unwrap();
    });
    let seen = watch(&pipeline, "nms", count);
    assert_eq!(run(&pipeline).error, None);
    assert_eq!(*seen.lock().unwrap(), [1, 3, 2, 0].repeat(3));
}

#[test]
fn properties_set_before_a_buffer_apply_to_that_buffer() {
    let pipeline = parse(
        "videotestsrc name=in num-buffers=60 ! video/x-raw,width=640,height=480
           ! nmsfilter name=nms ! fakesink",
    );
    // The two boxes have an IoU of a third, and scores of 0.9 and 0.5.
    let tensor = windows(&[[10.0, 10.0, 20.0, 0.9], [20.0, 10.0, 20.0, 0.5]]);
    intercept(&pipeline, "in", move |buffer| attach(buffer, &tensor).unwrap());
    let nms = pipeline.by_name("nms").unwrap();
    let frame = Arc::new(AtomicU32::new(0));
    nms.static_pad("sink").unwrap().add_probe(gst::PadProbeType::BUFFER, {
        let (nms, frame) = (nms.clone(), frame.clone());
        move |_, _| {
            let frame = frame.fetch_add(1, Ordering::SeqCst);
            let iou = if frame.is_multiple_of(2) { 0.2f32 } else { 0.4 };
            nms.set_property("iou-threshold", iou);
            nms.set_property("score-threshold", if frame.is_multiple_of(3) { 0.6f32 } else { 0.1 });
            nms.set_property_from_str(
                "method",
                ["greedy", "map-reduce", "none"][frame as usize % 3],
            );
            nms.set_property("classes", frame.is_multiple_of(5).then_some("1"));
            gst::PadProbeReturn::Ok
        }
    });
    let seen = watch(&pipeline, "nms", count);
    assert_eq!(run(&pipeline).error, None);
    let expected: Vec<usize> = (0..60)
        .map(|frame| match (frame % 5, frame % 3, frame % 2) {
            // Class 0 is excluded, or the second score is below the threshold, or nothing is
            // suppressed.
            (0, _, _) => 0,
            (_, 0, _) => 1,
            (_, 2, _) => 2,
            (_, _, 0) => 1,
            _ => 2,
        })
        .collect();
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[test]
fn regions_are_clipped_to_the_frame_of_renegotiated_caps() {
    init();
    let mut harness = gst_check::Harness::new("nmsfilter");
    let push = |harness: &mut gst_check::Harness, width: u32| {
        harness.set_src_caps_str(&format!(
            "video/x-raw,format=RGB,width={width},height=100,framerate=50/1"
        ));
        let mut buffer = gst::Buffer::with_size(width as usize * 300).unwrap();
        let tensor = windows(&[[10.0, 10.0, 500.0, 0.9]]);
        attach(buffer.get_mut().unwrap(), &tensor).unwrap();
        let out = harness.push_and_pull(buffer).unwrap();
        regions(&out)[0].1
    };
    for (width, clipped) in [(640, 500), (64, 54), (320, 310), (640, 500)] {
        assert_eq!(push(&mut harness, width), [10, 10, clipped, 90]);
    }
}

#[test]
fn buffers_of_any_format_and_memory_feature_are_passed_unmapped() {
    init();
    for caps in [
        "video/x-raw,format=NV12,width=64,height=48,framerate=50/1",
        "video/x-raw,format=P010_10LE,width=64,height=48,framerate=0/1",
        "video/x-raw(memory:CUDAMemory),format=NV12,width=64,height=48,framerate=50/1",
        "video/x-raw(memory:NVMM),format=RGBA,width=64,height=48,framerate=50/1",
        "video/x-raw(memory:DMABuf),format=DMA_DRM,drm-format=NV12,width=64,height=48,framerate=50/1",
    ] {
        let mut harness = gst_check::Harness::new("nmsfilter");
        harness.set_src_caps_str(caps);
        // The pixels are not mapped, so the buffer can be empty.
        let mut buffer = gst::Buffer::new();
        attach(buffer.get_mut().unwrap(), &windows(&[[10.0, 10.0, 20.0, 0.9]])).unwrap();
        let out = harness.push_and_pull(buffer).unwrap();
        assert_eq!(count(&out), 1, "{caps}");
    }
}

#[test]
fn a_shared_buffer_is_copied_and_the_original_is_unchanged() {
    init();
    let mut harness = gst_check::Harness::new("nmsfilter");
    harness.set_src_caps_str("video/x-raw,format=RGB,width=64,height=48,framerate=50/1");
    let mut buffer = gst::Buffer::with_size(64 * 48 * 3).unwrap();
    attach(buffer.get_mut().unwrap(), &windows(&[[10.0, 10.0, 20.0, 0.9]])).unwrap();
    let out = harness.push_and_pull(buffer.clone()).unwrap();
    assert_eq!((count(&buffer), count(&out)), (0, 1));
    assert_eq!(Tensors::of(&out).unwrap().len(), 1);
}

fn stats(structure: &gst::StructureRef, name: &str) -> u64 {
    structure.get(name).unwrap()
}

#[test]
fn stats_have_the_counts_of_frames_candidates_and_bytes() {
    let pipeline = parse(
        "videotestsrc name=in num-buffers=10 ! video/x-raw,width=640,height=480
           ! nmsfilter name=nms ! fakesink",
    );
    // Two candidates, one of which survives. A box outside of the frame and a score that is not a
    // number are rejected.
    let tensor = windows(&[
        [10.0, 10.0, 20.0, 0.9],
        [11.0, 10.0, 20.0, 0.5],
        [900.0, 10.0, 20.0, 0.5],
        [0.0, 0.0, 20.0, f32::NAN],
        [0.0, 0.0, 20.0, 0.1],
    ]);
    let frame = AtomicU32::new(0);
    intercept(&pipeline, "in", move |buffer| {
        if !frame.fetch_add(1, Ordering::SeqCst).is_multiple_of(5) {
            attach(buffer, &tensor).unwrap();
        }
    });
    let ended = run(&pipeline);
    assert_eq!(ended.error, None);
    let on_gpu = engines::on_gpu();
    let [structure] = &ended.stats[..] else { panic!("one message: {:?}", ended.stats) };
    for (name, expected) in [
        ("frames", 10),
        ("frames-without-tensors", 2),
        ("candidates", 8 * 2),
        ("survivors", 8),
        ("rejected", 8 * 2),
        // Five windows are uploaded. The counts and one survivor are downloaded.
        ("bytes-uploaded", if on_gpu { 8 * 5 * 16 } else { 0 }),
        ("bytes-downloaded", if on_gpu { 8 * (32 + 28) } else { 0 }),
        ("launches", if on_gpu { 8 } else { 0 }),
    ] {
        assert_eq!(stats(structure, name), expected, "{name}");
    }
    let engine = if on_gpu { "cuda" } else { "cpu" };
    assert_eq!(structure.get::<String>("engine").unwrap(), engine);
    let (mean, p99) = (stats(structure, "time-mean"), stats(structure, "time-p99"));
    assert!(mean > 0 && p99 > 0, "{mean} ns, {p99} ns");
    let nms = pipeline.by_name("nms").unwrap();
    assert_eq!(nms.property::<gst::Structure>("stats"), *structure);
}

#[test]
fn one_stats_message_is_posted_at_the_end_of_the_stream_or_at_stop() {
    let description = "videotestsrc name=in num-buffers=3 ! nmsfilter ! fakesink";
    let pipeline = parse(description);
    assert_eq!(run(&pipeline).stats.len(), 1, "at the end of the stream");
    assert_eq!(run(&pipeline).stats.len(), 1, "again, when it runs again");

    let live = parse("videotestsrc is-live=true ! nmsfilter name=nms ! fakesink");
    let seen = watch(&live, "nms", |_| ());
    live.set_state(gst::State::Playing).unwrap();
    while seen.lock().unwrap().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // The state NULL would flush the pipeline's bus, so only the element is stopped.
    let nms = live.by_name("nms").unwrap();
    nms.set_locked_state(true);
    nms.set_state(gst::State::Ready).unwrap();
    let bus = live.bus().unwrap();
    let messages = bus.iter().filter(|message| {
        message.structure().is_some_and(|structure| structure.name() == "nmsfilter-stats")
    });
    assert_eq!(messages.count(), 1, "at the stop");
    nms.set_state(gst::State::Null).unwrap();
    live.set_state(gst::State::Null).unwrap();

    let never = parse("videotestsrc num-buffers=0 ! nmsfilter ! fakesink");
    assert!(run(&never).stats.is_empty(), "no frame");
}

#[test]
fn a_first_second_without_tensors_gives_one_warning() {
    gst::init().unwrap();
    let frames = |frames: u32, first_tensor: u32| {
        let pipeline = parse(&format!(
            "videotestsrc name=in num-buffers={frames} ! video/x-raw,framerate=50/1
               ! nmsfilter name=nms ! fakesink"
        ));
        let frame = AtomicU32::new(0);
        intercept(&pipeline, "in", move |buffer| {
            if frame.fetch_add(1, Ordering::SeqCst) == first_tensor {
                attach(buffer, &windows(&[])).unwrap();
            }
        });
        let seen = watch(&pipeline, "nms", |_| ());
        let ended = run(&pipeline);
        assert_eq!(ended.error, None);
        assert_eq!(seen.lock().unwrap().len(), frames as usize, "every buffer passes");
        ended.warnings
    };
    let advice = "so nothing is detected; place nmsfilter directly downstream of the inference element: \
                  elements that write a new picture drop the tensors, such as videoconvert, videoscale, \
                  videocrop and videoflip";
    let own = gst_newer::Capabilities::get().tensors.map_or_else(
        |missing| {
            format!("; {missing}: tensors of GStreamer's own inference elements cannot be read")
        },
        |()| String::new(),
    );
    let advice = format!("{advice}{own}");
    let expected = format!("no buffer of the first second carried tensors, {advice}");
    assert_eq!(frames(200, 1_000), [expected]);
    let expected = format!("no buffer of the stream carried tensors, {advice}");
    assert_eq!(frames(50, 1_000), [expected.as_str()], "less than a second");
    assert_eq!(frames(1, 1_000), [expected.as_str()], "a picture");
    assert!(frames(200, 49).is_empty(), "the first tensors came within a second");
    assert!(frames(1, 0).is_empty(), "a picture with tensors");
    assert!(frames(0, 0).is_empty(), "no frame");
}

#[test]
fn a_stream_without_tensors_that_is_stopped_within_a_second_gives_one_warning() {
    let pipeline = parse("videotestsrc is-live=true ! nmsfilter name=nms ! fakesink");
    let frames = watch(&pipeline, "nms", |_| ());
    pipeline.set_state(gst::State::Playing).unwrap();
    while frames.lock().unwrap().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    pipeline.set_state(gst::State::Ready).unwrap();
    let bus = pipeline.bus().unwrap();
    let warnings: Vec<String> = bus
        .iter_filtered(&[gst::MessageType::Warning])
        .filter_map(|message| match message.view() {
            gst::MessageView::Warning(warning) => Some(warning.error().to_string()),
            _ => None,
        })
        .collect();
    pipeline.set_state(gst::State::Null).unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("no buffer of the stream carried tensors, so nothing"));
}

#[test]
fn an_error_of_tensors_is_not_followed_by_a_warning_that_there_are_none() {
    let pipeline = parse(
        "videotestsrc name=in num-buffers=3 ! video/x-raw,framerate=50/1 ! nmsfilter ! fakesink",
    );
    let frame = AtomicU32::new(0);
    intercept(&pipeline, "in", move |buffer| {
        if frame.fetch_add(1, Ordering::SeqCst) == 1 {
            let tensor = NewTensor::from_vec("unknown", &[3], vec![0.0f32; 3]).unwrap();
            attach(buffer, &tensor).unwrap();
        }
    });
    let ended = run(&pipeline);
    assert!(ended.error().contains("no tensor fits"), "{ended:?}");
    assert_eq!(ended.warnings, [""; 0]);
}

#[test]
fn frames_after_a_flushing_seek_have_their_regions() {
    let pipeline = parse(
        "crowdtestsrc num-buffers=60 ! video/x-raw,width=640,height=360 ! nmsfilter name=nms
           ! fakesink",
    );
    let seen = watch(&pipeline, "nms", |buffer| (buffer.pts().unwrap(), regions(buffer)));
    pipeline.set_state(gst::State::Playing).unwrap();
    let whole = run(&pipeline);
    assert_eq!(whole.error, None);
    let all = std::mem::take(&mut *seen.lock().unwrap());

    pipeline.set_state(gst::State::Paused).unwrap();
    pipeline.state(gst::ClockTime::from_seconds(10)).0.unwrap();
    for target in [600, 100, 900] {
        seen.lock().unwrap().clear();
        let target = gst::ClockTime::from_mseconds(target);
        pipeline.seek_simple(gst::SeekFlags::FLUSH, target).unwrap();
        pipeline.state(gst::ClockTime::from_seconds(10)).0.unwrap();
        let first = seen.lock().unwrap()[0].clone();
        assert_eq!(first.0, target);
        assert!(all.contains(&first), "{first:?}");
    }
    assert_eq!(run(&pipeline).error, None);
}
