// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decoding and greedy suppression by the rules of `python/greedy.py`. This code shares nothing
//! with the engines.

use crate::tensors::Recorded;

/// An anchor whose score reaches the threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Index of the anchor in the tensor.
    pub anchor: usize,
    /// Class with the best score.
    pub class: usize,
    /// Best score.
    pub score: f32,
    /// Left, upper, right and lower edge, in pixels of the model's input.
    pub corners: [f32; 4],
}

/// The result of suppression.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// Number of candidates.
    pub candidates: usize,
    /// Survivors, by descending score.
    pub survivors: Vec<Candidate>,
}

/// Returns the anchors of a decoder's tensors whose score reaches the threshold.
pub fn candidates(
    decoder: &str,
    tensors: &[Recorded],
    size: [u32; 2],
    threshold: f32,
) -> Vec<Candidate> {
    let numbers = &tensors[0].elements;
    let shape = &tensors[0].shape;
    let best = |scores: &mut dyn Iterator<Item = f32>| {
        let first = (0, f32::NEG_INFINITY);
        let better =
            |best: (usize, f32), next: (usize, f32)| if next.1 > best.1 { next } else { best };
        scores.enumerate().fold(first, better)
    };
    let centered =
        |[cx, cy, w, h]: [f32; 4]| [cx - w / 2.0, cy - h / 2.0, cx + w / 2.0, cy + h / 2.0];
    let candidate = |anchor: usize| {
        let (corners, class, score) = match decoder {
            "ultraface" => {
                let [w, h] = size.map(|side| side as f32);
                let edge = |i: usize| tensors[1].elements[anchor * 4 + i] * [w, h, w, h][i];
                ([0, 1, 2, 3].map(edge), 0, numbers[anchor * 2 + 1])
            }
            "yolov8" => {
                let number = |i: usize| numbers[i * shape[2] + anchor];
                let (class, score) = best(&mut (4..shape[1]).map(number));
                (centered([0, 1, 2, 3].map(number)), class, score)
            }
            "yolov5" => {
                let number = |i: usize| numbers[anchor * shape[2] + i];
                let (class, score) = best(&mut (5..shape[2]).map(number));
                (centered([0, 1, 2, 3].map(number)), class, number(4) * score)
            }
            _ => panic!("no reference for {decoder}"),
        };
        Candidate { anchor, class, score, corners }
    };
    let anchors = if decoder == "yolov8" { shape[2] } else { shape[1] };
    (0..anchors).map(candidate).filter(|candidate| candidate.score >= threshold).collect()
}

/// Returns the survivors of greedy suppression within each class, by the rules of
/// `python/greedy.py`.
pub fn by_numpys_rules(
    decoder: &str,
    tensors: &[Recorded],
    size: [u32; 2],
    [score_threshold, iou_threshold]: [f32; 2],
) -> Kept {
    let candidates = candidates(decoder, tensors, size, score_threshold);
    Kept {
        candidates: candidates.len(),
        survivors: greedy(&candidates, |a, b| a.class == b.class && iou(a, b) > iou_threshold),
    }
}

/// Keeps a candidate unless a kept candidate of higher rank suppresses it. The higher score has the
/// higher rank, and if scores are equal, the lower anchor.
pub fn greedy(
    candidates: &[Candidate],
    suppresses: impl Fn(&Candidate, &Candidate) -> bool,
) -> Vec<Candidate> {
    let mut order = candidates.to_vec();
    order.sort_by(|a, b| b.score.total_cmp(&a.score));
    let mut kept: Vec<Candidate> = Vec::new();
    for candidate in order {
        if !kept.iter().any(|better| suppresses(better, &candidate)) {
            kept.push(candidate);
        }
    }
    kept
}

/// Computes the intersection over union in single precision.
pub fn iou(a: &Candidate, b: &Candidate) -> f32 {
    let [(ax1, ay1, ax2, ay2), (bx1, by1, bx2, by2)] = [a, b].map(|c| c.corners.into());
    let inter = (ax2.min(bx2) - ax1.max(bx1)).max(0.0) * (ay2.min(by2) - ay1.max(by1)).max(0.0);
    let area = |x1: f32, y1: f32, x2: f32, y2: f32| (x2 - x1) * (y2 - y1);
    inter / (area(ax1, ay1, ax2, ay2) + area(bx1, by1, bx2, by2) - inter)
}
