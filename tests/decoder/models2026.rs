// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded outputs of real models. The expected survivors were computed by a NumPy program
//! (data/models2026).

use std::path::Path;

use nmsfilter_core::decoder::{self, Coordinates, Layout, Options};
use nmsfilter_core::engine::detail::Details;
use nmsfilter_core::engine::{
    ClassThresholds, Detection, Engine, ImagePlace, Method, Overlap, Params, Reference,
};
use nmsfilter_core::geometry::OrientedBox;
use nmsfilter_core::tensor::{ElementType, Quantization, Shape, Storage, TensorView};
use serde_json::Value;

use crate::support::{data, engines};

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
const ONE_SCALE: &str = "01_six_yolo26_int8_negative/bus";

/// Families whose outputs need no suppression.
const SELECTED: [&str; 6] = ["six", "detr_cat", "detr", "detr_post", "ssd_post", "effnms"];

/// A recorded tensor.
struct Recorded {
    name: String,
    element: ElementType,
    shape: Vec<usize>,
    /// Elements, in words of 8 bytes so that they are aligned.
    words: Vec<u64>,
    len: usize,
    quantization: Option<Quantization>,
}

impl Recorded {
    fn view(&self) -> TensorView<'_> {
        let shape = Shape::new(&self.shape).unwrap();
        let bytes = &bytemuck::cast_slice(&self.words)[..self.len];
        TensorView::new(&self.name, self.element, shape, Storage::Host(bytes))
            .with_quantization(self.quantization)
    }
}

/// Returns the elements of a `.npy` file of known type and shape, and their number of bytes.
fn npy(path: &Path, dtype: &str) -> (Vec<u64>, usize) {
    let bytes = std::fs::read(path).unwrap();
    let end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..end]).unwrap();
    assert!(header.contains(&format!("'descr': '{dtype}', 'fortran_order': False")), "{header}");
    let elements = &bytes[end..];
    let mut words = vec![0u64; elements.len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut words)[..elements.len()].copy_from_slice(elements);
    (words, elements.len())
}

fn numbers(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|side| side.as_u64().unwrap() as usize).collect()
}

pub struct Case {
    family: String,
    tensors: Vec<Recorded>,
    pub model: [f32; 2],
    normalized: bool,
    params: Params,
}

impl Case {
    pub fn read(folder: &Path) -> Self {
        let text = std::fs::read_to_string(folder.join("case.json")).unwrap();
        let case: Value = serde_json::from_str(&text).unwrap();
        let tensors = case["tensors"].as_object().unwrap().iter().map(|(name, tensor)| {
            let (element, descr) = match tensor["dtype"].as_str().unwrap() {
                "float32" => (ElementType::F32, "<f4"),
                "int8" => (ElementType::I8, "|i1"),
                "int32" => (ElementType::I32, "<i4"),
                "int64" => (ElementType::I64, "<i8"),
                other => panic!("{other}"),
            };
            let (words, len) = npy(&folder.join(tensor["file"].as_str().unwrap()), descr);
            let quantization = tensor["scale"].as_f64().map(|scale| {
                let zero_point = tensor["zero_point"].as_i64().unwrap() as i32;
                Quantization::new(scale as f32, zero_point).unwrap()
            });
            let shape = numbers(&tensor["shape"]);
            Recorded { name: name.clone(), element, shape, words, len, quantization }
        });
        let tensors = tensors.collect();
        let family = case["family"].as_str().unwrap().to_owned();
        let [width, height] = numbers(&case["model_input"])[..] else { panic!("{text}") };
        let threshold = case["score_threshold"].as_f64().unwrap() as f32;
        let scale = case["params"]["coordinate_scale"].as_f64().unwrap_or(1.0);
        Self {
            tensors,
            model: [width as f32, height as f32],
            normalized: scale != 1.0,
            params: Params {
                // In the NumPy program, a score equal to the threshold is too low.
                thresholds: ClassThresholds::uniform(threshold.next_up()),
                iou_threshold: case["iou_threshold"].as_f64().unwrap() as f32,
                method: if SELECTED.contains(&family.as_str()) {
                    Method::None
                } else {
                    Method::Greedy
                },
                ..Params::default()
            },
            family,
        }
    }

