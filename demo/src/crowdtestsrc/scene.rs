// SPDX-License-Identifier: MIT OR Apache-2.0
//! The positions of people.
//!
//! In: seed, frame size, number of people and frame number, which determine the result. Out: the
//! head of each person, and if it is visible. People walk in horizontal rows. Rows in the
//! background are higher in the frame and have smaller people. All people of a row walk at one
//! speed, so their distances are constant.

use super::splitmix64::SplitMix64;
use crate::grid::Grid;

/// People in a frame of [`REFERENCE_AREA`] pixels.
const REFERENCE_PEOPLE: f64 = 60.0;
/// Area of a frame of 1920 x 1080 pixels.
const REFERENCE_AREA: f64 = 1920.0 * 1080.0;
/// Minimum side of a head in pixels.
const MIN_HEAD_SIDE: f32 = 8.0;

/// Returns the number of people for a frame of this size: 60 for 1920 x 1080, in proportion to the
/// area.
pub(super) fn default_people(width: u32, height: u32) -> u32 {
    let people = REFERENCE_PEOPLE * f64::from(width) * f64::from(height) / REFERENCE_AREA;
    people.round().clamp(1.0, f64::from(u32::MAX)) as u32
}

/// A person in one frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Person {
    /// Index of the person, which is constant over all frames.
    pub id: u32,
    /// Horizontal center of the head.
    pub x: f32,
    /// Vertical center of the head.
    pub y: f32,
    /// Side of the bounding square of the head.
    pub side: f32,
    /// True if a detector detects the head: at least half of it is in the frame, and at most half
    /// of it is covered by nearer heads.
    pub visible: bool,
}

impl Person {
    /// Returns the head's box: left, top, right, bottom.
    pub fn head(&self) -> [f32; 4] {
        let half = self.side / 2.0;
        [self.x - half, self.y - half, self.x + half, self.y + half]
    }
}

/// All people in one frame.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    people: Vec<Person>,
    /// Centers of the heads.
    heads: Grid,
    /// Maximum side of a head.
    max_head_side: f32,
}

impl Crowd {
    /// Returns all people. Those farthest in the background come first.
    pub fn people(&self) -> &[Person] {
        &self.people
    }

    /// Returns true if this box intersects no head, visible or not.
    pub fn is_free_of_heads(&self, area: [f32; 4]) -> bool {
        self.heads
            .near(pixels_around(area, self.max_head_side / 2.0))
            .all(|id| intersection(area, self.people[id as usize].head()) == 0.0)
    }

    /// Returns true if a head is visible, as [`Person::visible`] defines it. The grid must contain
    /// exactly the nearer people.
    fn is_visible(&self, person: &Person, frame: [f32; 4]) -> bool {
        let (head, half) = (person.head(), person.side * person.side / 2.0);
        if intersection(head, frame) < half {
            return false;
        }
        let mut hidden = 0.0;
        // Adds up the areas in the order of people, so that the rounding of the sum does not depend
        // on the cells of the grid.
        for id in self
            .heads
            .ascending(pixels_around([person.x, person.y, person.x, person.y], self.max_head_side))
        {
            hidden += intersection(head, self.people[id as usize].head());
            if hidden > half {
                return false;
            }
        }
        true
    }
}

/// Extends a box by `by` on each side, and returns its pixels.
pub(super) fn pixels_around([x1, y1, x2, y2]: [f32; 4], by: f32) -> [i32; 4] {
    let (low, high) =
        (|side: f32| (side - by).floor() as i32, |side: f32| (side + by).floor() as i32 + 1);
    [low(x1), low(y1), high(x2), high(y2)]
}

/// A crowd, determined by seed and size.
#[derive(Debug)]
pub(super) struct Scene {
    pub width: u32,
    pub height: u32,
    pub seed: u64,
    motions: Vec<Motion>,
}

/// The properties of a person that are constant over all frames.
#[derive(Debug)]
struct Motion {
    start: f32,
    y: f32,
    side: f32,
    /// Pixels per frame. Positive speeds go to the right.
    speed: f32,
    /// Length of the path in pixels. At its end, the person enters again at the opposite side.
    path_length: f32,
    /// Number of frames per step, for the vertical movement.
    step_frames: f32,
}

