// SPDX-License-Identifier: MIT OR Apache-2.0
//! Details of regions beyond their boxes: the structures `keypoints` and `mask`, and the angles in
//! `detection`, as readers of the metadata find them. Recorded outputs (data/models2026) are
//! compared with a NumPy program's results. The frame is letterboxed, and is larger or smaller than
//! the model's input.

use std::collections::HashMap;

use gst::glib;
use gst_video::VideoRegionOfInterestMeta;
use gstnmsfilter::input::custom_meta::{NewTensor, attach};
use gstnmsfilter::input::model::ModelInfo;
use gstnmsfilter::output::KeypointLayout;

use super::models2026::Case;
use crate::support::data;
use crate::support::pipeline::{init, intercept, parse, run, watch};

/// The structures of a region.
pub type Structures = Vec<gst::Structure>;

/// Returns the structure with this name; panics if it is missing.
pub fn structure<'s>(structures: &'s Structures, name: &str) -> &'s gst::Structure {
    structures.iter().find(|structure| structure.name() == name).expect("the region has it")
}

/// Returns the structures of each region of one frame of this size.
pub fn regions(size: [usize; 2], properties: &str, tensors: Vec<NewTensor>) -> Vec<Structures> {
    init();
    let [width, height] = size;
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=1 ! video/x-raw,format=GRAY8,width={width},height={height}
           ! nmsfilter name=nms {properties} ! roioverlay labels=always ! fakesink"
    ));
    intercept(&pipeline, "in", move |buffer| {
        tensors.iter().for_each(|tensor| attach(buffer, tensor).unwrap());
    });
    let seen = watch(&pipeline, "nms", |buffer| {
        let regions = buffer.iter_meta::<VideoRegionOfInterestMeta>();
        let owned = |meta: gst::MetaRef<'_, VideoRegionOfInterestMeta>| {
            meta.params().map(|structure| structure.to_owned()).collect()
        };
        regions.map(owned).collect::<Vec<Structures>>()
    });
    assert_eq!(run(&pipeline).error, None, "{properties}");
    seen.lock().unwrap().remove(0)
}

/// A recorded output: its tensors, the properties for it, and the expected survivors, each as a map
/// from column names to numbers.
pub struct Recorded {
    pub tensors: Vec<NewTensor>,
    pub properties: String,
    pub expected: Vec<HashMap<String, f64>>,
}

/// Reads the recording in this folder. Returns `None` if the data is missing.
pub fn recorded(name: &str, properties: &str) -> Option<Recorded> {
    let folder = data::path(&format!("data/models2026/{name}"))?;
    let case = Case::read(&folder, true);
    let [width, height] = case.size;
    let properties =
        format!("{} model-width={width} model-height={height} {properties}", case.thresholds);
    let text = std::fs::read_to_string(folder.join("expected.csv")).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let expected = lines.map(|line| {
        let numbers = line.split(',').map(|number| number.parse().unwrap());
        names.iter().map(|name| (*name).to_owned()).zip(numbers).collect()
    });
    Some(Recorded { tensors: case.tensors, properties, expected: expected.collect() })
}

/// Returns the numbers in the field `data` of `keypoints`.
fn points(keypoints: &gst::Structure) -> Vec<Vec<f64>> {
    let components: i32 = keypoints.get("components").unwrap();
    let data: glib::Bytes = keypoints.get("data").unwrap();
    let numbers: Vec<f64> = data
        .chunks(4)
        .map(|bytes| f64::from(f32::from_ne_bytes(bytes.try_into().unwrap())))
        .collect();
    let points: Vec<_> = numbers.chunks(components as usize).map(<[f64]>::to_vec).collect();
    assert_eq!(points.len() as i32, keypoints.get::<i32>("count").unwrap());
    points
}

