// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages that DeepStream's payload generator makes of the objects that the element attaches. The
//! generator needs the structures of 9.1 from NVIDIA's headers, so these tests do nothing in other
//! processes.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use nmsfilter_core::geometry::Letterbox;
use serde_json::{Value, json};

use crate::batch::{Producer, Scene, TestModel};
use crate::nvmsgconv::library::{self, Nvmsgconv};
use crate::object::Object;
use crate::run::{CAPS, description};
use crate::standin::{Batch, Counts};
use crate::support::pipeline::{intercept, parse, run, watch};
use crate::support::scratch::ScratchFile;

/// The messages of a frame: one for each object, and one for all. The newest object is the first.
struct Messages {
    each: Vec<Value>,
    all: Value,
}

/// Runs batches of the scene through `nmsfilter`, and returns the messages of each frame by batch.
/// Returns `None` unless `nvmsgconv` started the process.
fn messages(scene: &Scene, properties: &str) -> Option<Vec<Vec<Messages>>> {
    let nvmsgconv = Nvmsgconv::load(&PathBuf::from(std::env::var_os(library::FOLDER)?));
    let properties = format!("decoder=yolov8 score-threshold=0.25 {properties}");
    let pipeline = parse(&description(2, CAPS, &properties));
    let producer = Producer::new(scene, 6);
    intercept(&pipeline, "in", move |buffer| producer.attach(buffer));
    let seen = watch(&pipeline, "nms", move |buffer| {
        let frames = Batch::find(buffer).expect("the buffer has a batch").frames();
        // SAFETY: the structures are those that the generator was compiled with, and the buffer
        // does not change in this function.
        let messages = frames.map(|frame| unsafe {
            let frame = frame.as_ptr();
            Messages { each: nvmsgconv.messages(frame), all: nvmsgconv.minimal_message(frame) }
        });
        messages.collect()
    });
    let ended = run(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, Vec::new()));
    drop(pipeline);
    Counts::now().assert_nothing_left();
    Some(Arc::try_unwrap(seen).ok().map(Mutex::into_inner).unwrap().unwrap())
}

/// Asserts that the messages have the objects' labels, confidences, and boxes in whole pixels.
fn assert_messages(messages: &Messages, objects: &[Object]) {
    assert_eq!(messages.each.len(), objects.len());
    for (message, object) in messages.each.iter().zip(objects) {
        let [left, top, width, height] = object.rect;
        let bbox = json!({
            "topleftx": left as i64,
            "toplefty": top as i64,
            "bottomrightx": (left + width) as i64,
            "bottomrighty": (top + height) as i64,
        });
        let found = &message["object"];
        assert_eq!(found["bbox"], bbox, "{object:?}");
        assert_eq!(found["id"], u64::MAX.to_string());
        let confidence = found[&object.label]["confidence"].as_f64();
        assert_eq!(confidence.map(|number| number as f32), Some(object.confidence), "{message}");
    }
    let lines = messages.all["objects"].as_array().unwrap();
    assert_eq!(lines.len(), objects.len());
    for (line, object) in lines.iter().zip(objects) {
        let fields: Vec<&str> = line.as_str().unwrap().split('|').collect();
        let [id, edges @ .., label] = &fields[..] else { panic!("{line}") };
        assert_eq!((*id, *label), (&*u64::MAX.to_string(), &*object.label));
        let [left, top, width, height] = object.rect;
        let expected = [left, top, left + width, top + height];
        let edges: Vec<f32> = edges.iter().map(|edge| edge.parse().unwrap()).collect();
        assert_eq!(edges.len(), 4);
        // Numbers in the message have six digits.
        for (edge, expected) in edges.iter().zip(expected) {
            assert!((edge - expected).abs() <= 1e-5 * expected.abs(), "{line}: {object:?}");
        }
    }
}

#[test]
#[ignore = "run by `nvmsgconv` in a process of its own"]
fn messages_have_the_boxes_labels_and_confidences_of_all_frames() {
    let names = ["person", "traffic light", "Stra\u{df}enbahn"];
    let file = ScratchFile::new("txt", names.join("\n").as_bytes());
    for letterbox in [Letterbox::None, Letterbox::Center] {
        let model = TestModel { letterbox, ..TestModel::default() };
        let mut scene = Scene::new(4, 3).with_model(model);
        // config.txt has this source. The muxer scales the frames of all sources.
        scene.frames[1].meta.source_id = 7;
        scene.frames[2].seeds = vec![None];
        let letterbox_property = if letterbox == Letterbox::None { "letterbox=none" } else { "" };
        let properties = format!("label-file={} {letterbox_property}", file.display());
        let Some(batches) = messages(&scene, &properties) else { return };
        assert_eq!(batches.len(), 2);
        for batch in &batches {
            assert_eq!(batch.len(), scene.frames.len());
            let mut count = 0;
            for (index, messages) in batch.iter().enumerate() {
                let mut objects = scene.expected(index, 0, letterbox);
                // The generator reads the frame's list, in which the newest object is the first.
                objects.reverse();
                for object in &mut objects {
                    object.label = names[object.class as usize].to_owned();
                }
                assert_messages(messages, &objects);
                let sensor = if index == 1 { json!("camera-7") } else { json!("0") };
                assert_eq!(messages.all["sensorId"], sensor);
                assert_eq!(messages.all["id"], "7", "the frame's number");
                count += objects.len();
            }
            assert!(count > 30, "{count} objects");
            assert!(batch[2].each.is_empty());
        }
    }
}
