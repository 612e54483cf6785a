// SPDX-License-Identifier: MIT OR Apache-2.0
//! Elements that share a model by `model-instance-id`: batches of their frames, and the effects
//! that one element has on the others. The models return their input, so that each tensor must have
//! its frame's pixels.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use gst::prelude::*;
use gstonnxruntime::inference::instance::{Instance, Member};
use gstonnxruntime::inference::provider::Provider;
use gstonnxruntime::inference::{CudaGraph, InferenceOptions};

use crate::element::{file, has_onnx_runtime, stats, tensors};
use crate::frames::{self, Picture};
use crate::support::onnx::{Element, Node, OnnxModel, Tensor, constant, identity};
use crate::support::pipeline::{self, intercept, parse, watch};

/// Size of the model's input.
const SIZE: [usize; 2] = [16, 12];

fn with_dynamic_batch() -> OnnxModel {
    identity("n,3,12,16", Element::F32)
}

/// A stream whose frames have one color each.
struct Stream {
    number: u8,
    size: [usize; 2],
    frames: usize,
    /// Elements between `ortinference` and the sink.
    after: &'static str,
    /// If true, a flushing seek restarts the stream after 50 frames.
    seeks: bool,
}

impl Stream {
    fn new(number: u8, frames: usize) -> Self {
        Self { number, size: SIZE, frames, after: "identity", seeks: false }
    }

    fn color(&self, frame: u64) -> [u8; 3] {
        [frame as u8, self.number * 40, 255 - (frame >> 8) as u8]
    }

    /// Makes the pipeline. Its first frame waits for `start`, until all elements exist.
    fn pipeline(&self, model: &Path, properties: &str, start: &Arc<Barrier>) -> gst::Pipeline {
        let [width, height] = self.size;
        let pipeline = parse(&format!(
            "videotestsrc name=in num-buffers={}
               ! video/x-raw,format=RGB,width={width},height={height},framerate=30/1
               ! ortinference name=inference provider={} range=0,255 model={} {properties}
               ! {} ! fakesink name=out sync=false enable-last-sample=false",
            self.frames,
            std::env::var("NMSFILTER_TEST_PROVIDER").as_deref().unwrap_or("cpu"),
            model.display(),
            self.after,
        ));
        let (number, size, start) = (self.number, self.size, start.clone());
        let has_started = AtomicBool::new(false);
        intercept(&pipeline, "in", move |buffer| {
            let stream = Stream { size, ..Stream::new(number, 0) };
            if !has_started.swap(true, Ordering::Relaxed) {
                start.wait();
            }
            let color = stream.color(buffer.offset());
            frames::write(buffer, &Picture::solid(size, color));
        });
        pipeline
    }

    /// Runs the stream, and asserts that the tensors have the colors of their frames, in order.
    /// Returns the number of frames that arrived, the error, and the stats.
    fn run(
        &self,
        model: &Path,
        properties: &str,
        start: &Arc<Barrier>,
    ) -> (u64, Option<String>, gst::Structure) {
        let pipeline = self.pipeline(model, properties, start);
        let seen = watch(&pipeline, "inference", |buffer| {
            let tensor = tensors(buffer).remove(0);
            (buffer.offset(), Picture::from_planes(&tensor))
        });
        if self.seeks {
            let (source, frames) = (pipeline.by_name("in").unwrap(), AtomicUsize::new(0));
            let pad = pipeline.by_name("inference").unwrap().static_pad("src").unwrap();
            pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
                if frames.fetch_add(1, Ordering::Relaxed) == 50 {
                    let source = source.clone();
                    let seek =
                        move || source.seek_simple(gst::SeekFlags::FLUSH, gst::ClockTime::ZERO);
                    thread::spawn(seek);
                }
                gst::PadProbeReturn::Ok
            });
        }
        let ended = pipeline::run(&pipeline);
        let seen = seen.lock().unwrap();
        for (index, (offset, picture)) in seen.iter().enumerate() {
            assert!(self.seeks || *offset == index as u64, "stream {}", self.number);
            let expected = Picture::solid(SIZE, self.color(*offset));
            assert_eq!(*picture, expected, "stream {}, frame {index}", self.number);
        }
        let began_again = seen.windows(2).any(|frames| frames[1].0 <= frames[0].0);
        assert_eq!(began_again, self.seeks);
        (seen.len() as u64, ended.error, stats(&pipeline))
    }
}

