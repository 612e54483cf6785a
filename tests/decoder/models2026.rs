// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded outputs of real models. The expected survivors were computed by a NumPy program
//! (data/models2026).

use std::path::Path;

use nmsfilter_core::decoder::{self, Coordinates, Layout, Options};
use nmsfilter_core::engine::detail::Details;
use nmsfilter_core::engine::{
    ClassThresholds, Detection, Engine, ImagePlace, Job, Method, Overlap, Params, Reference,
};
use nmsfilter_core::geometry::OrientedBox;
use nmsfilter_core::tensor::TensorView;

use crate::support::recorded::{CASES, ONE_SCALE, RecordedOutput, RecordedTensor, rows};
use crate::support::{data, engines};

pub struct Case {
    tensors: Vec<RecordedTensor>,
    pub model: [f32; 2],
    coordinates: Coordinates,
    params: Params,
}

impl Case {
    pub fn read(folder: &Path) -> Self {
        let recorded = RecordedOutput::read(folder);
        let is_greedy = recorded.needs_suppression;
        Self {
            tensors: recorded.tensors,
            model: recorded.model.map(|side| side as f32),
            coordinates: if recorded.is_normalized {
                Coordinates::Normalized
            } else {
                Coordinates::Auto
            },
            params: Params {
                thresholds: ClassThresholds::uniform(recorded.score_threshold),
                iou_threshold: recorded.iou_threshold,
                method: if is_greedy { Method::Greedy } else { Method::None },
                ..Params::default()
            },
        }
    }

    /// Calls `act` with the tensors, the layout that `decoder` makes of them, and the parameters.
    pub fn with<T>(
        &self,
        decoder: &str,
        act: impl FnOnce(&[TensorView<'_>], &Layout, &Params) -> T,
    ) -> T {
        let views: Vec<TensorView<'_>> = self.tensors.iter().map(RecordedTensor::view).collect();
        let (layout, params) = self.layout(&views, decoder);
        act(&views, &layout, &params)
    }

    /// Returns the layout that a decoder chooses, and the parameters.
    fn layout(&self, views: &[TensorView<'_>], decoder: &str) -> (Layout, Params) {
        let (coordinates, model_size) = (self.coordinates, Some(self.model));
        let options = Options { coordinates, model_size, ..Options::default() };
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
            let expected = reference.run(Job::new(views, layout, params, &self.places())).unwrap();
            let expected = expected.group(0).survivors.to_vec();
            let mut fast = engines::fast();
            let outcome = fast.run(Job::new(views, layout, params, &self.places())).unwrap();
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
        let expected = rows(&folder.join("expected.csv"));
        assert_eq!(found.len(), expected.len(), "{name}");
        for (found, row) in found.iter().zip(&expected) {
            let [x1, y1, x2, y2, score, class, anchor, ..] = row[..] else { panic!("{row:?}") };
            let what = format!("{name}: {found:?}, {row:?}");
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
        let views: Vec<TensorView<'_>> = case.tensors.iter().map(RecordedTensor::view).collect();
        let (mut layout, params) = case.layout(&views, decoder);
        let details = Details::prepare(&mut layout, true);
        let mut fast = engines::fast();
        let outcome = fast.run(Job::new(&views, &layout, &params, &case.places())).unwrap();
        let (image, components) = (outcome.group(0), outcome.column_components);
        let expected = rows(&folder.join("expected.csv"));
        assert_eq!((image.survivors.len(), expected.len()), (117, 117), "{name}");
        let columns = image.columns.chunks_exact(components);
        for ((survivor, columns), row) in image.survivors.iter().zip(columns).zip(&expected) {
            let detail = details.of(&layout, case.places()[0].unit(&layout), survivor, columns);
            let OrientedBox { center: [x, y], size: [w, h], angle } = detail.oriented_box.unwrap();
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
    let rows = rows(&folder.join("expected.csv"));
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
