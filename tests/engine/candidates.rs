// SPDX-License-Identifier: MIT OR Apache-2.0
//! Candidate lists of real detectors. The expected survivors at an IoU threshold of 0.45 were
//! computed with NumPy, ONNX Runtime and OpenCV.

use nmsfilter_core::decoder::{self, Options};
use nmsfilter_core::engine::{ClassThresholds, Engine, Job, Params, Reference};
use nmsfilter_core::tensor::TensorView;

use crate::settings::Settings;
use crate::support::{data, engines};
use crate::through_pipeline;

/// A list: boxes, scores by anchor and class, and the survivors without and with regard to class.
struct List {
    boxes: Vec<f32>,
    scores: Vec<f32>,
    classes: usize,
    keep: [Vec<u32>; 2],
}

fn read(text: &str) -> List {
    let rows: Vec<Vec<f64>> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|field| field.trim().parse().unwrap()).collect())
        .collect();
    let class = |row: &Vec<f64>| row[5] as usize;
    let classes = rows.iter().map(class).max().unwrap() + 1;
    // An anchor has a score for one class. Its other scores are minus infinity.
    let mut scores = vec![f32::NEG_INFINITY; rows.len() * classes];
    for (i, row) in rows.iter().enumerate() {
        scores[i * classes + class(row)] = row[4] as f32;
    }
    let kept = |column: usize| {
        (0..).zip(&rows).filter(|(_, row)| row[column] == 1.0).map(|(i, _)| i).collect()
    };
    List {
        boxes: rows.iter().flat_map(|row| row[..4].iter().map(|&edge| edge as f32)).collect(),
        scores,
        classes,
        keep: [kept(7), kept(8)],
    }
}

/// The lists: name, number of anchors, and numbers of survivors without and with regard to class.
const LISTS: [(&str, usize, [usize; 2]); 7] = [
    ("ultraface640_selfie", 938, [265, 265]),
    ("ultraface640_selfie_low", 1709, [465, 465]),
    ("yolov5nfp16_street", 762, [61, 64]),
    ("yolov8n640_street", 267, [49, 52]),
    ("yolov8n640_towncentre_f40", 288, [36, 38]),
    ("yoloxnano_street", 233, [51, 54]),
    ("yunet_selfie", 1699, [1051, 1051]),
];

#[test]
fn survivors_of_every_list_equal_numpy_onnx_runtime_and_opencv_results() {
    for (file, anchors, kept) in LISTS {
        let list = read(&data::fixture_text(&format!("candidates/{file}.csv")));
        let n = list.boxes.len() / 4;
        assert_eq!((n, list.keep.each_ref().map(Vec::len)), (anchors, kept), "{file} is complete");
        let tensors = [
            TensorView::from_slice("boxes", &[n, 4], &list.boxes),
            TensorView::from_slice("scores", &[n, list.classes], &list.scores),
        ];
        let layout = decoder::choose(&tensors, None, Options::default()).unwrap().layout;
        for (class_agnostic, keep) in [(true, &list.keep[0]), (false, &list.keep[1])] {
            let params = Params {
                class_agnostic,
                thresholds: ClassThresholds::uniform(f32::MIN),
                ..Params::default()
            };
            for engine in [&mut Reference::default() as &mut dyn Engine, &mut *engines::fast()] {
                let name = engine.name();
                let outcome = engine
                    .run(Job::new(&tensors, &layout, &params, &engines::places(&layout)))
                    .unwrap()
                    .group(0);
                assert_eq!(outcome.candidates, n, "{file}: {name}");
                let mut found: Vec<u32> = outcome.survivors.iter().map(|d| d.anchor).collect();
                found.sort_unstable();
                assert_eq!(&found, keep, "{file}: {name}");
            }
            through_pipeline::expect_counts(
                &[("boxes", &[n, 4], &list.boxes), ("scores", &[n, list.classes], &list.scores)],
                Settings::Params(&params, decoder::BoxFormat::Corners),
                [n, keep.len()],
            );
        }
    }
}
