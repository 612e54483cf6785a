// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several streams on one buffer with `GstAnalyticsBatchMeta`: between `analyticscombiner` and
//! `analyticssplitter`, and in batches like those from DL Streamer's `gvastreammux`.

use std::sync::{Arc, Mutex};

use gst::prelude::*;
use gst_newer::{AnalyticsBatchMeta, AnalyticsODMtd, AnalyticsRelationMeta};
use gst_video::VideoRegionOfInterestMeta;
use gstnmsfilter::input::Tensors;
use gstnmsfilter::input::custom_meta::{NewTensor, attach};
use gstnmsfilter::input::model::{Letterbox, ModelInfo};

use super::bad_input::claim;
use crate::support::batches::{batch, caps_event};
use crate::support::pipeline::{self, Ended, intercept, parse, regions, run, watch};

/// Left, top, width and height.
type Rect = (u32, u32, u32, u32);

/// A structure as text, and the bytes of its field `data`, which keypoints and masks have.
type Parameter = (String, Option<gst::glib::Bytes>);

/// A frame, and everything that `nmsfilter` attached to it.
#[derive(Clone, Debug, PartialEq)]
struct Frame {
    pts: Option<gst::ClockTime>,
    /// Type, rectangle, id and structures.
    regions: Vec<(String, Rect, i32, Vec<Parameter>)>,
    /// Label, rectangle and score.
    objects: Vec<(String, [i32; 4], f32)>,
    tensors: usize,
}

fn read(buffer: &gst::BufferRef) -> Frame {
    let region = |region: gst::MetaRef<'_, VideoRegionOfInterestMeta>| {
        let parameter =
            |parameter: &gst::StructureRef| (parameter.to_string(), parameter.get("data").ok());
        let parameters = region.params().map(parameter).collect();
        (region.roi_type().to_owned(), region.rect(), region.id(), parameters)
    };
    let relation = buffer.meta::<AnalyticsRelationMeta>();
    let objects = relation.iter().flat_map(|relation| {
        relation.iter::<AnalyticsODMtd>().map(|object| {
            let location = object.location().unwrap();
            let label = object.obj_type().unwrap().as_str().to_string();
            let rect = [location.x, location.y, location.w, location.h];
            (label, rect, object.confidence_level())
        })
    });
    Frame {
        pts: buffer.pts(),
        regions: buffer.iter_meta::<VideoRegionOfInterestMeta>().map(region).collect(),
        objects: objects.collect(),
        tensors: Tensors::of(buffer).unwrap().len(),
    }
}

/// A source, and the changes to its frames.
struct Stream {
    description: &'static str,
    modify: fn(&mut gst::BufferRef, u64),
    /// Frames that are replaced by gap events.
    gaps: std::ops::Range<u64>,
}

/// Streams that differ in size, rate, length and model: the paper's detector, YOLOv8, and a model
/// with a description, whose input has another size than the frames.
const STREAMS: [Stream; 3] = [
    Stream {
        description: "crowdtestsrc seed=1 num-buffers=130 ! video/x-raw,width=640,height=360,framerate=30/1",
        modify: |_, _| {},
        gaps: 20..26,
    },
    Stream {
        description: "crowdtestsrc seed=2 decoder=yolov8 num-buffers=30
            ! video/x-raw,width=1280,height=720,framerate=25/1",
        modify: |_, _| {},
        gaps: 0..0,
    },
    Stream {
        description: "videotestsrc num-buffers=110 ! video/x-raw,format=GRAY8,width=270,height=360,framerate=30/1",
        modify: |buffer, frame| {
            // Some frames have no tensors.
            if !frame.is_multiple_of(4) {
                attach(buffer, &described_windows(frame)).unwrap();
            }
        },
        gaps: 3..5,
    },
];

/// Returns moving windows of a model that has class names and an input of 640 x 640.
fn described_windows(frame: u64) -> NewTensor {
    let rows = (0..20).flat_map(|row| {
        let left = 90.0 + (frame as f32 * 1.5 + row as f32 * 23.0) % 400.0;
        [left, row as f32 * 30.0, 24.0 + row as f32, 0.95 - row as f32 * 0.01]
    });
    static CAPS: std::sync::OnceLock<gst::Caps> = std::sync::OnceLock::new();
    let caps = CAPS.get_or_init(|| {
        let info = ModelInfo {
            size: Some([640, 640]),
            letterbox: Some(Letterbox::Center),
            ..ModelInfo::default()
        };
        ModelInfo { labels: ["head"].map(Into::into).into(), ..info }.to_caps().unwrap()
    });
    NewTensor::from_vec("windows", &[20, 4], rows.collect::<Vec<f32>>())
        .unwrap()
        .with_model(caps.clone())
}