/// Runs the streams concurrently.
fn run(
    streams: Vec<Stream>,
    model: &OnnxModel,
    properties: &str,
) -> Vec<(u64, Option<String>, gst::Structure)> {
    let model = Arc::new(file(model));
    let start = Arc::new(Barrier::new(streams.len()));
    let threads = streams.into_iter().map(|stream| {
        let (model, start, properties) = (model.clone(), start.clone(), properties.to_owned());
        thread::spawn(move || stream.run(&model, &properties, &start))
    });
    let threads: Vec<_> = threads.collect();
    threads.into_iter().map(|thread| thread.join().expect("the frames are right")).collect()
}

/// Returns a barrier that waits for no other stream.
fn alone() -> Arc<Barrier> {
    Arc::new(Barrier::new(1))
}

fn batch_mean(stats: &gst::Structure) -> f64 {
    stats.get("batch-mean").unwrap()
}

#[test]
fn each_stream_has_its_own_tensors_in_order() {
    if !has_onnx_runtime() {
        return;
    }
    // A batch waits for the streams that took part in the last two batches. The timeout is longer
    // than the test may take.
    let properties = "model-instance-id=own-tensors batch-size=4 batch-timeout=600000";
    let streams = (0..4).map(|number| Stream::new(number, 600)).collect();
    for (frames, error, stats) in run(streams, &with_dynamic_batch(), properties) {
        assert_eq!((frames, error), (600, None));
        assert!(batch_mean(&stats) > 3.9, "{stats}");
    }
}

#[test]
fn streams_can_have_other_sizes_and_outnumber_the_places_in_a_batch() {
    if !has_onnx_runtime() {
        return;
    }
    let properties = "model-instance-id=sizes batch-size=3 batch-timeout=1";
    let streams = (0..5).map(|number| Stream {
        size: SIZE.map(|side| side * (1 + usize::from(number))),
        ..Stream::new(number, 300)
    });
    for (frames, error, stats) in run(streams.collect(), &with_dynamic_batch(), properties) {
        assert_eq!((frames, error), (300, None));
        assert!(batch_mean(&stats) <= 3.0, "{stats}");
    }
}

#[test]
fn a_stream_that_ends_or_fails_does_not_hold_the_others() {
    if !has_onnx_runtime() {
        return;
    }
    let properties = "model-instance-id=ends batch-size=4 batch-timeout=600000";
    let mut streams: Vec<_> = (0..2).map(|number| Stream::new(number, 400)).collect();
    streams.push(Stream::new(2, 20));
    streams.push(Stream { after: "identity error-after=30", ..Stream::new(3, 400) });
    let ended = run(streams, &with_dynamic_batch(), properties);
    for (frames, error, _) in &ended[..2] {
        assert_eq!((*frames, error), (400, &None));
    }
    assert_eq!((ended[2].0, &ended[2].1), (20, &None));
    assert!(ended[3].0 < 400 && ended[3].1.is_some(), "{:?}", ended[3]);
}

#[test]
fn sixteen_streams_of_which_one_ends_one_fails_one_seeks_and_one_has_another_size() {
    if !has_onnx_runtime() {
        return;
    }
    let properties = "model-instance-id=sixteen batch-size=16 batch-timeout=20";
    let mut streams: Vec<_> = (0..6).map(|number| Stream::new(number, 400)).collect();
    streams.extend((0..6).map(|number| Stream::new(number, 500)));
    streams.push(Stream::new(0, 60));
    streams.push(Stream { after: "identity error-after=80", ..Stream::new(1, 400) });
    streams.push(Stream { seeks: true, ..Stream::new(2, 400) });
    streams.push(Stream { size: SIZE.map(|side| 5 * side), ..Stream::new(3, 400) });
    let ended = run(streams, &with_dynamic_batch(), properties);
    for (index, (frames, error, _)) in ended.iter().enumerate() {
        match index {
            6..12 => assert_eq!((*frames, error), (500, &None)),
            12 => assert_eq!((*frames, error), (60, &None)),
            13 => assert!(*frames < 400 && error.is_some()),
            // The flushing seek drops the frames that are in flight.
            14 => assert!((300..=400).contains(frames) && error.is_none(), "{frames}, {error:?}"),
            _ => assert_eq!((*frames, error), (400, &None)),
        }
    }
}

#[test]
fn a_stream_that_pauses_delays_the_others_by_the_timeout_only() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&with_dynamic_batch());
    let properties = "model-instance-id=pauses batch-size=2 batch-timeout=20";
    let paused = Stream::new(0, 100).pipeline(&model, properties, &alone());
    paused.set_state(gst::State::Paused).unwrap();
    paused.state(gst::ClockTime::from_seconds(60)).0.unwrap();
    let (frames, error, _) = Stream::new(1, 300).run(&model, properties, &alone());
    assert_eq!((frames, error), (300, None));
    paused.set_state(gst::State::Null).unwrap();
}

