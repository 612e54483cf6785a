// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sorts values into buckets, by counting.
//!
//! In: values, each with the index of its bucket. Out: the values of each bucket, in their order. The time is
//! O(values + buckets).

/// Values by bucket; the memory is reused.
#[derive(Debug, Default)]
pub(super) struct Buckets<T = u32> {
    /// For each bucket, the index in `values` after its last value.
    ends: Vec<u32>,
    /// The values of all buckets, one bucket after the other.
    pub values: Vec<T>,
}

impl<T: Copy + Default> Buckets<T> {
    /// Sorts values into `count` buckets.
    #[inline(always)]
    pub fn fill(&mut self, count: usize, values: impl Iterator<Item = (usize, T)> + Clone) {
        let Self { ends, values: sorted } = self;
        ends.clear();
        ends.resize(count, 0);
        values.clone().for_each(|(bucket, _)| ends[bucket] += 1);
        let mut first = 0;
        for end in ends.iter_mut() {
            (*end, first) = (first, first + *end);
        }
        sorted.clear();
        sorted.resize(first as usize, T::default());
        for (bucket, value) in values {
            let end = &mut ends[bucket];
            sorted[*end as usize] = value;
            *end += 1;
        }
    }

    /// The values of each bucket.
    pub fn iter(&self) -> impl Iterator<Item = &[T]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.values[start as usize..end as usize])
    }
}

impl Buckets {
    /// Sorts the positions of items that belong to these buckets.
    #[inline(always)]
    pub fn fill_positions(&mut self, buckets: impl Iterator<Item = usize> + Clone) {
        let count = buckets.clone().max().map_or(0, |greatest| greatest + 1);
        self.fill(count, buckets.zip(0..));
    }
}
