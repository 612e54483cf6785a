// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generates anchors: boxes and scores as detectors output them, and numbers that they should never
//! output.

use fastrand::Rng;

use crate::bytes::{Bytes, SPECIAL};

/// Corners, objectness and class scores of an anchor.
pub struct Anchor {
    pub corners: [f32; 4],
    pub objectness: f32,
    pub scores: Vec<f32>,
}

/// The distribution of anchors.
struct Profile {
    /// Side of the square that contains the objects' first corners, in pixels.
    span: f32,
    /// If true, coordinates are multiples of `span / 32`, so that overlaps can equal thresholds.
    on_a_grid: bool,
    /// Number of distinct scores; 0 for no limit.
    score_levels: u32,
    /// Factor that multiplies all scores.
    score_scale: f32,
    objects: usize,
}

impl Profile {
    fn generate(bytes: &mut Bytes<'_>, count: usize) -> Self {
        Self {
            span: bytes.pick(&[640.0, 64.0, 1.0, 1920.0, 1.0e-3, 1.0e6, 3.0e8]),
            on_a_grid: bytes.bool(),
            score_levels: bytes.pick(&[0, 0, 16, 4, 1]),
            score_scale: bytes.pick(&[1.0, 1.0, 1.0, 1.0, -1.0, 100.0, 1.0e30]),
            objects: 1 + count / (1 + bytes.below(16)),
        }
    }
}

/// Generates `count` anchors, each near an object.
pub fn anchors(bytes: &mut Bytes<'_>, count: usize, classes: usize) -> Vec<Anchor> {
    let profile = Profile::generate(bytes, count);
    let mut rng = bytes.rng();
    let centers: Vec<[f32; 3]> = (0..profile.objects)
        .map(|_| [rng.f32(), rng.f32(), 0.02 + rng.f32() * 0.2].map(|part| part * profile.span))
        .collect();
    (0..count).map(|_| anchor(&mut rng, &profile, &centers, classes)).collect()
}

fn anchor(rng: &mut Rng, profile: &Profile, centers: &[[f32; 3]], classes: usize) -> Anchor {
    let [x, y, side] = centers[rng.usize(0..centers.len())];
    let mut near = |value: f32| value + (rng.f32() - 0.5) * side * 0.5;
    let (x, y, width, height) = (near(x), near(y), near(side), near(side));
    let mut corners = [x, y, x + width, y + height];
    if profile.on_a_grid {
        let step = profile.span / 32.0;
        corners = corners.map(|corner| (corner / step).round() * step);
    }
    let level = |rng: &mut Rng| {
        profile.score_scale
            * match profile.score_levels {
                0 => rng.f32(),
                levels => rng.u32(0..=levels) as f32 / levels as f32,
            }
    };
    let class = rng.usize(0..classes);
    let score = level(rng);
    let others = if rng.bool() { 0.0 } else { 1.0 };
    let scores =
        (0..classes).map(|c| if c == class { score } else { others * level(rng) }).collect();
    Anchor { corners, objectness: if rng.bool() { 1.0 } else { rng.f32() }, scores }
}

/// Replaces some of `numbers` by special numbers: a fraction of all, and single ones at chosen
/// indices.
pub fn corrupt(bytes: &mut Bytes<'_>, numbers: &mut [f32]) {
    if numbers.is_empty() {
        return;
    }
    let share = bytes.pick(&[0.0, 0.0, 0.0, 0.005, 0.05, 0.3]);
    if share > 0.0 {
        let mut rng = bytes.rng();
        for number in numbers.iter_mut() {
            if rng.f32() < share {
                *number = SPECIAL[rng.usize(0..SPECIAL.len())];
            }
        }
    }
    for _ in 0..bytes.byte() % 8 / 4 * 3 {
        let index = bytes.below(numbers.len());
        numbers[index] = bytes.f32();
    }
}
