// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulates a sliding-window face detector.
//!
//! In: the people of a frame. Out: windows. Each visible head has a cluster of windows at adjacent
//! positions and scales, whose scores decrease with their distance. There is also clutter, which is
//! false windows with low scores.

use super::scene::{Crowd, Person, Scene, intersection, pixels_around};
use super::splitmix64::SplitMix64;
use crate::grid::Grid;

/// A square window with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Window {
    pub x: f32,
    pub y: f32,
    pub side: f32,
    pub score: f32,
}

impl Window {
    fn corners(&self) -> [f32; 4] {
        [self.x, self.y, self.x + self.side, self.y + self.side]
    }
}

/// The position of a window relative to the best window of its cluster, in steps: right, down, and
/// scale.
type Neighbor = (i8, i8, i8);

/// Distance between adjacent positions, as a fraction of the head's side.
const POSITION_STEP: f32 = 0.08;
/// Ratio between adjacent scales.
const SCALE_STEP: f32 = 1.12;
/// Mean number of windows per head, which oscillates between this minimum and maximum.
const WINDOWS_PER_HEAD: (f32, f32) = (6.6, 10.8);
/// Period of this oscillation, in frames.
const WINDOW_COUNT_PERIOD: u64 = 240;
/// Number of clutter windows per window on a head.
const CLUTTER_FRACTION: f32 = 0.03;
/// Minimum and maximum side of clutter windows, in pixels.
const CLUTTER_SIDES: (f32, f32) = (16.0, 64.0);
/// Minimum score. It is above the usual threshold of 0.25.
const MIN_SCORE: f32 = 0.26;

/// Generates the windows of frames, and reuses its memory.
#[derive(Default)]
pub(super) struct WindowGenerator {
    windows: Vec<Window>,
    /// Indices of the clutter windows.
    clutter: Grid,
}

impl WindowGenerator {
    /// Returns the windows of a frame in the order in which a detector scans: by scale, row and
    /// column.
    pub fn windows(&mut self, scene: &Scene, frame: u64, crowd: &Crowd) -> &[Window] {
        let windows = &mut self.windows;
        windows.clear();
        let level =
            (2.0 * (frame % WINDOW_COUNT_PERIOD) as f32 / WINDOW_COUNT_PERIOD as f32 - 1.0).abs();
        let mean = WINDOWS_PER_HEAD.0 + (WINDOWS_PER_HEAD.1 - WINDOWS_PER_HEAD.0) * level;
        for person in crowd.people().iter().filter(|person| person.visible) {
            let mut random = SplitMix64::new(&[scene.seed, 2, frame, u64::from(person.id)]);
            // Rounds at random, so that the expected number is `mean`.
            let count = (mean + random.next_f32()) as usize;
            cluster(person, count, &mut random, windows);
        }
        self.clutter(scene, frame, crowd);
        self.windows.sort_by(|a, b| {
            a.side.total_cmp(&b.side).then(a.y.total_cmp(&b.y)).then(a.x.total_cmp(&b.x))
        });
        &self.windows
    }

    /// Adds clutter windows. They intersect neither heads nor each other.
    fn clutter(&mut self, scene: &Scene, frame: u64, crowd: &Crowd) {
        let Self { windows, clutter } = self;
        let mut random = SplitMix64::new(&[scene.seed, 3, frame]);
        let head_windows = windows.len();
        let target = (head_windows as f32 * CLUTTER_FRACTION).round() as usize;
        clutter.clear([scene.width, scene.height], CLUTTER_SIDES.1 as u32, target);
        // The number of attempts is limited, because there may not be enough space between heads.
        for _ in 0..target * 8 {
            if windows.len() == head_windows + target {
                break;
            }
            let side = random.in_range(CLUTTER_SIDES.0, CLUTTER_SIDES.1).round();
            let side = side.min(scene.width.min(scene.height) as f32);
            let window = Window {
                x: random.in_range(0.0, scene.width as f32 - side).round(),
                y: random.in_range(0.0, scene.height as f32 - side).round(),
                side,
                score: random.in_range(MIN_SCORE, 0.34),
            };
            let corners = window.corners();
            let pixels = pixels_around(corners, 0.0);
            let clear = clutter
                .near(pixels)
                .all(|i| intersection(corners, windows[i as usize].corners()) == 0.0);
            if clear && crowd.is_free_of_heads(corners) {
                clutter.insert(pixels, windows.len() as u32);
                windows.push(window);
            }
        }
    }
}

/// Adds `count` windows on the head of `person`.
fn cluster(person: &Person, count: usize, random: &mut SplitMix64, windows: &mut Vec<Window>) {
    let peak = random.in_range(0.75, 0.98);
    let mut neighbors: Vec<Neighbor> = Vec::with_capacity(43);
    for scale in -1..=1i8 {
        let reach = if scale == 0 { 2 } else { 1 };
        for down in -reach..=reach {
            for right in -reach..=reach {
                neighbors.push((right, down, scale));
            }
        }
    }
    neighbors.sort_by_key(distance);
    for i in 0..count.min(neighbors.len()) {
        // The first window is the best one. Each further window is chosen at random from the eight
        // nearest that remain.
        let pick = match i {
            0 => 0,
            _ => i + random.index((neighbors.len() - i).min(8)),
        };
        neighbors.swap(i, pick);
        let (right, down, scale) = neighbors[i];
        let side = (person.side * SCALE_STEP.powi(i32::from(scale))).round();
        let x = person.x - side / 2.0 + f32::from(right) * POSITION_STEP * person.side;
        let y = person.y - side / 2.0 + f32::from(down) * POSITION_STEP * person.side;
        let far = f32::from(distance(&neighbors[i])) * 0.35;
        let score = MIN_SCORE + (peak - MIN_SCORE) / (1.0 + far) - 0.01 * random.next_f32();
        // A detector scans positions in whole pixels.
        windows.push(Window { x: x.round(), y: y.round(), side, score: score.max(MIN_SCORE) });
    }
}

/// Returns the squared distance to the best window, in steps. A step in scale counts twice.
fn distance(&(right, down, scale): &Neighbor) -> u8 {
    (right * right + down * down + 2 * scale * scale).unsigned_abs()
}
