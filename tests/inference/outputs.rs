// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model's outputs: the tensors on buffers, their ids, and their memory.

use std::sync::{Arc, Mutex};

use gst::prelude::*;
use gstnmsfilter::input::Tensors;
use gstnmsfilter::input::model::{Letterbox, ModelInfo};

use crate::alone;
use crate::element::{self, Values, WithInfo, file, has_onnx_runtime, ids, stat, tensors};
use crate::frames::{self, Picture, tensors_of};
use crate::support::onnx::{Dims, Element, Node, OnnxModel, Tensor};
use crate::support::onnx::{constant, constants, identity, identity_f16_output, two_outputs};
use crate::support::pipeline::{self, intercept, parse, watch};
use crate::support::process::resident;
use crate::support::scratch::ScratchFile;

const SIZE: [usize; 2] = [16, 12];
const DIMS: [i64; 4] = [1, 3, 12, 16];

fn frame() -> Picture {
    Picture::random(SIZE, 7)
}

/// Returns the ids of the tensors from the model at `path`.
fn ids_of(path: &std::path::Path) -> Vec<String> {
    tensors_of(&frame(), path, "").into_iter().map(|tensor| tensor.id).collect()
}

#[test]
fn an_output_without_an_id_gets_one_that_no_decoder_knows() {
    if has_onnx_runtime() {
        assert_eq!(ids_of(&file(&two_outputs(DIMS))), ["onnx/same", "onnx/negative"]);
    }
}

#[test]
fn a_metadata_key_with_an_outputs_name_has_the_id() {
    if has_onnx_runtime() {
        let model = two_outputs(DIMS).metadata("negative", "my-boxes");
        assert_eq!(ids_of(&file(&model)), ["onnx/same", "my-boxes"]);
    }
}

#[test]
fn an_id_in_the_modelinfo_file_has_precedence_over_the_metadata() {
    if has_onnx_runtime() {
        let model = two_outputs(DIMS).metadata("same", "a").metadata("negative", "b");
        let info = "[negative]\ndir=output\nid=from-the-file\n";
        assert_eq!(ids_of(&WithInfo::new(&model, info).path), ["a", "from-the-file"]);
    }
}

#[test]
fn exports_of_yolo_have_the_ids_of_their_decoders() {
    if !has_onnx_runtime() {
        return;
    }
    let names = "{0: 'person', 1: 'bicycle'}";
    let outputs: &[(&str, &[i64], &[f32])] = &[("output0", &[1, 6, 2], &[0.5; 12])];
    let model = constants(DIMS, outputs).metadata("names", names);
    assert_eq!(ids_of(&file(&model.clone().metadata("task", "detect"))), ["yolo-v8-out"]);
    assert_eq!(ids_of(&file(&model)), ["onnx/output0"]);
}

#[test]
fn f16_outputs_are_attached_as_f16() {
    if !has_onnx_runtime() {
        return;
    }
    let frame = frame();
    let tensor = tensors_of(&frame, &file(&identity_f16_output(DIMS)), "range=0,255").remove(0);
    let bytes = (0..3).flat_map(|channel| frame.channel(channel));
    assert_eq!(tensor.values, Values::F16(bytes.map(half::f16::from).collect()));
}

#[test]
fn all_outputs_are_attached_in_the_order_of_the_model() {
    if !has_onnx_runtime() {
        return;
    }
    let found = tensors_of(&frame(), &file(&two_outputs(DIMS)), "range=0,255");
    let [same, negative] = found.try_into().expect("two outputs");
    assert_eq!((&*same.id, &*negative.id), ("onnx/same", "onnx/negative"));
    assert_eq!(Picture::from_planes(&same), frame());
    let opposite: Vec<f32> = same.f32().iter().map(|value| -value).collect();
    assert_eq!(negative.f32(), opposite);
}

