// SPDX-License-Identifier: MIT OR Apache-2.0
//! Heads made from recorded outputs of real models (data/models2026): the inverse of the decode step that the models
//! have. The expected survivors, keypoints and sizes of masks were computed from the outputs by a NumPy program.

use std::path::PathBuf;

use super::*;
use crate::support::data;
use crate::support::recorded::{RecordedOutput, rows};

/// The logit of a bin without weight.
const NO_WEIGHT: f64 = -12.0;

/// A recorded output `[1,4+C+R,N]`, where R numbers follow the scores of C classes.
struct Output {
    recorded: RecordedOutput,
    side: usize,
    classes: usize,
    folder: PathBuf,
}

impl Output {
    fn read(name: &str, classes: usize) -> Option<Self> {
        let folder = data::path(&format!("data/models2026/{name}"))?;
        let recorded = RecordedOutput::read(&folder);
        let side = recorded.model[0];
        Some(Self { recorded, side, classes, folder })
    }

    fn options(&self) -> Options {
        model_size(self.side as f32)
    }

    fn number(&self, anchor: usize, row: usize) -> f64 {
        let view = self.recorded.tensors[0].view();
        let anchors = view.shape[2];
        f64::from(view.elements().unwrap().to_f32(row * anchors + anchor))
    }

    /// A level for each stride, of the numbers that `of_anchor` returns for an anchor, its stride and its cell.
    fn levels(
        &self,
        element: ElementType,
        of_anchor: impl Fn(usize, f64, [f64; 2]) -> Vec<f64>,
    ) -> Vec<Level> {
        let mut first = 0;
        let mut level = |stride: usize| {
            let side = self.side / stride;
            let row = |cell: usize| {
                let position = [cell % side, cell / side].map(|at| at as f64);
                let numbers = of_anchor(first + cell, stride as f64, position);
                numbers.into_iter().map(|number| number as f32).collect()
            };
            let rows: Vec<Vec<f32>> = (0..side * side).map(row).collect();
            first += rows.len();
            Level::new(stride, rows, Format { element, is_channels_last: true })
        };
        STRIDES.map(&mut level).into()
    }

    /// The logits of 16 bins for each side: the two bins beside the distance have the weights.
    fn bins(&self, anchor: usize, stride: f64, cell: [f64; 2]) -> Vec<f64> {
        let [x, y, width, height] = [0, 1, 2, 3].map(|row| self.number(anchor, row));
        let point = cell.map(|at| (at + 0.5) * stride);
        let distances = [
            point[0] - (x - width / 2.0),
            point[1] - (y - height / 2.0),
            x + width / 2.0 - point[0],
            y + height / 2.0 - point[1],
        ];
        let logits = |distance: f64| {
            let cells = (distance / stride).clamp(0.0, 15.0);
            (0..16).map(move |bin| {
                let weight = 1.0 - (cells - f64::from(bin)).abs();
                if weight > 0.0 { weight.ln().max(NO_WEIGHT) } else { NO_WEIGHT }
            })
        };
        distances.into_iter().flat_map(logits).collect()
    }

    fn scores(&self, anchor: usize) -> Vec<f64> {
        (0..self.classes).map(|class| self.number(anchor, 4 + class)).collect()
    }

    /// The numbers after the scores.
    fn rest(&self, anchor: usize, count: usize) -> Vec<f64> {
        (0..count).map(|index| self.number(anchor, 4 + self.classes + index)).collect()
    }

