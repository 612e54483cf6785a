// SPDX-License-Identifier: MIT OR Apache-2.0
//! Candidates sorted by rank.
//!
//! In: candidates in the order of their anchors. Out: 64-bit keys in descending rank, with the
//! score in the upper half and the candidate's index in the lower half. Keys are moved to buckets, and a bucket is sorted
//! when its keys are read, which takes O(n) in all if the scores are spread evenly. Many keys that are all needed take less
//! time with a least-significant-digit radix sort.

use super::super::Detection;
use super::dispatch::{Work, dispatch};
use crate::functions::order;

/// The greatest number of buckets. Otherwise it is about the number of candidates.
const MAX_BUCKETS: usize = 4096;
/// Up to this number of keys, buckets take less time than a radix sort.
const MAX_BUCKETED: usize = 2 * MAX_BUCKETS;
const DIGIT_BITS: u32 = 8;
const DIGITS: usize = 32 / DIGIT_BITS as usize;
const DIGIT_VALUES: usize = 1 << DIGIT_BITS;
/// Sorts candidates by rank, and reuses its buffers.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    /// In the upper half a number that is lower for higher scores, which are never minus zero; in the lower half the candidate's
    /// index.
    keys: Vec<u64>,
    scratch: Vec<u64>,
    /// The number of keys in each bucket, then the index after the last one.
    counts: Vec<u32>,
    /// The number of keys to return.
    end: usize,
    /// The number of keys that [`next`](Self::next) has returned.
    read: usize,
    /// The number of keys that are sorted.
    sorted: usize,
    /// The index of the first bucket that is not sorted.
    bucket: usize,
}

/// The rule that assigns keys to buckets: a higher bucket has higher keys.
#[derive(Clone, Copy)]
struct KeyBuckets {
    /// The lowest upper half of a key.
    low: u32,
    shift: u32,
}

impl KeyBuckets {
    #[inline(always)]
    fn of(self, key: u64) -> usize {
        (((key >> 32) as u32 - self.low) >> self.shift) as usize
    }
}

impl Ranking {
    /// The keys of the `count` highest-ranked candidates, in descending rank; [`index`] returns the
    /// candidate's index. `candidates` are in the order of their anchors.
    pub fn top(&mut self, candidates: &[Detection], count: usize) -> &[u64] {
        self.begin(candidates, count, true);
        self.next(count)
    }

    /// Ranks candidates for [`next`](Self::next), which returns the keys of
    /// [`top`](Self::top) in parts. Without `needs_all`, keys that are not read are not sorted.
    pub fn begin(&mut self, candidates: &[Detection], count: usize, needs_all: bool) {
        dispatch((self, candidates, count, needs_all));
    }

    /// The next keys in descending rank, at most `most`; none if all were returned.
    #[inline(always)]
    pub fn next(&mut self, most: usize) -> &[u64] {
        let end = self.end.min(self.read + most);
        if self.sorted < end {
            self.sort_buckets(end);
        }
        let first = std::mem::replace(&mut self.read, end);
        &self.keys[first..end]
    }

    /// Sorts further buckets, until at least `count` keys are sorted.
    fn sort_buckets(&mut self, count: usize) {
        while self.sorted < count {
            let end = self.counts[self.bucket] as usize;
            self.keys[self.sorted..end].sort_unstable();
            (self.sorted, self.bucket) = (end, self.bucket + 1);
        }
    }

    /// Moves the keys to the order of their buckets. Keys of one bucket stay in order.
    #[inline(always)]
    fn fill_buckets(&mut self) {
        let Self { keys, scratch, counts, .. } = self;
        let (low, high) = keys.iter().fold((u32::MAX, 0), |(low, high), &key| {
            let upper = (key >> 32) as u32;
            (low.min(upper), high.max(upper))
        });
        let count = keys.len().next_power_of_two().min(MAX_BUCKETS);
        let bits = u32::BITS - high.saturating_sub(low).leading_zeros();
        let buckets = KeyBuckets { low, shift: bits.saturating_sub(count.trailing_zeros()) };
        counts.clear();
        counts.resize(count, 0);
        keys.iter().for_each(|&key| counts[buckets.of(key)] += 1);
        scatter(keys, scratch, counts, |key| buckets.of(key));
    }

