// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded outputs of real models (data/models2026), and the settings with which a NumPy program
//! computed the expected survivors.

use std::path::Path;

use nmsfilter_core::tensor::{ElementType, Quantization, Shape, Storage, TensorView};
use serde_json::Value;

/// The cases: folder, decoder, and tolerance of the corners. Where boxes are only moved and scaled,
/// corners must be exact.
pub const CASES: [(&str, &str, f32); 35] = [
    ("01_six_yolo26/bus", "end2end", 0.0),
    ("01_six_yolo26/street", "end2end", 0.0),
    ("01_six_yolo26_tflite/bus", "end2end", 0.0),
    ("01_six_yolov10/nnstreamer", "end2end", 0.0),
    ("02_seg_nhwc_layout/bus", "yolov8-seg", 0.0),
    ("02_seg_yolov8/bus", "yolov8-seg", 0.0),
    ("02_seg_yolov8/street", "yolov8-seg", 0.0),
    ("02_seg_yolov8_640/bus", "yolov8-seg", 0.0),
    ("03_pose_pixels/bus", "yolov8-pose", 0.0),
    ("03_pose_yolo11_tflite/bus", "yolov8-pose", 0.0),
    ("03_pose_yolov8_tflite_224/bus", "yolov8-pose", 0.0),
    ("04_obb/nnstreamer", "yolov8-obb", 0.001),
    ("05_detr_deimv2/bus", "detr", 0.01),
    ("05_detr_deimv2/bus_postprocessed", "boxes", 0.0),
    ("05_detr_deimv2/street", "detr", 0.01),
    ("05_detr_deimv2/street_postprocessed", "boxes", 0.0),
    // This project scales before it computes corners, and the NumPy program afterwards.
    ("05_rtdetr_cat_layout/street", "detr", 0.001),
    ("06_yolox/bus", "yolox-raw", 0.01),
    ("06_yolox/street", "yolox-raw", 0.01),
    ("06_yolox_int8/street", "yolox-raw", 0.01),
    ("07_ssd_raw/nnstreamer0", "ssd", 0.01),
    ("07_ssd_tf_postprocess/nnstreamer0", "ssd-postprocess", 0.0),
    ("07_ssd_tflite_postprocess/bus", "ssd-postprocess", 0.0),
    ("08_retinaface/crowd_selfie", "retinaface", 0.01),
    ("08_scrfd/crowd_selfie", "scrfd", 0.0),
    ("08_yunet/crowd_selfie", "yunet", 0.01),
    ("09_quantised_yolov8/bus", "yolov8", 0.0),
    ("09_quantised_yolov8/street", "yolov8", 0.0),
    ("10_efficientnms_layout/street", "efficientnms", 0.0),
    ("10_nanodet/bus", "nanodet", 0.01),
    ("10_picodet/street", "picodet", 0.01),
    ("10_yolonas_layout/street", "boxes", 0.0),
    ("11_six_with_angle_layout/nnstreamer", "end2end-obb", 0.001),
    ("11_six_with_keypoints_layout/bus", "end2end-pose", 0.0),
    ("11_six_with_masks_layout/bus", "end2end-seg", 0.0),
];

/// Case with classes that are not whole numbers, because one quantization scale is shared by boxes,
/// scores and classes.
pub const ONE_SCALE: &str = "01_six_yolo26_int8_negative/bus";

/// Families whose outputs need no suppression.
const SELECTED: [&str; 6] = ["six", "detr_cat", "detr", "detr_post", "ssd_post", "effnms"];

/// A recorded tensor.
pub struct RecordedTensor {
    pub name: String,
    pub element: ElementType,
    pub shape: Vec<usize>,
    pub quantization: Option<Quantization>,
    /// Elements, in words of 8 bytes so that they are aligned.
    words: Vec<u64>,
    len: usize,
}

impl RecordedTensor {
    fn read(folder: &Path, name: &str, tensor: &Value) -> Self {
        let (element, descr) = match tensor["dtype"].as_str().unwrap() {
            "float32" => (ElementType::F32, "<f4"),
            "int8" => (ElementType::I8, "|i1"),
            "int32" => (ElementType::I32, "<i4"),
            "int64" => (ElementType::I64, "<i8"),
            other => panic!("{name}: {other}"),
        };
        let bytes = std::fs::read(folder.join(tensor["file"].as_str().unwrap())).unwrap();
        let end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let header = std::str::from_utf8(&bytes[10..end]).unwrap();
        assert!(
            header.contains(&format!("'descr': '{descr}', 'fortran_order': False")),
            "{header}"
        );
        let elements = &bytes[end..];
        let mut words = vec![0u64; elements.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..elements.len()].copy_from_slice(elements);
        let quantization = tensor["scale"].as_f64().map(|scale| {
            let zero_point = tensor["zero_point"].as_i64().unwrap() as i32;
            Quantization::new(scale as f32, zero_point).unwrap()
        });
        let shape = numbers(&tensor["shape"]);
        Self { name: name.to_owned(), element, shape, quantization, words, len: elements.len() }
    }

    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }

    pub fn view(&self) -> TensorView<'_> {
        let shape = Shape::new(&self.shape).unwrap();
        TensorView::new(&self.name, self.element, shape, Storage::Host(self.bytes()))
            .with_quantization(self.quantization)
    }
}

/// The outputs of a model for one picture.
pub struct RecordedOutput {
    pub tensors: Vec<RecordedTensor>,
    /// Width and height of the model's input.
    pub model: [usize; 2],
    /// True if coordinates are fractions of the model's input, and the decoder does not know this.
    pub is_normalized: bool,
    pub needs_suppression: bool,
    /// The next number above the threshold of the NumPy program, in which a score equal to the
    /// threshold is too low.
    pub score_threshold: f32,
    pub iou_threshold: f32,
}

impl RecordedOutput {
    pub fn read(folder: &Path) -> Self {
        let text = std::fs::read_to_string(folder.join("case.json")).unwrap();
        let case: Value = serde_json::from_str(&text).unwrap();
        let tensors = case["tensors"].as_object().unwrap().iter();
        let family = case["family"].as_str().unwrap();
        let [width, height] = numbers(&case["model_input"])[..] else { panic!("{text}") };
        let scale = case["params"]["coordinate_scale"].as_f64().unwrap_or(1.0);
        Self {
            tensors: tensors
                .map(|(name, tensor)| RecordedTensor::read(folder, name, tensor))
                .collect(),
            model: [width, height],
            is_normalized: matches!(family, "six" | "v8") && scale != 1.0,
            needs_suppression: !SELECTED.contains(&family),
            score_threshold: (case["score_threshold"].as_f64().unwrap() as f32).next_up(),
            iou_threshold: case["iou_threshold"].as_f64().unwrap() as f32,
        }
    }
}

/// Parses a table of expected survivors into rows of numbers.
pub fn rows(path: &Path) -> Vec<Vec<f32>> {
    let text = std::fs::read_to_string(path).unwrap();
    let numbers = |line: &str| line.split(',').map(|number| number.parse().unwrap()).collect();
    text.lines().skip(1).map(numbers).collect()
}

fn numbers(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|side| side.as_u64().unwrap() as usize).collect()
}
