// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suppression for models that claim to need none: the figures in docs/thresholds.md, and
//! duplicates with masks, keypoints and angles.

use crate::models2026::Case;
use crate::support::{data, project};

/// Returns the number of regions of a recorded output.
fn regions(case: Case, properties: &str) -> usize {
    let (regions, ended) = case.run(properties);
    assert_eq!(ended.error, None, "{properties}");
    regions.len()
}

/// Reads a case of data/models2026.
fn case(name: &str) -> Option<Case> {
    data::path(&format!("data/models2026/{name}")).map(|folder| Case::read(&folder, true))
}

#[test]
fn duplicates_in_recorded_outputs_are_as_many_as_the_documents_say() {
    let text = std::fs::read_to_string(project::path("docs/thresholds.md")).unwrap();
    for (model, name, decoder, score) in [
        ("YOLO26n", "01_six_yolo26/street", "end2end", "0.25"),
        ("YOLO26n", "01_six_yolo26/street", "end2end", "0.1"),
        ("YOLO26n", "01_six_yolo26/street", "end2end", "0.05"),
        ("YOLOv10", "01_six_yolov10/nnstreamer", "end2end", "0.05"),
        ("DEIMv2", "05_detr_deimv2/street", "detr", "0.25"),
    ] {
        let methods = ["method=none", "iou-threshold=0.7", "iou-threshold=0.45"];
        let mut counts = Vec::new();
        for method in methods {
            let Some(case) = case(name) else { return };
            let properties = format!("decoder={decoder} score-threshold={score} {method}");
            counts.push(regions(case, &properties).to_string());
        }
        let row = format!("| {model} | {score} | {} |", counts.join(" | "));
        assert!(text.contains(&row), "docs/thresholds.md lacks {row}");
    }
}

/// The recorded outputs have no duplicates with masks, keypoints or angles, so the best row is
/// written a second time, with a lower score, in place of the last row, whose score is 0.
#[test]
fn a_duplicate_with_a_mask_keypoints_or_an_angle_is_suppressed_unless_method_is_none() {
    for (name, decoder, score) in [
        ("11_six_with_masks_layout/bus", "end2end-seg", 4),
        ("11_six_with_keypoints_layout/bus", "end2end-pose", 4),
        ("11_six_with_angle_layout/nnstreamer", "end2end-obb", 4),
    ] {
        let doubled = || {
            let mut case = case(name)?;
            let output = case.tensors.iter_mut().find(|tensor| tensor.id == "output0").unwrap();
            let [1, rows, columns] = output.shape[..] else { panic!("{:?}", output.shape) };
            let mut bytes = output.data.map_readable().unwrap().to_vec();
            let row = columns * 4;
            let mut copy = bytes[..row].to_vec();
            let best = f32::from_ne_bytes(copy[score * 4..][..4].try_into().unwrap());
            copy[score * 4..][..4].copy_from_slice(&(best * 0.9).to_ne_bytes());
            bytes[(rows - 1) * row..].copy_from_slice(&copy);
            output.data = gst::Buffer::from_slice(bytes);
            Some(case)
        };
        let (Some(plain), Some(other)) = (case(name), case(name)) else { return };
        let decoder = format!("decoder={decoder}");
        let without = regions(plain, &format!("{decoder} method=none"));
        let suppressed = regions(other, &format!("{decoder} iou-threshold=0.7"));
        let copied = regions(doubled().unwrap(), &format!("{decoder} method=none"));
        assert_eq!(copied, without + 1, "{name}");
        let found = regions(doubled().unwrap(), &format!("{decoder} iou-threshold=0.7"));
        assert_eq!(found, suppressed, "{name}");
    }
}
