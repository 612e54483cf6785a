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
use serde_json::Value;

use crate::support::data;
use crate::support::pipeline::{Ended, init, intercept, parse, run, watch};
use crate::support::recorded::{CASES, ONE_SCALE, RecordedOutput, RecordedTensor, rows};
use crate::support::scratch::ScratchFile;

/// The exported model has, in one tensor, boxes from 0 to 1 and keypoints in pixels.
const OTHER_UNIT: &str = "03_pose_yolov8_tflite_224/bus";

/// Returns folder and decoder of the cases that are read without a warning.
fn cases() -> impl Iterator<Item = (&'static str, &'static str)> {
    CASES.iter().map(|&(name, decoder, _)| (name, decoder)).filter(|(name, _)| *name != OTHER_UNIT)
}

/// Class, score, and edges in pixels.
type Object = (i32, f64, [f64; 4]);

pub(super) struct Case {
    pub(super) tensors: Vec<NewTensor>,
    pub(super) size: [usize; 2],
    /// Properties for the thresholds.
    pub(super) thresholds: String,
    /// Properties for the method and the coordinates.
    properties: String,
    expected: Vec<Object>,
}

impl Case {
    /// Reads a case. If `with_scale` is true, quantized tensors have their scale and zero point.
    pub(super) fn read(folder: &Path, with_scale: bool) -> Self {
        init();
        let recorded = RecordedOutput::read(folder);
        let tensor = |tensor: &RecordedTensor| {
            let mut data = gst::Buffer::with_size(tensor.bytes().len()).unwrap();
            data.get_mut().unwrap().copy_from_slice(0, tensor.bytes()).unwrap();
            let made = NewTensor::new(&tensor.name, tensor.element, &tensor.shape, data).unwrap();
            match tensor.quantization.filter(|_| with_scale) {
                None => made,
                Some(quantization) => made.with_quantization(quantization),
            }
        };
        let RecordedOutput { score_threshold, iou_threshold, model: [width, height], .. } =
            recorded;
        let thresholds = format!(
            "score-threshold={score_threshold} iou-threshold={iou_threshold} max-detections=0"
        );
        let method = if recorded.needs_suppression { "" } else { " method=none" };
        let coordinates = if recorded.is_normalized { " coordinates=normalized" } else { "" };
        let object = |row: Vec<f32>| {
            let numbers: Vec<f64> = row.into_iter().map(f64::from).collect();
            let [x1, y1, x2, y2, score, class, ..] = numbers[..] else { panic!("{numbers:?}") };
            let (width, height) = (width as f64, height as f64);
            let (x1, x2) = (x1.clamp(0.0, width), x2.clamp(0.0, width));
            let (y1, y2) = (y1.clamp(0.0, height), y2.clamp(0.0, height));
            (class as i32, score, [x1, y1, x2, y2])
        };
        let mut expected: Vec<Object> =
            rows(&folder.join("expected.csv")).into_iter().map(object).collect();
        expected.retain(|(_, _, [x1, y1, x2, y2])| x2 > x1 && y2 > y1);
        Self {
            tensors: recorded.tensors.iter().map(tensor).collect(),
            size: [width, height],
            thresholds,
            properties: format!("{method}{coordinates}"),
            expected,
        }
    }

    /// Returns the regions of one frame, and the messages.
    pub(super) fn run(self, properties: &str) -> (Vec<Object>, Ended) {
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
    for (name, decoder) in cases() {
        let Some(folder) = data::path(&format!("data/models2026/{name}")) else { return };
        let mut case = Case::read(&folder, true);
        let expected = std::mem::take(&mut case.expected);
        assert!(!expected.is_empty(), "{name}");
        let properties = format!("decoder={decoder}{}", case.properties);
        let (found, ended) = case.run(&properties);
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
    for (case, right) in cases() {
        let Some(folder) = data::path(&format!("data/models2026/{case}")) else { return };
        for decoder in Nms::decoders().filter(|&decoder| decoder != right) {
            let mut read = Case::read(&folder, true);
            let expected = std::mem::take(&mut read.expected);
            for (index, tensor) in read.tensors.iter_mut().enumerate() {
                tensor.id = format!("output-{index}");
            }
            let (objects, ended) = read.run(&format!("decoder={decoder}"));
            let is_silent = ended.error.is_none() && ended.warnings.is_empty();
            // NanoDet and PicoDet have an equal formula.
            if is_silent && !objects.is_empty() && difference(objects, expected).is_some() {
                found.push((case, decoder));
            }
        }
    }
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn keypoints_of_another_unit_than_the_boxes_are_warned_of_and_can_be_described() {
    let Some(folder) = data::path(&format!("data/models2026/{OTHER_UNIT}")) else { return };
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