#[test]
fn a_fixed_batch_that_is_not_full_is_padded() {
    if !has_onnx_runtime() {
        return;
    }
    let model = identity([4, 3, 12, 16], Element::F32);
    for (frames, error, stats) in run(vec![Stream::new(1, 20)], &model, "batch-timeout=600000") {
        assert_eq!((frames, error), (20, None));
        assert_eq!(batch_mean(&stats), 1.0);
    }
}

#[test]
fn a_batch_without_an_id_is_a_warning() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&with_dynamic_batch());
    let ended = pipeline::run(&Stream::new(0, 3).pipeline(&model, "batch-size=8", &alone()));
    let expected = "batch-size=8 without model-instance-id: each run takes as long as a run of 8 frames, but has a \
                    single frame; set the same model-instance-id in the elements of all streams, or leave batch-size \
                    at 0";
    assert_eq!((ended.error, ended.warnings), (None, vec![expected.to_owned()]));
}

#[test]
fn a_large_batch_on_the_cpu_is_a_warning_before_the_model_is_opened() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&with_dynamic_batch());
    let properties = "provider=cpu batch-size=33 model-instance-id=large";
    let ended = pipeline::run(&Stream::new(0, 3).pipeline(&model, properties, &alone()));
    let expected = "batch-size=33: on the CPU a run with 33 pictures takes as long as 33 runs, and needs memory for \
                    all of them, even when the model is opened; set batch-size to the number of streams";
    assert_eq!((ended.error, ended.warnings), (None, vec![expected.to_owned()]));
}

#[test]
fn a_stream_can_be_added_and_removed_while_others_run() {
    if !has_onnx_runtime() {
        return;
    }
    let model = Arc::new(file(&with_dynamic_batch()));
    let properties = "model-instance-id=added batch-size=4 batch-timeout=600000";
    let long = thread::spawn({
        let model = model.clone();
        move || Stream::new(0, 2000).run(&model, properties, &alone())
    });
    for number in 1..6 {
        thread::sleep(Duration::from_millis(5));
        let (frames, error, _) = Stream::new(number, 50).run(&model, properties, &alone());
        assert_eq!((frames, error), (50, None));
    }
    let (frames, error, _) = long.join().expect("the frames are right");
    assert_eq!((frames, error), (2000, None));
}

/// Returns the error with which the second of two elements with one id fails to start.
fn error_beside(properties: &str, other: &str) -> String {
    let model = file(&with_dynamic_batch());
    let first = Stream::new(0, 1).pipeline(&model, properties, &alone());
    first.set_state(gst::State::Paused).unwrap();
    first.state(gst::ClockTime::from_seconds(60)).0.unwrap();
    let ended = pipeline::run(&Stream::new(1, 1).pipeline(&model, other, &alone()));
    first.set_state(gst::State::Null).unwrap();
    ended.error().to_owned()
}

#[test]
fn elements_with_the_same_id_need_the_same_properties() {
    if !has_onnx_runtime() {
        return;
    }
    let message = error_beside(
        "model-instance-id=differs batch-size=2",
        "model-instance-id=differs batch-size=3 mean=1",
    );
    let expected = "model-instance-id=differs: another element with this id has other values of mean, batch-size; \
                    set the same values, or another id";
    assert!(message.starts_with(expected), "{message}");
}

#[test]
fn outputs_that_are_not_of_each_picture_are_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&constant("n,3,12,16", "all", &[1, 4], &[0.5; 4]));
    let ended = pipeline::run(&Stream::new(0, 1).pipeline(&model, "batch-size=8", &alone()));
    let expected = "the model's output all has the dimensions [1,4] for a batch of 8; expected 8 as the first \
                    dimension: leave batch-size at 0, or export the model with a dynamic batch";
    assert!(ended.error().starts_with(expected), "{}", ended.error());
}

#[test]
fn a_model_with_a_batch_of_one_runs_with_another() {
    if !has_onnx_runtime() {
        return;
    }
    let model = identity([1, 3, 12, 16], Element::F32);
    let properties = "model-instance-id=from-one batch-size=3 batch-timeout=600000";
    let streams = (0..3).map(|number| Stream::new(number, 100)).collect();
    for (frames, error, stats) in run(streams, &model, properties) {
        assert_eq!((frames, error), (100, None));
        assert!(batch_mean(&stats) > 2.9, "{stats}");
    }
}