    /// Compares survivors with the recorded ones. Returns the further numbers of each. Boxes differ by up to `cells` of
    /// their stride and scores by up to `score`.
    fn compare(
        &self,
        (tensors, name): (&[TensorView<'_>], &str),
        heads: &[Level],
        (cells, score): (f64, f32),
    ) -> Vec<(Decoded, Vec<f32>)> {
        let params = Params {
            thresholds: ClassThresholds::uniform(self.recorded.score_threshold),
            iou_threshold: self.recorded.iou_threshold,
            ..Params::default()
        };
        let found = suppressed(tensors, name, self.options(), &params);
        let expected = rows(&self.folder.join("expected.csv"));
        assert_eq!((found.len(), expected.len()), (4, 4), "{name}");
        let compared = found.into_iter().map(|found| {
            let Detection { x1, y1, x2, y2, anchor, class, .. } = found.detection;
            let is_it = |row: &&Vec<f32>| [row[6], row[5]] == [anchor as f32, class as f32];
            let row = expected.iter().find(is_it).unwrap_or_else(|| panic!("{anchor}: {class}"));
            let (stride, _) = Level::cell(heads, anchor as usize);
            let near = |(a, b): (f32, &f32)| f64::from((a - b).abs()) <= cells * stride as f64;
            assert!([x1, y1, x2, y2].into_iter().zip(&row[..4]).all(near), "{row:?}");
            assert!((found.detection.score - row[4]).abs() <= score, "{row:?}");
            (found, row[7..].to_vec())
        });
        compared.collect()
    }
}

/// Element types, and the differences from f32: of boxes in cells, and of scores.
const CASES: [(ElementType, (f64, f32)); 3] = [
    (ElementType::F32, (0.002, 1e-5)),
    (ElementType::F16, (0.01, 1e-3)),
    (ElementType::I8, (0.05, 3e-3)),
];

#[test]
fn heads_of_a_segmentation_model_have_its_masks() {
    for (element, tolerance) in CASES {
        let Some(output) = Output::read("02_seg_yolov8/bus", 80) else { return };
        let boxes =
            output.levels(element, |anchor, stride, cell| output.bins(anchor, stride, cell));
        let scores = output.levels(element, |anchor, _, _| output.scores(anchor));
        let coefficients = output.levels(element, |anchor, _, _| output.rest(anchor, 32));
        let mut tensors = Level::views(&[&boxes, &scores, &coefficients]);
        tensors.push(output.recorded.tensors[1].view());
        let found = output.compare((&tensors, "yolov8-heads-seg"), &boxes, tolerance);
        for (found, row) in found {
            let area = found.mask.len() as f32;
            let allowed = if element == ElementType::I8 { 0.03 } else { 0.01 };
            assert!((area - row[0]).abs() <= allowed * row[0], "{element:?}: {area}, {row:?}");
        }
    }
}

/// Keypoints are f16 beside quantized tensors, as Hailo's have 16 bits.
#[test]
fn heads_of_a_pose_model_have_its_keypoints() {
    const NUMBERS: usize = 17 * 3;
    for (element, tolerance) in CASES {
        let Some(output) = Output::read("03_pose_pixels/bus", 1) else { return };
        let of_points = if element == ElementType::I8 { ElementType::F16 } else { element };
        let boxes =
            output.levels(element, |anchor, stride, cell| output.bins(anchor, stride, cell));
        let scores = output.levels(element, |anchor, _, _| output.scores(anchor));
        let keypoints = output.levels(of_points, |anchor, stride, cell| {
            let raw = |(index, number): (usize, f64)| match index % 3 {
                2 => {
                    let visibility = number.clamp(1e-6, 1.0 - 1e-6);
                    (visibility / (1.0 - visibility)).ln()
                }
                axis => (number / stride - cell[axis]) / 2.0,
            };
            output.rest(anchor, NUMBERS).into_iter().enumerate().map(raw).collect()
        });
        let of_hailo = Level::views(&[&boxes, &scores, &keypoints]);
        let heads = output.levels(ElementType::F32, |anchor, stride, cell| {
            let score = output.scores(anchor)[0].clamp(1e-6, 1.0 - 1e-6);
            let mut numbers = output.bins(anchor, stride, cell);
            numbers.push((score / (1.0 - score)).ln());
            numbers
        });
        let anchors = boxes.iter().map(|level| level.rows.len()).sum();
        let pixels: Vec<f32> = (0..NUMBERS)
            .flat_map(|index| (0..anchors).map(move |anchor| (anchor, index)))
            .map(|(anchor, index)| output.number(anchor, 5 + index) as f32)
            .collect();
        let (decoded, _) = Stored::new(&[1, 17, 3, anchors], &pixels, of_points);
        let mut of_rknn = Level::views(&[&heads]);
        of_rknn.push(decoded.view("k"));
        for tensors in [of_hailo, of_rknn] {
            let found = output.compare((&tensors, "yolov8-heads-pose"), &boxes, tolerance);
            for (found, row) in found {
                let allowed =
                    if of_points == ElementType::F32 { [0.01, 1e-4] } else { [0.5, 2e-3] };
                assert_eq!(found.points.len(), 17);
                for (point, expected) in found.points.iter().zip(row.chunks(3)) {
                    let difference = |index: usize| (point[index] - expected[index]).abs();
                    let is_near = difference(0).max(difference(1)) <= allowed[0]
                        && difference(2) <= allowed[1];
                    assert!(is_near, "{element:?}: {point:?}, {expected:?}");
                }
            }
        }
    }
}