/// Returns a model with two outputs: its input, and its input cast to `element`.
fn with_cast(element: Element, dims: impl Into<Dims>) -> OnnxModel {
    OnnxModel::new()
        .input("input", Element::F32, DIMS)
        .node(Node::new("Cast", &["input"], &["number"]).int("to", element as i64))
        .node(Node::new("Identity", &["input"], &["scores"]))
        .output("number", element, dims)
        .output("scores", Element::F32, DIMS)
}

#[test]
fn outputs_of_integers_are_attached_with_their_type() {
    if !has_onnx_runtime() {
        return;
    }
    let frame = frame();
    for element in [Element::U8, Element::I8, Element::I32, Element::I64] {
        // The input has half of the range, so that it fits i8.
        let model = file(&with_cast(element, DIMS));
        let found = tensors_of(&frame, &model, "range=0,127.5");
        let [number, scores] = found.try_into().expect("two outputs");
        assert_eq!((&*number.id, &*scores.id), ("onnx/number", "onnx/scores"));
        let expected = scores.f32().iter().map(|&value| value as i64).collect();
        assert_eq!(number.values, Values::Integers(expected), "{element:?}");
    }
}

/// The number of integers depends on the picture, like the indices that an operator for suppression outputs.
#[test]
fn integers_of_varying_dimensions_are_attached() {
    if !has_onnx_runtime() {
        return;
    }
    let model = OnnxModel::new()
        .input("input", Element::F32, DIMS)
        .node(Node::new("NonZero", &["input"], &["indices"]))
        .node(Node::new("Identity", &["input"], &["scores"]))
        .output("indices", Element::I64, "4,?")
        .output("scores", Element::F32, DIMS);
    assert_eq!(ids_of(&file(&model)), ["onnx/indices", "onnx/scores"]);
    // The first dimension is the batch.
    let fixed = with_cast(Element::I64, "batch,3,12,16");
    assert_eq!(ids_of(&file(&fixed)), ["onnx/number", "onnx/scores"]);
}

#[test]
fn an_output_that_cannot_be_attached_causes_a_warning() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&with_cast(Element::F64, DIMS));
    let pipeline = frames::pipeline_of(&frame(), 1, &element::inference(&model, ""));
    let expected = "outputs of the model cannot be attached, so that nmsfilter does not see them: number: a tensor of \
                    f64; if they have boxes, scores or classes, export them as f32";
    let ended = pipeline::run(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, vec![expected.to_owned()]));
}

#[test]
fn dynamic_dimensions_of_an_output_come_from_the_run() {
    if !has_onnx_runtime() {
        return;
    }
    let model = OnnxModel::new()
        .input("input", Element::F32, "batch,3,height,width")
        .node(Node::new("Identity", &["input"], &["output"]))
        .output("output", Element::F32, "batch,3,height,width");
    let properties = "input-width=20 input-height=10";
    let tensor = tensors_of(&frame(), &file(&model), properties).remove(0);
    assert_eq!(tensor.shape, [1, 3, 10, 20]);
}

#[test]
fn tensors_have_the_models_size_letterbox_and_labels() {
    if !has_onnx_runtime() {
        return;
    }
    let description = |model: &OnnxModel, properties: &str| {
        let file = file(model);
        let inference = element::inference(&file, properties);
        let pipeline = frames::pipeline_of(&frame(), 1, &inference);
        let watched = watch(&pipeline, "inference", |buffer| {
            let tensors = Tensors::of(buffer).unwrap();
            ModelInfo::from_caps(tensors.model().expect("the tensors have a model description"))
                .unwrap()
        });
        element::run_pipeline(&pipeline);
        watched.lock().unwrap().remove(0)
    };
    let model = identity([1, 3, 20, 30], Element::F32);
    let expected = ModelInfo {
        size: Some([30, 20]),
        letterbox: Some(Letterbox::Center),
        ..ModelInfo::default()
    };
    assert_eq!(description(&model, ""), expected);
    let model = model.metadata("names", "{0: 'face', 2: 'hand'}");
    let expected = ModelInfo { labels: ["face", "", "hand"].map(Into::into).into(), ..expected };
    assert_eq!(description(&model, ""), expected);
    let model = model.metadata("task", "pose").metadata("end2end", "true");
    let expected = ModelInfo { task: Some("pose".to_owned()), end2end: true, ..expected };
    assert_eq!(description(&model, ""), expected);
    let labels = ScratchFile::new("txt", b"one\ntwo\n");
    let properties = format!("letterbox=none label-file={}", labels.display());
    let expected = ModelInfo {
        labels: ["one", "two"].map(Into::into).into(),
        letterbox: Some(Letterbox::None),
        ..expected
    };
    assert_eq!(description(&model, &properties), expected);
}

