// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sorts numbers into buckets, by counting.
//!
//! In: numbers, each with the index of its bucket. Out: the numbers of each bucket, in their order. The time is
//! O(numbers + buckets).

/// Numbers by bucket; the memory is reused.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    /// For each bucket, the index in `numbers` after its last number.
    ends: Vec<u32>,
    numbers: Vec<u32>,
}

impl Buckets {
    /// Sorts numbers into `count` buckets.
    #[inline(always)]
    pub fn fill(&mut self, count: usize, numbers: impl Iterator<Item = (usize, u32)> + Clone) {
        let Self { ends, numbers: sorted } = self;
        ends.clear();
        ends.resize(count, 0);
        numbers.clone().for_each(|(bucket, _)| ends[bucket] += 1);
        let mut first = 0;
        for end in ends.iter_mut() {
            (*end, first) = (first, first + *end);
        }
        sorted.clear();
        sorted.resize(first as usize, 0);
        for (bucket, number) in numbers {
            let end = &mut ends[bucket];
            sorted[*end as usize] = number;
            *end += 1;
        }
    }

    /// The numbers of each bucket.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.numbers[start as usize..end as usize])
    }
}
