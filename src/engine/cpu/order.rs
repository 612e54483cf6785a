//! Candidates by rank.

use super::super::Detection;

/// Below this many, sorting by comparison is the quicker.
const FEW: usize = 400;
const DIGIT: u32 = 8;
const DIGITS: usize = 32 / DIGIT as usize;
const VALUES: usize = 1 << DIGIT;

/// Which candidate comes first, second and so on.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// What ranks in the upper half, the candidate's index in the lower.
    keys: Vec<u64>,
    spare: Vec<u64>,
}

impl Order {
    /// The `most` highest-ranked, by rank, each to be had by [`index`]. `candidates` lie in the
    /// order of their rows.
    #[inline(always)]
    pub fn of(&mut self, candidates: &[Detection], most: usize) -> &[u64] {
        let key = |(i, d): (usize, &Detection)| u64::from(descending(d.score)) << 32 | i as u64;
        self.keys.clear();
        self.keys.extend(candidates.iter().enumerate().map(key));
        if most < self.keys.len() {
            self.keys.select_nth_unstable(most);
            self.keys.truncate(most);
            // Rows in order again, of which a stable sort makes use.
            self.keys.sort_unstable();
        } else if self.keys.len() < FEW {
            self.keys.sort_unstable();
        } else {
            self.sort_by_digits();
        }
        &self.keys
    }

    /// Keys whose lower halves ascend already; the stable passes leave them so among equals.
    #[inline(always)]
    fn sort_by_digits(&mut self) {
        let digit = |key: u64, place: usize| (key >> (32 + place as u32 * DIGIT)) as usize % VALUES;
        let mut counts = [[0u32; VALUES]; DIGITS];
        for &key in &self.keys {
            for (place, counts) in counts.iter_mut().enumerate() {
                counts[digit(key, place)] += 1;
            }
        }
        self.spare.resize(self.keys.len(), 0);
        for (place, counts) in counts.iter_mut().enumerate() {
            if counts[digit(self.keys[0], place)] as usize == self.keys.len() {
                continue; // all alike
            }
            let mut first = 0;
            for count in counts.iter_mut() {
                first += std::mem::replace(count, first);
            }
            for &key in &self.keys {
                let next = &mut counts[digit(key, place)];
                self.spare[*next as usize] = key;
                *next += 1;
            }
            std::mem::swap(&mut self.keys, &mut self.spare);
        }
    }
}

/// Which candidate a key of [`Order`] is of.
#[inline(always)]
pub(super) fn index(key: u64) -> usize {
    key as u32 as usize
}

/// Less for higher scores; scores are finite and never minus zero.
#[inline(always)]
fn descending(score: f32) -> u32 {
    let bits = score.to_bits();
    if bits >> 31 == 0 { !bits & 0x7fff_ffff } else { bits }
}