    /// Calls `act` with the tensors, the layout that `decoder` makes of them, and the parameters.
    pub fn with<T>(
        &self,
        decoder: &str,
        act: impl FnOnce(&[TensorView<'_>], &Layout, &Params) -> T,
    ) -> T {
        let views: Vec<TensorView<'_>> = self.tensors.iter().map(Recorded::view).collect();
        let (layout, params) = self.layout(&views, decoder);
        act(&views, &layout, &params)
    }

    /// Returns the layout that a decoder chooses, and the parameters.
    fn layout(&self, views: &[TensorView<'_>], decoder: &str) -> (Layout, Params) {
        // The other decoders define the unit of coordinates.
        let coordinates = match (self.family.as_str(), self.normalized) {
            ("six" | "v8", true) => Coordinates::Normalized,
            _ => Coordinates::Auto,
        };
        let options = Options { coordinates, model_size: Some(self.model), ..Options::default() };
        let layout = decoder::choose(views, decoder::by_name(decoder), options).unwrap().layout;
        (layout, self.params.clone())
    }

    /// The place of the image.
    pub fn places(&self) -> [ImagePlace; 1] {
        [ImagePlace::in_model(self.model)]
    }

    /// Returns the survivors of the reference engine, after comparing them with those from the
    /// engine under test.
    fn survivors(&self, decoder: &str) -> Vec<Detection> {
        self.with(decoder, |views, layout, params| {
            let mut reference = Reference::default();
            let expected = reference.run(views, layout, params, &self.places()).unwrap();
            let expected = expected.group(0).survivors.to_vec();
            let mut fast = engines::fast();
            let outcome = fast.run(views, layout, params, &self.places()).unwrap();
            assert_eq!(outcome.group(0).survivors, expected);
            expected
        })
    }
}

#[test]
fn recorded_outputs_have_the_expected_survivors() {
    for (name, decoder, tolerance) in CASES {
        let Some(folder) = data::path(&format!("data/models2026/{name}")) else { return };
        let found = Case::read(&folder).survivors(decoder);
        let expected = std::fs::read_to_string(folder.join("expected.csv")).unwrap();
        assert_eq!(found.len(), expected.lines().count() - 1, "{name}");
        for (found, line) in found.iter().zip(expected.lines().skip(1)) {
            let numbers: Vec<f32> = line.split(',').map(|number| number.parse().unwrap()).collect();
            let [x1, y1, x2, y2, score, class, anchor, ..] = numbers[..] else { panic!("{line}") };
            let what = format!("{name}: {found:?}, {line}");
            assert_eq!((found.class, found.anchor), (class as u32, anchor as u32), "{what}");
            let pairs = [(found.x1, x1), (found.y1, y1), (found.x2, x2), (found.y2, y2)];
            assert!(pairs.iter().all(|(a, b)| (a - b).abs() <= tolerance), "{what}");
            let is_score = match tolerance {
                0.0 => found.score == score,
                _ => (found.score - score).abs() < 1e-5,
            };
            assert!(is_score, "{what}");
        }
    }
}

/// Parses a table of expected survivors into rows of numbers.
fn rows(path: &Path) -> Vec<Vec<f32>> {
    let text = std::fs::read_to_string(path).unwrap();
    let numbers = |line: &str| line.split(',').map(|number| number.parse().unwrap()).collect();
    text.lines().skip(1).map(numbers).collect()
}

/// Oriented boxes of a recorded output are suppressed in three ways: by the overlap of polygons, by
/// the probabilistic IoU, and as Ultralytics does. Ultralytics lets suppressed boxes suppress
/// others, and suppresses at a measure equal to the threshold.
#[test]
fn oriented_boxes_have_the_expected_survivors_by_each_measure() {
    let Some(folder) = data::path("data/models2026/04_obb/nnstreamer") else { return };
    let ultralytics = Params {
        overlap: Overlap::ProbIou,
        method: Method::MapReduce,
        threshold_inclusive: true,
        ..Params::default()
    };
    for (file, count, rule) in [
        ("expected.csv", 117, Params::default()),
        (
            "expected_probiou_greedy.csv",
            113,
            Params { overlap: Overlap::ProbIou, ..Params::default() },
        ),
        ("expected_probiou_fast.csv", 113, ultralytics),
    ] {
        let mut case = Case::read(&folder);
        let Params { overlap, method, threshold_inclusive, .. } = rule;
        case.params = Params { overlap, method, threshold_inclusive, ..case.params };
        let found = case.survivors("yolov8-obb");
        let expected = rows(&folder.join(file));
        assert_eq!((found.len(), expected.len()), (count, count), "{file}");
        for (found, row) in found.iter().zip(&expected) {
            assert_eq!(
                [found.anchor, found.class],
                [row[6] as u32, row[5] as u32],
                "{file}: {found:?}"
            );
        }
    }
}

/// Survivors have columns with center, size and angle.
#[test]
fn survivors_have_the_expected_oriented_boxes() {
    for (name, decoder) in [
        ("04_obb/nnstreamer", "yolov8-obb"),
        ("11_six_with_angle_layout/nnstreamer", "end2end-obb"),
    ] {
        let Some(folder) = data::path(&format!("data/models2026/{name}")) else { return };
        let case = Case::read(&folder);
        let views: Vec<TensorView<'_>> = case.tensors.iter().map(Recorded::view).collect();
        let (mut layout, params) = case.layout(&views, decoder);
        let details = Details::prepare(&mut layout, true);
        let mut fast = engines::fast();
        let outcome = fast.run(&views, &layout, &params, &case.places()).unwrap();
        let (image, components) = (outcome.group(0), outcome.column_components());
        let expected = rows(&folder.join("expected.csv"));
        assert_eq!((image.survivors.len(), expected.len()), (117, 117), "{name}");
        let columns = image.columns.chunks_exact(components);
        for ((survivor, columns), row) in image.survivors.iter().zip(columns).zip(&expected) {
            let detail = details.of(&layout, case.places()[0].unit(&layout), survivor, columns);
            let OrientedBox { center: [x, y], size: [w, h], angle } =
                detail.oriented_box().unwrap();
            let pairs = [x, y, w, h, angle].into_iter().zip(&row[7..12]);
            let is_near = |(found, expected): (f32, &f32)| (found - expected).abs() <= 1e-4;
            assert!(pairs.into_iter().all(is_near), "{name}: {survivor:?}, {row:?}");
        }
    }
}

/// The expected survivors have rounded classes. This project rejects candidates whose class is not a
/// whole number.
#[test]
fn classes_that_are_not_whole_numbers_are_rejected() {
    let Some(folder) = data::path(&format!("data/models2026/{ONE_SCALE}")) else { return };
    let found = Case::read(&folder).survivors("end2end");
    let expected = std::fs::read_to_string(folder.join("expected.csv")).unwrap();
    let rows: Vec<Vec<f32>> = expected
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|number| number.parse().unwrap()).collect())
        .collect();
    assert_eq!((found.len(), rows.len()), (2, 5));
    let expected = rows.iter().filter(|row| found.iter().any(|d| d.anchor as f32 == row[6]));
    for (found, row) in found.iter().zip(expected) {
        let numbers = [found.x1, found.y1, found.x2, found.y2, found.score, found.class as f32];
        assert_eq!(numbers, row[..6]);
    }
}

/// Fails if data/models2026 contains a folder that the table lacks.
#[test]
fn every_recorded_case_is_in_the_table() {
    let Some(root) = data::path("data/models2026") else { return };
    let folders = |folder: &Path| -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect()
    };
    let mut found: Vec<String> = folders(&root)
        .iter()
        .flat_map(|folder| folders(folder))
        .filter(|folder| folder.join("case.json").exists())
        .map(|folder| folder.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/"))
        .collect();
    found.sort();
    let mut expected: Vec<&str> = CASES.iter().map(|(name, ..)| *name).chain([ONE_SCALE]).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

/// The priors that the description of SSD generates are equal to a tensor of priors in TensorFlow's
/// models.
#[test]
fn the_generated_priors_of_ssd_equal_the_recorded_priors() {
    let Some(folder) = data::path("data/models2026/07_ssd_raw/nnstreamer0") else { return };
    let with_tensor = Case::read(&folder);
    let generated = Case {
        tensors: with_tensor.tensors.into_iter().filter(|tensor| tensor.name != "priors").collect(),
        ..Case::read(&folder)
    };
    let expected = Case::read(&folder).survivors("ssd");
    let found = generated.survivors("ssd");
    assert_eq!((found.len(), expected.len()), (3, 3));
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!((found.class, found.anchor), (expected.class, expected.anchor));
        let corners = |d: &Detection| [d.x1, d.y1, d.x2, d.y2];
        let pairs = corners(found).into_iter().zip(corners(expected));
        for (a, b) in pairs {
            assert!((a - b).abs() < 0.01, "{found:?}, {expected:?}");
        }
    }
}