/// Returns the region of the window at 160, 200 in a model's input of 640x640, in pixels of the
/// frame. Both elements must agree on where the frame is in the input.
#[test]
fn boxes_are_where_the_model_saw_them() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&constant([1, 3, 640, 640], "windows", &[1, 4], &[160.0, 200.0, 64.0, 0.9]));
    let rect = |frame: &str, letterbox: &str| {
        let inference = element::inference(&model, &format!("letterbox={letterbox}"));
        let pipeline = parse(&format!(
            "videotestsrc num-buffers=1 ! video/x-raw,format=RGB,framerate=30/1,{frame} ! {inference}
               ! nmsfilter name=nms decoder=windows ! fakesink"
        ));
        let seen = watch(&pipeline, "nms", pipeline::regions);
        let ended = pipeline::run(&pipeline);
        assert_eq!((ended.error, ended.warnings), (None, vec![]), "{frame}");
        let regions = seen.lock().unwrap().remove(0);
        regions[0].1
    };
    // All rows are scaled, below 106 rows of border.
    assert_eq!(rect("width=640,height=427", "center"), [160, 94, 64, 64]);
    assert_eq!(rect("width=640,height=427", "top-left"), [160, 200, 64, 64]);
    // The frame is displayed as 640x640, so it has no border.
    let wide = "width=320,height=640,pixel-aspect-ratio=2/1";
    assert_eq!(rect(wide, "center"), [80, 200, 32, 64]);
    assert_eq!(rect(wide, "top-left"), [80, 200, 32, 64]);
    assert_eq!(rect(wide, "none"), [80, 200, 32, 64]);
    // The frame is displayed as 320x640, with 160 columns of border at the left.
    let tall = "width=640,height=640,pixel-aspect-ratio=1/2";
    assert_eq!(rect(tall, "center"), [0, 200, 128, 64]);
    assert_eq!(rect(tall, "none"), [160, 200, 64, 64]);
}

/// Makes a pipeline of `count` frames through an identity model. Each frame has one color, which
/// depends on its number.
fn numbered(count: usize, elements: &str) -> gst::Pipeline {
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers={count}
           ! video/x-raw,format=RGB,width=16,height=12,framerate=30/1 ! {elements}
           ! fakesink name=out enable-last-sample=false"
    ));
    intercept(&pipeline, "in", |buffer| {
        let color = color(buffer.offset());
        frames::write(buffer, &Picture::solid(SIZE, color));
    });
    pipeline
}

fn color(number: u64) -> [u8; 3] {
    [number as u8, (number * 3) as u8, 255 - number as u8]
}