#[test]
fn constant_shapes_of_a_batch_of_one_are_changed() {
    if !has_onnx_runtime() {
        return;
    }
    // The model reshapes its input to rows, and back.
    let model = OnnxModel::new()
        .input("input", Element::F32, [1, 3, 12, 16])
        .initializer("rows", &Tensor::i64(&[3], &[1, -1, 16]))
        .node(Node::new("Reshape", &["input", "rows"], &["reshaped"]))
        .initializer("planes", &Tensor::i64(&[4], &[1, 3, 12, 16]))
        .node(Node::new("Reshape", &["reshaped", "planes"], &["output"]))
        .output("output", Element::F32, [1, 3, 12, 16]);
    let properties = "model-instance-id=constants batch-size=3 batch-timeout=600000";
    let streams = (0..3).map(|number| Stream::new(number, 50)).collect();
    for (frames, error, _) in run(streams, &model, properties) {
        assert_eq!((frames, error), (50, None));
    }
}

/// Returns the error for a batch of 2, from a model with a batch of 1 whose node `node` depends on
/// the batch size.
fn error_of_two(node: Node, dims: &str) -> String {
    let model = OnnxModel::new().input("input", Element::F32, [1, 3, 12, 16]).node(node).output(
        "output",
        Element::F32,
        dims,
    );
    pipeline::run(&Stream::new(0, 1).pipeline(&file(&model), "batch-size=2", &alone()))
        .error()
        .to_owned()
}

#[test]
fn a_model_that_mixes_the_pictures_of_a_batch_is_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    // The output is one row for all pictures.
    let message = error_of_two(Node::new("Flatten", &["input"], &["output"]).int("axis", 0), "1,?");
    let expected = "the model's output output has the dimensions [1,1152] for a batch of 2";
    assert!(message.contains(expected), "{message}");
}

/// Nodes with the output `output`, whose part of a picture depends on the batch or on the place in it.
fn coupled() -> Vec<(&'static str, Vec<Node>)> {
    let reduced = |operator: &str| {
        vec![
            Node::new(operator, &["input"], &["all"]).ints("axes", &[0]).int("keepdims", 1),
            Node::new("Sub", &["input", "all"], &["output"]),
        ]
    };
    let sum = Node::new("ReduceSum", &["input", "zero"], &["all"]).int("keepdims", 1);
    let of_centered = |centered: &str, operator: &str| {
        vec![
            Node::new("Sub", &["input", centered], &["centered"]),
            Node::new("Abs", &["centered"], &["size"]),
            Node::new(operator, &["size"], &["all"]).int("keepdims", 1),
            Node::new("Div", &["input", "all"], &["output"]),
        ]
    };
    let gathered = Node::new("Gather", &["input", "zero"], &["first"]).int("axis", 0);
    let top = Node::new("TopK", &["input", "three"], &["output", "indices"]);
    vec![
        ("greatest", reduced("ReduceMax")),
        ("least", reduced("ReduceMin")),
        ("mean", reduced("ReduceMean")),
        ("sum", vec![sum, Node::new("Div", &["input", "all"], &["output"])]),
        ("range about black", of_centered("black", "ReduceMax")),
        ("range about gray", of_centered("gray", "ReduceMax")),
        ("range about white", of_centered("white", "ReduceMax")),
        ("deviation from gray", of_centered("gray", "ReduceMean")),
        ("first picture", vec![gathered, Node::new("Max", &["input", "first"], &["output"])]),
        ("sorted", vec![top.int("axis", 0)]),
        ("softmax", vec![Node::new("Softmax", &["input"], &["output"]).int("axis", 0)]),
        ("reversed", vec![Node::new("Gather", &["input", "reversed"], &["output"]).int("axis", 0)]),
        ("place", vec![Node::new("Mul", &["input", "weights"], &["output"])]),
        (
            "small scores beside large coordinates",
            vec![
                Node::new("Softmax", &["input"], &["scores"]).int("axis", 0),
                Node::new("Mul", &["input", "large"], &["boxes"]),
                Node::new("Concat", &["boxes", "scores"], &["output"]).int("axis", 1),
            ],
        ),
    ]
}

