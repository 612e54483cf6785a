// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups candidates by class, in descending rank.
//!
//! In: keys in descending rank, and the class of each key. Out: the positions of each class's keys.
//! Candidates of different classes do not conflict, so each class can be suppressed separately, and
//! a candidate is compared with far fewer boxes. Survivors are marked by position, and then read in
//! descending rank.

use super::super::Detection;
use super::buckets::Buckets;
use super::ranking;

/// Below this number of candidates, a list of suppressors for each class is faster.
pub(super) const LEAST_CANDIDATES: usize = 256;

/// The positions of candidates by class; its buffers are reused.
#[derive(Debug, Default)]
pub(super) struct ByClass {
    positions: Buckets,
    /// For each position, true if its candidate survives.
    pub survives: Vec<bool>,
}

impl ByClass {
    /// Sorts the positions of `keys` by the class of their candidates, and marks no candidate as a
    /// survivor.
    pub fn sort(&mut self, keys: &[u64], candidates: &[Detection]) {
        let class = |key: &u64| candidates[ranking::index(*key)].class as usize;
        self.positions.fill_positions(keys.iter().map(class));
        self.survives.clear();
        self.survives.resize(keys.len(), false);
    }

    /// The positions of one class after the other, in ascending order within each class, and the
    /// marks for survivors.
    pub fn classes(&mut self) -> (impl Iterator<Item = &[u32]>, &mut [bool]) {
        (self.positions.iter().filter(|of_class| !of_class.is_empty()), &mut self.survives)
    }
}
