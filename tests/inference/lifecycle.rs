// SPDX-License-Identifier: MIT OR Apache-2.0
//! States, caps and events: changes of the model, changes of the frames, flushes, and the element's
//! reports about itself.

use std::path::Path;
use std::str::FromStr;

use gst::prelude::*;

use crate::alone;
use crate::element::{self, file, has_onnx_runtime, ids, stat, stats};
use crate::frames::{self, Picture};
use crate::support::onnx::{Element, identity};
use crate::support::pipeline::{self, parse, watch};
use crate::support::process::resident;
use crate::support::skip::skip;

const DIMS: [i64; 4] = [1, 3, 12, 16];

#[test]
fn another_model_runs_after_ready_and_back() {
    if !has_onnx_runtime() {
        return;
    }
    let model =
        |id: &str, dims: [i64; 4]| file(&identity(dims, Element::F32).metadata("output", id));
    let models = [model("first", DIMS), model("second", [1, 3, 8, 8])];
    let frame = Picture::random([16, 12], 1);
    let pipeline = frames::pipeline_of(&frame, 3, &element::inference(&models[0], ""));
    let seen = watch(&pipeline, "inference", ids);
    assert_eq!(pipeline::run(&pipeline).error, None);
    let inference = pipeline.by_name("inference").unwrap();
    inference.set_property("model", models[1].to_str().unwrap());
    assert_eq!(pipeline::run(&pipeline).error, None);
    let expected = [["first"]; 3].into_iter().chain([["second"]; 3]).collect::<Vec<_>>();
    assert_eq!(*seen.lock().unwrap(), expected);
    assert_eq!(stat(&pipeline, "frames"), 3, "counts begin at the start");
}

#[test]
fn a_model_that_is_set_while_playing_is_a_warning_and_runs_after_a_restart() {
    if !has_onnx_runtime() {
        return;
    }
    let [first, second] =
        ["first", "second"].map(|id| file(&identity(DIMS, Element::F32).metadata("output", id)));
    let frame = Picture::random([16, 12], 1);
    let pipeline = frames::pipeline_of(&frame, 3, &element::inference(&first, ""));
    let seen = watch(&pipeline, "inference", ids);
    let (inference, second) =
        (pipeline.by_name("inference").unwrap(), second.display().to_string());
    pipeline.by_name("frames").unwrap().static_pad("src").unwrap().add_probe(
        gst::PadProbeType::BUFFER,
        move |_, _| {
            inference.set_property("model", &second);
            gst::PadProbeReturn::Remove
        },
    );
    let ended = pipeline::run(&pipeline);
    assert_eq!(ended.error, None);
    assert_eq!(ended.warnings.len(), 1, "{:?}", ended.warnings);
    assert!(ended.warnings[0].contains("model is set, but not applied"), "{:?}", ended.warnings);
    assert_eq!(pipeline::run(&pipeline).error, None);
    let expected = [["first"]; 3].into_iter().chain([["second"]; 3]).collect::<Vec<_>>();
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[test]
fn frames_of_another_size_or_format_are_scaled_anew() {
    if !has_onnx_runtime() {
        return;
    }
    with_harness(|harness, model| {
        let mut push = |format: &str, size: [u32; 2]| {
            let [width, height] = size;
            let caps = format!("video/x-raw,format={format},width={width},height={height}");
            harness.set_src_caps_str(&format!("{caps},framerate=30/1"));
            let info =
                gst_video::VideoInfo::from_caps(&gst::Caps::from_str(&caps).unwrap()).unwrap();
            let frame = gst::Buffer::from_mut_slice(vec![255u8; info.size()]);
            let frame = harness.push_and_pull(frame).unwrap();
            let picture = Picture::from_planes(&element::tensors(&frame)[0]);
            assert_eq!(picture.size, model);
            // A wide white frame has borders above and below.
            [picture.at(8, 0), picture.at(8, 6)]
        };
        let (white, border) = ([255; 3], [114; 3]);
        assert_eq!(push("RGB", [16, 12]), [white, white]);
        assert_eq!(push("RGB", [64, 24]), [border, white]);
        assert_eq!(push("BGRx", [64, 24]), [border, white]);
        assert_eq!(push("GRAY8", [16, 12]), [white, white]);
        assert_eq!(push("RGBA", [16, 12]), [white, white]);
    });
}

/// Runs `test` with a harness of the element, and a model of 16x12 that returns its input.
fn with_harness(test: impl FnOnce(&mut gst_check::Harness, [usize; 2])) {
    let model = file(&identity(DIMS, Element::F32));
    let inference = gst::ElementFactory::make("ortinference")
        .property("model", model.to_str().unwrap())
        .property("range", "0,255")
        .build()
        .unwrap();
    let mut harness = gst_check::Harness::with_element(&inference, Some("sink"), Some("src"));
    test(&mut harness, [16, 12]);
}

#[test]
fn frames_run_after_a_flush() {
    if !has_onnx_runtime() {
        return;
    }
    with_harness(|harness, _| {
        harness.set_src_caps_str("video/x-raw,format=RGB,width=16,height=12,framerate=30/1");
        for _ in 0..3 {
            let frame = gst::Buffer::from_mut_slice(vec![9u8; 16 * 12 * 3]);
            let frame = harness.push_and_pull(frame).unwrap();
            assert_eq!(Picture::from_planes(&element::tensors(&frame)[0]).at(0, 0), [9; 3]);
            assert!(harness.push_event(gst::event::FlushStart::new()));
            let frame = gst::Buffer::from_mut_slice(vec![9u8; 16 * 12 * 3]);
            assert_eq!(harness.push(frame), Err(gst::FlowError::Flushing));
            assert!(harness.push_event(gst::event::FlushStop::new(true)));
            let segment = gst::FormattedSegment::<gst::ClockTime>::new();
            assert!(harness.push_event(gst::event::Segment::new(&segment)));
        }
    });
}

#[test]
fn caps_and_frames_leave_the_element_as_they_came() {
    if !has_onnx_runtime() {
        return;
    }
    with_harness(|harness, _| {
        let caps = "video/x-raw,format=NV12,width=64,height=48,framerate=25/1,\
                    pixel-aspect-ratio=4/3,colorimetry=bt709";
        harness.set_src_caps_str(caps);
        let mut frame = gst::Buffer::from_mut_slice(vec![77u8; 64 * 48 * 3 / 2]);
        frame.get_mut().unwrap().set_pts(gst::ClockTime::SECOND);
        let after = harness.push_and_pull(frame).unwrap();
        assert_eq!(after.pts(), Some(gst::ClockTime::SECOND));
        assert!(after.map_readable().unwrap().iter().all(|&byte| byte == 77));
        let sink = harness.sinkpad().expect("the harness has one").current_caps().unwrap();
        assert!(sink.is_subset(&gst::Caps::from_str(caps).unwrap()), "{sink}");
    });
}

#[test]
fn auto_runs_on_the_cpu_without_a_warning_where_there_is_no_cuda() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let frame = Picture::random([16, 12], 1);
    let pipeline = frames::pipeline_of(&frame, 2, &element::inference(&model, "provider=auto"));
    // A warning fails this run.
    element::run_pipeline(&pipeline);
    let stats = stats(&pipeline);
    let provider: String = stats.get("provider").unwrap();
    assert!(["cpu", "cuda"].contains(&&*provider), "{stats}");
    assert_eq!(stat(&pipeline, "bytes-uploaded") == 0, provider == "cpu", "{stats}");
}

