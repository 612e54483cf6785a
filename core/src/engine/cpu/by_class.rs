// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups candidates by class, in descending rank.
//!
//! In: keys in descending rank, and the class of each key. Out: the positions of each class's keys.
//! Candidates of different classes do not conflict, so each class can be suppressed separately, and
//! a candidate is compared with far fewer boxes. Survivors are marked by position, and then read in
//! descending rank. Positions are sorted by counting, in O(n + classes).

use super::super::Detection;
use super::ranking;

/// Below this number of candidates, a list of suppressors for each class is faster.
pub(super) const LEAST_CANDIDATES: usize = 256;

/// The positions of candidates by class; its buffers are reused.
#[derive(Debug, Default)]
pub(super) struct ByClass {
    /// For each class, the index in `positions` after the class's last position.
    ends: Vec<u32>,
    positions: Vec<u32>,
    /// For each position, true if its candidate survives.
    pub survives: Vec<bool>,
}

impl ByClass {
    /// Sorts the positions of `keys` by the class of their candidates, and marks no candidate as a
    /// survivor.
    #[inline(always)]
    pub fn sort(&mut self, keys: &[u64], candidates: &[Detection]) {
        let Self { ends, positions, survives } = self;
        let class = |key: &u64| candidates[ranking::index(*key)].class as usize;
        let classes = keys.iter().map(class).max().map_or(0, |greatest| greatest + 1);
        ends.clear();
        ends.resize(classes, 0);
        keys.iter().for_each(|key| ends[class(key)] += 1);
        let mut first = 0;
        for end in ends.iter_mut() {
            (*end, first) = (first, first + *end);
        }
        positions.clear();
        positions.resize(keys.len(), 0);
        for (position, key) in (0..).zip(keys) {
            let end = &mut ends[class(key)];
            positions[*end as usize] = position;
            *end += 1;
        }
        survives.clear();
        survives.resize(keys.len(), false);
    }

    /// The positions of one class after the other, in ascending order within each class, and the
    /// marks for survivors.
    pub fn classes(&mut self) -> (impl Iterator<Item = &[u32]>, &mut [bool]) {
        let Self { ends, positions, survives } = self;
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let ranges = starts.zip(ends.iter()).map(|(start, &end)| start as usize..end as usize);
        let classes = ranges.map(|range| &positions[range]);
        (classes.filter(|of_class| !of_class.is_empty()), survives)
    }
}
