// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the bytes of a case as choices.

use fastrand::Rng;

/// Reads choices from bytes. After the end, every byte is 0, which is the simplest choice.
/// Therefore any bytes make a case, and fewer bytes make a simpler case.
pub struct Bytes<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Bytes<'a> {
    pub fn new(data: &'a [u8]) -> Self {
        Self { data, at: 0 }
    }

    pub fn byte(&mut self) -> u8 {
        let byte = self.data.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        byte
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes([0; 4].map(|_: u8| self.byte()))
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes([0; 8].map(|_: u8| self.byte()))
    }

    pub fn bool(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Returns a number below `end`, which must not be 0.
    pub fn below(&mut self, end: usize) -> usize {
        match end {
            0..=256 => usize::from(self.byte()) % end,
            _ => self.u32() as usize % end,
        }
    }

    /// Returns true with a probability of 1 in `n`, which must be at most 255.
    pub fn one_in(&mut self, n: u8) -> bool {
        self.byte() % n == n - 1
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Returns a usual number, a special number, or a number with any bits.
    pub fn f32(&mut self) -> f32 {
        match self.byte() % 4 {
            0 => self.pick(&[0.0, 0.1, 0.25, 0.45, 0.5, 0.7, 1.0, 2.0]),
            1 => self.pick(&SPECIAL),
            2 => f32::from(self.byte()) / 16.0,
            _ => f32::from_bits(self.u32()),
        }
    }

    /// Returns a generator for more numbers than there are bytes. Its seed comes from the bytes.
    pub fn rng(&mut self) -> Rng {
        Rng::with_seed(self.u32().into())
    }
}

/// Numbers at the limits of arithmetic and of the rules.
pub const SPECIAL: [f32; 20] = [
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    -0.0,
    0.0,
    -1.0,
    1.0e-42,
    f32::MIN_POSITIVE,
    f32::EPSILON,
    f32::MAX,
    f32::MIN,
    1.0e9,
    1.000_000_1e9,
    -1.0e9,
    2.0e9,
    1.0e20,
    65_504.0,
    70_000.0,
    16_777_216.0,
    4_294_967_300.0,
];
