// SPDX-License-Identifier: MIT OR Apache-2.0
//! Regions of other elements, and malformed metadata.

use gst::glib;
use gst_video::VideoRegionOfInterestMeta;
use serde_json::Value;

use super::line_of;
use super::reader::{Detection, Object, read};
use crate::support::pipeline::init;

type Region<'a> = gst::MetaRefMut<'a, VideoRegionOfInterestMeta, gst::meta::Standalone>;

/// Returns the line for a frame with one region, to which `prepare` adds structures.
fn with_region(prepare: impl FnOnce(&mut Region<'_>)) -> String {
    line_of(|buffer| {
        prepare(&mut VideoRegionOfInterestMeta::add(buffer, "face", (64, 48, 320, 240)));
    })
}

/// Returns the only object of a line.
fn only(line: &str) -> Value {
    let frame: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    let [object] = &frame["objects"].as_array().unwrap()[..] else { panic!("{line}") };
    object.clone()
}

/// OpenCV's `facedetect` attaches such regions, which have only a label and a rectangle.
#[test]
fn a_region_without_structures_has_its_rectangle_as_the_box() {
    let line = with_region(|_| {});
    let expected = Object {
        rect: [64, 48, 320, 240],
        region_id: 0,
        parent_id: None,
        track: None,
        roi_type: Some("face".to_owned()),
        detection: Some(Detection {
            bounding_box: [0.1, 0.6, 0.1, 0.6],
            confidence: None,
            label_id: None,
            label: Some("face".to_owned()),
        }),
    };
    assert_eq!(read(&line).objects, [expected]);
}

#[test]
fn regions_of_dl_streamer_have_their_detection_track_and_parent() {
    let line = with_region(|region| {
        region.set_id(12);
        region.set_parent_id(11);
        let detection = gst::Structure::builder("detection")
            .field("x_min", 0.125)
            .field("x_max", 0.5)
            .field("y_min", 0.25)
            .field("y_max", 0.75)
            .field("confidence", 0.875)
            .field("label_id", 3i32)
            .build();
        region.add_param(detection);
        region.add_param(gst::Structure::builder("object_id").field("id", 42i32).build());
        let class = gst::Structure::builder("classification_layer_name:emotion")
            .field("label", "neutral")
            .build();
        region.add_param(class);
    });
    let expected = Object {
        rect: [64, 48, 320, 240],
        region_id: 12,
        parent_id: Some(11),
        track: Some(42),
        roi_type: Some("face".to_owned()),
        detection: Some(Detection {
            bounding_box: [0.125, 0.5, 0.25, 0.75],
            confidence: Some(0.875),
            label_id: Some(3),
            label: Some("face".to_owned()),
        }),
    };
    assert_eq!(read(&line).objects, [expected]);
}

/// Attributes by DL Streamer's gvaclassify and by Python programs have names and types of their own.
#[test]
fn classes_of_other_elements_keep_their_name_and_numbers_of_any_type() {
    let object = only(&with_region(|region| {
        let detection = gst::Structure::builder("detection")
            .field("confidence", 0.5f32)
            .field("label_id", 3u32)
            .field("x_min", 0.25f32)
            .field("x_max", 0.5f32)
            .field("y_min", 0i32)
            .field("y_max", 1u64);
        region.add_param(detection.build());
        let tint = gst::Structure::builder("tint")
            .field("label", "red")
            .field("label_id", 7i64)
            .field("confidence", 0.75f32);
        region.add_param(tint.build());
        let gender = gst::Structure::builder("classification_layer")
            .field("label", "male")
            .field("confidence", 1i32)
            .field("label_id", 1.0)
            .field("attribute_name", "gender");
        region.add_param(gender.build());
        // No classes: a name alone, and a number out of range.
        region.add_param(gst::Structure::builder("note").field("label", "x").build());
        let far = gst::Structure::builder("far").field("label", "x").field("label_id", i64::MAX);
        region.add_param(far.build());
    }));
    let detection = &object["detection"];
    assert_eq!((&detection["confidence"], &detection["label_id"]), (&0.5.into(), &3.into()));
    let edges = ["x_min", "x_max", "y_min", "y_max"].map(|edge| &detection["bounding_box"][edge]);
    assert_eq!(edges, [0.25, 0.5, 0.0, 1.0]);
    assert_eq!(
        object["classification"],
        serde_json::json!([
            {"label": "red", "label_id": 7, "confidence": 0.75, "attribute_name": "tint"},
            {"label": "male", "label_id": 1, "confidence": 1.0, "attribute_name": "gender"},
        ])
    );
}

/// Adds a region whose type is these bytes, as a C program can.
fn add_bytes(buffer: &mut gst::BufferRef, bytes: &[u8]) {
    let text = std::ffi::CString::new(bytes).unwrap();
    // SAFETY: the buffer is writable; GLib copies the text.
    unsafe {
        gst_video::ffi::gst_buffer_add_video_region_of_interest_meta(
            buffer.as_mut_ptr(),
            text.as_ptr(),
            1,
            2,
            3,
            4,
        );
    }
}

#[test]
fn labels_of_any_bytes_are_valid_json() {
    let every: Vec<u8> = (1..=255).collect();
    for (bytes, expected) in [
        (&b"a \"quoted\" \\ label"[..], "a \"quoted\" \\ label"),
        (b"line\nfeed\r\ttab\x01\x1f\x7f", "line\nfeed\r\ttab\x01\x1f\x7f"),
        ("größe \u{2028} \u{1f6b2}".as_bytes(), "größe \u{2028} \u{1f6b2}"),
        (b"caf\xe9 \xff\xfe", "caf\u{fffd} \u{fffd}\u{fffd}"),
        // A surrogate, encoded as three bytes.
        (b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}"),
        (&every, &String::from_utf8_lossy(&every)),
    ] {
        let object = only(&line_of(|buffer| add_bytes(buffer, bytes)));
        assert_eq!(object["roi_type"], expected);
        assert_eq!(object["detection"]["label"], expected);
    }
    let object = only(&line_of(|buffer| add_bytes(buffer, b"")));
    assert_eq!((object.get("roi_type"), object["detection"].get("label")), (None, None));
}

#[test]
fn numbers_that_json_does_not_have_are_null() {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let object = only(&with_region(|region| {
            let mut detection = gst::Structure::builder("detection").build();
            let names = ["x_min", "y_min", "x_max", "y_max", "confidence", "rotation"];
            let sides = ["center-x", "center-y", "width", "height"];
            names.iter().chain(&sides).for_each(|name| detection.set(*name, number));
            region.add_param(detection);
            let points = [1.0f32, number as f32, number as f32, 4.0];
            let points = glib::Bytes::from_owned(bytemuck::cast::<[f32; 4], [u8; 16]>(points));
            let keypoints = gst::Structure::builder("keypoints")
                .field("count", 2i32)
                .field("components", 2i32)
                .field("layout", "points")
                .field("data", points)
                .build();
            region.add_param(keypoints);
            let mut mask = gst::Structure::builder("mask")
                .field("width", 2i32)
                .field("height", 1i32)
                .field("data", glib::Bytes::from_owned([0x40u8]))
                .build();
            ["left", "top", "right", "bottom"].iter().for_each(|edge| mask.set(*edge, number));
            region.add_param(mask);
        }));
        let detection = &object["detection"];
        assert_eq!(detection["confidence"], Value::Null);
        assert!(detection.as_object().unwrap().contains_key("confidence"));
        assert_eq!(detection["bounding_box"]["x_min"], Value::Null);
        assert_eq!(object["rotation"], Value::Null);
        assert!(object["x"].is_i64());
        assert_eq!(object["keypoints"]["points"], serde_json::json!([[1.0, null], [null, 4.0]]));
        assert!(object.get("mask").is_none(), "its place is not known");
    }
}

