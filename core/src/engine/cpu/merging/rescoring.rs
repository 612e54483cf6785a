// SPDX-License-Identifier: MIT OR Apache-2.0
//! Soft-NMS.
//!
//! In: the candidates of a part, in descending rank. Out: those whose final score reaches the threshold of their class.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::super::Params;
use super::super::super::merging::{Decay, lowered};
use super::super::conflict::Conflict;
use super::box_grid::BoxGrid;
use super::{Merged, Part, overlap_of};
use crate::functions::order;

/// The state of a part; buffers are reused.
#[derive(Debug, Default)]
pub(super) struct Rescoring {
    scores: Vec<f32>,
    /// For each candidate, true if it has survived or was dropped.
    is_done: Vec<bool>,
    /// The remaining candidates by a score that is at least the current one.
    queue: BinaryHeap<(u32, Reverse<u32>)>,
}

impl Rescoring {
    /// Adds the survivors of Soft-NMS.
    ///
    /// A score only falls, so a candidate taken from the queue has the highest score if its score
    /// has not changed; otherwise it is put back with its current score.
    #[inline(always)]
    pub fn soft<C: Conflict<Shape = ()>>(
        &mut self,
        part: &Part<'_>,
        grid: &mut BoxGrid,
        params: &Params,
        merged: &mut Merged,
    ) {
        let Self { scores, is_done, queue, .. } = self;
        let decay = Decay::of(params.method, params.sigma);
        let count = part.entries.len() as u32;
        grid.clear(part.entries, params.pixel_offset);
        (0..).zip(part.entries).for_each(|(index, entry)| grid.push(index, entry));
        scores.clear();
        scores.extend((0..count).map(|index| part.detection(index).score));
        is_done.clear();
        is_done.resize(scores.len(), false);
        queue.clear();
        queue.extend(scores.iter().zip(0..).map(|(&score, index)| (order(score), Reverse(index))));
        while let Some((taken, Reverse(index))) = queue.pop() {
            let score = scores[index as usize];
            if order(score) != taken {
                queue.push((order(score), Reverse(index)));
                continue;
            }
            is_done[index as usize] = true;
            if score < params.thresholds.of(part.detection(index).class) {
                continue;
            }
            let entry = &part.entries[index as usize];
            merged.push(part, index, *entry.corners(), score);
            grid.for_each_once(entry, |other, of_other| {
                if is_done[other as usize] {
                    return;
                }
                let is_lowered = match decay {
                    Decay::Linear => {
                        C::new(params, part.threshold(other, params)).conflict(entry, of_other)
                    }
                    Decay::Gaussian { .. } => true,
                };
                if is_lowered {
                    let offset = params.pixel_offset;
                    let overlap = overlap_of::<C>(&entry.measured, &of_other.measured, offset);
                    let score = &mut scores[other as usize];
                    *score = lowered(*score, decay.soft(overlap));
                }
            });
        }
    }
}
