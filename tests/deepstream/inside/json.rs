// SPDX-License-Identifier: MIT OR Apache-2.0
//! `detectionjson` on batches: `streams` has an entry for each frame, with the objects that the
//! stand-in reads.

use gstnmsfilter::deepstream::layout::{StructureLayout, Version, object};
use nmsfilter_core::geometry::Letterbox;
use serde_json::{Value, json};

use crate::batch::{Producer, Scene};
use crate::libraries::{is_inside, version};
use crate::object::Object;
use crate::run::{CAPS, source};
use crate::standin::{Batch, Counts, Frame, ObjectMeta};
use crate::support::pipeline::{Ended, intercept, parse, run, watch};

/// Returns the lines for `buffers` buffers. `prepare` attaches their batches, and `elements` come
/// before `detectionjson`.
fn lines(
    buffers: usize,
    elements: &str,
    prepare: impl Fn(&mut gst::BufferRef) + Send + Sync + 'static,
) -> (Vec<Value>, Ended) {
    let pipeline = parse(&format!("{} ! {elements} name=json ! fakesink", source(buffers, CAPS)));
    intercept(&pipeline, "in", prepare);
    let lines = watch(&pipeline, "json", |line| {
        let bytes = line.map_readable().unwrap();
        serde_json::from_slice::<Value>(&bytes).expect("a line is JSON")
    });
    let ended = run(&pipeline);
    drop(pipeline);
    Counts::now().assert_nothing_left();
    let lines = std::mem::take(&mut *lines.lock().unwrap());
    (lines, ended)
}