#[test]
fn a_batch_whose_pictures_influence_each_other_is_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    let model_of = |nodes: Vec<Node>, batch: &str| {
        let model = OnnxModel::new()
            .opset(13)
            .input("input", Element::F32, &*format!("{batch},3,12,16"))
            .output("output", Element::F32, &*format!("{batch},?,12,16"))
            .initializer("zero", &Tensor::i64(&[1], &[0]))
            .initializer("three", &Tensor::i64(&[1], &[3]))
            .initializer("reversed", &Tensor::i64(&[3], &[2, 1, 0]))
            .initializer("black", &Tensor::f32(&[1], &[0.0]))
            .initializer("gray", &Tensor::f32(&[1], &[127.5]))
            .initializer("white", &Tensor::f32(&[1], &[255.0]))
            .initializer("large", &Tensor::f32(&[1], &[100.0]))
            .initializer("weights", &Tensor::f32(&[3, 1, 1, 1], &[1.0, 1.0, 1.1]));
        file(&nodes.into_iter().fold(model, OnnxModel::node))
    };
    // A batch of 1 is changed by the element, except where the model has other constants.
    for batch in ["n", "3", "1"] {
        for (name, nodes) in coupled() {
            let model = model_of(nodes, batch);
            let properties = "batch-size=3 model-instance-id=coupled";
            let ended = pipeline::run(&Stream::new(0, 1).pipeline(&model, properties, &alone()));
            let expected = "the model's output output of a picture depends on the other pictures of a batch of 3, as \
                            in dynamically quantized models: leave batch-size at 0, or use a model with a batch of 1";
            assert!(ended.error().starts_with(expected), "{name}, {batch}: {}", ended.error());
        }
    }
    // Statistics of each picture for itself, and sums whose rounding depends on their order, are valid.
    let own = vec![
        Node::new("ReduceMax", &["input"], &["all"]).ints("axes", &[1, 2, 3]).int("keepdims", 1),
        Node::new("Div", &["input", "all"], &["half"]),
        Node::new("Softmax", &["half"], &["output"]).int("axis", 1),
    ];
    let model = model_of(own, "n");
    for places in [2, 3, 7, 21] {
        let properties =
            format!("batch-size={places} batch-timeout=0 model-instance-id=own{places}");
        let pipeline = Stream::new(0, 5).pipeline(&model, &properties, &alone());
        assert_eq!(pipeline::run(&pipeline).error, None, "{places}");
    }
}

/// An instance on the CPU, without the elements that use it.
fn instance(
    id: &str,
    model: &Path,
    batch: Option<usize>,
    batch_timeout: Duration,
) -> Arc<Instance> {
    let options = InferenceOptions {
        instance_id: Some(id.to_owned()),
        model: model.to_owned(),
        cuda_graph: CudaGraph::Off,
        batch,
        batch_timeout,
        ..InferenceOptions::default()
    };
    Instance::open(&options, Provider::Cpu).unwrap()
}

#[test]
fn an_element_that_waits_enters_before_the_one_that_was_just_served() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity("1,3,12,16", Element::F32));
    let instance = instance("turns", &model, None, Duration::ZERO);
    let (served, waits) =
        (Member::new(&instance, &Arc::default()), Member::new(&instance, &Arc::default()));
    for round in 0..20 {
        let mut first = served.enter(1, 1).unwrap();
        let (has_entered, begins) = (AtomicBool::new(false), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                begins.wait();
                // The batch has one place, which is taken: the thread waits here.
                let mut entry = waits.enter(1, 1).unwrap();
                has_entered.store(true, Ordering::SeqCst);
                entry.run(None).unwrap();
            });
            begins.wait();
            thread::sleep(Duration::from_millis(50));
            first.run(None).unwrap();
            let mut second = served.enter(1, 1).unwrap();
            assert!(has_entered.load(Ordering::SeqCst), "round {round}");
            second.run(None).unwrap();
        });
    }
}

#[test]
fn the_last_batch_of_a_frame_waits_for_an_element_that_took_part_in_the_frame_before() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&with_dynamic_batch());
    // Longer than the test may take.
    let timeout = Duration::from_secs(600);
    let instance = instance("rest", &model, Some(2), timeout);
    let (one, other) =
        (Member::new(&instance, &Arc::default()), Member::new(&instance, &Arc::default()));
    // Frames have three regions. The second batch has the last region of one frame and the first of another.
    other.enter(3, 3).unwrap().run(None).unwrap();
    let mut rest = other.enter(1, 3).unwrap();
    let mut first = one.enter(3, 3).unwrap();
    assert_eq!((rest.pictures, first.pictures), (1, 1));
    thread::scope(|scope| {
        scope.spawn(|| rest.run(None).unwrap());
        first.run(None).unwrap();
    });
    one.enter(2, 3).unwrap().run(None).unwrap();
    one.enter(3, 3).unwrap().run(None).unwrap();
    // The fifth batch: `other` has no entry in the two batches before.
    let mut rest = one.enter(1, 3).unwrap();
    let has_run = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(rest.run(None).unwrap().pictures, 2);
            has_run.store(true, Ordering::SeqCst);
        });
        thread::sleep(Duration::from_millis(50));
        assert!(!has_run.load(Ordering::SeqCst));
        other.enter(3, 3).unwrap().run(None).unwrap();
    });
}