#[test]
#[ignore = "needs the emulated drivers"]
fn auto_warns_of_a_driver_that_is_too_old_and_runs_on_the_cpu() {
    if !has_onnx_runtime() {
        return;
    }
    if !alone::is_alone() {
        let Some(folder) = std::env::var_os("NMSFILTER_EMULATED_CUDA") else {
            skip("the emulated drivers: NMSFILTER_EMULATED_CUDA is not set");
            return;
        };
        let old = Path::new(&folder).join("old");
        let name = "lifecycle::auto_warns_of_a_driver_that_is_too_old_and_runs_on_the_cpu";
        alone::run(name, &[("LD_LIBRARY_PATH", Some(old))]);
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let frame = Picture::random([16, 12], 1);
    let pipeline = frames::pipeline_of(&frame, 2, &element::inference(&model, "provider=auto"));
    let ended = pipeline::run(&pipeline);
    assert_eq!(ended.error, None);
    let [warning] = &ended.warnings[..] else { panic!("one warning, got {:?}", ended.warnings) };
    let begins = "provider=cuda needs an NVIDIA GPU: the NVIDIA driver has no ";
    let ends = "; install one for CUDA 11.4 or later; the model runs on the CPU";
    assert!(warning.starts_with(begins) && warning.ends_with(ends), "{warning}");
    assert_eq!(stats(&pipeline).get::<String>("provider").unwrap(), "cpu");
}

#[test]
fn a_message_says_what_runs_where() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32).metadata("names", "{0: 'face'}"));
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=2 ! {} ! fakesink",
        element::inference(&model, "provider=cpu")
    ));
    let bus = pipeline.bus().unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    let types = [gst::MessageType::Element, gst::MessageType::Error, gst::MessageType::Eos];
    let mut structures = Vec::new();
    while let Some(message) = bus.timed_pop_filtered(gst::ClockTime::from_seconds(60), &types) {
        match message.view() {
            gst::MessageView::Element(element) => {
                structures.push(element.structure().unwrap().to_owned());
            }
            gst::MessageView::Eos(_) => break,
            other => panic!("{other:?}"),
        }
    }
    pipeline.set_state(gst::State::Null).unwrap();
    let [model_message, stats] =
        structures.try_into().expect("one message at start, one at the end");
    assert_eq!(model_message.name(), "ortinference-model");
    assert_eq!(model_message.get::<String>("model").unwrap(), model.display().to_string());
    assert_eq!(model_message.get::<String>("provider").unwrap(), "cpu");
    let library = element::library().unwrap().display().to_string();
    assert_eq!(model_message.get::<String>("library").unwrap(), library);
    assert_eq!(model_message.get::<u32>("width").unwrap(), 16);
    assert_eq!(model_message.get::<u32>("height").unwrap(), 12);
    assert_eq!(model_message.get::<u32>("labels").unwrap(), 1);
    assert_eq!(stats.name(), "ortinference-stats");
    assert_eq!(stats.get::<u64>("frames").unwrap(), 2);
    assert!(stats.get::<u64>("time-p99").unwrap() >= stats.get::<u64>("time-p50").unwrap());
}

#[test]
fn state_cycles_leak_no_memory() {
    if !has_onnx_runtime() {
        return;
    }
    if !alone::is_alone() {
        alone::run::<&str>("lifecycle::state_cycles_leak_no_memory", &[]);
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=2 ! video/x-raw,width=64,height=36
           ! {} ! fakesink",
        element::inference(&model, "provider=cpu")
    ));
    let cycle = || assert_eq!(pipeline::run(&pipeline).error, None);
    // The first cycles fill the allocator's arenas and GStreamer's caches.
    (0..200).for_each(|_| cycle());
    let before = resident();
    (0..500).for_each(|_| cycle());
    let grown = resident().saturating_sub(before);
    // 4 KiB per cycle are much less than a leaked session of ONNX Runtime, or its threads.
    assert!(grown < 4 * 500, "grown by {grown} KiB");
}
