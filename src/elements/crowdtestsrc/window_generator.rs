//! What a sliding-window face detector would give: round each head a cluster of windows at
//! neighboring positions and scales, scores falling off with the distance, and some clutter.

use super::scene::{Crowd, Person, Scene, intersection, pixels_around};
use super::splitmix64::SplitMix64;
use crate::elements::grid::Grid;

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

/// A neighbor of the best window: steps to the right, down, and in scale.
type Neighbor = (i8, i8, i8);

/// From one position to the next, in sides.
const POSITION_STEP: f32 = 0.08;
/// From one scale to the next.
const SCALE_STEP: f32 = 1.12;
/// Windows on a head, at the fewest and at the most; the number swells and ebbs.
const WINDOWS_PER_HEAD: (f32, f32) = (6.6, 10.8);
/// Frames from one high tide to the next.
const WINDOW_COUNT_PERIOD: u64 = 240;
/// Clutter windows per window on a head.
const CLUTTER_FRACTION: f32 = 0.03;
/// Sides of clutter windows, the smallest and the largest.
const CLUTTER_SIDES: (f32, f32) = (16.0, 64.0);
/// The score of the faintest window, above any threshold of 0.25.
const MIN_SCORE: f32 = 0.26;

/// The windows of one frame after another.
#[derive(Default)]
pub(super) struct WindowGenerator {
    windows: Vec<Window>,
    /// Those of them that are on no head.
    clutter: Grid,
}

impl WindowGenerator {
    /// The windows of a frame, in the order of a scan: by scale, then row, then column.
    pub fn windows(&mut self, scene: &Scene, frame: u64, crowd: &Crowd) -> &[Window] {
        let windows = &mut self.windows;
        windows.clear();
        let level =
            (2.0 * (frame % WINDOW_COUNT_PERIOD) as f32 / WINDOW_COUNT_PERIOD as f32 - 1.0).abs();
        let mean = WINDOWS_PER_HEAD.0 + (WINDOWS_PER_HEAD.1 - WINDOWS_PER_HEAD.0) * level;
        for person in crowd.people().iter().filter(|person| person.visible) {
            let mut random = SplitMix64::new(&[scene.seed, 2, frame, u64::from(person.id)]);
            // The fraction decides by lot, so that the mean is the swell.
            let count = (mean + random.next_f32()) as usize;
            cluster(person, count, &mut random, windows);
        }
        self.clutter(scene, frame, crowd);
        self.windows.sort_by(|a, b| {
            a.side.total_cmp(&b.side).then(a.y.total_cmp(&b.y)).then(a.x.total_cmp(&b.x))
        });
        &self.windows
    }

    /// False windows of low score where there is no head.
    fn clutter(&mut self, scene: &Scene, frame: u64, crowd: &Crowd) {
        let Self { windows, clutter } = self;
        let mut random = SplitMix64::new(&[scene.seed, 3, frame]);
        let head_windows = windows.len();
        let target = (head_windows as f32 * CLUTTER_FRACTION).round() as usize;
        clutter.clear([scene.width, scene.height], CLUTTER_SIDES.1 as u32, target);
        // In a frame full of heads there may be no room for all of it.
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
        // After the best, some of the nearest: which of them differs from frame to frame.
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
        // A detector scans whole pixels.
        windows.push(Window { x: x.round(), y: y.round(), side, score: score.max(MIN_SCORE) });
    }
}

/// How far a neighbor is from the best, in squared steps.
fn distance(&(right, down, scale): &Neighbor) -> u8 {
    (right * right + down * down + 2 * scale * scale).unsigned_abs()
}