#[test]
fn structures_that_contradict_themselves_are_not_read() {
    init();
    let keypoints = |count: i32, components: i32, bytes: usize| {
        gst::Structure::builder("keypoints")
            .field("count", count)
            .field("components", components)
            .field("data", glib::Bytes::from_owned(vec![0u8; bytes]))
            .build()
    };
    let mask = |width: i32, height: i32, bytes: usize| {
        let mut mask = gst::Structure::builder("mask")
            .field("width", width)
            .field("height", height)
            .field("data", glib::Bytes::from_owned(vec![0u8; bytes]))
            .build();
        ["left", "top", "right", "bottom"].iter().for_each(|edge| mask.set(*edge, 1.0));
        mask
    };
    for structure in [
        keypoints(2, 2, 15),
        keypoints(2, 4, 32),
        keypoints(2, 0, 0),
        keypoints(-1, 2, 8),
        keypoints(i32::MAX, 3, 8),
        mask(9, 2, 3),
        mask(0, 5, 0),
        mask(-8, 1, 1),
        mask(i32::MAX, i32::MAX, 8),
        gst::Structure::builder("keypoints").field("count", "two").build(),
        gst::Structure::builder("mask").build(),
        gst::Structure::builder("detection").field("confidence", "high").build(),
        gst::Structure::builder("detection").field("rotation", 1.0).build(),
        gst::Structure::builder("object_id").field("id", -3i32).build(),
    ] {
        let shown = structure.to_string();
        let object = only(&with_region(|region| region.add_param(structure)));
        for field in ["keypoints", "mask", "id", "rotation"] {
            assert_eq!(object.get(field), None, "{shown}");
        }
        assert_eq!(object["detection"].get("confidence"), None, "{shown}");
        assert_eq!(object["detection"]["bounding_box"]["x_max"], 0.6, "{shown}");
    }
}

#[test]
fn rectangles_beyond_the_frame_are_clipped_in_the_bounding_box_only() {
    let most = u32::MAX;
    let line = line_of(|buffer| {
        VideoRegionOfInterestMeta::add(buffer, "far", (600, 400, most, most));
    });
    let object = &read(&line).objects[0];
    assert_eq!(object.rect, [600, 400, most.into(), most.into()]);
    let detection = object.detection.as_ref().unwrap();
    assert_eq!(detection.bounding_box, [600.0 / 640.0, 1.0, 400.0 / 480.0, 1.0]);
}
