// SPDX-License-Identifier: MIT OR Apache-2.0
//! A pseudorandom number generator whose sequences never change. In: keys. Out: numbers.

/// The generator splitmix64 (Steele, Lea and Flood, 2014). Random number crates may change their
/// sequences between versions, but the frames and tensors of a seed must not change.
pub(super) struct SplitMix64(u64);

impl SplitMix64 {
    /// Makes a generator for this combination of keys.
    pub fn new(keys: &[u64]) -> Self {
        let mut random = Self(0);
        for &key in keys {
            random.0 ^= key;
            random.0 = random.next_u64();
        }
        random
    }

    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns the next number, a multiple of 2^-24 that is at least 0 and less than 1.
    pub fn next_f32(&mut self) -> f32 {
        (self.next_u64() >> 40) as f32 / (1 << 24) as f32
    }

    /// Returns the next number between `low` and `high`.
    pub fn in_range(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.next_f32()
    }

    /// Returns the next index, which is less than `len`.
    pub fn index(&mut self, len: usize) -> usize {
        (self.next_f32() * len as f32) as usize
    }
}
