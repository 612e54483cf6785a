// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws the crowd.
//!
//! In: the people of a frame. Out: pixels of four bytes, with a background that is computed only
//! once, and people in front of it, drawn as ellipses and rectangles.

use super::scene::{Person, Scene};
use super::splitmix64::SplitMix64;

type Color = [u8; 3];

const SHIRTS: [Color; 10] = [
    [178, 58, 58],
    [58, 96, 168],
    [70, 128, 84],
    [222, 184, 96],
    [120, 84, 140],
    [90, 90, 98],
    [210, 210, 204],
    [46, 60, 80],
    [196, 120, 70],
    [110, 150, 160],
];
const SKINS: [Color; 5] =
    [[244, 208, 180], [226, 178, 142], [192, 140, 104], [142, 96, 66], [98, 64, 46]];
const HAIRS: [Color; 5] =
    [[40, 30, 26], [84, 56, 36], [150, 110, 60], [120, 120, 122], [24, 22, 24]];

/// The indices of red, green and blue in a pixel of four bytes.
pub(super) type ChannelOrder = [usize; 3];

/// Draws frames of one scene.
pub(super) struct Canvas {
    width: usize,
    height: usize,
    background: Vec<[u8; 4]>,
    appearances: Vec<Appearance>,
}

/// The colors of a person, with the channels in the order of the canvas.
struct Appearance {
    shirt: [u8; 4],
    shade: [u8; 4],
    skin: [u8; 4],
    hair: [u8; 4],
}

impl Canvas {
    pub fn new(scene: &Scene, people: usize, order: ChannelOrder) -> Self {
        let (width, height) = (scene.width as usize, scene.height as usize);
        let mut background = Vec::with_capacity(width * height);
        for y in 0..height {
            let down = y as f32 / height as f32;
            for x in 0..width {
                background.push(pixel(background_color(x as f32 / width as f32, down), order));
            }
        }
        let appearances = (0..people as u64)
            .map(|id| {
                let mut random = SplitMix64::new(&[scene.seed, 5, id]);
                let shirt = SHIRTS[random.index(SHIRTS.len())];
                Appearance {
                    shirt: pixel(shirt, order),
                    shade: pixel(shirt.map(|c| (u16::from(c) * 3 / 5) as u8), order),
                    skin: pixel(SKINS[random.index(SKINS.len())], order),
                    hair: pixel(HAIRS[random.index(HAIRS.len())], order),
                }
            })
            .collect();
        Self { width, height, background, appearances }
    }

    /// Draws `people` into `data`, whose rows are `stride` bytes apart. The last person is in
    /// front.
    pub fn draw(&self, people: &[Person], data: &mut [u8], stride: usize) {
        let row_bytes = self.width * 4;
        for (row, line) in data.chunks_mut(stride).zip(self.background.chunks_exact(self.width)) {
            row[..row_bytes].copy_from_slice(line.as_flattened());
        }
        for person in people {
            self.person(person, data, stride);
        }
    }

    fn person(&self, person: &Person, data: &mut [u8], stride: usize) {
        let appearance = &self.appearances[person.id as usize];
        let (x, y, half) = (person.x, person.y, person.side / 2.0);
        let mut ellipse = |cx: f32, cy: f32, rx: f32, ry: f32, from: f32, to: f32, color| {
            self.ellipse([cx, cy, rx, ry], [from, to], color, data, stride);
        };
        // Shoulders are the upper half of an ellipse. The body below them is a rectangle.
        let shoulders = y + half * 2.0;
        let body_end = y + half * 7.0;
        ellipse(x, shoulders, half * 1.75, half * 1.0, 0.0, shoulders, appearance.shade);
        ellipse(x, shoulders, half * 1.62, half * 0.92, 0.0, shoulders, appearance.shirt);
        ellipse(x, shoulders, half * 1.75, f32::INFINITY, shoulders, body_end, appearance.shade);
        ellipse(x, shoulders, half * 1.62, f32::INFINITY, shoulders, body_end, appearance.shirt);
        // Draws neck and hair, and a face that covers only a part of the hair.
        ellipse(x, y + half, half * 0.42, half * 0.5, 0.0, f32::INFINITY, appearance.skin);
        ellipse(x, y, half * 0.82, half, 0.0, f32::INFINITY, appearance.hair);
        ellipse(x, y + half * 0.16, half * 0.7, half * 0.82, 0.0, f32::INFINITY, appearance.skin);
        let eye = half * 0.09;
        for side in [-0.28, 0.28] {
            let cx = x + half * side;
            ellipse(cx, y + half * 0.05, eye, eye, 0.0, f32::INFINITY, appearance.hair);
        }
        let mouth = y + half * 0.55;
        ellipse(x, mouth, half * 0.24, half * 0.06, 0.0, f32::INFINITY, appearance.shade);
    }

    /// Fills the rows from `from` to `to` of the ellipse with the center (cx, cy) and the radii
    /// (rx, ry).
    fn ellipse(
        &self,
        [cx, cy, rx, ry]: [f32; 4],
        [from, to]: [f32; 2],
        color: [u8; 4],
        data: &mut [u8],
        stride: usize,
    ) {
        let row = |y: f32| y.clamp(0.0, self.height as f32) as usize;
        for y in row((cy - ry).max(from))..row((cy + ry + 1.0).min(to)) {
            let dy = (y as f32 + 0.5 - cy) / ry;
            let reach = rx * (1.0 - dy * dy).max(0.0).sqrt();
            let column = |x: f32| (x + 0.5).clamp(0.0, self.width as f32) as usize;
            let (left, right) = (column(cx - reach), column(cx + reach));
            if left < right {
                let line = &mut data[y * stride + left * 4..y * stride + right * 4];
                line.as_chunks_mut::<4>().0.fill(color);
            }
        }
    }
}

/// Returns the color of the background: a street with a pale sky, a row of houses, and paving
/// towards the horizon.
fn background_color(across: f32, down: f32) -> Color {
    let mix = |a: Color, b: Color, t: f32| -> Color {
        let t = t.clamp(0.0, 1.0);
        [0, 1, 2].map(|i| (f32::from(a[i]) * (1.0 - t) + f32::from(b[i]) * t) as u8)
    };
    let house = (across * 9.0) as usize;
    let roof = 0.05 + 0.04 * ((house * 7 + 3) % 5) as f32 / 4.0;
    if down < roof {
        mix([196, 212, 226], [222, 228, 230], down / 0.1)
    } else if down < 0.24 {
        let wall = [[168, 156, 146], [150, 146, 150], [178, 166, 150]][house % 3];
        let window = (across * 90.0).fract() > 0.4 && ((down - roof) * 30.0).fract() > 0.45;
        if window { mix(wall, [92, 104, 116], 0.7) } else { wall }
    } else {
        // Joints between paving slabs converge at the vanishing point. They are not drawn near the
        // horizon.
        let away = 1.0 / (down - 0.2);
        let across_joint = ((across - 0.5) * away * 4.0).fract().abs() < 0.03;
        let joint = down > 0.34 && (across_joint || (away * 2.0).fract() < 0.04);
        let slab = mix([158, 154, 148], [126, 124, 120], (down - 0.24) / 0.76);
        if joint { mix(slab, [92, 90, 88], 0.5) } else { slab }
    }
}

fn pixel(color: Color, order: ChannelOrder) -> [u8; 4] {
    let mut pixel = [255; 4];
    for (component, index) in color.into_iter().zip(order) {
        pixel[index] = component;
    }
    pixel
}
