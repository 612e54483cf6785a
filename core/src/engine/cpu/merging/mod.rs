// SPDX-License-Identifier: MIT OR Apache-2.0
//! Methods that merge boxes, lower scores, or decide by a column.
//!
//! In: upright candidates in descending rank. Out: survivors in the order of their final ranks,
//! each with the anchors of the candidates that were merged into it. Candidates whose classes are
//! compared are processed class by class, as *parts*, because candidates of different classes do
//! not conflict. A [`BoxGrid`] finds nearby boxes.

mod box_grid;
mod by_column;
mod claims;
mod fusion;
mod matrix;
mod rescoring;

use super::super::formula::limited;
use super::super::{Detection, Method, Params};
use super::buckets::Buckets;
use super::conflict::{Conflict, Entry, Shape, WithTest};
use super::ranking;
use crate::geometry::overlap::{Measured, Pair};
use crate::geometry::{Corners, greater, lesser};
use box_grid::BoxGrid;
use claims::Claims;
use fusion::Fusion;
use rescoring::Rescoring;

/// Merges and rescores, and reuses its buffers.
#[derive(Debug, Default)]
pub(super) struct Merging {
    /// The positions of the candidates of each part.
    parts: Buckets,
    entries: Vec<Entry>,
    grid: BoxGrid,
    claims: Claims,
    fusion: Fusion,
    rescoring: Rescoring,
    matrix: matrix::Grid,
    pub merged: Merged,
}

/// The ranked candidates of a group.
pub(super) struct Ranked<'a> {
    pub candidates: &'a [Detection],
    /// The keys of the candidates in descending rank.
    pub keys: &'a [u64],
    /// If set, candidates of different classes do not conflict.
    pub compares_classes: bool,
    /// The rows of the method's column, one for each candidate, if the method reads one.
    pub rows: &'a [f32],
    /// The length of a row.
    pub components: usize,
}

/// The survivors of a group.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    survivors: Vec<Survivor>,
    /// The anchors of merged candidates.
    members: Vec<u32>,
}

/// A survivor.
#[derive(Clone, Copy, Debug)]
struct Survivor {
    detection: Detection,
    /// The position of the keeper in the order of ranks.
    keeper: u32,
    /// The range of the merged candidates in [`Merged::members`].
    members: [u32; 2],
}

/// Candidates that can conflict with each other.
struct Part<'a> {
    ranked: &'a Ranked<'a>,
    /// The positions of the candidates in the order of ranks; ascending.
    positions: &'a [u32],
    /// The boxes of the candidates.
    entries: &'a [Entry],
}

impl Part<'_> {
    /// The candidate with this index in the part.
    #[inline(always)]
    fn detection(&self, index: u32) -> &Detection {
        let key = self.ranked.keys[self.positions[index as usize] as usize];
        &self.ranked.candidates[ranking::index(key)]
    }

    /// The numbers of a candidate in the method's column.
    #[inline(always)]
    fn row(&self, index: u32) -> &[f32] {
        let &Ranked { keys, rows, components, .. } = self.ranked;
        let candidate = ranking::index(keys[self.positions[index as usize] as usize]);
        &rows[candidate * components..][..components]
    }

    /// The overlap threshold of the class of a candidate.
    #[inline(always)]
    fn threshold(&self, index: u32, params: &Params) -> f32 {
        if params.class_rules.is_empty() {
            return params.iou_threshold;
        }
        params.iou_threshold_of(self.detection(index).class)
    }
}

impl Merged {
    pub fn clear(&mut self) {
        self.survivors.clear();
        self.members.clear();
    }

    /// The survivors in the order of their final ranks.
    pub fn detections(&self) -> impl Iterator<Item = Detection> {
        self.survivors.iter().map(|survivor| survivor.detection)
    }

    /// The anchors of the candidates that were merged into the survivor with this index.
    pub fn members(&self, index: usize) -> &[u32] {
        match self.survivors.get(index) {
            Some(&Survivor { members: [first, end], .. }) => {
                &self.members[first as usize..end as usize]
            }
            None => &[],
        }
    }

    /// Keeps the `count` survivors of the highest final ranks.
    pub fn truncate(&mut self, count: usize) {
        self.survivors.truncate(count);
    }