/// Returns the greatest distance of a coordinate from the expected one, which `to_frame` maps to
/// the frame.
fn greatest_error(
    found: &[Structures],
    expected: &[HashMap<String, f64>],
    components: usize,
    to_frame: impl Fn(f64, f64) -> [f64; 2],
) -> f64 {
    assert_eq!(found.len(), expected.len());
    let mut greatest = 0.0f64;
    for (structures, expected) in found.iter().zip(expected) {
        let confidence: f64 = structure(structures, "detection").get("confidence").unwrap();
        assert!((confidence - expected["score"]).abs() < 1e-4);
        for (index, point) in points(structure(structures, "keypoints")).iter().enumerate() {
            assert_eq!(point.len(), components);
            let expected_number = |name: &str| expected[&format!("k{index}{name}")];
            let [x, y] = to_frame(expected_number("x"), expected_number("y"));
            greatest = greatest.max((point[0] - x).abs()).max((point[1] - y).abs());
            if components == 3 {
                assert!((point[2] - expected_number("v")).abs() < 1e-4);
            }
        }
    }
    greatest
}

#[test]
fn keypoints_of_people_are_within_a_twentieth_of_a_pixel() {
    let cases = [
        ("03_pose_pixels/bus", "decoder=yolov8-pose"),
        ("03_pose_yolo11_tflite/bus", "decoder=yolov8-pose coordinates=normalized"),
        ("11_six_with_keypoints_layout/bus", "decoder=end2end-pose method=none"),
    ];
    for (name, properties) in cases {
        let properties = format!("{properties} letterbox=center");
        let Some(recorded) = recorded(name, &properties) else { return };
        // The model saw 480 of its 640 columns, between borders of 80 columns.
        let found = regions([810, 1080], &recorded.properties, recorded.tensors);
        let scale = 640.0 / 1080.0;
        let to_frame = |x: f64, y: f64| [(x - 80.0) / scale, y / scale];
        let error = greatest_error(&found, &recorded.expected, 3, to_frame);
        assert!(error < 0.05, "{name}: {error} pixels");
        for structures in &found {
            let keypoints = structure(structures, "keypoints");
            assert_eq!(keypoints.get::<i32>("count"), Ok(17), "{name}");
            assert_eq!(keypoints.get::<&str>("layout"), Ok("coco-17"), "{name}");
        }
    }
}

/// Seventeen points are a person's by the label, unless the model's description or the property says what they are.
#[test]
fn the_layout_of_keypoints_follows_from_the_property_the_model_or_the_label() {
    let output = |classes: usize, id: &str| {
        let mut numbers = vec![0.0; (4 + classes + 51) * 60];
        let point = [300.0, 310.0, 0.9].repeat(17);
        let mut scores = vec![0.0; classes];
        scores[0] = 0.9;
        let anchor = [&[320.0, 320.0, 200.0, 200.0], &scores[..], &point].concat();
        for (row, number) in anchor.into_iter().enumerate() {
            numbers[row * 60] = number;
        }
        NewTensor::from_vec(id, &[1, 4 + classes + 51, 60], numbers).unwrap()
    };
    let info = || ModelInfo { keypoints: Some([17, 3]), ..ModelInfo::default() };
    let labeled = |label: &str| ModelInfo { labels: [label].map(Into::into).into(), ..info() };
    use KeypointLayout::{Coco17, Face5, Points};
    for (properties, info, classes, expected) in [
        // Without a label, the only class is a person.
        ("", info(), 1, "coco-17"),
        ("num-classes=2", info(), 2, "points"),
        ("", labeled("person"), 1, "coco-17"),
        ("", labeled("Pedestrian"), 1, "coco-17"),
        ("", labeled("dog"), 1, "points"),
        (
            "",
            ModelInfo { labels: ["person", "dog"].map(Into::into).into(), ..info() },
            2,
            "coco-17",
        ),
        ("", ModelInfo { keypoint_layout: Some(Coco17), ..labeled("dog") }, 1, "coco-17"),
        ("", ModelInfo { keypoint_layout: Some(Points), ..labeled("person") }, 1, "points"),
        ("", ModelInfo { keypoint_layout: Some(Face5), ..labeled("person") }, 1, "points"),
        ("keypoint-layout=coco-17", labeled("dog"), 1, "coco-17"),
        ("keypoint-layout=points", labeled("person"), 1, "points"),
        (
            "keypoint-layout=points",
            ModelInfo { keypoint_layout: Some(Coco17), ..labeled("person") },
            1,
            "points",
        ),
    ] {
        init();
        let context = format!("{properties} {info:?}");
        let tensor = output(classes, "out").with_model(info.to_caps().unwrap());
        let properties = format!("decoder=yolov8-pose {properties}");
        let found = regions([640, 640], &properties, vec![tensor]);
        assert_eq!(found.len(), 1, "{context}");
        let keypoints = structure(&found[0], "keypoints");
        assert_eq!(keypoints.get::<&str>("layout"), Ok(expected), "{context}");
    }
}