/// Modifies the frames of the source with this name.
fn modify(pipeline: &gst::Pipeline, name: &str, stream: &'static Stream) {
    let pad = pipeline.by_name(name).unwrap().static_pad("src").unwrap();
    let frame = Mutex::new(0);
    pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        let buffer = info.buffer_mut().expect("it is a probe for buffers").make_mut();
        let mut frame = frame.lock().unwrap();
        let index = *frame;
        *frame += 1;
        (stream.modify)(buffer, index);
        if stream.gaps.contains(&index) {
            let gap = gst::event::Gap::builder(buffer.pts().unwrap()).duration(buffer.duration());
            pad.push_event(gap.build());
            return gst::PadProbeReturn::Drop;
        }
        gst::PadProbeReturn::Ok
    });
}

/// The frames and gap times of a stream that arrive at a sink.
struct Arrived {
    frames: Arc<Mutex<Vec<Frame>>>,
    gaps: Arc<Mutex<Vec<gst::ClockTime>>>,
}

impl Arrived {
    fn at(pipeline: &gst::Pipeline, sink: &str) -> Self {
        let gaps = Arc::new(Mutex::new(Vec::new()));
        let pad = pipeline.by_name(sink).unwrap().static_pad("sink").unwrap();
        pad.add_probe(gst::PadProbeType::EVENT_DOWNSTREAM, {
            let gaps = gaps.clone();
            move |_, info| {
                if let Some(gst::EventView::Gap(gap)) = info.event().map(|event| event.view()) {
                    gaps.lock().unwrap().push(gap.get().0);
                }
                gst::PadProbeReturn::Ok
            }
        });
        Self { frames: watch(pipeline, sink, read), gaps }
    }

    fn take(&self) -> FramesAndGaps {
        (self.frames.lock().unwrap().split_off(0), self.gaps.lock().unwrap().split_off(0))
    }
}

/// The frames of a stream, and the times of its gaps.
type FramesAndGaps = (Vec<Frame>, Vec<gst::ClockTime>);

fn assert_equal(stream: usize, found: &FramesAndGaps, expected: &FramesAndGaps) {
    assert_eq!(found.0.len(), expected.0.len(), "stream {stream}");
    for (found, expected) in found.0.iter().zip(&expected.0) {
        assert_eq!(found, expected, "stream {stream}");
    }
    // A combiner makes two events of each gap event.
    let mut gaps = found.1.clone();
    gaps.dedup();
    assert_eq!(gaps, expected.1, "gaps of stream {stream}");
}

/// Returns the frames and gaps of each stream when it has its own `nmsfilter`.
fn one_by_one(properties: &str) -> Vec<FramesAndGaps> {
    let run_alone = |stream: &'static Stream| {
        let pipeline = parse(&format!(
            "{} ! identity name=in ! nmsfilter {properties} ! fakesink name=out",
            stream.description
        ));
        modify(&pipeline, "in", stream);
        let arrived = Arrived::at(&pipeline, "out");
        assert_eq!(run(&pipeline).error, None);
        arrived.take()
    };
    STREAMS.iter().map(run_alone).collect()
}

/// Returns the frames and gaps of each stream when all streams share one `nmsfilter` between a
/// combiner and a splitter.
fn combined(combiner: &str, properties: &str) -> (Vec<FramesAndGaps>, Ended) {
    let sources = STREAMS.iter().enumerate().map(|(index, stream)| {
        format!("{} ! identity name=in{index} ! queue ! c.sink_{index}  ", stream.description)
    });
    let sinks = (0..STREAMS.len())
        .map(|index| format!("  s.src_0_{index} ! queue ! fakesink name=out{index}"));
    let pipeline = parse(&format!(
        "{} analyticscombiner name=c {combiner} ! nmsfilter {properties} ! analyticssplitter name=s {}",
        sources.collect::<String>(),
        sinks.collect::<String>()
    ));
    let mut arrived = Vec::new();
    for (index, stream) in STREAMS.iter().enumerate() {
        modify(&pipeline, &format!("in{index}"), stream);
        arrived.push(Arrived::at(&pipeline, &format!("out{index}")));
    }
    let ended = run(&pipeline);
    (arrived.iter().map(Arrived::take).collect(), ended)
}

