//! Who is where: a function of seed, size and frame number alone.
//!
//! People walk in lanes. Far lanes are higher up in the picture and their people smaller; all of
//! one lane walk at one pace, so that heads keep their distance.

use super::noise::Noise;

/// People in a frame of [`REFERENCE`] pixels.
const PEOPLE: f64 = 60.0;
/// 1920 x 1080.
const REFERENCE: f64 = 1920.0 * 1080.0;
/// The smallest head, in pixels.
const SMALLEST_HEAD: f32 = 8.0;

/// The number of people for a frame of this size: 60 for 1920 x 1080, and by area.
pub(super) fn default_people(width: u32, height: u32) -> u32 {
    let people = PEOPLE * f64::from(width) * f64::from(height) / REFERENCE;
    people.round().clamp(1.0, f64::from(u32::MAX)) as u32
}

/// A person, far lanes first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Person {
    /// Counts from 0; the same in every frame.
    pub id: u32,
    /// Centre of the head.
    pub x: f32,
    /// Centre of the head.
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

/// The crowd of one seed and size.
#[derive(Debug)]
pub(super) struct Scene {
    pub width: u32,
    pub height: u32,
    pub seed: u64,
    walkers: Vec<Walker>,
}

/// What of a person does not change.
#[derive(Debug)]
struct Walker {
    start: f32,
    y: f32,
    side: f32,
    /// Pixels per frame, to the right.
    pace: f32,
    /// Length of the way after which they come in again on the other side.
    way: f32,
    /// Frames of a step.
    step: f32,
}

impl Scene {
    pub fn new(width: u32, height: u32, people: u32, seed: u64) -> Self {
        let (w, h) = (width as f32, height as f32);
        // Six lanes of ten at 1920 x 1080.
        let lanes = (people as f32 * 0.6 * h / w * 16.0 / 9.0).sqrt().round().max(1.0);
        let pitch = h * 0.52 / lanes;
        let mut walkers = Vec::with_capacity(people as usize);
        for lane in 0..lanes as u32 {
            let share = |lane: u32| (u64::from(people) * u64::from(lane) / lanes as u64) as u32;
            let members = share(lane + 1) - share(lane);
            let mut noise = Noise::new(&[seed, 1, u64::from(lane)]);
            let depth = if lanes > 1.0 { lane as f32 / (lanes - 1.0) } else { 0.5 };
            let mut side = pitch * (0.7 + 0.45 * depth);
            let way = w + 2.0 * side;
            let slot = way / members.max(1) as f32;
            side = side.min(slot * 0.7).max(SMALLEST_HEAD);
            let direction = if noise.unit() < 0.5 { -1.0 } else { 1.0 };
            let pace = direction * side * noise.between(0.02, 0.05);
            let y = h * 0.24 + pitch * (lane as f32 + 0.5);
            for member in 0..members {
                // Heads of one lane keep at least a third of a head between them.
                let room = (slot - side * 1.33).max(0.0);
                walkers.push(Walker {
                    start: slot * member as f32 + room * noise.unit(),
                    y: y + pitch * noise.between(-0.08, 0.08),
                    side: side * noise.between(0.94, 1.0),
                    pace,
                    way,
                    step: noise.between(16.0, 28.0),
                });
            }
        }
        Self { width, height, seed, walkers }
    }

    /// Everyone in frame `frame`, far lanes first.
    pub fn people(&self, frame: u64, people: &mut Vec<Person>) {
        people.clear();
        // Where the pace does not matter for centuries: single precision counts frames exactly.
        let time = (frame % (1 << 24)) as f32;
        people.extend((0..).zip(&self.walkers).map(|(id, walker)| {
            let x = (walker.start + walker.pace * time).rem_euclid(walker.way) - walker.side;
            let phase = (time / walker.step).fract();
            let bob = (phase - 0.5).abs() * walker.side * 0.12;
            Person { id, x, y: walker.y + bob, side: walker.side, visible: true }
        }));
        for i in 0..people.len() {
            let (person, nearer) = (people[i], &people[i + 1..]);
            people[i].visible = self.can_be_seen(&person, nearer);
        }
    }

    fn can_be_seen(&self, person: &Person, nearer: &[Person]) -> bool {
        let head = person.head();
        let area = person.side * person.side;
        let frame = [0.0, 0.0, self.width as f32, self.height as f32];
        let hidden: f32 = nearer.iter().map(|other| intersection(head, other.head())).sum();
        intersection(head, frame) >= area / 2.0 && hidden <= area / 2.0
    }
}

/// The area that two boxes share.
pub(super) fn intersection(a: [f32; 4], b: [f32; 4]) -> f32 {
    let width = a[2].min(b[2]) - a[0].max(b[0]);
    let height = a[3].min(b[3]) - a[1].max(b[1]);
    width.max(0.0) * height.max(0.0)
}