#[test]
fn landmarks_of_faces_are_within_a_twentieth_of_a_pixel() {
    for (name, decoder) in [
        ("08_yunet/crowd_selfie", "yunet"),
        ("08_scrfd/crowd_selfie", "scrfd"),
        ("08_retinaface/crowd_selfie", "retinaface"),
    ] {
        let properties = format!("decoder={decoder} letterbox=top-left");
        let Some(recorded) = recorded(name, &properties) else { return };
        let found = regions([1600, 898], &recorded.properties, recorded.tensors);
        // Columns are scaled from 1600 to 640. For the height, an even number of frame pixels is
        // used.
        let to_frame = |x: f64, y: f64| [x / 0.4, y * 898.0 / 359.0];
        let error = greatest_error(&found, &recorded.expected, 2, to_frame);
        assert!(error < 0.05, "{name}: {error} pixels");
        for structures in &found {
            let keypoints = structure(structures, "keypoints");
            assert_eq!(keypoints.get::<&str>("layout"), Ok("face-5"), "{name}");
        }
    }
}

#[test]
fn oriented_boxes_have_their_center_sides_and_angle() {
    let properties = "decoder=yolov8-obb coordinates=normalized";
    let Some(recorded) = recorded("04_obb/nnstreamer", properties) else { return };
    // One pixel of the model's input is two pixels of the frame.
    let found = regions([1280, 1280], &recorded.properties, recorded.tensors);
    assert_eq!(found.len(), recorded.expected.len());
    for (structures, expected) in found.iter().zip(&recorded.expected) {
        let detection = structure(structures, "detection");
        let number = |name: &str| detection.get::<f64>(name).unwrap();
        for (name, expected) in [
            ("center-x", expected["cx"] * 2.0),
            ("center-y", expected["cy"] * 2.0),
            ("width", expected["w"] * 2.0),
            ("height", expected["h"] * 2.0),
        ] {
            let found = number(name);
            assert!((found - expected).abs() < 0.05, "{name}: {found}, expected {expected}");
        }
        assert!((number("rotation") - expected["angle"]).abs() < 1e-5);
        // The region is the bounds of the box, clipped to the frame.
        let bounds = ["x1", "y1", "x2", "y2"].map(|edge| (expected[edge] / 640.0).clamp(0.0, 1.0));
        let edges = ["x_min", "y_min", "x_max", "y_max"].map(number);
        let is_near = edges.iter().zip(bounds).all(|(a, b)| (a - b).abs() < 1e-4);
        assert!(is_near, "{edges:?}, expected {bounds:?}");
        assert!(structures.len() == 1, "no keypoints and no mask: {structures:?}");
    }
}