#[test]
fn streams_of_a_batch_have_the_regions_that_they_have_alone() {
    crate::support::needs::needs!(batches, "analyticscombiner");
    let alone = one_by_one("");
    let frames: Vec<usize> = alone.iter().map(|(frames, _)| frames.len()).collect();
    assert_eq!(frames, [124, 30, 108]);
    // Batches have at most one frame of each stream, or several.
    for combiner in ["batch-duration=33333333", "batch-duration=100000000"] {
        let (streams, ended) = combined(combiner, "");
        assert_eq!((ended.error, ended.warnings), (None, vec![]), "{combiner}");
        for (index, (found, expected)) in streams.iter().zip(&alone).enumerate() {
            assert!(expected.0.iter().any(|frame| frame.regions.len() > 5), "stream {index}");
            assert_equal(index, found, expected);
        }
        let all = streams.iter().flat_map(|(frames, _)| frames);
        let count = |name: &str| ended.stats[0].get::<u64>(name).unwrap();
        assert_eq!(count("frames"), 124 + 30 + 108);
        let without = all.clone().filter(|frame| frame.tensors == 0).count();
        assert_eq!(count("frames-without-tensors"), without as u64);
        assert_eq!(count("survivors"), all.map(|frame| frame.regions.len() as u64).sum::<u64>());
        let labels = ended.stats[0].get::<gst::Array>("label-counts").unwrap();
        let labels = labels.iter().map(|count| count.get::<u64>().unwrap());
        assert_eq!(labels.sum::<u64>(), count("survivors"));
    }
}

#[test]
fn settings_apply_to_each_stream() {
    crate::support::needs::needs!(batches, "analyticscombiner");
    let properties = "score-threshold=0.6 attach=roi keep-tensors=false";
    let alone = one_by_one(properties);
    let (streams, ended) = combined("batch-duration=100000000", properties);
    assert_eq!(ended.error, None);
    for (index, (found, expected)) in streams.iter().zip(&alone).enumerate() {
        assert_equal(index, found, expected);
        assert!(found.0.iter().all(|frame| frame.tensors == 0 && frame.objects.is_empty()));
    }
}

#[test]
fn frames_that_others_hold_are_not_changed() {
    crate::support::needs::needs!(batches, "analyticscombiner");
    // Frames are shared before the combiner, and batches after it.
    let pipeline = parse(
        "videotestsrc name=in num-buffers=20 ! video/x-raw,width=640,height=480,framerate=10/1 ! tee name=t
           t. ! queue ! fakesink name=frames
           t. ! queue ! c.
         analyticscombiner name=c batch-duration=100000000 ! tee name=u
           u. ! queue ! fakesink name=batches
           u. ! queue ! nmsfilter keep-tensors=false ! fakesink name=out",
    );
    intercept(&pipeline, "in", |buffer| attach(buffer, &window()).unwrap());
    let copied = |buffer: &gst::BufferRef| -> gst::Buffer {
        // SAFETY: the buffer is valid. The additional reference keeps the frame shared.
        unsafe { gst::glib::translate::from_glib_none(buffer.as_ptr()) }
    };
    let frames = watch(&pipeline, "frames", copied);
    let batches = watch(&pipeline, "batches", copied);
    let out = watch(&pipeline, "out", frames_of);
    assert_eq!(run(&pipeline).error, None);
    let state = |frame: &Frame| (frame.regions.len(), frame.tensors);
    let frames = frames.lock().unwrap();
    assert_eq!(frames.iter().map(|frame| state(&read(frame))).collect::<Vec<_>>(), [(0, 1); 20]);
    let flat = |batches: Vec<Vec<(u32, Frame)>>| -> Vec<(usize, usize)> {
        batches.iter().flatten().map(|(_, frame)| state(frame)).collect()
    };
    let batches = batches.lock().unwrap().iter().map(|batch| frames_of(batch)).collect();
    assert_eq!(flat(batches), [(0, 1); 20]);
    assert_eq!(flat(out.lock().unwrap().clone()), [(1, 0); 20]);
}

#[test]
fn a_copy_of_a_frame_keeps_gstreamers_tensors() {
    crate::support::needs::needs!(batches);
    use gst_newer::{Tensor, TensorDataType, TensorDimOrder, TensorMeta};
    let mut harness = harness();
    let mut frame = gst::Buffer::new();
    let NewTensor { id, data, shape, .. } = window();
    let id = gst::glib::Quark::from_str(&id);
    let (kind, order) = (TensorDataType::Float32, TensorDimOrder::RowMajor);
    let tensor = Tensor::new_simple(id, kind, data, order, &shape);
    TensorMeta::add(frame.get_mut().unwrap()).unwrap().set(vec![tensor]);
    let caps = caps_event("video/x-raw,width=640,height=480");
    let shared = batch(vec![(0, vec![caps], vec![frame.clone().upcast()])]);
    let found = harness.push_and_pull(shared.clone()).unwrap();
    let state = |frame: &Frame| (frame.regions.len(), frame.tensors);
    let states = |batch: &gst::BufferRef| -> Vec<_> {
        frames_of(batch).iter().map(|(_, frame)| state(frame)).collect()
    };
    assert_eq!(
        (states(&found), states(&shared), state(&read(&frame))),
        (vec![(1, 1)], vec![(0, 1)], (0, 1))
    );
}