#[test]
fn tensors_of_a_buffer_that_is_held_do_not_change() {
    const HELD: u64 = 20;
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let pipeline = numbered(100, &element::inference(&model, "range=0,255"));
    let held = Arc::new(Mutex::new(Vec::new()));
    let pad = pipeline.by_name("inference").unwrap().static_pad("src").unwrap();
    pad.add_probe(gst::PadProbeType::BUFFER, {
        let held = held.clone();
        move |_, info| {
            let buffer = info.buffer().expect("it is a probe for buffers");
            // One of three buffers is held; the others are released.
            let mut held = held.lock().unwrap();
            if buffer.offset() % 3 == 0 && held.len() < HELD as usize {
                held.push(buffer.clone());
            }
            gst::PadProbeReturn::Ok
        }
    });
    assert_eq!(pipeline::run(&pipeline).error, None);
    let held = held.lock().unwrap();
    for (i, buffer) in held.iter().enumerate() {
        let number = buffer.offset();
        assert_eq!(number, 3 * i as u64);
        let tensor = tensors(buffer).remove(0);
        assert_eq!(Picture::from_planes(&tensor), Picture::solid(SIZE, color(number)));
    }
    // One set for each held buffer, and one for the frame in the pipeline.
    assert_eq!(stat(&pipeline, "output-sets"), HELD + 1);
}

#[test]
fn the_memory_of_a_buffer_that_is_freed_is_used_again() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&two_outputs(DIMS));
    let pipeline = numbered(100, &element::inference(&model, ""));
    let read = watch(&pipeline, "inference", |buffer| tensors(buffer).len());
    assert_eq!(pipeline::run(&pipeline).error, None);
    assert_eq!(*read.lock().unwrap(), [2; 100]);
    assert_eq!(stat(&pipeline, "output-sets"), 1);
}

#[test]
fn a_reader_that_keeps_only_the_tensor_keeps_its_memory() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let pipeline = numbered(10, &element::inference(&model, "range=0,255"));
    // The metadata are copied to a buffer without the frame.
    let copies = watch(&pipeline, "inference", |buffer| {
        let mut copy = gst::Buffer::new();
        let flags = gst::BufferCopyFlags::META;
        buffer.copy_into(copy.get_mut().unwrap(), flags, ..).unwrap();
        copy
    });
    assert_eq!(pipeline::run(&pipeline).error, None);
    for (number, copy) in copies.lock().unwrap().iter().enumerate() {
        let picture = Picture::from_planes(&tensors(copy)[0]);
        assert_eq!(picture, Picture::solid(SIZE, color(number as u64)));
    }
    assert_eq!(stat(&pipeline, "output-sets"), 10);
}

#[test]
fn ten_thousand_frames_need_no_more_memory() {
    if !has_onnx_runtime() {
        return;
    }
    if !alone::is_alone() {
        alone::run::<&str>("outputs::ten_thousand_frames_need_no_more_memory", &[]);
        return;
    }
    let model = file(&two_outputs([1, 3, 24, 32]));
    let inference = element::inference(&model, "provider=cpu");
    let pipeline = numbered(11_000, &format!("{inference} ! queue max-size-buffers=4"));
    let memory = watch(&pipeline, "out", |buffer| {
        // Memory is measured only for some frames, because the measurement reads a file.
        if buffer.offset() % 1000 == 999 { resident() } else { 0 }
    });
    assert_eq!(pipeline::run(&pipeline).error, None);
    assert_eq!(stat(&pipeline, "frames"), 11_000);
    // Sets for the buffers in the queue, for one buffer before it and one after it, and for the
    // next frame.
    let sets = stat(&pipeline, "output-sets");
    assert!(sets <= 7, "{sets}");
    let memory: Vec<u64> = memory.lock().unwrap().iter().copied().filter(|&kib| kib > 0).collect();
    assert_eq!(memory.len(), 11);
    // A leak grows in every interval; glibc may take a megabyte more in one of them.
    let mut grown: Vec<u64> =
        memory.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    grown.sort_unstable();
    // 50 bytes per frame are less than any object that could leak per frame.
    assert!(grown[5] < 50, "grown by {} KiB in 1000 frames: {memory:?}", grown[5]);
}