#[test]
fn masks_have_as_many_pixels_as_expected_and_cover_their_boxes() {
    for (name, properties) in [
        ("02_seg_yolov8/bus", "decoder=yolov8-seg"),
        ("02_seg_yolov8/street", "decoder=yolov8-seg"),
        ("11_six_with_masks_layout/bus", "decoder=end2end-seg method=none"),
    ] {
        let Some(recorded) = recorded(name, properties) else { return };
        let found = regions([320, 320], &recorded.properties, recorded.tensors);
        assert_eq!(found.len(), recorded.expected.len(), "{name}");
        for (structures, expected) in found.iter().zip(&recorded.expected) {
            let mask = structure(structures, "mask");
            let side = |name: &str| mask.get::<i32>(name).unwrap() as usize;
            let data: glib::Bytes = mask.get("data").unwrap();
            assert_eq!(data.len(), side("width").div_ceil(8) * side("height"), "{name}");
            let set: u32 = data.iter().map(|byte| byte.count_ones()).sum();
            assert_eq!(f64::from(set), expected["mask_area"], "{name}");
            // One pixel of the mask is four pixels of the frame.
            let edge = |name: &str| mask.get::<f64>(name).unwrap();
            for (low, high, sides, edges) in [
                ("left", "right", "width", ["x1", "x2"]),
                ("top", "bottom", "height", ["y1", "y2"]),
            ] {
                let [from, to] = edges.map(|edge| expected[edge].clamp(0.0, 320.0));
                assert!((edge(high) - edge(low) - 4.0 * side(sides) as f64).abs() < 1e-3);
                assert!((edge(low) - from).abs() < 4.0 && (edge(high) - to).abs() < 4.0, "{name}");
            }
        }
    }
}

/// Returns an output of yolov8-pose with a single detection, as columns: box, score, points.
fn pose(detection: &[f32]) -> NewTensor {
    init();
    // The model has more anchors than numbers per anchor.
    const ANCHORS: usize = 64;
    let elements = detection.iter().flat_map(|&number| {
        let others = std::iter::repeat_n(0.0, ANCHORS - 1);
        std::iter::once(number).chain(others)
    });
    let elements: Vec<f32> = elements.collect();
    NewTensor::from_vec("output0", &[1, detection.len(), ANCHORS], elements).unwrap()
}

#[test]
fn points_that_are_not_numbers_or_outside_the_frame_are_passed_on() {
    let strange = [
        [f32::NAN, 90.0, 0.9],
        [100.0, f32::INFINITY, 0.9],
        [f32::NEG_INFINITY, f32::NAN, 0.9],
        [-5000.0, 90.0, 0.9],
        [3e38, -3e38, 0.9],
        [100.0, 90.0, f32::NAN],
        [100.0, 90.0, -7.0],
    ];
    let mut detection = vec![100.0, 100.0, 80.0, 150.0, 0.9];
    for index in 0..17 {
        detection.extend(strange.get(index).unwrap_or(&[100.0, 90.0, 0.9]));
    }
    let found = regions([640, 480], "decoder=yolov8-pose", vec![pose(&detection)]);
    assert_eq!(found.len(), 1);
    let points = points(structure(&found[0], "keypoints"));
    for (point, strange) in points.iter().zip(strange) {
        for (found, expected) in point.iter().zip(strange) {
            assert!(
                found.to_bits() == f64::from(expected).to_bits()
                    || expected.is_nan() && found.is_nan(),
                "{point:?}, expected {strange:?}"
            );
        }
    }
    assert_eq!(points[7], [100.0, 90.0, f64::from(0.9f32)]);
}

#[test]
fn points_of_models_that_are_not_of_people_or_faces_have_no_layout() {
    // Two points without a visibility.
    let detection = [100.0, 100.0, 80.0, 150.0, 0.9, 90.0, 95.0, 110.0, 105.0];
    let settings = "decoder=yolov8-pose keypoint-shape=2x2";
    let found = regions([640, 480], settings, vec![pose(&detection)]);
    let keypoints = structure(&found[0], "keypoints");
    assert_eq!(keypoints.get::<&str>("layout"), Ok("points"));
    assert_eq!(points(keypoints), [[90.0, 95.0], [110.0, 105.0]]);
}
