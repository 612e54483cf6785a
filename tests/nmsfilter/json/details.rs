// SPDX-License-Identifier: MIT OR Apache-2.0
//! Angles, keypoints and masks of recorded outputs: each line is compared with the structures of
//! its regions.

use gst::glib;
use gst_video::VideoRegionOfInterestMeta;
use gstnmsfilter::input::custom_meta::attach;
use serde_json::Value;

use super::super::details::{Structures, recorded, structure};
use super::text;
use crate::support::pipeline::{intercept, parse, run, watch};

/// Runs a frame of this size with a recorded output. Returns the structures of each region, and the
/// region's object in the line.
fn objects(name: &str, properties: &str, size: [usize; 2]) -> Option<Vec<(Structures, Value)>> {
    let recorded = recorded(name, properties)?;
    let [width, height] = size;
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=1 ! video/x-raw,format=GRAY8,width={width},height={height}
           ! nmsfilter name=nms {} ! detectionjson name=json ! fakesink",
        recorded.properties
    ));
    let tensors = recorded.tensors;
    intercept(&pipeline, "in", move |buffer| {
        tensors.iter().for_each(|tensor| attach(buffer, tensor).unwrap());
    });
    let regions = watch(&pipeline, "nms", |buffer| {
        let regions = buffer.iter_meta::<VideoRegionOfInterestMeta>();
        let structures = |region: gst::MetaRef<'_, VideoRegionOfInterestMeta>| {
            region.params().map(|structure| structure.to_owned()).collect::<Structures>()
        };
        regions.map(structures).collect::<Vec<_>>()
    });
    let lines = watch(&pipeline, "json", text);
    assert_eq!(run(&pipeline).error, None, "{name}");
    let line: Value = serde_json::from_str(&lines.lock().unwrap()[0]).unwrap();
    let regions = regions.lock().unwrap().remove(0);
    let objects = line["objects"].as_array().unwrap().clone();
    assert!(!regions.is_empty() && regions.len() == objects.len(), "{name}: {line}");
    Some(regions.into_iter().zip(objects).collect())
}

#[test]
fn keypoints_equal_the_structure() {
    for (name, properties, components) in [
        ("03_pose_pixels/bus", "decoder=yolov8-pose", 3),
        ("08_yunet/crowd_selfie", "decoder=yunet letterbox=top-left", 2),
    ] {
        let Some(objects) = objects(name, properties, [810, 1080]) else { return };
        for (structures, object) in objects {
            let keypoints = structure(&structures, "keypoints");
            assert_eq!(object["keypoints"]["layout"], keypoints.get::<&str>("layout").unwrap());
            let data: glib::Bytes = keypoints.get("data").unwrap();
            let numbers = data.chunks(4).map(|bytes| f32::from_ne_bytes(bytes.try_into().unwrap()));
            let points = object["keypoints"]["points"].as_array().unwrap();
            let found = points.iter().flat_map(|point| {
                let point = point.as_array().unwrap();
                assert_eq!(point.len(), components);
                point.iter().map(|number| number.as_f64().unwrap() as f32)
            });
            assert!(found.eq(numbers), "{name}: {object}");
        }
    }
}

#[test]
fn an_oriented_box_has_its_angle_and_the_rectangle_before_it_is_rotated() {
    let properties = "decoder=yolov8-obb coordinates=normalized";
    let Some(objects) = objects("04_obb/nnstreamer", properties, [1280, 1280]) else { return };
    for (structures, object) in objects {
        let detection = structure(&structures, "detection");
        let number = |name: &str| detection.get::<f64>(name).unwrap();
        let angle = number("rotation").rem_euclid(std::f64::consts::TAU);
        assert!((object["rotation"].as_f64().unwrap() - angle).abs() < 1e-6);
        let side = |name: &str| object[name].as_f64().unwrap();
        for (low, length, center, expected) in
            [("x", "w", "center-x", "width"), ("y", "h", "center-y", "height")]
        {
            assert!((side(length) - number(expected)).abs() <= 0.5, "{object}");
            assert!((side(low) + side(length) / 2.0 - number(center)).abs() <= 0.75, "{object}");
        }
        for edge in ["x_min", "y_min", "x_max", "y_max"] {
            assert_eq!(object["detection"]["bounding_box"][edge], number(edge));
        }
    }
}

#[test]
fn the_runs_of_a_mask_restore_its_bits() {
    for (name, properties) in [
        ("02_seg_yolov8/bus", "decoder=yolov8-seg"),
        ("02_seg_yolov8/bus", "decoder=yolov8-seg mask-size=frame"),
    ] {
        let Some(objects) = objects(name, properties, [320, 320]) else { return };
        for (structures, object) in objects {
            let mask = structure(&structures, "mask");
            let side = |name: &str| mask.get::<i32>(name).unwrap() as usize;
            let (width, height) = (side("width"), side("height"));
            let found = &object["mask"];
            assert_eq!([&found["width"], &found["height"]], [width, height]);
            let edge = |name: &str| mask.get::<f64>(name).unwrap();
            assert_eq!([&found["x"], &found["y"]], [edge("left"), edge("top")]);
            assert_eq!(found["w"], edge("right") - edge("left"));
            assert_eq!(found["h"], edge("bottom") - edge("top"));

            let runs = found["runs"].as_array().unwrap().iter();
            let pixels: Vec<bool> = runs
                .enumerate()
                .flat_map(|(index, run)| {
                    std::iter::repeat_n(index % 2 == 1, run.as_u64().unwrap() as usize)
                })
                .collect();
            assert_eq!(pixels.len(), width * height);
            let data: glib::Bytes = mask.get("data").unwrap();
            let stride = width.div_ceil(8);
            for (row, pixels) in pixels.chunks(width).enumerate() {
                for (column, &is_set) in pixels.iter().enumerate() {
                    let byte = data[row * stride + column / 8];
                    assert_eq!(byte >> (7 - column % 8) & 1 == 1, is_set, "{row}, {column}");
                }
            }
        }
    }
}
