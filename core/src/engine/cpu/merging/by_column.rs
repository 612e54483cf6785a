// SPDX-License-Identifier: MIT OR Apache-2.0
//! Greedy suppression in which a column decides, too: Adaptive-NMS and FeatureNMS.
//!
//! In: the candidates of a part, in descending rank, with their numbers in the column. Out: a
//! survivor for each candidate that no survivor of higher rank suppresses.

use super::super::super::pair_rules::{adaptive_threshold, are_near};
use super::super::super::{Method, Params};
use super::super::conflict::Conflict;
use super::box_grid::BoxGrid;
use super::{Merged, Part};

/// Adds the survivors of the method.
#[inline(always)]
pub(super) fn run<C: Conflict<Shape = ()>>(
    part: &Part<'_>,
    grid: &mut BoxGrid,
    params: &Params,
    merged: &mut Merged,
) {
    let duplicates = C::new(params, params.embedding_iou_threshold);
    grid.clear(part.entries, params.pixel_offset);
    for (candidate, entry) in (0..).zip(part.entries) {
        let threshold = part.threshold(candidate, params);
        let is_suppressed = if params.method == Method::Adaptive {
            grid.any(entry, |other, higher| {
                let threshold = adaptive_threshold(threshold, part.row(other)[0]);
                C::new(params, threshold).conflict(higher, entry)
            })
        } else {
            let (test, row) = (C::new(params, threshold), part.row(candidate));
            grid.any(entry, |other, higher| {
                test.conflict(higher, entry)
                    && (duplicates.conflict(higher, entry)
                        || are_near(part.row(other), row, params.embedding_distance))
            })
        };
        if !is_suppressed {
            grid.push(candidate, entry);
            merged.push(part, candidate, *entry.corners(), part.detection(candidate).score);
        }
    }
}