#[test]
fn the_other_branch_of_a_tee_before_the_element_has_no_tensors() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let inference = element::inference(&model, "");
    let branches = format!(
        "tee name=t t. ! queue ! {inference} ! fakesink
           t. ! queue ! identity name=other"
    );
    let pipeline = numbered(5, &branches);
    let [with, without] = ["inference", "other"].map(|name| watch(&pipeline, name, ids));
    assert_eq!(pipeline::run(&pipeline).error, None);
    assert_eq!(*with.lock().unwrap(), vec![["onnx/output"]; 5]);
    assert_eq!(*without.lock().unwrap(), vec![[""; 0]; 5]);
}

#[test]
fn both_branches_of_a_tee_after_the_element_have_the_tensors() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let inference = element::inference(&model, "range=0,255");
    let branches = format!(
        "{inference} ! tee name=t t. ! queue ! identity name=one ! fakesink
           t. ! queue ! identity name=other"
    );
    let pipeline = numbered(30, &branches);
    let seen = ["one", "other"].map(|name| watch(&pipeline, name, tensors));
    assert_eq!(pipeline::run(&pipeline).error, None);
    for seen in seen {
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 30);
        for (number, tensors) in seen.iter().enumerate() {
            let expected = Picture::solid(SIZE, color(number as u64));
            assert_eq!(Picture::from_planes(&tensors[0]), expected, "frame {number}");
        }
    }
}

#[test]
fn the_tensors_of_two_elements_are_on_the_same_buffer() {
    if !has_onnx_runtime() {
        return;
    }
    let first = file(&identity(DIMS, Element::F32).metadata("output", "first"));
    let second = file(&identity([1, 3, 5, 5], Element::F32).metadata("output", "second"));
    let pipeline = numbered(
        10,
        &format!(
            "ortinference model={} range=0,255 ! queue ! {}",
            first.display(),
            element::inference(&second, "")
        ),
    );
    let seen = watch(&pipeline, "inference", tensors);
    assert_eq!(pipeline::run(&pipeline).error, None);
    for (number, tensors) in seen.lock().unwrap().iter().enumerate() {
        let ids: Vec<&str> = tensors.iter().map(|tensor| &*tensor.id).collect();
        assert_eq!(ids, ["first", "second"]);
        let expected = Picture::solid(SIZE, color(number as u64));
        assert_eq!(Picture::from_planes(&tensors[0]), expected);
    }
}

#[test]
fn two_pipelines_run_at_the_same_time() {
    if !has_onnx_runtime() {
        return;
    }
    let run = |value: f32| {
        let outputs: &[(&str, &[i64], &[f32])] = &[("output", &[1, 2], &[value, 2.0 * value])];
        let model = file(&constants(DIMS, outputs));
        let pipeline = numbered(200, &element::inference(&model, ""));
        let seen = element::run_pipeline(&pipeline);
        assert_eq!(seen.len(), 200);
        assert!(seen.iter().all(|tensors| tensors[0].f32() == [value, 2.0 * value]));
    };
    std::thread::scope(|scope| {
        for value in [1.0, 2.0, 3.0] {
            scope.spawn(move || run(value));
        }
    });
}

/// Each channel has its own weight, so that numbers in the wrong order become visible.
#[test]
fn the_numbers_of_an_output_are_computed_by_the_model() {
    if !has_onnx_runtime() {
        return;
    }
    let weights = Tensor::f32(&[1, 3, 1, 1], &[1.0, 100.0, 10_000.0]);
    let model = OnnxModel::new()
        .input("input", Element::F32, DIMS)
        .initializer("weights", &weights)
        .node(Node::new("Mul", &["input", "weights"], &["output"]))
        .output("output", Element::F32, DIMS);
    let frame = frame();
    let tensor = tensors_of(&frame, &file(&model), "range=0,255").remove(0);
    let expected = [1.0, 100.0, 10_000.0].into_iter().enumerate();
    let expected: Vec<f32> = expected
        .flat_map(|(c, weight)| frame.channel(c).map(move |value| f32::from(value) * weight))
        .collect();
    assert_eq!(tensor.f32(), expected);
}