    /// Adds a survivor. Its members were added after the preceding survivor.
    #[inline]
    fn push(&mut self, part: &Part<'_>, keeper: u32, corners: Corners, score: f32) {
        let Corners { x1, y1, x2, y2 } = corners;
        let detection = Detection { x1, y1, x2, y2, score, ..*part.detection(keeper) };
        let keeper = part.positions[keeper as usize];
        let first = self.survivors.last().map_or(0, |survivor| survivor.members[1]);
        let members = [first, self.members.len() as u32];
        self.survivors.push(Survivor { detection, keeper, members });
    }

    /// Drops the survivors below the thresholds of their classes, and sorts the others.
    fn finish(&mut self, params: &Params) {
        // A comparison with NaN is false, so that a threshold of NaN drops nothing.
        let is_below =
            |detection: &Detection| detection.score < params.thresholds.of(detection.class);
        self.survivors.retain(|survivor| !is_below(&survivor.detection));
        self.survivors.sort_unstable_by(|a, b| {
            b.detection.score.total_cmp(&a.detection.score).then(a.keeper.cmp(&b.keeper))
        });
    }
}

impl Merging {
    /// The survivors of a method that changes boxes or scores, or decides by a column.
    pub fn run(&mut self, ranked: &Ranked<'_>, params: &Params) -> &mut Merged {
        self.merged.clear();
        let part = |key: &u64| match ranked.compares_classes {
            true => ranked.candidates[ranking::index(*key)].class as usize,
            false => 0,
        };
        let mut parts = std::mem::take(&mut self.parts);
        parts.fill_positions(ranked.keys.iter().map(part));
        for positions in parts.iter().filter(|positions| !positions.is_empty()) {
            self.run_part(ranked, positions, params);
        }
        self.parts = parts;
        self.merged.finish(params);
        &mut self.merged
    }

    fn run_part(&mut self, ranked: &Ranked<'_>, positions: &[u32], params: &Params) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.clear();
        let candidate = |&position: &u32| ranking::index(ranked.keys[position as usize]);
        entries.extend(
            positions
                .iter()
                .map(|position| Entry::new(&ranked.candidates[candidate(position)], params)),
        );
        let part = Part { ranked, positions, entries: &entries };
        <()>::with_test(params, (&mut *self, &part, params));
        self.entries = entries;
    }

    #[inline(always)]
    fn run_method<C: Conflict<Shape = ()>>(&mut self, part: &Part<'_>, params: &Params) {
        let Self { grid, claims, fusion, rescoring, matrix, merged, .. } = self;
        match params.method {
            Method::Merge | Method::MergeTransitive => {
                claims.find::<C>(part, grid, params);
                if params.lose_released {
                    claims.grow::<C::Strict>(part, params, merged);
                } else {
                    claims.grow::<C>(part, params, merged);
                }
            }
            Method::WeightedAverage => {
                claims.find::<C>(part, grid, params);
                claims.average(part, merged);
            }
            Method::WeightedFusion => fusion.run::<C>(part, grid, params, merged),
            Method::SoftLinear | Method::SoftGaussian => {
                rescoring.soft::<C>(part, grid, params, merged);
            }
            Method::MatrixLinear | Method::MatrixGaussian => {
                matrix::run::<C>(part, matrix, params, merged);
            }
            Method::Adaptive | Method::Feature => by_column::run::<C>(part, grid, params, merged),
            Method::Greedy | Method::MapReduce | Method::None => {
                unreachable!("{} needs no grid of merging", params.method.name())
            }
        }
    }
}

impl WithTest<()> for (&mut Merging, &Part<'_>, &Params) {
    #[inline(never)]
    fn run<C: Conflict<Shape = ()>>(self) {
        let (merging, part, params) = self;
        merging.run_method::<C>(part, params);
    }
}

/// The overlap of two candidates of a part.
#[inline(always)]
fn overlap_of<C: Conflict>(higher: &Measured, lower: &Measured, offset: f32) -> f32 {
    let (a, b) = (&higher.corners, &lower.corners);
    let width = lesser(a.x2, b.x2) - greater(a.x1, b.x1) + offset;
    let height = lesser(a.y2, b.y2) - greater(a.y1, b.y1) + offset;
    if width <= 0.0 || height <= 0.0 {
        return 0.0;
    }
    let intersection = width * height;
    limited(C::OVERLAP.value(&Pair { higher: *higher, lower: *lower, intersection, offset }))
}
