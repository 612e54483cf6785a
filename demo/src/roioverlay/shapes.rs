// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws lines in any direction, discs, and masks.
//!
//! In: positions in pixels of the frame, whose first pixel covers 0 to 1. Out: colors that are
//! blended into a surface, with smooth edges.

use super::color::Rgb;
use super::mask::{Between, Mask};
use super::surface::{Rect, Surface};

/// x and y.
pub(super) type Position = [f64; 2];

/// How to draw a line or a disc.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pen {
    pub color: Rgb,
    /// Opacity, from 0 (transparent) to 255 (opaque).
    pub alpha: u8,
    /// Half of a line's width, or a disc's radius, in pixels.
    pub radius: f64,
}

impl Pen {
    /// Returns the opacity of a pixel whose center has this distance from the middle of the line or
    /// disc.
    fn alpha_at(&self, distance: f64) -> u8 {
        ((self.radius + 0.5 - distance).clamp(0.0, 1.0) * f64::from(self.alpha)) as u8
    }
}

/// Rows per band. A sample that covers several pixels is blended once per band. No format has
/// samples that cover more rows.
const BAND: i32 = 4;

/// Draws a line with round ends.
pub(super) fn draw_line(surface: &mut Surface<'_>, [a, b]: [Position; 2], pen: Pen) {
    let along = [b[0] - a[0], b[1] - a[1]];
    let square = along[0] * along[0] + along[1] * along[1];
    let distance = |x: i32, y: i32| {
        let from = [f64::from(x) + 0.5 - a[0], f64::from(y) + 0.5 - a[1]];
        let dot = from[0] * along[0] + from[1] * along[1];
        let part = if square > 0.0 { (dot / square).clamp(0.0, 1.0) } else { 0.0 };
        (from[0] - part * along[0]).hypot(from[1] - part * along[1])
    };
    let reach = pen.radius + 1.0;
    let bounds = surface.bounds();
    // The frame's height limits the number of bands.
    let first = ((a[1].min(b[1]) - reach) as i32).max(0) / BAND;
    let last = ((a[1].max(b[1]) + reach) as i32).min(bounds.y2 - 1).div_euclid(BAND);
    for band in first..=last {
        let (y1, y2) = (band * BAND, (band + 1) * BAND);
        let rows = [f64::from(y1) - reach, f64::from(y2) + reach];
        let Some([left, right]) = columns(a, along, rows) else { continue };
        let rect = Rect { x1: (left - reach) as i32, y1, x2: ((right + reach) as i32) + 1, y2 };
        surface.blend(rect, pen.color, |x, y| pen.alpha_at(distance(x, y)));
    }
}

/// Returns the range of x that a line covers in these rows. The line goes from `a` along `along`.
fn columns(a: Position, along: Position, rows: [f64; 2]) -> Option<[f64; 2]> {
    let parts = if along[1] != 0.0 {
        let [from, to] = rows.map(|row| (row - a[1]) / along[1]);
        [from.min(to).max(0.0), from.max(to).min(1.0)]
    } else if rows[0] <= a[1] && a[1] <= rows[1] {
        [0.0, 1.0]
    } else {
        return None;
    };
    let [from, to] = parts.map(|part| a[0] + part * along[0]);
    (parts[0] <= parts[1]).then(|| [from.min(to), from.max(to)])
}

/// Draws the sides of a polygon.
pub(super) fn draw_polygon(surface: &mut Surface<'_>, corners: &[Position], pen: Pen) {
    let next = corners.iter().cycle().skip(1);
    for (&from, &to) in corners.iter().zip(next) {
        draw_line(surface, [from, to], pen);
    }
}

/// Draws a disc.
pub(super) fn draw_disc(surface: &mut Surface<'_>, [x, y]: Position, pen: Pen) {
    let reach = pen.radius + 1.0;
    let rect = Rect {
        x1: (x - reach) as i32,
        y1: (y - reach) as i32,
        x2: (x + reach) as i32 + 1,
        y2: (y + reach) as i32 + 1,
    };
    surface.blend(rect, pen.color, |column, row| {
        pen.alpha_at((f64::from(column) + 0.5 - x).hypot(f64::from(row) + 0.5 - y))
    });
}

/// Draws the pixels that a mask covers. `columns` is memory that is used again.
pub(super) fn draw_mask(
    surface: &mut Surface<'_>,
    mask: &Mask,
    color: Rgb,
    alpha: u8,
    columns: &mut Vec<Between>,
) {
    let [x1, y1, x2, y2] = mask.area.map(|edge| edge.round() as i32);
    let Some(rect) = Rect { x1, y1, x2, y2 }.intersection(&surface.bounds()) else { return };
    mask.set_columns(rect.x1..rect.x2, columns);
    surface.blend_rows(rect, color, |y, opacities| mask.row(y, alpha, columns, opacities));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_of_a_line_are_limited_to_the_given_rows() {
        let (a, along) = ([10.0, 20.0], [40.0, 80.0]);
        assert_eq!(columns(a, along, [20.0, 40.0]), Some([10.0, 20.0]));
        assert_eq!(columns(a, along, [90.0, 200.0]), Some([45.0, 50.0]));
        assert_eq!(columns(a, along, [0.0, 19.0]), None);
        assert_eq!(columns(a, along, [101.0, 105.0]), None);
        let (leftward, level) = ([-40.0, 80.0], [40.0, 0.0]);
        assert_eq!(columns(a, leftward, [20.0, 40.0]), Some([0.0, 10.0]));
        assert_eq!(columns(a, level, [19.0, 21.0]), Some([10.0, 50.0]));
        assert_eq!(columns(a, level, [21.0, 25.0]), None);
        assert_eq!(columns(a, [0.0, 0.0], [16.0, 24.0]), Some([10.0, 10.0]));
    }
}