#[test]
fn a_stream_can_change_its_size() {
    crate::support::needs::needs!(batches, "analyticscombiner");
    // If the model's size is set, the region depends on the size of the frame.
    let source = |index| {
        format!(
            "videotestsrc num-buffers=15 ! video/x-raw,width=640,height=480,framerate=10/1 ! k{index}.
             videotestsrc num-buffers=15 ! video/x-raw,width=320,height=960,framerate=10/1 ! k{index}.
             concat name=k{index} ! identity name=in{index} "
        )
    };
    let pipeline = parse(&format!(
        "{} ! c.sink_0  {} ! c.sink_1  analyticscombiner name=c batch-duration=400000000
           ! nmsfilter name=nms model-width=1280 model-height=960 ! fakesink",
        source(0),
        source(1)
    ));
    for name in ["in0", "in1"] {
        intercept(&pipeline, name, |buffer| attach(buffer, &window()).unwrap());
    }
    let seen = watch(&pipeline, "nms", frames_of);
    let ended = run(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
    let seen = seen.lock().unwrap();
    for stream in 0..2 {
        let frames = seen.iter().flatten().filter(|(number, _)| *number == stream);
        let rects: Vec<_> = frames.map(|(_, frame)| frame.regions[0].1).collect();
        let expected = [vec![(80, 100, 32, 32); 15], vec![(40, 200, 16, 64); 15]].concat();
        assert_eq!(rects, expected, "stream {stream}");
    }
}

#[test]
fn the_error_of_a_frame_names_its_stream() {
    crate::support::needs::needs!(batches, "analyticscombiner");
    let pipeline = parse(
        "videotestsrc name=in0 num-buffers=9 ! video/x-raw,width=640,height=480 ! c.sink_0
         videotestsrc name=in1 num-buffers=9 ! video/x-raw,width=640,height=480 ! c.sink_1
         analyticscombiner name=c ! nmsfilter ! fakesink",
    );
    intercept(&pipeline, "in0", |buffer| attach(buffer, &window()).unwrap());
    intercept(&pipeline, "in1", |buffer| {
        attach(buffer, &NewTensor::from_vec("unknown", &[3], vec![1.0f32; 3]).unwrap()).unwrap();
    });
    let ended = run(&pipeline);
    let text = "stream 1 of the batch: no tensor fits any decoder";
    assert!(ended.error().contains(text), "{}", ended.error());
}

#[test]
fn a_mistake_that_all_streams_have_is_reported_once() {
    crate::support::needs::needs!(batches, "analyticscombiner");
    let sources = (0..5).map(|index| {
        format!(
            "videotestsrc name=in{index} num-buffers=30 ! video/x-raw,width=640,height=480,framerate=10/1
               ! c.sink_{index}  "
        )
    });
    let pipeline = parse(&format!(
        "{} analyticscombiner name=c ! nmsfilter ! fakesink",
        sources.collect::<String>()
    ));
    for index in 0..5 {
        intercept(&pipeline, &format!("in{index}"), |buffer| {
            // This score is not a probability.
            let mut elements = vec![0.0f32; 60];
            for (row, number) in [50.0, 50.0, 20.0, 20.0, 1.5].into_iter().enumerate() {
                elements[row * 10] = number;
            }
            let tensor = NewTensor::from_vec("yolo-v8-out", &[1, 6, 10], elements).unwrap();
            attach(buffer, &tensor).unwrap();
        });
    }
    let ended = run(&pipeline);
    assert_eq!(ended.error, None);
    assert_eq!(ended.warnings.len(), 1, "{:?}", ended.warnings);
}

#[test]
fn streams_without_tensors_are_reported() {
    crate::support::needs::needs!(batches, "analyticscombiner");
    let pipeline = parse(
        "videotestsrc num-buffers=40 ! video/x-raw,framerate=20/1 ! c.sink_0
         audiotestsrc num-buffers=40 ! c.sink_1
         analyticscombiner name=c ! nmsfilter ! fakesink",
    );
    let ended = run(&pipeline);
    assert_eq!(ended.error, None);
    assert_eq!(ended.warnings.len(), 1, "{:?}", ended.warnings);
    assert!(ended.warnings[0].contains("tensors"), "{:?}", ended.warnings);
    assert_eq!(ended.stats[0].get::<u64>("frames"), Ok(40));
}

/// Returns a window of 64 x 64 pixels.
fn window() -> NewTensor {
    pipeline::init();
    NewTensor::from_vec("windows", &[1, 4], vec![160.0f32, 200.0, 64.0, 0.9]).unwrap()
}

/// Returns the frames of a batch, each with the number of its stream.
fn frames_of(batch: &gst::BufferRef) -> Vec<(u32, Frame)> {
    let batch = batch.meta::<AnalyticsBatchMeta>().expect("it is a batch");
    let mut frames = Vec::new();
    for stream in batch.streams() {
        for object in stream.objects() {
            if let Some(buffer) = object.downcast_ref::<gst::Buffer>() {
                frames.push((stream.index(), read(buffer)));
            } else if let Some(list) = object.downcast_ref::<gst::BufferList>() {
                frames.extend(list.iter().map(|buffer| (stream.index(), read(buffer))));
            }
        }
    }
    frames
}

/// Returns a frame with the window.
fn frame() -> gst::Buffer {
    let mut buffer = gst::Buffer::new();
    attach(buffer.get_mut().unwrap(), &window()).unwrap();
    buffer
}

/// Makes an `nmsfilter` for a model of 640 x 480 that receives batches without `streams` in the
/// caps.
fn harness() -> gst_check::Harness {
    harness_of("multistream/x-analytics-batch(meta:GstAnalyticsBatchMeta)")
}

/// Makes an `nmsfilter` for a model of 640 x 480 that receives buffers with these caps.
fn harness_of(caps: &str) -> gst_check::Harness {
    pipeline::init();
    let element = gst::ElementFactory::make("nmsfilter")
        .property("model-width", 640u32)
        .property("model-height", 480u32)
        .build()
        .unwrap();
    if let Ok(backend) = std::env::var("NMSFILTER_TEST_BACKEND") {
        element.set_property_from_str("backend", &backend);
    }
    let mut harness = gst_check::Harness::with_element(&element, Some("sink"), Some("src"));
    harness.set_src_caps_str(caps);
    harness
}

/// Returns the rectangles on each frame, with the number of its stream.
fn rects(batch: &gst::BufferRef) -> Vec<(u32, Vec<Rect>)> {
    let rects = |frame: Frame| frame.regions.iter().map(|region| region.1).collect();
    frames_of(batch).into_iter().map(|(stream, frame)| (stream, rects(frame))).collect()
}

const SAME: Rect = (160, 200, 64, 64);
const HALF: Rect = (80, 100, 32, 32);

#[test]
fn batches_as_gvastreammux_makes_them_are_read() {
    crate::support::needs::needs!(batches);
    // Streams without a frame are left out of a batch, so a position in the batch is not the number
    // of a stream. One stream is not video.
    let mut harness = harness();
    let small = || caps_event("video/x-raw,width=320,height=240");
    let large = || caps_event("video/x-raw(memory:VAMemory),width=640,height=480");
    let lidar = || caps_event("application/x-lidar");
    let found = harness
        .push_and_pull(batch(vec![
            (0, vec![small()], vec![frame().upcast()]),
            (2, vec![large()], vec![frame().upcast()]),
            (7, vec![lidar()], vec![frame().upcast()]),
        ]))
        .unwrap();
    assert_eq!(rects(&found), [(0, vec![HALF]), (2, vec![SAME]), (7, vec![])]);
    let found = harness
        .push_and_pull(batch(vec![
            (2, vec![large()], vec![frame().upcast()]),
            (1, vec![small()], vec![gst::Buffer::new().upcast()]),
        ]))
        .unwrap();
    assert_eq!(rects(&found), [(2, vec![SAME]), (1, vec![])]);
}

#[test]
fn lists_events_and_frames_without_caps_are_read() {
    crate::support::needs::needs!(batches);
    let mut harness = harness();
    let caps = |size: &str| caps_event(&format!("video/x-raw,{size}"));
    let mut list = gst::BufferList::new();
    for _ in 0..2 {
        list.get_mut().unwrap().add(frame());
    }
    let shared = list.clone();
    let gap = gst::event::Gap::builder(gst::ClockTime::ZERO).build();
    let mut sized = frame();
    let format = gst_video::VideoFormat::Gray8;
    let meta = sized.get_mut().unwrap();
    meta.append_memory(gst::Memory::from_slice(vec![0u8; 320 * 240]));
    gst_video::VideoMeta::add(meta, gst_video::VideoFrameFlags::empty(), format, 320, 240).unwrap();
    let found = harness
        .push_and_pull(batch(vec![
            (
                0,
                vec![caps("width=640,height=480")],
                vec![
                    frame().upcast(),
                    gap.clone().upcast(),
                    caps("width=320,height=240").upcast(),
                    frame().upcast(),
                    gst::Buffer::new().upcast(),
                    list.upcast(),
                ],
            ),
            (1, vec![], vec![sized.upcast()]),
            (2, vec![], vec![]),
            (3, vec![], vec![gap.upcast()]),
        ]))
        .unwrap();
    let expected = [vec![SAME], vec![HALF], vec![], vec![HALF], vec![HALF]];
    let expected: Vec<_> = expected.into_iter().map(|rects| (0, rects)).collect();
    assert_eq!(rects(&found), [expected, vec![(1, vec![HALF])]].concat());
    assert!(shared.iter().all(|buffer| regions(buffer).is_empty()), "the list is shared");
    let objects: Vec<usize> = {
        let meta = found.meta::<AnalyticsBatchMeta>().unwrap();
        meta.streams().iter().map(|stream| stream.objects().len()).collect()
    };
    assert_eq!(objects, [6, 1, 0, 1], "events stay where they are");
}

#[test]
fn a_frame_of_unknown_size_is_an_error() {
    crate::support::needs::needs!(batches);
    let mut harness = harness();
    let (element, bus) = (harness.element().unwrap(), gst::Bus::new());
    element.set_bus(Some(&bus));
    let result = harness.push(batch(vec![(4, vec![], vec![frame().upcast()])]));
    assert_eq!(result, Err(gst::FlowError::Error));
    let message = bus.pop_filtered(&[gst::MessageType::Error]).unwrap();
    let gst::MessageView::Error(error) = message.view() else { panic!("{message:?}") };
    let text = error.error().to_string();
    assert!(text.contains("stream 4 of the batch: ") && text.contains("width"), "{text}");
}

/// Returns the output of a one-class YOLO model: `count` boxes in columns, followed by their scores
/// and by `numbers` more rows.
fn output(
    id: &str,
    count: usize,
    numbers: usize,
    number: impl Fn(usize, usize) -> f32,
) -> NewTensor {
    const ANCHORS: usize = 256;
    pipeline::init();
    let mut rows = vec![0.0; (5 + numbers) * ANCHORS];
    for i in 0..count {
        let [x, y] = [i % 20 * 30 + 16, i / 20 * 30 + 16].map(|center| center as f32);
        let score = 0.9 - (i * 7 % count) as f32 * 1e-3;
        let own = [x, y, 38.0, 24.0, score].into_iter();
        for (row, value) in own.chain((0..numbers).map(|n| number(i, n))).enumerate() {
            rows[row * ANCHORS + i] = value;
        }
    }
    NewTensor::from_vec(id, &[1, 5 + numbers, ANCHORS], rows).unwrap()
}

/// Returns the tensors of a model that finds boxes, keypoints, masks or oriented boxes.
fn model_tensors(model: usize, count: usize) -> Vec<NewTensor> {
    match model {
        0 => vec![output("yolo-v8-out", count, 0, |_, _| 0.0)],
        1 => vec![output("yolo-v8-pose-out", count, 51, |i, n| match n % 3 {
            0 => (i % 20 * 30 + 6 + n / 3) as f32,
            1 => (i / 20 * 30 + 8 + n / 3) as f32,
            _ => 0.8,
        })],
        2 => {
            let prototypes = (0..4 * 160 * 120).map(|i| ((i + count) % 7) as f32 - 3.0).collect();
            let coefficients = |i, n| ((i + n) % 3) as f32 - 1.0;
            vec![
                output("yolo-v8-segmentation-out-detections", count, 4, coefficients),
                NewTensor::from_vec(
                    "yolo-v8-segmentation-out-protos",
                    &[1, 4, 120, 160],
                    prototypes,
                )
                .unwrap(),
            ]
        }
        _ => vec![output("yolo-v8-obb-out", count, 1, |i, _| i as f32 * 0.1)],
    }
}

/// Returns a frame with these tensors.
fn frame_with(tensors: &[NewTensor]) -> gst::Buffer {
    let mut buffer = gst::Buffer::new();
    tensors.iter().for_each(|tensor| attach(buffer.get_mut().unwrap(), tensor).unwrap());
    buffer
}

#[test]
fn streams_of_the_same_and_of_other_models_have_the_details_that_they_have_alone() {
    crate::support::needs::needs!(batches);
    let size = |stream: usize| ["width=640,height=480", "width=1280,height=720"][stream % 5 / 4];
    // Adjacent streams often share a model, and mostly share a size.
    let models = [0, 0, 0, 2, 2, 1, 1, 1, 3, 3, 0, 2, 1];
    let count = |stream: usize, round: usize| 5 + (stream * 11 + round * 5) % 60;
    let mut alone: Vec<Vec<Frame>> = vec![Vec::new(); 4];
    for (stream, model) in models.into_iter().enumerate() {
        let mut harness = harness_of(&format!("video/x-raw,{}", size(stream)));
        for (round, expected) in alone.iter_mut().enumerate() {
            let buffer = frame_with(&model_tensors(model, count(stream, round)));
            expected.push(read(&harness.push_and_pull(buffer).unwrap()));
        }
    }
    let mut harness = harness();
    for (round, expected) in alone.into_iter().enumerate() {
        let streams = models.into_iter().enumerate().map(|(stream, model)| {
            let caps = caps_event(&format!("video/x-raw,{}", size(stream)));
            let frame = frame_with(&model_tensors(model, count(stream, round)));
            (stream as u32, vec![caps], vec![frame.upcast()])
        });
        let found = harness.push_and_pull(batch(streams.collect())).unwrap();
        for ((stream, found), expected) in frames_of(&found).into_iter().zip(expected) {
            assert!(!expected.regions.is_empty(), "stream {stream}, round {round}");
            assert_eq!(found, expected, "stream {stream}, round {round}");
        }
    }
}

/// Returns the stats of an `nmsfilter` that received three batches of `streams` streams with equal
/// models and sizes.
fn stats_of_equal_streams(streams: usize) -> gst::Structure {
    let mut harness = harness();
    for round in 0..3 {
        let streams = (0..streams).map(|stream| {
            let frame = frame_with(&model_tensors(0, 20 + stream + round));
            (
                stream as u32,
                vec![caps_event("video/x-raw,width=640,height=480")],
                vec![frame.upcast()],
            )
        });
        let found = frames_of(&harness.push_and_pull(batch(streams.collect())).unwrap());
        for (stream, frame) in found {
            let tensors = model_tensors(0, 20 + stream as usize + round);
            let mut alone = harness_of("video/x-raw,width=640,height=480");
            let expected = read(&alone.push_and_pull(frame_with(&tensors)).unwrap());
            assert!(expected.regions.len() > 10);
            assert_eq!(frame, expected, "stream {stream}, round {round}");
        }
    }
    harness.element().unwrap().property("stats")
}

#[test]
fn the_number_of_windows_can_change_with_each_frame_and_size_and_settings_with_a_batch() {
    crate::support::needs::needs!(batches);
    let windows = |frame: usize, count: usize| {
        let rows = (0..count).flat_map(|row| {
            [row as f32 * 11.0, frame as f32 * 7.0, 10.0 + frame as f32, 0.9 - row as f32 * 0.01]
        });
        NewTensor::from_vec("windows", &[count, 4], rows.collect::<Vec<f32>>()).unwrap()
    };
    // Consecutive frames of a stream have equal numbers of boxes, except the last in a batch.
    let count = |round: usize, frame: usize| [10, 30, 50, 51, 4][round] + frame / 4;
    let size = |round: usize| ["width=640,height=480", "width=1280,height=720"][round / 2 % 2];
    let threshold = |round: usize| [0.3f32, 0.8][round / 3];
    let mut harness = harness();
    let mut alone = harness_of("video/x-raw,width=640,height=480");
    for round in 0..5 {
        for harness in [&harness, &alone] {
            harness.element().unwrap().set_property("score-threshold", threshold(round));
        }
        let caps = format!("video/x-raw,{}", size(round));
        let frame = |stream: usize, frame: usize| {
            frame_with(&[windows(stream * 8 + frame, count(round, frame))])
        };
        let streams = (0..3).map(|stream| {
            let frames = (0..5).map(|index| frame(stream, index).upcast()).collect();
            (stream as u32, vec![caps_event(&caps)], frames)
        });
        let found = frames_of(&harness.push_and_pull(batch(streams.collect())).unwrap());
        assert_eq!(found.len(), 15);
        alone.set_src_caps_str(&caps);
        for (index, (stream, found)) in found.into_iter().enumerate() {
            let expected = read(&alone.push_and_pull(frame(stream as usize, index % 5)).unwrap());
            assert!(!expected.regions.is_empty());
            assert_eq!(found, expected, "round {round}, stream {stream}, frame {}", index % 5);
        }
    }
}

#[test]
fn more_equal_streams_than_one_run_has_are_each_decoded() {
    crate::support::needs::needs!(batches);
    let stats = stats_of_equal_streams(37);
    assert_eq!(stats.get::<u64>("frames"), Ok(3 * 37));
}

#[test]
#[ignore = "needs a GPU"]
fn equal_streams_are_one_launch() {
    crate::support::needs::needs!(batches);
    let stats = stats_of_equal_streams(16);
    assert_eq!(stats.get::<&str>("engine"), Ok("cuda"));
    // In the first batch, each stream makes its plan.
    assert_eq!(stats.get::<u64>("launches"), Ok(16 + 1 + 1));
}

#[test]
fn the_error_of_one_of_several_equal_streams_names_it() {
    crate::support::needs::needs!(batches);
    let mut harness = harness();
    let (element, bus) = (harness.element().unwrap(), gst::Bus::new());
    element.set_bus(Some(&bus));
    let mut push = |short: Option<usize>| {
        let streams = (0..4).map(|stream| {
            let caps = caps_event("video/x-raw,width=640,height=480");
            let frame = if short == Some(stream) {
                let mut frame = gst::Buffer::new();
                claim(frame.get_mut().unwrap(), "yolo-v8-out", &[1, 5, 256], 64);
                frame
            } else {
                frame_with(&model_tensors(0, 20))
            };
            (stream as u32, vec![caps], vec![frame.upcast()])
        });
        harness.push(batch(streams.collect()))
    };
    assert_eq!(push(None), Ok(gst::FlowSuccess::Ok));
    assert_eq!(push(None), Ok(gst::FlowSuccess::Ok));
    assert_eq!(push(Some(2)), Err(gst::FlowError::Error));
    let message = bus.pop_filtered(&[gst::MessageType::Error]).unwrap();
    let gst::MessageView::Error(error) = message.view() else { panic!("{message:?}") };
    let text = error.error().to_string();
    let expected = "stream 2 of the batch: tensor yolo-v8-out (f32 1x5x256): its shape needs 5120 bytes, but its memory holds 64";
    assert!(text.starts_with(expected), "{text}");
}

/// A frame whose scores cannot be read leaves nothing on the frames of the run before it.
#[test]
fn frames_of_equal_classifiers_have_their_own_classes() {
    crate::support::needs::needs!(batches);
    const ID: &str = "classification-generic-out";
    pipeline::init();
    let mut harness = harness();
    let with = |short: Option<usize>| {
        let streams = (0..4).map(|stream| {
            let caps = caps_event("video/x-raw,width=640,height=480");
            let mut frame = gst::Buffer::new();
            if short == Some(stream) {
                claim(frame.get_mut().unwrap(), ID, &[1, 4], 4);
            } else {
                let numbers = [0, 1, 2, 3].map(|class| if class == stream { 9.0f32 } else { 0.0 });
                let tensor = NewTensor::from_vec(ID, &[1, 4], numbers.to_vec()).unwrap();
                attach(frame.get_mut().unwrap(), &tensor).unwrap();
            }
            (stream as u32, vec![caps], vec![frame.upcast()])
        });
        batch(streams.collect())
    };
    for _ in 0..2 {
        let batch = harness.push_and_pull(with(None)).unwrap();
        for (stream, frame) in frames_of(&batch) {
            let labels: Vec<_> = frame.regions.iter().map(|region| region.0.as_str()).collect();
            assert_eq!(labels, [format!("class-{stream}")]);
        }
    }
    // push_and_pull would wait a minute for a buffer.
    assert_eq!(harness.push(with(Some(2))), Err(gst::FlowError::Error));
}

#[test]
fn more_streams_than_are_kept_are_read() {
    crate::support::needs::needs!(batches);
    let mut harness = harness();
    for _ in 0..3 {
        let streams = (0..400).map(|index| {
            let caps = caps_event(
                ["video/x-raw,width=640,height=480", "video/x-raw,width=320,height=240"][index % 2],
            );
            (index as u32 * 3, vec![caps], vec![frame().upcast()])
        });
        let found = rects(&harness.push_and_pull(batch(streams.collect())).unwrap());
        assert_eq!(found.len(), 400);
        for (index, (stream, rects)) in found.into_iter().enumerate() {
            assert_eq!((stream, rects), (index as u32 * 3, vec![[SAME, HALF][index % 2]]));
        }
    }
}

#[test]
fn a_frame_that_has_the_number_of_its_stream_is_a_frame() {
    crate::support::needs::needs!(batches);
    // With output-mode=passthrough, gvastreammux declares as many streams as its batch has frames,
    // and all but the first are empty.
    pipeline::init();
    let mut harness = gst_check::Harness::new("nmsfilter");
    harness.set_src_caps_str("video/x-raw,format=GRAY8,width=640,height=480,framerate=50/1");
    let mut buffer = batch(vec![(3, vec![], vec![]), (0, vec![], vec![])]);
    attach(buffer.get_mut().unwrap(), &window()).unwrap();
    let found = harness.push_and_pull(buffer).unwrap();
    assert_eq!(regions(&found).len(), 1);
    let meta = found.meta::<AnalyticsBatchMeta>().unwrap();
    assert_eq!(meta.streams().iter().map(|stream| stream.index()).collect::<Vec<_>>(), [3, 0]);
}
