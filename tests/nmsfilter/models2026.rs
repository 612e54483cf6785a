// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded outputs of real models (data/models2026) pass through the element. The frame has the
//! size of the model's input, so the regions must equal the expected survivors, which a NumPy
//! program computed.
//!
//! The ids of the tensors are the names of the model's outputs, and the decoder is set.

use std::path::Path;

use gst_video::VideoRegionOfInterestMeta;
use gstnmsfilter::input::custom_meta::{NewTensor, attach};
use nmsfilter_core::nms::Nms;
use nmsfilter_core::tensor::{ElementType, Quantization};
use serde_json::Value;

use crate::support::data;
use crate::support::pipeline::{Ended, init, intercept, parse, run, watch};
use crate::support::scratch::ScratchFile;

/// The cases: folder, and properties other than the thresholds.
const CASES: [(&str, &str); 34] = [
    ("01_six_yolo26/bus", "decoder=end2end method=none"),
    ("01_six_yolo26/street", "decoder=end2end method=none"),
    ("01_six_yolo26_tflite/bus", "decoder=end2end method=none coordinates=normalized"),
    ("01_six_yolov10/nnstreamer", "decoder=end2end method=none coordinates=normalized"),
    ("02_seg_nhwc_layout/bus", "decoder=yolov8-seg coordinates=normalized"),
    ("02_seg_yolov8/bus", "decoder=yolov8-seg"),
    ("02_seg_yolov8/street", "decoder=yolov8-seg"),
    ("02_seg_yolov8_640/bus", "decoder=yolov8-seg coordinates=normalized"),
    ("03_pose_pixels/bus", "decoder=yolov8-pose"),
    ("03_pose_yolo11_tflite/bus", "decoder=yolov8-pose coordinates=normalized"),
    ("04_obb/nnstreamer", "decoder=yolov8-obb coordinates=normalized"),
    ("05_detr_deimv2/bus", "decoder=detr method=none"),
    ("05_detr_deimv2/bus_postprocessed", "decoder=boxes method=none"),
    ("05_detr_deimv2/street", "decoder=detr method=none"),
    ("05_detr_deimv2/street_postprocessed", "decoder=boxes method=none"),
    ("05_rtdetr_cat_layout/street", "decoder=detr method=none"),
    ("06_yolox/bus", "decoder=yolox-raw"),
    ("06_yolox/street", "decoder=yolox-raw"),
    ("06_yolox_int8/street", "decoder=yolox-raw"),
    ("07_ssd_raw/nnstreamer0", "decoder=ssd"),
    ("07_ssd_tf_postprocess/nnstreamer0", "decoder=ssd-postprocess method=none"),
    ("07_ssd_tflite_postprocess/bus", "decoder=ssd-postprocess method=none"),
    ("08_retinaface/crowd_selfie", "decoder=retinaface"),
    ("08_scrfd/crowd_selfie", "decoder=scrfd"),
    ("08_yunet/crowd_selfie", "decoder=yunet"),
    ("09_quantised_yolov8/bus", "decoder=yolov8 coordinates=normalized"),
    ("09_quantised_yolov8/street", "decoder=yolov8 coordinates=normalized"),
    ("10_efficientnms_layout/street", "decoder=efficientnms method=none"),
    ("10_nanodet/bus", "decoder=nanodet"),
    ("10_picodet/street", "decoder=picodet"),
    ("10_yolonas_layout/street", "decoder=boxes"),
    ("11_six_with_angle_layout/nnstreamer", "decoder=end2end-obb method=none"),
    ("11_six_with_keypoints_layout/bus", "decoder=end2end-pose method=none"),
    ("11_six_with_masks_layout/bus", "decoder=end2end-seg method=none"),
];

/// An end-to-end output with classes that are not whole numbers, because one quantization scale is
/// shared by boxes, scores and classes.
const ONE_SCALE: &str = "01_six_yolo26_int8_negative/bus";

/// Class, score, and edges in pixels.
type Object = (i32, f64, [f64; 4]);

pub(super) struct Case {
    pub(super) tensors: Vec<NewTensor>,
    pub(super) size: [usize; 2],
    /// Properties for the thresholds.
    pub(super) thresholds: String,
    expected: Vec<Object>,
}

