// SPDX-License-Identifier: MIT OR Apache-2.0
//! The claims of keepers, and the boxes that claims become.
//!
//! In: the candidates of a part, in descending rank. Out: a survivor for each keeper, with the
//! candidates that were merged into it.

use super::super::super::merging::{WeightedMean, union};
use super::super::super::{Method, Params};
use super::super::buckets::Buckets;
use super::super::conflict::{Conflict, Entry};
use super::box_grid::BoxGrid;
use super::{Merged, Part};
use crate::geometry::overlap::Measured;

/// The keeper to which each candidate belongs; buffers are reused.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// For each candidate, its keeper.
    keepers: Vec<u32>,
    /// The members of each claim without the keeper, in descending rank.
    members: Buckets,
    pending: Vec<u32>,
    released: Vec<u32>,
}

impl Claims {
    /// Finds the claims of the method.
    #[inline(always)]
    pub fn find<C: Conflict<Shape = ()>>(
        &mut self,
        part: &Part<'_>,
        grid: &mut BoxGrid,
        params: &Params,
    ) {
        let is_transitive = params.method == Method::MergeTransitive;
        let Self { keepers, members, .. } = self;
        grid.clear(part.entries, params.pixel_offset);
        keepers.clear();
        for (candidate, entry) in (0..).zip(part.entries) {
            let test = C::new(params, part.threshold(candidate, params));
            let claimer = grid.first(entry, |other| test.conflict(other, entry));
            keepers.push(claimer.map_or(candidate, |claimer| keepers[claimer as usize]));
            if is_transitive || claimer.is_none() {
                grid.push(candidate, entry);
            }
        }
        let is_member = |&(keeper, candidate): &(usize, u32)| keeper != candidate as usize;
        let all = keepers.iter().map(|&keeper| keeper as usize).zip(0..);
        members.fill(keepers.len(), all.filter(is_member));
    }

    /// The keepers, each with the other members of its claim.
    fn all(&self) -> impl Iterator<Item = (u32, &[u32])> {
        let is_keeper = |&(candidate, _): &(u32, _)| self.keepers[candidate as usize] == candidate;
        (0..).zip(self.members.iter()).filter(is_keeper)
    }

    /// Adds survivors with the weighted mean of each claim.
    pub fn average(&self, part: &Part<'_>, merged: &mut Merged) {
        for (keeper, members) in self.all() {
            let of_keeper = part.detection(keeper);
            let mut mean = WeightedMean::new(&of_keeper.corners(), of_keeper.score);
            merged.members.extend(members.iter().map(|&member| part.detection(member).anchor));
            for member in members.iter().map(|&member| part.detection(member)) {
                mean.add(&member.corners(), member.score);
            }
            merged.push(part, keeper, mean.corners(), of_keeper.score);
        }
    }

    /// Adds survivors with the grown box of each claim, and with the boxes that are released.
    #[inline(always)]
    pub fn grow<C: Conflict<Shape = ()>>(
        &mut self,
        part: &Part<'_>,
        params: &Params,
        merged: &mut Merged,
    ) {
        let mut pending = std::mem::take(&mut self.pending);
        let mut released = std::mem::take(&mut self.released);
        for (mut keeper, members) in self.all() {
            pending.clear();
            pending.extend_from_slice(members);
            loop {
                let mut grown = part.entries[keeper as usize];
                released.clear();
                for &member in &pending {
                    let test = C::new(params, part.threshold(member, params));
                    let entry = &part.entries[member as usize];
                    if test.conflict(&grown, entry) {
                        let both = union(grown.corners(), entry.corners());
                        let measured = Measured::new(both, params.pixel_offset);
                        grown = Entry { measured, ..grown };
                        merged.members.push(part.detection(member).anchor);
                    } else {
                        released.push(member);
                    }
                }
                merged.push(part, keeper, *grown.corners(), part.detection(keeper).score);
                if params.lose_released || released.is_empty() {
                    break;
                }
                // The released members are a claim in turn.
                keeper = released[0];
                pending.clear();
                pending.extend_from_slice(&released[1..]);
            }
        }
        (self.pending, self.released) = (pending, released);
    }
}
