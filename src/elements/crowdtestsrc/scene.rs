//! Who is where: a function of seed, size and frame number alone.
//!
//! People walk in lanes. Far lanes are higher up in the picture and their people smaller; all of
//! one lane walk at one pace, so that heads keep their distance.

use super::splitmix64::SplitMix64;
use crate::elements::grid::Grid;

/// People in a frame of [`REFERENCE_AREA`] pixels.
const REFERENCE_PEOPLE: f64 = 60.0;
/// 1920 x 1080.
const REFERENCE_AREA: f64 = 1920.0 * 1080.0;
/// The smallest head, in pixels.
const MIN_HEAD_SIDE: f32 = 8.0;

/// The number of people for a frame of this size: 60 for 1920 x 1080, and by area.
pub(super) fn default_people(width: u32, height: u32) -> u32 {
    let people = REFERENCE_PEOPLE * f64::from(width) * f64::from(height) / REFERENCE_AREA;
    people.round().clamp(1.0, f64::from(u32::MAX)) as u32
}

/// A person, far lanes first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Person {
    /// Counts from 0; the same in every frame.
    pub id: u32,
    /// Center of the head.
    pub x: f32,
    /// Center of the head.
    pub y: f32,
    /// Side of the square that the head fills.
    pub side: f32,
    /// Whether a detector could see the head: at least half in the frame and not hidden.
    pub visible: bool,
}

impl Person {
    /// The head's box: left, top, right, bottom.
    pub fn head(&self) -> [f32; 4] {
        let half = self.side / 2.0;
        [self.x - half, self.y - half, self.x + half, self.y + half]
    }
}

/// Everyone in one frame.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    people: Vec<Person>,
    /// The centers of their heads.
    heads: Grid,
    /// The largest side of a head.
    max_head_side: f32,
}

impl Crowd {
    /// Far lanes first.
    pub fn people(&self) -> &[Person] {
        &self.people
    }

    /// Whether no head, seen or not, shares any area with this box.
    pub fn is_free_of_heads(&self, area: [f32; 4]) -> bool {
        self.heads
            .near(pixels_around(area, self.max_head_side / 2.0))
            .all(|id| intersection(area, self.people[id as usize].head()) == 0.0)
    }

    /// Whether a detector could see this head: at least half in the frame, and at least half of it
    /// not behind the nearer people, who are in the grid.
    fn is_visible(&self, person: &Person, frame: [f32; 4]) -> bool {
        let (head, half) = (person.head(), person.side * person.side / 2.0);
        if intersection(head, frame) < half {
            return false;
        }
        let mut hidden = 0.0;
        // In the order of the people, so that the sum is the same however cells are cut.
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

/// The pixels of a box with `by` more on each side.
pub(super) fn pixels_around([x1, y1, x2, y2]: [f32; 4], by: f32) -> [i32; 4] {
    let (low, high) =
        (|side: f32| (side - by).floor() as i32, |side: f32| (side + by).floor() as i32 + 1);
    [low(x1), low(y1), high(x2), high(y2)]
}

/// The crowd of one seed and size.
#[derive(Debug)]
pub(super) struct Scene {
    pub width: u32,
    pub height: u32,
    pub seed: u64,
    motions: Vec<Motion>,
}

/// What of a person does not change.
#[derive(Debug)]
struct Motion {
    start: f32,
    y: f32,
    side: f32,
    /// Pixels per frame, to the right.
    speed: f32,
    /// Length of the way after which they come in again on the other side.
    path_length: f32,
    /// Frames of a step.
    step_frames: f32,
}

impl Scene {
    pub fn new(width: u32, height: u32, people: u32, seed: u64) -> Self {
        let (w, h) = (width as f32, height as f32);
        // Six lanes of ten at 1920 x 1080.
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
                // Heads of one lane keep at least a third of a head between them.
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

    /// Everyone in frame `frame`.
    pub fn people(&self, frame: u64, crowd: &mut Crowd) {
        // Where the pace does not matter for centuries: single precision counts frames exactly.
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
        // Heads that overlap have their centers in neighboring cells.
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

/// The area that two boxes share.
pub(super) fn intersection(a: [f32; 4], b: [f32; 4]) -> f32 {
    let width = a[2].min(b[2]) - a[0].max(b[0]);
    let height = a[3].min(b[3]) - a[1].max(b[1]);
    width.max(0.0) * height.max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As [`Scene::people`] decides it, by a look at each pair.
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