/// Returns the JSON that is expected for an upright object on a frame of this size.
fn expected(index: usize, object: &Object, [width, height]: [u32; 2]) -> Value {
    let [left, top, w, h] = object.rect;
    let normalized = |edge: f32, side: u32| (f64::from(edge) / f64::from(side)).clamp(0.0, 1.0);
    let [x, y, w_pixels, h_pixels] = object.rect.map(|side| side.round() as i64);
    json!({
        "x": x, "y": y, "w": w_pixels, "h": h_pixels,
        "region_id": index,
        "roi_type": object.label,
        "detection": {
            "bounding_box": {
                "x_min": normalized(left, width), "y_min": normalized(top, height),
                "x_max": normalized(left + w, width), "y_max": normalized(top + h, height),
            },
            // A line has the shortest decimal number that gives this single-precision number.
            "confidence": object.confidence.to_string().parse::<f64>().unwrap(),
            "label_id": object.class,
            "label": object.label,
        },
    })
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn each_stream_has_the_objects_of_nmsfilter() {
    if !is_inside() {
        return;
    }
    for frames in [1, 5] {
        let mut scene = Scene::new(frames, 31);
        for (index, frame) in (0..).zip(&mut scene.frames) {
            (frame.meta.source_id, frame.meta.pad_index) = (10 + index, 20 + index);
            frame.meta.pts = 40_000_000 * u64::from(index);
        }
        let producer = Producer::new(&scene, 6);
        let nmsfilter = format!(
            "nmsfilter decoder={} score-threshold={} letterbox=none ! detectionjson",
            scene.models[0].format.decoder(),
            scene.score_threshold
        );
        let (lines, ended) = lines(2, &nmsfilter, move |buffer| producer.attach(buffer));
        assert_eq!((lines.len(), ended.error), (2, None));
        for line in lines {
            assert_eq!(line["resolution"], json!({"width": 96, "height": 64}));
            assert_eq!(line.get("objects"), None);
            let streams = line["streams"].as_array().unwrap();
            assert_eq!(streams.len(), frames);
            for (index, (stream, frame)) in streams.iter().zip(&scene.frames).enumerate() {
                let size @ [width, height] = frame.meta.pipeline;
                let objects = scene.expected(index, 0, Letterbox::None);
                let objects =
                    objects.iter().enumerate().map(|(i, object)| expected(i, object, size));
                let expected = json!({
                    "stream_index": 20 + index, "stream_id": (10 + index).to_string(),
                    "resolution": {"width": width, "height": height},
                    "timestamp": 40_000_000 * index,
                    "rtp": {"sender_ntp_unix_timestamp_ns": 1_771_853_462_174_494_742u64},
                    "objects": objects.collect::<Vec<_>>(),
                });
                assert_eq!(*stream, expected, "stream {index} of {frames}");
            }
        }
    }
}

/// Sets the field of an object at `offset`.
fn set<T>(object: ObjectMeta<'_>, offset: usize, value: T) {
    // SAFETY: the object has a field of this type at the offset.
    unsafe { object.as_ptr().byte_add(offset).cast::<T>().write_unaligned(value) };
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn tracks_parents_angles_and_labels_in_any_encoding_are_read() {
    if !is_inside() {
        return;
    }
    let layout = StructureLayout::for_version(version()).unwrap();
    let (lines, ended) = lines(1, "detectionjson add-empty-results=false", move |buffer| {
        let batch = Batch::attach(buffer, 3);
        let size = [200, 100];
        let frame = Frame { pipeline: size, pts: u64::MAX, ..Frame::default() };
        batch.add_frame(&frame);
        let elsewhere = batch.add_frame(&Frame { batch_id: 2, ..frame });
        let elsewhere = elsewhere.add_object(1, 0, [0.0; 4]);
        let frame = batch.add_frame(&Frame { batch_id: 1, source_id: 4, pad_index: 3, ..frame });
        let car = frame.add_object(1, 2, [20.0, 10.0, 80.0, 40.0]);
        set(car, layout.object_label.offset, *b"caf\xe9 \"car\"\n\0");
        set(car, object::CONFIDENCE.offset, f32::NAN);
        set(car, object::ID.offset, 77u64);
        if let Some(angle) = layout.rotation_angle {
            set(car, object::RECT.offset + angle.offset, 90.0f32);
        }
        let plate = frame.add_object(2, -1, [30.4, 40.6, f32::INFINITY, 5.0]);
        set(plate, object::PARENT.offset, car.as_ptr().cast_const());
        set(plate, layout.object_label.offset, [b'x'; 128]);
        let other = frame.add_object(1, 0, [f32::NAN; 4]);
        // The parent is an object of another frame.
        set(other, object::PARENT.offset, elsewhere.as_ptr().cast_const());
    });
    assert_eq!(ended.error, None);
    let [line] = &lines[..] else { panic!("{lines:?}") };
    // The first frame has no objects.
    let [_, stream] = &line["streams"].as_array().unwrap()[..] else { panic!("{line}") };
    assert_eq!([&stream["stream_index"], &stream["stream_id"]], [&json!(3), &json!("4")]);
    assert_eq!((stream.get("timestamp"), stream.get("rtp")), (None, None));
    let [car, plate, other] = &stream["objects"].as_array().unwrap()[..] else { panic!("{line}") };
    assert_eq!(car["roi_type"], "caf\u{fffd} \"car\"\n");
    assert_eq!((&car["id"], &car["region_id"]), (&json!(77), &json!(0)));
    assert_eq!(car["detection"]["confidence"], Value::Null);
    assert_eq!([&car["x"], &car["y"], &car["w"], &car["h"]], [20, 10, 80, 40]);
    let [x_min, y_max] = ["x_min", "y_max"].map(|edge| &car["detection"]["bounding_box"][edge]);
    if version() >= Version::new(9, 0) {
        let angle = car["rotation"].as_f64().unwrap();
        assert!((angle - std::f64::consts::FRAC_PI_2).abs() < 1e-6);
        // The box is rotated about its center, (60, 30).
        assert!((x_min.as_f64().unwrap() - 0.2).abs() < 1e-6);
        assert!((y_max.as_f64().unwrap() - 0.7).abs() < 1e-6);
    } else {
        assert_eq!((car.get("rotation"), x_min, y_max), (None, &json!(0.1), &json!(0.5)));
    }
    assert_eq!((&plate["parent_id"], plate.get("id")), (&json!(0), None));
    assert_eq!((&plate["detection"]["label_id"], &plate["x"]), (&json!(-1), &json!(30)));
    assert_eq!(plate["detection"]["bounding_box"]["x_max"], 1.0);
    assert_eq!(plate["roi_type"].as_str().map(str::len), Some(128));
    assert_eq!((other.get("parent_id"), other.get("roi_type")), (None, None));
    assert_eq!(other["detection"]["bounding_box"]["x_min"], Value::Null);
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn a_batch_without_objects_has_a_line_unless_it_is_to_have_none() {
    if !is_inside() {
        return;
    }
    let empty = |buffer: &mut gst::BufferRef| {
        Batch::attach(buffer, 1).add_frame(&Frame { pipeline: [8, 6], ..Frame::default() });
    };
    let (all, _) = lines(2, "detectionjson", empty);
    assert_eq!(all.len(), 2);
    assert_eq!(all[0]["streams"][0]["objects"], json!([]));
    let (found_only, ended) = lines(2, "detectionjson add-empty-results=false", empty);
    assert_eq!((found_only.len(), ended.error), (0, None));
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn masks_cover_the_rectangles_of_their_objects() {
    if !is_inside() {
        return;
    }
    let layout = StructureLayout::for_version(version()).unwrap();
    for (bytes, runs) in [(24, Some(json!([1, 2, 1, 2]))), (20, None)] {
        let (lines, ended) = lines(1, "detectionjson", move |buffer| {
            use gstnmsfilter::deepstream::layout::mask;

            let frame = Frame { pipeline: [200, 100], ..Frame::default() };
            let object = Batch::attach(buffer, 1).add_frame(&frame).add_object(
                1,
                2,
                [20.0, 10.0, 60.0, 40.0],
            );
            // SAFETY: the array has six elements; DeepStream frees it.
            let numbers = unsafe { gst::glib::ffi::g_malloc(24).cast::<f32>() };
            for (index, number) in [0.5, 0.6, 0.7, f32::NAN, 1.0, f32::INFINITY].iter().enumerate()
            {
                // SAFETY: `index` is less than six.
                unsafe { numbers.add(index).write(*number) };
            }
            let at = layout.object_mask.offset;
            set(object, at + mask::DATA.offset, numbers);
            set(object, at + mask::SIZE.offset, bytes as u32);
            set(object, at + mask::THRESHOLD.offset, 0.5f32);
            set(object, at + mask::WIDTH.offset, 3u32);
            set(object, at + mask::HEIGHT.offset, 2u32);
        });
        assert_eq!(ended.error, None);
        let object = &lines[0]["streams"][0]["objects"][0];
        let expected = runs.map(|runs| {
            json!({
                "x": 20.0, "y": 10.0, "w": 60.0, "h": 40.0, "width": 3, "height": 2, "runs": runs
            })
        });
        assert_eq!(object.get("mask"), expected.as_ref(), "{bytes} bytes");
    }
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn damaged_metadata_is_an_error() {
    if !is_inside() {
        return;
    }
    let (lines, ended) = lines(1, "detectionjson", |buffer| {
        let batch = Batch::attach(buffer, 1);
        batch.add_frame(&Frame::default());
        batch.set_frame_count(7);
    });
    assert!(lines.is_empty());
    let error = ended.error();
    assert!(error.contains("num_frames_in_batch=7, but its list has 1 frames"), "{error}");
}
