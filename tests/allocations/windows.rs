// SPDX-License-Identifier: MIT OR Apache-2.0
//! The windows that the tests of this program decode.

/// Windows on a grid; each overlaps its neighbors.
pub fn windows(count: usize) -> Vec<f32> {
    (0..count)
        .flat_map(|i| [(i % 50) as f32 * 12.0, (i / 50) as f32 * 12.0, 20.0, 0.9 - i as f32 * 1e-4])
        .collect()
}