impl Case {
    /// Reads a case. If `with_scale` is true, quantized tensors have their scale and zero point.
    pub(super) fn read(folder: &Path, with_scale: bool) -> Self {
        init();
        let text = std::fs::read_to_string(folder.join("case.json")).unwrap();
        let case: Value = serde_json::from_str(&text).unwrap();
        let tensor = |(name, tensor): (&String, &Value)| {
            let element = match tensor["dtype"].as_str().unwrap() {
                "float32" => ElementType::F32,
                "int8" => ElementType::I8,
                "int32" => ElementType::I32,
                "int64" => ElementType::I64,
                other => panic!("{name}: {other}"),
            };
            let bytes = std::fs::read(folder.join(tensor["file"].as_str().unwrap())).unwrap();
            let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
            let shape = numbers(&tensor["shape"]);
            let mut data = gst::Buffer::with_size(bytes.len() - header).unwrap();
            data.get_mut().unwrap().copy_from_slice(0, &bytes[header..]).unwrap();
            let made = NewTensor::new(name, element, &shape, data).unwrap();
            match tensor["scale"].as_f64().filter(|_| with_scale) {
                None => made,
                Some(scale) => {
                    let zero_point = tensor["zero_point"].as_i64().unwrap() as i32;
                    made.with_quantization(Quantization::new(scale as f32, zero_point).unwrap())
                }
            }
        };
        let tensors = case["tensors"].as_object().unwrap().iter().map(tensor).collect();
        let [width, height] = numbers(&case["model_input"])[..] else { panic!("{text}") };
        // In the NumPy program, a score equal to the threshold is too low.
        let score = (case["score_threshold"].as_f64().unwrap() as f32).next_up();
        let iou = case["iou_threshold"].as_f64().unwrap() as f32;
        let thresholds = format!("score-threshold={score} iou-threshold={iou} max-detections=0");
        let survivors = std::fs::read_to_string(folder.join("expected.csv")).unwrap();
        let object = |line: &str| {
            let numbers: Vec<f64> = line.split(',').map(|number| number.parse().unwrap()).collect();
            let [x1, y1, x2, y2, score, class, ..] = numbers[..] else { panic!("{line}") };
            let (width, height) = (width as f64, height as f64);
            let (x1, x2) = (x1.clamp(0.0, width), x2.clamp(0.0, width));
            let (y1, y2) = (y1.clamp(0.0, height), y2.clamp(0.0, height));
            (class as i32, score, [x1, y1, x2, y2])
        };
        let mut expected: Vec<Object> = survivors.lines().skip(1).map(object).collect();
        expected.retain(|(_, _, [x1, y1, x2, y2])| x2 > x1 && y2 > y1);
        Self { tensors, size: [width, height], thresholds, expected }
    }

    /// Returns the regions of one frame, and the messages.
    fn run(self, properties: &str) -> (Vec<Object>, Ended) {
        let [width, height] = self.size;
        let pipeline = parse(&format!(
            "videotestsrc name=in num-buffers=1 ! video/x-raw,format=GRAY8,width={width},height={height}
               ! nmsfilter name=nms backend=cpu {} {properties} ! fakesink",
            self.thresholds
        ));
        let tensors = self.tensors;
        intercept(&pipeline, "in", move |buffer| {
            tensors.iter().for_each(|tensor| attach(buffer, tensor).unwrap());
        });
        let seen = watch(&pipeline, "nms", move |buffer| {
            let object = |meta: gst::MetaRef<'_, VideoRegionOfInterestMeta>| {
                let detection = meta.param("detection").expect("each region has the structure");
                let edge =
                    |name: &str, side: usize| detection.get::<f64>(name).unwrap() * side as f64;
                let edges = [
                    edge("x_min", width),
                    edge("y_min", height),
                    edge("x_max", width),
                    edge("y_max", height),
                ];
                let (class, score) =
                    (detection.get("label_id").unwrap(), detection.get("confidence").unwrap());
                (class, score, edges)
            };
            buffer.iter_meta::<VideoRegionOfInterestMeta>().map(object).collect::<Vec<Object>>()
        });
        let ended = run(&pipeline);
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        (seen.into_iter().next().unwrap_or_default(), ended)
    }
}

fn numbers(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|side| side.as_u64().unwrap() as usize).collect()
}

fn sorted(mut objects: Vec<Object>) -> Vec<Object> {
    objects.sort_by(|a, b| {
        let edges = a.2.partial_cmp(&b.2).expect("edges are numbers");
        b.1.total_cmp(&a.1).then(edges)
    });
    objects
}

/// Describes how the regions differ from the expected survivors. Returns `None` if they are equal.
fn difference(found: Vec<Object>, expected: Vec<Object>) -> Option<String> {
    if found.len() != expected.len() {
        return Some(format!("{} regions, expected {}", found.len(), expected.len()));
    }
    let mut pairs = sorted(found).into_iter().zip(sorted(expected));
    pairs.find_map(|(found, expected)| {
        let edges = found.2.iter().zip(expected.2).all(|(a, b)| (a - b).abs() < 0.02);
        let is_same = found.0 == expected.0 && (found.1 - expected.1).abs() < 1e-4 && edges;
        (!is_same).then(|| format!("{found:?}, expected {expected:?}"))
    })
}

