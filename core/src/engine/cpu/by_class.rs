// SPDX-License-Identifier: MIT OR Apache-2.0
//! Candidates of each class together, in descending rank.
//!
//! In: keys in descending rank, and the class of each. Out: the positions of the keys of each class. Candidates of
//! different classes do not conflict, so that each class is suppressed by itself, with a few boxes to compare in place of
//! those of all classes; which survive is noted by position, and read in descending rank. The positions are sorted by
//! counting, O(n + classes).

use super::super::Detection;
use super::ranking;

/// With fewer candidates, comparing with the boxes of all classes takes no longer.
pub(super) const LEAST_CANDIDATES: usize = 32;

/// The positions of candidates by class; its buffers are reused.
#[derive(Debug, Default)]
pub(super) struct ByClass {
    /// For each class, the index in `positions` after its last.
    ends: Vec<u32>,
    positions: Vec<u32>,
    /// Whether the candidate at this position survives.
    pub survives: Vec<bool>,
}

impl ByClass {
    /// Sorts the positions of `keys` by the class of their candidates. No candidate survives.
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

    /// The positions of class after class, those of a class in ascending order, and where to note which survive.
    pub fn classes(&mut self) -> (impl Iterator<Item = &[u32]>, &mut [bool]) {
        let Self { ends, positions, survives } = self;
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let ranges = starts.zip(ends.iter()).map(|(start, &end)| start as usize..end as usize);
        let classes = ranges.map(|range| &positions[range]);
        (classes.filter(|of_class| !of_class.is_empty()), survives)
    }
}