    /// Sorts by the upper halves, digit by digit. The lower halves are already in ascending order.
    /// Each pass is stable, so keys with equal upper halves stay in ascending order.
    #[inline(always)]
    fn radix_sort(&mut self) {
        let digit = |key: u64, index: usize| {
            (key >> (32 + index as u32 * DIGIT_BITS)) as usize % DIGIT_VALUES
        };
        let mut counts = [[0u32; DIGIT_VALUES]; DIGITS];
        for &key in &self.keys {
            for (index, counts) in counts.iter_mut().enumerate() {
                counts[digit(key, index)] += 1;
            }
        }
        for (index, counts) in counts.iter_mut().enumerate() {
            let all_equal = counts[digit(self.keys[0], index)] as usize == self.keys.len();
            if !all_equal {
                scatter(&mut self.keys, &mut self.scratch, counts, |key| digit(key, index));
            }
        }
    }
}

impl Work for (&mut Ranking, &[Detection], usize, bool) {
    #[inline(always)]
    fn run(self) {
        let (ranking, candidates, count, needs_all) = self;
        let key = |(i, d): (usize, &Detection)| u64::from(!order(d.score)) << 32 | i as u64;
        ranking.keys.clear();
        ranking.keys.extend(candidates.iter().enumerate().map(key));
        (ranking.read, ranking.sorted, ranking.bucket) = (0, 0, 0);
        ranking.end = ranking.keys.len().min(count);
        if needs_all && ranking.end > MAX_BUCKETED {
            ranking.radix_sort();
            ranking.sorted = ranking.end;
        } else {
            ranking.fill_buckets();
        }
    }
}

/// Moves keys to the order of their buckets. Keys of one bucket stay in order. `counts` has the
/// number of keys in each bucket, and afterwards the index after the bucket's last key.
#[inline(always)]
fn scatter(
    keys: &mut Vec<u64>,
    scratch: &mut Vec<u64>,
    counts: &mut [u32],
    bucket: impl Fn(u64) -> usize,
) {
    let mut first = 0;
    for count in counts.iter_mut() {
        first += std::mem::replace(count, first);
    }
    scratch.resize(keys.len(), 0);
    for &key in &*keys {
        let next = &mut counts[bucket(key)];
        scratch[*next as usize] = key;
        *next += 1;
    }
    std::mem::swap(keys, scratch);
}

/// The index of the candidate of a key.
#[inline(always)]
pub(super) fn index(key: u64) -> usize {
    key as u32 as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn higher_scores_come_first_and_of_equal_scores_the_earlier_anchor() {
        let kinds: [fn(&mut fastrand::Rng) -> f32; 5] = [
            |rng| rng.f32(),
            |rng| f32::from(rng.u8(..)) / 255.0,
            |rng| (rng.f32() - 0.5) * 2.0f32.powi(rng.i32(-120..120)),
            // Most scores in a narrow range, and a few far above it.
            |rng| if rng.u32(..).is_multiple_of(97) { 1e30 } else { 0.25 + 1e-6 * rng.f32() },
            |_| 0.5,
        ];
        let mut rng = fastrand::Rng::with_seed(7);
        let mut ranking = Ranking::default();
        for count in [0, 1, 2, 3, 100, 1000, MAX_BUCKETS, MAX_BUCKETS + 1, 20_000] {
            for kind in kinds {
                let score = |rng: &mut _| Detection { score: kind(rng), ..Detection::default() };
                let candidates: Vec<Detection> = (0..count).map(|_| score(&mut rng)).collect();
                let mut expected: Vec<usize> = (0..count).collect();
                expected.sort_by(|&a, &b| candidates[b].score.total_cmp(&candidates[a].score));
                for count in [count, count / 3] {
                    let keys = ranking.top(&candidates, count);
                    let found: Vec<usize> = keys.iter().map(|&key| index(key)).collect();
                    assert_eq!(found, expected[..count]);
                    ranking.begin(&candidates, count, false);
                    let part = |ranking: &mut Ranking| ranking.next(32).to_vec();
                    let parts = std::iter::from_fn(|| Some(part(&mut ranking)));
                    let parts: Vec<u64> =
                        parts.take_while(|part| !part.is_empty()).flatten().collect();
                    let found: Vec<usize> = parts.into_iter().map(index).collect();
                    assert_eq!(found, expected[..count]);
                }
            }
        }
    }
}