#[test]
fn recorded_outputs_have_the_expected_regions_and_no_warning() {
    let mut differences = Vec::new();
    for (name, properties) in CASES {
        let Some(folder) = data::path(&format!("data/models2026/{name}")) else { return };
        let mut case = Case::read(&folder, true);
        let expected = std::mem::take(&mut case.expected);
        assert!(!expected.is_empty(), "{name}");
        let (found, ended) = case.run(properties);
        if let Some(error) = ended.error {
            differences.push(format!("{name}: {error}"));
            continue;
        }
        differences.extend(difference(found, expected).map(|what| format!("{name}: {what}")));
        if !ended.warnings.is_empty() {
            differences.push(format!("{name}: {:?}", ended.warnings));
        }
    }
    assert_eq!(differences, [""; 0], "{}", differences.join("\n"));
}

#[test]
fn the_scale_of_a_recorded_output_can_be_set_by_the_property() {
    for (name, properties, id) in [
        ("09_quantised_yolov8/street", "decoder=yolov8 coordinates=normalized", "output0"),
        ("06_yolox_int8/street", "decoder=yolox-raw", "output"),
    ] {
        let Some(folder) = data::path(&format!("data/models2026/{name}")) else { return };
        let text = std::fs::read_to_string(folder.join("case.json")).unwrap();
        let tensor = &serde_json::from_str::<Value>(&text).unwrap()["tensors"][id];
        let mut case = Case::read(&folder, false);
        let expected = std::mem::take(&mut case.expected);
        let quantization =
            format!("quantization={id}:{}:{}", tensor["scale"], tensor["zero_point"]);
        let (found, ended) = case.run(&format!("{properties} {quantization}"));
        assert_eq!((ended.error, &ended.warnings[..]), (None, &[][..]), "{name}");
        assert_eq!(difference(found, expected), None, "{name}");
    }
}

#[test]
fn an_output_with_one_scale_for_boxes_scores_and_classes_is_warned_of() {
    let Some(folder) = data::path(&format!("data/models2026/{ONE_SCALE}")) else { return };
    let case = Case::read(&folder, true);
    let (_, ended) = case.run("decoder=end2end method=none coordinates=normalized");
    assert_eq!(ended.error, None);
    let expected = "the scores in tensor output0 (i8 1x300x6) are multiples of its scale 0.30588585, but scores of \
                    decoder end2end are probabilities from 0 to 1";
    let found = ended.warnings.iter().filter(|warning| warning.starts_with(expected)).count();
    assert_eq!(found, 1, "{:?}", ended.warnings);
}

#[test]
fn tensors_without_ids_are_not_read_by_other_decoders_in_silence() {
    let mut found = Vec::new();
    for (case, right) in CASES {
        let Some(folder) = data::path(&format!("data/models2026/{case}")) else { return };
        let right = right.split(' ').next().unwrap().trim_start_matches("decoder=");
        for decoder in Nms::decoders().filter(|&decoder| decoder != right) {
            let mut read = Case::read(&folder, true);
            for (index, tensor) in read.tensors.iter_mut().enumerate() {
                tensor.id = format!("output-{index}");
            }
            let (objects, ended) = read.run(&format!("decoder={decoder}"));
            if ended.error.is_none() && ended.warnings.is_empty() && !objects.is_empty() {
                found.push((case, decoder));
            }
        }
    }
    assert!(found.is_empty(), "{found:?}");
}

/// The exported model has, in one tensor, boxes from 0 to 1 and keypoints in pixels.
#[test]
fn keypoints_of_another_unit_than_the_boxes_are_warned_of_and_can_be_described() {
    let Some(folder) = data::path("data/models2026/03_pose_yolov8_tflite_224/bus") else { return };
    let case = Case::read(&folder, true);
    let (found, ended) = case.run("decoder=yolov8-pose coordinates=normalized");
    assert_eq!((found.len(), ended.error), (3, None));
    let [warning] = &ended.warnings[..] else { panic!("{:?}", ended.warnings) };
    let start = "51 of 51 keypoints are far from their boxes, so they are not keypoints, or have another unit";
    assert!(warning.contains(start), "{warning}");

    let text = "name = pose\n\
                [tensor output]\nshape = 56,N\n\
                [score]\nscores = output 4\n\
                [box]\nbox = output 0\nformat = center\nunit = normalized\n\
                [column keypoints]\nnumbers = output 5\ncount = 51\n\
                kind = points-with-visibility\nunit = pixels\n";
    let file = ScratchFile::new("layout", text.as_bytes());
    let mut case = Case::read(&folder, true);
    let expected = std::mem::take(&mut case.expected);
    let (found, ended) = case.run(&format!("decoder=layout layout-file={}", file.display()));
    assert_eq!((ended.error, ended.warnings), (None, Vec::new()));
    assert_eq!(difference(found, expected), None);
}