impl Scene {
    pub fn new(width: u32, height: u32, people: u32, seed: u64) -> Self {
        let (w, h) = (width as f32, height as f32);
        // There are six rows of ten people at 1920 x 1080.
        let rows = (people as f32 * 0.6 * h / w * 16.0 / 9.0).sqrt().round().max(1.0);
        let row_spacing = h * 0.52 / rows;
        let mut motions = Vec::with_capacity(people as usize);
        for row in 0..rows as u32 {
            let first_member = |row: u32| (u64::from(people) * u64::from(row) / rows as u64) as u32;
            let members = first_member(row + 1) - first_member(row);
            let mut random = SplitMix64::new(&[seed, 1, u64::from(row)]);
            let depth = if rows > 1.0 { row as f32 / (rows - 1.0) } else { 0.5 };
            let mut side = row_spacing * (0.7 + 0.45 * depth);
            let path_length = w + 2.0 * side;
            let spacing = path_length / members.max(1) as f32;
            side = side.min(spacing * 0.7).max(MIN_HEAD_SIDE);
            let direction = if random.next_f32() < 0.5 { -1.0 } else { 1.0 };
            let speed = direction * side * random.in_range(0.02, 0.05);
            let y = h * 0.24 + row_spacing * (row as f32 + 0.5);
            for member in 0..members {
                // Adjacent heads of a row are separated by at least a third of a head.
                let slack = (spacing - side * 1.33).max(0.0);
                motions.push(Motion {
                    start: spacing * member as f32 + slack * random.next_f32(),
                    y: y + row_spacing * random.in_range(-0.08, 0.08),
                    side: side * random.in_range(0.94, 1.0),
                    speed,
                    path_length,
                    step_frames: random.in_range(16.0, 28.0),
                });
            }
        }
        Self { width, height, seed, motions }
    }

    /// Computes all people of a frame.
    pub fn people(&self, frame: u64, crowd: &mut Crowd) {
        // Single precision represents frame numbers up to 2^24 exactly. Afterwards, the motion
        // repeats.
        let time = (frame % (1 << 24)) as f32;
        crowd.people.clear();
        crowd.people.extend((0..).zip(&self.motions).map(|(id, motion)| {
            let x =
                (motion.start + motion.speed * time).rem_euclid(motion.path_length) - motion.side;
            let phase = (time / motion.step_frames).fract();
            let bob = (phase - 0.5).abs() * motion.side * 0.12;
            Person { id, x, y: motion.y + bob, side: motion.side, visible: true }
        }));
        crowd.max_head_side = crowd.people.iter().fold(0.0, |side, person| person.side.max(side));
        // This cell size is chosen so that the centers of overlapping heads are in one cell or in
        // adjacent cells.
        let cell = crowd.max_head_side.ceil() as u32 + 1;
        crowd.heads.clear([self.width, self.height], cell, crowd.people.len());
        let frame = [0.0, 0.0, self.width as f32, self.height as f32];
        for i in (0..crowd.people.len()).rev() {
            let person = crowd.people[i];
            crowd.people[i].visible = crowd.is_visible(&person, frame);
            crowd
                .heads
                .insert(pixels_around([person.x, person.y, person.x, person.y], 0.0), person.id);
        }
    }
}

/// Returns the area of the intersection of two boxes.
pub(super) fn intersection(a: [f32; 4], b: [f32; 4]) -> f32 {
    let width = a[2].min(b[2]) - a[0].max(b[0]);
    let height = a[3].min(b[3]) - a[1].max(b[1]);
    width.max(0.0) * height.max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes what [`Scene::people`] computes, from all pairs.
    fn is_visible(scene: &Scene, people: &[Person], i: usize) -> bool {
        let (head, half) = (people[i].head(), people[i].side * people[i].side / 2.0);
        let frame = [0.0, 0.0, scene.width as f32, scene.height as f32];
        let nearer = people[i + 1..].iter();
        let hidden: f32 = nearer.map(|other| intersection(head, other.head())).sum();
        intersection(head, frame) >= half && hidden <= half
    }

    #[test]
    fn a_head_is_visible_unless_nearer_heads_cover_more_than_half() {
        let mut crowd = Crowd::default();
        for (width, height, people) in
            [(1920, 1080, 400), (64, 36, 500), (1, 1, 20), (3000, 5, 200), (320, 2000, 1000)]
        {
            let scene = Scene::new(width, height, people, 11);
            let mut seen = 0;
            for frame in [0, 7, 1 << 20] {
                scene.people(frame, &mut crowd);
                let people = crowd.people();
                for i in 0..people.len() {
                    assert_eq!(people[i].visible, is_visible(&scene, people, i), "{width} {i}");
                }
                seen += people.iter().filter(|person| person.visible).count();
            }
            assert!(seen > 0 || width == 1, "no head is visible in {width}x{height}");
        }
    }

    #[test]
    fn a_box_is_free_of_heads_if_it_intersects_none() {
        let (mut crowd, mut random) = (Crowd::default(), fastrand::Rng::with_seed(2));
        let scene = Scene::new(640, 480, 300, 11);
        scene.people(3, &mut crowd);
        let mut clear = 0;
        for _ in 0..2000 {
            let (x, y, side) =
                (random.f32() * 640.0 - 20.0, random.f32() * 480.0 - 20.0, random.f32() * 64.0);
            let area = [x, y, x + side, y + side];
            let heads = crowd.people().iter().map(Person::head);
            let expected = heads.map(|head| intersection(area, head)).all(|shared| shared == 0.0);
            assert_eq!(crowd.is_free_of_heads(area), expected, "{area:?}");
            clear += usize::from(expected);
        }
        assert!((100..1900).contains(&clear), "{clear} boxes of 2000 are clear");
    }
}
