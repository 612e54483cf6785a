// SPDX-License-Identifier: MIT OR Apache-2.0
//! The expected candidates of heads, in double precision.

use nmsfilter_core::engine::Detection;

use super::super::{Expected, best, sigmoid};
use super::THRESHOLD;
use super::stored::Level;

/// The first numbers of a cell.
#[derive(Clone, Copy)]
pub enum Boxes {
    /// Logits of 16 bins for the distance to each side.
    Bins,
    /// The distances in cells.
    Distances,
}

impl Boxes {
    /// The distances to the left, upper, right and lower edge, in cells.
    fn distances(self, numbers: &[f64]) -> [f64; 4] {
        [0, 1, 2, 3].map(|side| match self {
            Self::Distances => numbers[side],
            Self::Bins => {
                let weights: Vec<f64> =
                    numbers[side * 16..][..16].iter().map(|number| number.exp()).collect();
                let weighted = weights.iter().enumerate().map(|(bin, weight)| bin as f64 * weight);
                weighted.sum::<f64>() / weights.iter().sum::<f64>()
            }
        })
    }
}

/// The anchors whose best score is above the threshold. Scores begin at `column`; if this is not 0, they are logits in
/// the tensor of the boxes.
pub fn candidates(boxes: &[Level], scores: &[Level], kind: Boxes, column: usize) -> Vec<Expected> {
    let anchors: usize = boxes.iter().map(|level| level.rows.len()).sum();
    let candidate = |anchor: usize| {
        let (class, stored) = best(Level::row(scores, anchor)[column..].iter().copied());
        let score = if column > 0 { sigmoid(stored) } else { stored };
        let (stride, cell) = Level::cell(boxes, anchor);
        let [x, y] = cell.map(|at| (at as f64 + 0.5) * stride as f64);
        let distances = kind.distances(Level::row(boxes, anchor));
        let [left, up, right, down] = distances.map(|distance| distance * stride as f64);
        let corners = [x - left, y - up, x + right, y + down];
        (score > f64::from(THRESHOLD)).then_some((anchor, class, score, corners))
    };
    (0..anchors).filter_map(candidate).collect()
}

/// The corners of a box.
pub struct Corners([f64; 4]);

impl Corners {
    pub fn of(detection: &Detection) -> Self {
        Self([detection.x1, detection.y1, detection.x2, detection.y2].map(f64::from))
    }

    pub fn scaled(self, factor: f64) -> Self {
        Self(self.0.map(|edge| edge * factor))
    }

    /// Returns true if the upper left corner of a pixel is inside.
    pub fn contains(&self, [x, y]: [usize; 2]) -> bool {
        let [x1, y1, x2, y2] = self.0;
        let (x, y) = (x as f64, y as f64);
        x1 <= x && x < x2 && y1 <= y && y < y2
    }
}
